// What the reader takes and what it refuses, with which words; that the writer leaves all or nothing.
#include "safetensors/safetensors.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace {

namespace fs = std::filesystem;
using safetensors::Error;
using safetensors::File;
using safetensors::Tensor;
using safetensors::Type;

class Safetensors {
protected:
    Safetensors() {
        std::string pattern = (fs::temp_directory_path() / "safetensors_test.XXXXXX").string();
        folder = mkdtemp(pattern.data());
    }
    ~Safetensors() { fs::remove_all(folder); }

    std::string path(const char *name = "file.safetensors") const { return (folder / name).string(); }

    // Writes a file with this header and so many bytes of data, and returns what reading it says.
    std::string refusal(const std::string &header, size_t data, uint64_t length) const {
        std::ofstream out(path(), std::ios::binary);
        for (int i = 0; i < 8; i++) out.put(static_cast<char>(length >> (8 * i)));
        out << header << std::string(data, '\0');
        out.close();
        return refusal();
    }
    std::string refusal(const std::string &header, size_t data = 0) const { return refusal(header, data, header.size()); }
    std::string refusal() const {
        try {
            safetensors::read(path());
        } catch (const Error &error) {
            const std::string text = error.what();
            INFO(text);
            CHECK(text.find('\n') == std::string::npos);
            INFO(text);
            CHECK(text.rfind(path() + ": ", 0) == 0u);
            return text.substr(std::min(text.size(), path().size() + 2));
        }
        return "accepted";
    }

    size_t files() const { return static_cast<size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator())); }

    fs::path folder;
};

File sample() {
    File file;
    file.metadata = {{"recurrence", "gated"}, {"note", "two\nlines, \"quoted\""}};
    file.tensors["q"] = safetensors::tensor(Type::f32, {2, 3}, {1, -2, .5, 0, 1e30, -0.});
    file.tensors["half"] = safetensors::tensor(Type::f16, {2}, {1.5, -65504});
    file.tensors["brain"] = safetensors::tensor(Type::bf16, {3}, {1.5, -3e38, 0});
    file.tensors["scalar"] = safetensors::tensor(Type::f32, {}, {7});
    file.tensors["empty"] = safetensors::tensor(Type::f32, {4, 0}, {});
    file.tensors["offsets"] = {Type::i32, {2}, {0, 0, 0, 0, 255, 255, 255, 255}};
    file.tensors["long"] = {Type::i64, {1}, {1, 0, 0, 0, 1, 0, 0, 0}};
    file.tensors["bytes"] = {Type::u8, {3}, {1, 2, 255}};
    file.tensors["flags"] = {Type::boolean, {2}, {0, 1}};
    return file;
}

TEST_CASE_METHOD(Safetensors, "safetensors: reads what it wrote") {
    const File file = sample();
    safetensors::write(path(), file);
    CHECK(files() == 1u);
    const File back = safetensors::read(path());
    CHECK(back.metadata == file.metadata);
    REQUIRE(back.tensors.size() == file.tensors.size());
    for (const auto &[name, tensor] : file.tensors) {
        INFO(name);
        CHECK(back.tensors.at(name).type == tensor.type);
        INFO(name);
        CHECK(back.tensors.at(name).shape == tensor.shape);
        INFO(name);
        CHECK(back.tensors.at(name).data == tensor.data);
    }
    CHECK(safetensors::values(back.tensors.at("q")) == (std::vector<double>{1, -2, .5, 0, 1e30f, 0}));
    CHECK(safetensors::values(back.tensors.at("half")) == (std::vector<double>{1.5, -65504}));
    CHECK(safetensors::values(back.tensors.at("offsets")) == (std::vector<double>{0, -1}));
    CHECK(safetensors::values(back.tensors.at("long")) == (std::vector<double>{4294967297}));
    CHECK(safetensors::values(back.tensors.at("flags")) == (std::vector<double>{0, 1}));

    safetensors::write(path(), File());  // over an existing file, and with nothing in it
    CHECK(safetensors::read(path()).tensors.empty());
}

