// Rows that are asked for ahead (schedules/rows_ahead.h) are those that the next head reads, and asking touches no memory.
#include "schedules/rows_ahead.h"

#include "lowered.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

extern "C" int halation_ask_for_rows(const void *tensor, int64_t offset, int64_t row_bytes, int32_t rows, int32_t lines);

namespace {

constexpr int chunk = 4, line_bytes = 64;

// How a tensor lies: what the next head reads of a row, and the way from one row, head or token to the next, in bytes.
struct Tensor {
    int64_t row_bytes, key_stride = 0, head_stride = 0, token_stride = 0;
};

struct Shape {
    int64_t T, heads, K, V;
};

// One call at a chunk of a head, of a tile.
struct Asked {
    int64_t head, chunk, tile, offset, row_bytes, rows, lines;
};

// "output$3" of a second kernel in one program is "output".
std::string without_number(const std::string &name) {
    return name.substr(0, name.find('$'));
}

void set_dim(lowered::Values &values, const std::string &tensor, int dim, int64_t extent, int64_t stride) {
    const std::string number = "." + std::to_string(dim);
    values[tensor + ".min" + number] = 0;
    values[tensor + ".extent" + number] = extent;
    values[tensor + ".stride" + number] = stride;
}

using Calls = std::map<std::string, std::vector<Asked>>;  // by tensor

// Where a loop is, of those over the heads, tiles and chunks of output.
int64_t turn(const lowered::Values &values, const std::string &var) {
    for (const auto &[name, value] : values)
        if (name.rfind("output", 0) == 0 && Halide::Internal::ends_with(name, "." + var)) return value;
    return -1;
}

Calls asked_in(const Halide::Internal::Stmt &stmt, const lowered::Values &values) {
    Calls found;
    const auto visit = [&](const Halide::Internal::Stmt &s, const lowered::Values &now) {
        const auto *evaluate = s.as<Halide::Internal::Evaluate>();
        const auto *call = evaluate ? evaluate->value.as<Halide::Internal::Call>() : nullptr;
        if (!call || call->name != "halation_ask_for_rows") return;
        const auto argument = [&](int i) {
            const auto value = lowered::value_of(call->args[i], now);
            REQUIRE(value);
            return *value;
        };
        const auto *tensor = call->args[0].as<Halide::Internal::Variable>();
        REQUIRE(tensor);
        found[without_number(tensor->name)].push_back({turn(now, "h"), turn(now, "chunk_loop"), turn(now, "tile_loop"),
                                                       argument(1), argument(2), argument(3), argument(4)});
    };
    lowered::each_reached(stmt, values, visit, [](const std::string &loop) {
        for (const char *var : {".h", ".tile_loop", ".chunk_loop"})
            if (Halide::Internal::ends_with(loop, var)) return false;
        return true;
    });
    return found;
}

struct Kernel {
    Halide::Internal::Stmt stmt;
    int tile;
    int64_t bytes;                            // of an element of q, k, v and o
    std::map<std::string, std::string> dims;  // of all tensors, innermost first

    explicit Kernel(const std::string &recurrence, const std::string &isa = "avx2", const std::string &type = "f32")
        : stmt(lowered::kernel("form=chunkwise recurrence=" + recurrence + " isa=" + isa + " type=" + type)),
          tile(isa == "avx2" ? 16 : 32), bytes(type == "f32" ? 4 : 2), dims{{"q", "KHT"},
                                                                            {"k", "KHT"},
                                                                            {"v", "VGT"},
                                                                            {"output", "VGT"},
                                                                            {"initial_state", "VKG"}} {
        if (recurrence == "gla") dims["g"] = "KGT";
        if (recurrence == "gated" || recurrence == "gated_delta") dims["g"] = "GT";
        if (recurrence == "gated_delta") dims["beta"] = "VGT";
    }
    int64_t bytes_of(const std::string &tensor) const {
        return tensor == "q" || tensor == "k" || tensor == "v" || tensor == "output" ? bytes : 4;
    }

