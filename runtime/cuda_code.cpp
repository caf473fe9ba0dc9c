#include "cuda_code.h"
#include "halation_kernels.h"
#include "status.h"

#include <algorithm>
#include <cstring>

namespace halation::runtime::cuda {
namespace {

// Machine code runs on its own architecture, and on those after it of the same generation.
bool runs(uint32_t made_for, int architecture) {
    const auto on = static_cast<uint32_t>(architecture);
    return made_for == 0 || (made_for / 10 == on / 10 && made_for <= on);
}

}  // namespace

halation_status choose_code(const void *code, size_t bytes, int architecture, std::vector<const void *> *choices) {
    choices->clear();
    halation_device_code head;
    if (bytes < sizeof head || std::memcmp(code, HALATION_DEVICE_CODE_MAGIC, sizeof head.magic) != 0) {
        choices->push_back(code);
        return HALATION_OK;
    }
    std::memcpy(&head, code, sizeof head);
    const auto *bytes_of_code = static_cast<const char *>(code);
    if (head.part_count > (bytes - sizeof head) / sizeof(halation_device_code_part))
        return fail(HALATION_INTERNAL_ERROR, "cuda: device code of %zu bytes claims %u parts", bytes, head.part_count);
    std::vector<halation_device_code_part> parts;
    for (uint32_t i = 0; i < head.part_count; i++) {
        halation_device_code_part part;
        std::memcpy(&part, bytes_of_code + sizeof head + i * sizeof part, sizeof part);
        if (part.bytes == 0 || part.offset > bytes || part.bytes > bytes - part.offset)
            return fail(HALATION_INTERNAL_ERROR, "cuda: device code of %zu bytes claims a part of %u at %llu", bytes, part.bytes,
                        static_cast<unsigned long long>(part.offset));
        if (part.architecture == 0 && bytes_of_code[part.offset + part.bytes - 1] != 0)
            return fail(HALATION_INTERNAL_ERROR, "cuda: device code has PTX without an end");
        if (runs(part.architecture, architecture)) parts.push_back(part);
    }
    if (parts.empty()) return fail(HALATION_UNSUPPORTED, "cuda: a kernel has no code for architecture %d, nor PTX", architecture);
    std::stable_sort(parts.begin(), parts.end(), [](const halation_device_code_part &a, const halation_device_code_part &b) {
        return a.architecture > b.architecture;
    });
    for (const halation_device_code_part &part : parts) choices->push_back(bytes_of_code + part.offset);
    return HALATION_OK;
}

}  // namespace halation::runtime::cuda