TEST_CASE_METHOD(Safetensors, "safetensors: data starts aligned") {
    safetensors::write(path(), sample());
    std::ifstream in(path(), std::ios::binary);
    CHECK(in.get() % 8 == 0);
}

TEST_CASE_METHOD(Safetensors, "safetensors: rounds to nearest even") {
    const auto bits = [](Type type, double value) {
        const Tensor tensor = safetensors::tensor(type, {1}, {value});
        return tensor.data[0] | tensor.data[1] << 8;
    };
    const double inf = std::numeric_limits<double>::infinity();
    CHECK(bits(Type::f16, 1) == 0x3c00);
    CHECK(bits(Type::f16, -2) == 0xc000);
    CHECK(bits(Type::f16, 1 + 0x1p-11) == 0x3c00);            // half way: to even
    CHECK(bits(Type::f16, 1 + 3 * 0x1p-11) == 0x3c02);        // half way: to even
    CHECK(bits(Type::f16, 1 + 0x1p-11 + 0x1p-40) == 0x3c01);  // not rounded to float first
    CHECK(bits(Type::f16, 2 - 0x1p-12) == 0x4000);            // carries into the exponent
    CHECK(bits(Type::f16, 65504) == 0x7bff);
    CHECK(bits(Type::f16, 65519) == 0x7bff);
    CHECK(bits(Type::f16, 65520) == 0x7c00);
    CHECK(bits(Type::f16, inf) == 0x7c00);
    CHECK(bits(Type::f16, 0x1p-14) == 0x0400);
    CHECK(bits(Type::f16, 0x1p-24) == 0x0001);  // the smallest subnormal
    CHECK(bits(Type::f16, 0x1p-25) == 0x0000);
    CHECK(bits(Type::f16, 1.5 * 0x1p-25) == 0x0001);
    CHECK(bits(Type::f16, -0.) == 0x8000);
    CHECK(bits(Type::bf16, 1) == 0x3f80);
    CHECK(bits(Type::bf16, 1 + 0x1p-8) == 0x3f80);
    CHECK(bits(Type::bf16, 1e39) == 0x7f80);
    CHECK(std::isnan(safetensors::values(safetensors::tensor(Type::f16, {1}, {std::nan("")}))[0]));
    int changed = 0;  // every value of both types survives
    for (uint32_t i = 0; i < 0x10000; i++) {
        for (const Type type : {Type::f16, Type::bf16}) {
            const Tensor one{type, {1}, {static_cast<uint8_t>(i), static_cast<uint8_t>(i >> 8)}};
            const std::vector<double> value = safetensors::values(one);
            if (!std::isnan(value[0]) && safetensors::tensor(type, {1}, value).data != one.data) changed++;
        }
    }
    CHECK(changed == 0);
    for (float value : {1.f, 3.14159f, 1e-42f, 3.4028235e38f, -0.f})
        CHECK(safetensors::values(safetensors::tensor(Type::f32, {1}, {value}))[0] == value);
    CHECK_THROWS_AS(safetensors::tensor(Type::i32, {1}, {1}), Error);
}

TEST_CASE_METHOD(Safetensors, "safetensors: refuses what is not a file") {
    CHECK(refusal() == "cannot be opened: No such file or directory");
    fs::create_directory(path());
    CHECK(refusal() == "is not a regular file");
    fs::remove(path());
    std::ofstream(path()) << "short";
    CHECK(refusal() == "is 5 bytes long: not a safetensors file");
}

