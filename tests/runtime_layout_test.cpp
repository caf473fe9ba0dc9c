// Pieces of the runtime by themselves, against what one would write without thinking: tensors that meet in memory, bfloat16.
#include "bfloat16.h"
#include "draw.h"
#include "layout.h"

#include <catch2/catch.hpp>

#include <cstring>
#include <limits>
#include <set>
#include <vector>

using namespace halation::runtime;

namespace {

// The bytes of a tensor one by one; `meets_itself` if any is there twice.
std::set<int64_t> bytes_of(const TensorView &view, int rank, int element_bytes, bool *meets_itself) {
    std::set<int64_t> bytes;
    int64_t index[most_axes] = {};
    *meets_itself = false;
    for (;;) {
        int64_t element = 0;
        for (int axis = 0; axis < rank; axis++) element += index[axis] * view.stride[axis];
        for (int byte = 0; byte < element_bytes; byte++)
            *meets_itself |=
                !bytes.insert(static_cast<int64_t>(reinterpret_cast<uintptr_t>(view.data)) + element * element_bytes + byte)
                     .second;
        int axis = rank - 1;
        while (axis >= 0 && ++index[axis] == view.extent[axis]) index[axis--] = 0;
        if (axis < 0) return bytes;
    }
}

}  // namespace

TEST_CASE("tensors that meet in memory are never taken for apart") {
    Draw draw(7);
    int apart_pairs = 0, missed = 0, too_strict = 0, missed_themselves = 0;
    for (int pair = 0; pair < 40000; pair++) {
        const int rank = static_cast<int>(draw.number(1, 3));
        const bool alike = draw.number(0, 1);  // as parts of one buffer are
        TensorView views[2] = {};
        int bytes[2];
        for (int k = 0; k < 2; k++) {
            bytes[k] = draw.number(0, 1) ? 4 : 2;
            for (int axis = 0; axis < rank; axis++) {
                views[k].extent[axis] = draw.number(1, 4);
                views[k].stride[axis] = k && alike ? views[0].stride[axis] * bytes[0] / bytes[1] : draw.number(-2, 14);
                if (views[k].extent[axis] == 1) views[k].stride[axis] = 0;
            }
            views[k].data = reinterpret_cast<char *>((int64_t(1) << 20) + bytes[k] * draw.number(-20, 20));
        }
        bool first_meets_itself, second_meets_itself, meet = false;
        const auto first = bytes_of(views[0], rank, bytes[0], &first_meets_itself);
        for (const int64_t byte : bytes_of(views[1], rank, bytes[1], &second_meets_itself)) meet |= first.count(byte) > 0;
        const bool found_apart = apart({views[0], rank, bytes[0]}, {views[1], rank, bytes[1]});
        apart_pairs += found_apart;
        missed += found_apart && meet;
        too_strict += !found_apart && !meet;
        int64_t span;
        missed_themselves += first_axis_that_meets(views[0], rank, &span) < 0 && first_meets_itself;
    }
    CHECK(missed == 0);
    CHECK(missed_themselves == 0);
    CHECK(apart_pairs > 5000);
    CHECK(too_strict < apart_pairs);  // interleaved otherwise than with the same strides
}

TEST_CASE("bfloat16 is rounded to nearest, ties to even, and NaN and infinity stay what they are") {
    const std::vector<std::pair<uint32_t, uint16_t>> cases = {
        {0x3f800000, 0x3f80}, {0x3f808000, 0x3f80}, {0x3f818000, 0x3f82}, {0x3f808001, 0x3f81}, {0x3f807fff, 0x3f80},
        {0xbf818000, 0xbf82}, {0x7f7fffff, 0x7f80}, {0x7f800000, 0x7f80}, {0xff800000, 0xff80}, {0x7f800001, 0x7fc0},
        {0x7fffffff, 0x7fff}, {0xff800001, 0xffc0}, {0x00000001, 0x0000}, {0x80000000, 0x8000}};
    // Many of each, at once and one by one, for the vector code and for what is left of it.
    std::vector<char> floats, expected;
    for (int repeat = 0; repeat < 7; repeat++)
        for (const auto &[from, to] : cases) {
            const char *source = reinterpret_cast<const char *>(&from), *target = reinterpret_cast<const char *>(&to);
            floats.insert(floats.end(), source, source + 4);
            expected.insert(expected.end(), target, target + 2);
        }
    const int64_t count = static_cast<int64_t>(floats.size()) / 4;
    for (const int64_t at_once : {count, int64_t(1), int64_t(13)}) {
        std::vector<char> halves(expected.size());
        for (int64_t i = 0; i < count; i += at_once)
            narrow(floats.data() + 4 * i, halves.data() + 2 * i, std::min(at_once, count - i));
        CHECK(halves == expected);
        std::vector<char> wide(floats.size());
        widen(halves.data(), wide.data(), count);
        for (int64_t i = 0; i < count; i++) {
            CHECK(std::memcmp(&wide[static_cast<size_t>(4 * i + 2)], &halves[static_cast<size_t>(2 * i)], 2) == 0);
            CHECK((wide[static_cast<size_t>(4 * i)] | wide[static_cast<size_t>(4 * i + 1)]) == 0);
        }
    }
}