    Calls asked(const Shape &shape, const std::map<std::string, Tensor> &tensors) const {
        lowered::Values values;
        for (const auto &[name, letters] : dims)
            for (size_t dim = 0; dim < letters.size(); dim++) {
                const char letter = letters[dim];
                const Tensor &tensor = tensors.at(name);
                const int64_t extent = letter == 'K' ? shape.K : letter == 'V' ? shape.V : letter == 'T' ? shape.T : shape.heads;
                const int64_t stride = letter == 'T'                        ? tensor.token_stride
                                       : letter == 'H' || letter == 'G'     ? tensor.head_stride
                                       : letter == 'K' && letters[0] == 'V' ? tensor.key_stride
                                                                            : bytes_of(name);
                set_dim(values, name, static_cast<int>(dim), extent, stride / bytes_of(name));
            }
        return asked_in(stmt, values);
    }
};

// [B,T,heads,channels] and [heads,K,V] as they come, or with something between any two rows.
std::map<std::string, Tensor> laid_out(const Kernel &kernel, const Shape &shape, int64_t between) {
    std::map<std::string, Tensor> tensors;
    for (const auto &[name, dims] : kernel.dims) {
        const int64_t bytes = kernel.bytes_of(name), row = bytes * (dims[0] == 'K' ? shape.K : dims[0] == 'V' ? shape.V : 1);
        Tensor tensor = {row};
        const int64_t next = row + between * bytes;
        if (dims == "VKG")
            tensor.key_stride = next, tensor.head_stride = next * shape.K + between * bytes;
        else
            tensor.head_stride = next, tensor.token_stride = next * shape.heads + between * bytes;
        tensors[name] = tensor;
    }
    return tensors;
}

// The lines from `first` on that hold `bytes`, which no call is to leave out, and those of the last call's share that it may ask
// for besides.
struct Lines {
    std::set<int64_t> asked, wanted;
    int64_t most = 0;  // that were to be asked for, with what sharing them out rounds up
};

void add_row(Lines &lines, int64_t first, int64_t bytes, int64_t tiles) {
    const int64_t count = (bytes + line_bytes - 1) / line_bytes;
    for (int64_t line = 0; line < count; line++) lines.wanted.insert(first + line * line_bytes);
    lines.most += (count + tiles - 1) / tiles * tiles;
}

void check_tokens(const std::vector<Asked> &asked, const Tensor &tensor, const Shape &shape, int64_t tiles) {
    const int64_t chunks = (shape.T + chunk - 1) / chunk;
    REQUIRE(asked.size() == static_cast<size_t>(shape.heads * tiles * chunks));
    for (int64_t head = 0; head < shape.heads; head++)
        for (int64_t c = 0; c < chunks; c++) {
            INFO("head " << head << ", chunk " << c);
            Lines lines;
            for (const Asked &call : asked) {
                if (call.head != head || call.chunk != c) continue;
                CHECK(call.rows == chunk);
                CHECK(call.row_bytes == tensor.token_stride);
                for (int64_t row = 0; row < call.rows; row++)
                    for (int64_t line = 0; line < call.lines; line++)
                        lines.asked.insert(call.offset + row * call.row_bytes + line * line_bytes);
            }
            // After the last head of a call comes the first, of the tokens after these.
            const bool last = head == shape.heads - 1;
            for (int64_t i = 0; i < chunk; i++)
                add_row(lines,
                        (last ? 0 : head + 1) * tensor.head_stride + (c * chunk + i + (last ? shape.T : 0)) * tensor.token_stride,
                        tensor.row_bytes, tiles);
            CHECK(std::includes(lines.asked.begin(), lines.asked.end(), lines.wanted.begin(), lines.wanted.end()));
            CHECK(*lines.asked.begin() == *lines.wanted.begin());
            CHECK(static_cast<int64_t>(lines.asked.size()) <= lines.most);
        }
}

void check_state(const std::vector<Asked> &asked, const Tensor &tensor, const Shape &shape, int64_t tiles) {
    const int64_t chunks = (shape.T + chunk - 1) / chunk;
    for (int64_t head = 0; head < shape.heads; head++) {
        INFO("head " << head);
        Lines lines;
        int64_t last_row = -1;
        for (const Asked &call : asked) {
            if (call.head != head) continue;
            CHECK(call.row_bytes == tensor.key_stride);
            for (int64_t row = 0; row < call.rows; row++)
                for (int64_t line = 0; line < call.lines; line++)
                    lines.asked.insert(call.offset + row * call.row_bytes + line * line_bytes);
            if (call.rows > 0)
                last_row =
                    std::max(last_row, (call.offset - (head + 1) * tensor.head_stride) / tensor.key_stride + call.rows - 1);
        }
        if (chunks * chunk > 64) {
            CHECK(lines.asked.empty());
            continue;
        }
        for (int64_t d = 0; d < shape.K; d++)
            add_row(lines, (head + 1) * tensor.head_stride + d * tensor.key_stride, tensor.row_bytes, tiles);
        CHECK(std::includes(lines.asked.begin(), lines.asked.end(), lines.wanted.begin(), lines.wanted.end()));
        CHECK(*lines.asked.begin() == *lines.wanted.begin());
        // Shared out evenly over the chunks.
        CHECK(last_row < shape.K + chunks);
    }
}

void check(const Kernel &kernel, const Shape &shape, int64_t between) {
    INFO("T = " << shape.T << ", heads = " << shape.heads << ", K = " << shape.K << ", V = " << shape.V << ", " << between
                << " elements between rows");
    const auto tensors = laid_out(kernel, shape, between);
    const auto asked = kernel.asked(shape, tensors);
    const int64_t tiles = shape.V / kernel.tile;
    if (tiles == 0) {
        CHECK(asked.empty());  // there is no loop over tiles
        return;
    }
    for (const auto &[name, dims] : kernel.dims) {
        INFO(name);
        if (dims == "GT") {
            CHECK(asked.count(name) == 0);
        } else {
            REQUIRE(asked.count(name) == 1);
            if (dims == "VKG")
                check_state(asked.at(name), tensors.at(name), shape, tiles);
            else
                check_tokens(asked.at(name), tensors.at(name), shape, tiles);
        }
    }
}

}  // namespace