TEST_CASE_METHOD(Safetensors, "safetensors: refuses bad headers") {
    CHECK(refusal("{}", 0, 3) == "the header would be 3 bytes long where the file has 2 left: truncated, or not a "
                                 "safetensors file");
    CHECK(refusal("{}", 0, ~uint64_t(0)) ==
          "the header would be 18446744073709551615 bytes long, more than the 100000000 that are allowed: not a "
          "safetensors file");
    for (const char *text : {"", "{", "\x93NUMPY", "{\"a\": \"\xff\"}", "{} {}"}) {
        INFO(text);
        CHECK(refusal(text) == "the header is not valid JSON: not a safetensors file, or a damaged one");
    }
    CHECK(refusal("[]") == "the header is not a JSON object");
    CHECK(refusal(std::string(100000, '[')) == "the header is nested too deeply");
    CHECK(refusal(R"({"__metadata__": 3})") == "__metadata__ in the header is not an object");
    CHECK(refusal(R"({"__metadata__": {"scale": 3}})") == "metadata 'scale' is not a string");
    const std::string q = R"("q": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]})";
    CHECK(refusal("{" + q + "}", 4) == "accepted");
    CHECK(refusal("{" + q + "}   ", 4) == "accepted");
    CHECK(refusal("{" + q + ", " + q + "}", 4) == "the header has two entries named 'q'");
    CHECK(refusal(R"({"q": {"dtype": "F32", "dtype": "F16", "shape": [1], "data_offsets": [0, 4]}})", 4) ==
          "the header has two entries named 'dtype'");
}

TEST_CASE_METHOD(Safetensors, "safetensors: refuses bad entries") {
    const auto entry = [&](const std::string &text, size_t data = 4) { return refusal("{\"q\": " + text + "}", data); };
    CHECK(entry("3") == "tensor 'q': its entry in the header has no dtype");
    CHECK(entry(R"({"dtype": "F32", "shape": [1]})") == "tensor 'q': its entry in the header has no data_offsets");
    CHECK(entry(R"({"dtype": "F32", "shape": [1], "data_offsets": [0, 4], "x": 1})") ==
          "tensor 'q': its entry in the header has more than dtype, shape and data_offsets");
    CHECK(entry(R"({"dtype": "F64", "shape": [1], "data_offsets": [0, 8]})", 8) ==
          "tensor 'q': dtype 'F64' is not supported; supported are F32, F16, BF16, I32, I64, U8, BOOL");
    for (const char *extent : {"-1", "1.5", "\"1\"", "9223372036854775808"})
        CHECK(entry(std::string(R"({"dtype": "F32", "data_offsets": [0, 4], "shape": [)") + extent + "]}") ==
              "tensor 'q': shape holds something that is not a whole number from 0 up");
    CHECK(entry(R"({"dtype": "F32", "shape": [4611686018427387904, 4], "data_offsets": [0, 4]})") ==
          "tensor 'q': shape is too large");
    CHECK(entry(R"({"dtype": "F32", "shape": [2], "data_offsets": [0, 4]})") ==
          "tensor 'q': data_offsets [0, 4] are 4 bytes where dtype and shape make 8");
    CHECK(entry(R"({"dtype": "F32", "shape": [1], "data_offsets": [0, 4]})", 3) ==
          "tensor 'q': data_offsets [0, 4] reach past the end of the file, which holds 3 bytes of data (truncated?)");
    CHECK(entry(R"({"dtype": "F32", "shape": [1], "data_offsets": [4, 0]})") == "tensor 'q': data_offsets [4, 0] run backwards");
    CHECK(entry(R"({"dtype": "F32", "shape": [1], "data_offsets": [-4, 0]})") ==
          "tensor 'q': data_offsets is not a pair of whole numbers from 0 up");
    CHECK(refusal(R"({"a\nb": 3})") == "tensor 'a\\x0ab': its entry in the header has no dtype");
}

