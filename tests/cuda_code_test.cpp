// Which part of a kernel's device code a CUDA device is given, and what is made of code that contradicts itself.
#include "cuda_code.h"
#include "halation_kernels.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <string>
#include <utility>

using halation::runtime::cuda::choose_code;

namespace {

using Parts = std::vector<std::pair<uint32_t, std::string>>;

std::string code_of(const Parts &parts) {
    halation_device_code head{};
    std::memcpy(head.magic, HALATION_DEVICE_CODE_MAGIC, sizeof head.magic);
    head.part_count = static_cast<uint32_t>(parts.size());
    std::string code(reinterpret_cast<const char *>(&head), sizeof head), bodies;
    for (const auto &[architecture, body] : parts) {
        const halation_device_code_part part{architecture, static_cast<uint32_t>(body.size()),
                                             sizeof head + parts.size() * sizeof part + bodies.size()};
        code.append(reinterpret_cast<const char *>(&part), sizeof part);
        bodies += body;
    }
    return code + bodies;
}

const Parts usual = {{80, "for 80"}, {86, "for 86"}, {90, "for 90"}, {0, std::string("ptx\0", 4)}};

std::vector<std::string> chosen(const std::string &code, int architecture) {
    std::vector<const void *> choices;
    REQUIRE(choose_code(code.data(), code.size(), architecture, &choices) == HALATION_OK);
    std::vector<std::string> texts;
    for (const void *choice : choices) texts.emplace_back(static_cast<const char *>(choice), 3);
    for (size_t i = 0; i < texts.size(); i++)
        if (texts[i] == "for") texts[i] = std::string(static_cast<const char *>(choices[i]), 6);
    return texts;
}

std::string refusal(const std::string &code) {
    std::vector<const void *> choices;
    CHECK(choose_code(code.data(), code.size(), 90, &choices) != HALATION_OK);
    CHECK(choices.empty());
    return halation_last_message();
}

}  // namespace

TEST_CASE("A device is given machine code for it, the newest first, and PTX last") {
    using Texts = std::vector<std::string>;
    const std::string code = code_of(usual);
    CHECK(chosen(code, 90) == Texts{"for 90", "ptx"});
    CHECK(chosen(code, 80) == Texts{"for 80", "ptx"});
    CHECK(chosen(code, 86) == Texts{"for 86", "for 80", "ptx"});
    CHECK(chosen(code, 89) == Texts{"for 86", "for 80", "ptx"});
    CHECK(chosen(code, 75) == Texts{"ptx"});
    CHECK(chosen(code, 100) == Texts{"ptx"});
    CHECK(chosen(code, 120) == Texts{"ptx"});
}

TEST_CASE("Code without parts is taken as it is") {
    for (const char *text : {".version 7.0\n.target sm_80\n", "HALATION", ""}) {
        std::vector<const void *> choices;
        REQUIRE(choose_code(text, std::strlen(text) + 1, 90, &choices) == HALATION_OK);
        CHECK(choices == std::vector<const void *>{text});
    }
}

TEST_CASE("Code that nothing can be chosen from is refused, with a reason") {
    CHECK(refusal(code_of({{80, "for 80"}})) == "cuda: a kernel has no code for architecture 90, nor PTX");
    CHECK(refusal(code_of({})) == "cuda: a kernel has no code for architecture 90, nor PTX");
    CHECK(refusal(code_of({{0, "without a 0"}})) == "cuda: device code has PTX without an end");
    const std::string code = code_of(usual);
    for (size_t bytes = sizeof(halation_device_code); bytes < code.size(); bytes++)
        CHECK(refusal(std::string(code, 0, bytes)).find("claims") != std::string::npos);
    std::string far = code;
    const uint64_t offset = UINT64_MAX - 2;
    std::memcpy(&far[sizeof(halation_device_code) + offsetof(halation_device_code_part, offset)], &offset, sizeof offset);
    CHECK(refusal(far).find("claims a part") != std::string::npos);
}