TEST_CASE("rows ahead: those of the next head, chunk by chunk") {
    for (const std::string recurrence : {"gated", "gla"}) {
        for (const std::string isa : {"avx2", "avx512"}) {
            INFO(recurrence << ", " << isa);
            const Kernel kernel(recurrence, isa);
            for (const Shape &shape : {Shape{128, 3, 64, 64}, Shape{1, 2, 16, 32}, Shape{5, 1, 17, 41}, Shape{64, 2, 5, 70},
                                       Shape{65, 2, 5, 64}, Shape{7, 4, 128, 128}, Shape{9, 2, 3, 7}})
                for (const int64_t between : {0, 3}) check(kernel, shape, between);
        }
    }
}

TEST_CASE("rows ahead: of 16-bit floats") {
    const Kernel kernel("gla", "avx2", "bf16");
    for (const Shape &shape : {Shape{128, 3, 64, 64}, Shape{5, 1, 17, 41}}) check(kernel, shape, 1);
}

TEST_CASE("rows ahead: strides of 0, and such that bytes do not fit into 32 bits") {
    const Kernel kernel("gated");
    const Shape shape = {9, 3, 16, 32};
    // Elements as far apart as a kernel can reach.
    const int64_t far_heads = 4 * 0x3fff'0000ll, far_tokens = 4 * 0x0aff'0000ll;
    const std::pair<int64_t, int64_t> strides[] = {{0, 256}, {256, 0}, {0, 0}, {far_heads, 256}, {64, far_tokens}};
    for (const auto &[head_stride, token_stride] : strides) {
        INFO("strides " << head_stride << " and " << token_stride);
        auto tensors = laid_out(kernel, shape, 0);
        tensors["q"].head_stride = head_stride;
        tensors["q"].token_stride = token_stride;
        check_tokens(kernel.asked(shape, tensors).at("q"), tensors["q"], shape, 2);
    }
}