TEST_CASE_METHOD(Safetensors, "safetensors: refuses bad layouts") {
    const auto two = [&](const char *first, const char *second, size_t data) {
        return refusal(std::string(R"({"q": {"dtype": "F32", "shape": [1], "data_offsets": )") + first +
                           R"(}, "k": {"dtype": "F32", "shape": [1], "data_offsets": )" + second + "}}",
                       data);
    };
    CHECK(two("[0, 4]", "[4, 8]", 8) == "accepted");
    CHECK(two("[4, 8]", "[0, 4]", 8) == "accepted");
    CHECK(two("[0, 4]", "[2, 6]", 8) == "tensor 'k': its data overlaps that of tensor 'q'");
    CHECK(two("[0, 4]", "[8, 12]", 12) == "tensor 'k': its data begins at byte 8, which leaves a hole after byte 4");
    CHECK(two("[0, 4]", "[4, 8]", 9) == "1 bytes after the last tensor belong to none");
}

// Every prefix of a good file, and every file with one byte of its header changed, is read or refused in one line.
TEST_CASE_METHOD(Safetensors, "safetensors: damaged files are refused") {
    safetensors::write(path(), sample());
    std::ifstream in(path(), std::ios::binary);
    const std::string good((std::istreambuf_iterator<char>(in)), {});
    for (size_t size = 0; size < good.size(); size++) {
        std::ofstream(path(), std::ios::binary) << good.substr(0, size);
        INFO(size);
        CHECK(refusal() != "accepted");
    }
    for (size_t at = 0; at < 200; at++) {
        for (const char byte : {'\0', '9', '"', '}', '\xff'}) {
            std::string bad = good;
            bad[at] = byte;
            std::ofstream(path(), std::ios::binary) << bad;
            refusal();
        }
    }
}

TEST_CASE_METHOD(Safetensors, "safetensors: failed writes leave nothing") {
    const auto failure = [](const std::string &path, const File &file) {
        try {
            safetensors::write(path, file);
        } catch (const Error &error) {
            return std::string(error.what());
        }
        return std::string("written");
    };
    const std::string missing = path("missing/file");
    CHECK(failure(missing, sample()) == missing + ": cannot be written: No such file or directory");
    CHECK(failure(folder.string(), sample()) == folder.string() + ": cannot be written: Is a directory");
    CHECK(files() == 0u);

    File broken;
    broken.tensors["q"] = {Type::f32, {2}, {0, 0, 0, 0}};
    CHECK(failure(path(), broken) == path() + ": tensor 'q': 4 bytes of data where dtype and shape make 8");
    CHECK(files() == 0u);

    if (access("/dev/full", W_OK) == 0) {
        CHECK(failure("/dev/full", sample()) == "/dev/full: cannot be written: No space left on device");
        struct stat status;
        INFO("the device itself was replaced");
        CHECK((stat("/dev/full", &status) == 0 && S_ISCHR(status.st_mode)));
    }

    // A disk that becomes full half way, played by a limit on the size of files.
    std::signal(SIGXFSZ, SIG_IGN);
    rlimit before;
    getrlimit(RLIMIT_FSIZE, &before);
    const rlimit small{1000, before.rlim_max};
    File large;
    large.tensors["q"] = {Type::u8, {5000}, std::vector<uint8_t>(5000)};
    std::ofstream(path()) << "older";
    setrlimit(RLIMIT_FSIZE, &small);
    const std::string message = failure(path(), large);
    setrlimit(RLIMIT_FSIZE, &before);
    CHECK(message == path() + ": cannot be written: File too large");
    INFO("the unfinished file was left behind");
    CHECK(files() == 1u);
    INFO("an older file was damaged");
    CHECK(fs::file_size(path()) == 5u);
}

TEST_CASE_METHOD(Safetensors, "safetensors: writes through links") {
    std::ofstream(path("real")) << "older";
    fs::create_symlink("real", path("link"));
    safetensors::write(path("link"), sample());
    CHECK(fs::is_symlink(path("link")));
    CHECK(safetensors::read(path("real")).tensors.size() == sample().tensors.size());
}

}  // namespace
