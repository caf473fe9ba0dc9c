// What is done to the device code of kernels for CUDA, with a stand-in for ptxas that says what ptxas says.
#include "generators/cubins.h"
#include "generators/device_code.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <halation_kernels.h>
#include <sstream>
#include <unistd.h>

namespace fs = std::filesystem;
using namespace halation;

namespace {

const std::string ptx = ".version 7.0\n.target sm_80\n.visible .entry one(\n\t.param .u64 a\n)\n{\n\tret;\n}\n"
                        ".visible .entry two(\n\t.param .u64 a\n)\n{\n\t{ret;}\n}\n";

struct Folder {
    const fs::path path = fs::temp_directory_path() / ("halation cubins' " + std::to_string(getpid()));
    Folder() { fs::create_directory(path); }
    ~Folder() { fs::remove_all(path); }
    std::string read(const std::string &name) const {
        std::ostringstream text;
        text << std::ifstream(path / name).rdbuf();
        return text.str();
    }
    // A program that is called as ptxas is.
    std::string program(const std::string &script) const {
        std::ofstream(path / "ptxas") << "#!/bin/sh\n" << script;
        fs::permissions(path / "ptxas", fs::perms::owner_all);
        return (path / "ptxas").string();
    }
};

// $2: -arch=sm_90, $4: the output, $5: the input.
const std::string assembles = R"(printf 'for %s: ' "$2" > "$4"; head -c 12 "$5" >> "$4"
echo "ptxas info    : 0 bytes gmem"
for entry in one two; do
    echo "ptxas info    : Compiling entry function '$entry' for '${2#-arch=}'"
    echo "ptxas info    : Function properties for $entry"
    echo "    48 bytes stack frame, 0 bytes spill stores, 4 bytes spill loads"
    echo "ptxas info    : Used 72 registers, used 1 barriers, 416 bytes cmem[0]"
done
)";

}  // namespace

TEST_CASE("A bound on registers stands between each kernel's parameters and its code") {
    const std::string bounded = with_most_registers(ptx, 128), after = "\n)\n.maxnreg 128\n{\n\t";
    REQUIRE(bounded.find("one(\n\t.param .u64 a" + after + "ret;") != std::string::npos);
    REQUIRE(bounded.find("two(\n\t.param .u64 a" + after + "{ret;}") != std::string::npos);
    REQUIRE(bounded.size() == ptx.size() + 2 * std::string("\n.maxnreg 128").size());
    REQUIRE_THROWS_AS(with_most_registers(".version 7.0\n", 128), Halide::CompileError);
}

TEST_CASE("Device code has machine code for each architecture, and the PTX") {
    const Folder folder;
    const std::string code =
        cuda_code(ptx + std::string(3, '\0'), {folder.program(assembles), {80, 90}}, (folder.path / "kernel").string());
    halation_device_code head;
    std::memcpy(&head, code.data(), sizeof head);
    REQUIRE(std::string(head.magic, 8) == HALATION_DEVICE_CODE_MAGIC);
    REQUIRE(head.part_count == 3);
    const std::pair<uint32_t, std::string> expected[] = {
        {80, "for -arch=sm_80: .version 7.0"}, {90, "for -arch=sm_90: .version 7.0"}, {0, ptx + '\0'}};
    for (size_t i = 0; i < 3; i++) {
        halation_device_code_part part;
        std::memcpy(&part, code.data() + sizeof head + i * sizeof part, sizeof part);
        CHECK(part.architecture == expected[i].first);
        CHECK(part.offset % 16 == 0);
        CHECK(code.substr(part.offset, part.bytes) == expected[i].second);
    }
    CHECK(folder.read("kernel.registers.txt") == "sm_80 one registers 72 stack 48 spill_stores 0 spill_loads 4\n"
                                                 "sm_80 two registers 72 stack 48 spill_stores 0 spill_loads 4\n"
                                                 "sm_90 one registers 72 stack 48 spill_stores 0 spill_loads 4\n"
                                                 "sm_90 two registers 72 stack 48 spill_stores 0 spill_loads 4\n");
    CHECK(std::distance(fs::directory_iterator(folder.path), {}) == 2);  // the program, and that
}

TEST_CASE("Without ptxas device code is the PTX") {
    const Folder folder;
    const std::string code = cuda_code(ptx, {}, (folder.path / "kernel").string());
    CHECK(code.substr(code.find(".version")).c_str() == ptx);
    CHECK(fs::is_empty(folder.path / "kernel.registers.txt"));
}

TEST_CASE("What ptxas refuses is said in its words") {
    const Folder folder;
    const Cubins cubins{folder.program("echo 'ptxas fatal: no such architecture'; exit 255\n"), {12}};
    try {
        cuda_code(ptx, cubins, (folder.path / "kernel").string());
        FAIL("it was taken");
    } catch (const Halide::CompileError &error) {
        CHECK(std::string(error.what()).find("ptxas for architecture 12: ptxas fatal: no such architecture") == 0);
    }
    CHECK(std::distance(fs::directory_iterator(folder.path), {}) == 1);
    CHECK_THROWS_AS(cuda_code(ptx, {"/no/such/ptxas", {80}}, (folder.path / "kernel").string()), Halide::CompileError);
    CHECK_THROWS_AS(cuda_code(ptx, {}, (folder.path / "no" / "kernel").string()), Halide::CompileError);
}

TEST_CASE("A module keeps everything but its device code") {
    Halide::Var x("x"), block("block"), thread("thread");
    Halide::Func f("f");
    f(x) = x * 2;
    f.gpu_tile(x, block, thread, 16);
    const Halide::Target target("x86-64-linux-cuda-cuda_capability_80-no_runtime-user_context");
    Halide::Module before = f.compile_to_module({}, "doubled", target);
    before.remap_metadata_name("f", "o");
    std::string seen;
    const Halide::Module after = with_device_code(before, [&](const std::string &code) {
        seen = code;
        return "instead" + std::string(1, '\0');
    });
    CHECK(seen.find(".visible .entry") != std::string::npos);
    CHECK(after.get_metadata_name_map().at("f") == "o");
    REQUIRE(after.functions().size() == before.functions().size());
    REQUIRE(after.buffers().size() == before.buffers().size());
    bool found = false;
    for (const Halide::Buffer<> &buffer : after.buffers())
        found |=
            std::string(static_cast<const char *>(buffer.data()), buffer.size_in_bytes()) == "instead" + std::string(1, '\0');
    CHECK(found);
    with_device_code(after, [&](const std::string &code) {
        seen = code;
        return code;
    });
    CHECK(seen == "instead" + std::string(1, '\0'));

    Halide::Func g("g");
    g(x) = x;
    const Halide::Module none = g.compile_to_module({}, "none", Halide::Target("x86-64-linux-no_runtime"));
    CHECK_THROWS_AS(with_device_code(none, [](const std::string &code) { return code; }), Halide::CompileError);
}