namespace {

// Loops of 2 heads, 3 tiles and 4 chunks that begin anywhere, around a store; those over what `without` names are left out.
Halide::Internal::Stmt written_out(const std::string &without = "") {
    using namespace Halide::Internal;
    Stmt stmt = Store::make("out", 0.0f, 0, Halide::Parameter(), const_true(), ModulusRemainder());
    const std::tuple<const char *, int, int> loops[] = {{"chunk_loop", 7, 4}, {"tile_loop", 5, 3}, {"h", 2, 2}};
    for (const auto &[var, first, turns] : loops)
        if (var != without)
            stmt = For::make(std::string("output.s0.v.") + var, first, turns, ForType::Serial, Halide::Partition::Auto,
                             Halide::DeviceAPI::None, stmt);
    return stmt;
}

Halide::Internal::Stmt passed(const Halide::Internal::Stmt &stmt, const std::vector<halation::RowsAhead::Tensor> &tensors) {
    const std::unique_ptr<Halide::Internal::IRMutator> pass(
        halation::make_rows_ahead_pass({tensors, "h", "tile_loop", "chunk_loop", chunk}));
    return pass->mutate(stmt);
}

}  // namespace

TEST_CASE("rows ahead: loops that do not begin at 0, and a row of more bytes than 32 bits can say") {
    const int64_t V = (int64_t(1) << 30) - 16, lines = V / 16;
    lowered::Values values;
    set_dim(values, "v", 0, V, 1);
    set_dim(values, "v", 1, 2, V);
    set_dim(values, "v", 2, 16, 0x7fff'fff0);
    const Calls asked = asked_in(passed(written_out(), {{"v", "VGT", 4}}), values);
    REQUIRE(asked.at("v").size() == 2 * 3 * 4);
    for (const Asked &call : asked.at("v")) {
        CHECK(call.lines == (lines + 2) / 3);
        CHECK(call.row_bytes == 4 * int64_t(0x7fff'fff0));
        const int64_t token = (call.chunk - 7) * chunk + (call.head == 3 ? 16 : 0), head = call.head == 3 ? 0 : 1;
        CHECK(call.offset == token * call.row_bytes + head * 4 * V + (call.tile - 5) * call.lines * line_bytes);
    }
}

TEST_CASE("rows ahead: nothing else is changed") {
    int64_t stores = 0;
    lowered::each_reached(passed(written_out(), {{"v", "VGT", 4}, {"s", "VKG", 4}}), {},
                          [&](const auto &s, const auto &) { stores += s.template as<Halide::Internal::Store>() != nullptr; });
    CHECK(stores == 2 * 3 * 4);
    for (const char *without : {"h", "tile_loop", "chunk_loop"}) {
        const Halide::Internal::Stmt stmt = written_out(without);
        CHECK(Halide::Internal::equal(passed(stmt, {{"v", "VGT", 4}}), stmt));
    }
    // Of one number a head, of none by head, of no tokens.
    for (const char *dims : {"GT", "G", "KH", "VG"}) {
        INFO(dims);
        CHECK(asked_in(passed(written_out(), {{"x", dims, 4}}), {}).empty());
    }
}

TEST_CASE("rows ahead: no chunk, no head, nothing to ask for") {
    const Kernel kernel("gated");
    for (const Shape &shape : {Shape{0, 2, 16, 32}, Shape{4, 0, 16, 32}, Shape{4, 2, 16, 0}})
        CHECK(kernel.asked(shape, laid_out(kernel, shape, 0)).empty());
}

TEST_CASE("rows ahead: asking touches nothing") {
    const int64_t far = std::numeric_limits<int64_t>::max(), farther = std::numeric_limits<int64_t>::min();
    const int value = 0;
    for (const void *tensor : {static_cast<const void *>(nullptr), static_cast<const void *>(&value)})
        for (const int64_t offset : {int64_t(0), int64_t(1), int64_t(-4096), far, farther})
            for (const int64_t stride : {int64_t(0), int64_t(-64), int64_t(1) << 40, far, farther})
                for (const int32_t count : {0, 1, 100, -1, std::numeric_limits<int32_t>::min()}) {
                    CHECK(halation_ask_for_rows(tensor, offset, stride, count, 3) == 0);
                    CHECK(halation_ask_for_rows(tensor, offset, stride, 3, count) == 0);
                }
}
