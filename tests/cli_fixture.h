// A folder of one's own, and the built program run in it.
#ifndef HALATION_TESTS_CLI_FIXTURE_H
#define HALATION_TESTS_CLI_FIXTURE_H

#include "case_file.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sys/wait.h>

namespace cli_tests {

namespace fs = std::filesystem;
using safetensors::File;
using safetensors::Tensor;
using safetensors::Type;

struct Outcome {
    int code;
    std::string out, error;
};

inline std::string contents(const fs::path &path) {
    std::ifstream in(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
}

class Cli {
protected:
    Cli() {
        std::string pattern = (fs::temp_directory_path() / "cli_test.XXXXXX").string();
        folder = mkdtemp(pattern.data());
        fs::create_directory(folder / "files");
    }
    ~Cli() { fs::remove_all(folder); }

    std::string path(const std::string &name) const { return (folder / "files" / name).string(); }

    Outcome halation(const std::string &arguments) const { return outcome_of(HALATION_CLI " " + arguments); }

    Outcome outcome_of(const std::string &command) const {
        const std::string out = (folder / "out").string(), error = (folder / "error").string();
        const int status = std::system((command + " >'" + out + "' 2>'" + error + "'").c_str());
        return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, contents(out), contents(error)};
    }

    // Runs a problem that must be refused: exit code 1, one line, no output. Returns the line without its beginning.
    std::string refusal(const std::string &recurrence, const File &file, const std::string &options = "") const {
        safetensors::write(path("in"), file);
        const Outcome outcome = halation("run " + recurrence + " " + path("in") + " -o " + path("out") + " " + options);
        CHECK(outcome.code == 1);
        CHECK(outcome.out == "");
        CHECK(std::distance(fs::directory_iterator(folder / "files"), fs::directory_iterator()) == 1);
        INFO(outcome.error);
        CHECK(std::count(outcome.error.begin(), outcome.error.end(), '\n') == 1);
        const std::string beginning = "halation: " + path("in") + ": ";
        INFO(outcome.error);
        CHECK(outcome.error.rfind(beginning, 0) == 0u);
        return outcome.error.substr(std::min(beginning.size(), outcome.error.size()));
    }

    fs::path folder;
};

inline Tensor random_tensor(Type type, std::vector<int64_t> shape, unsigned seed, double low = -1, double high = 1) {
    std::mt19937 generator(seed);
    std::uniform_real_distribution<double> distribution(low, high);
    int64_t count = 1;
    for (int64_t extent : shape) count *= extent;
    std::vector<double> values(count);
    for (double &value : values) value = distribution(generator);
    return safetensors::tensor(type, std::move(shape), values);
}

// gated with two key heads and four value heads.
inline File gated(Type type = Type::f32, int64_t B = 2, int64_t T = 21) {
    File file;
    file.metadata["recurrence"] = "gated";
    file.tensors["q"] = random_tensor(type, {B, T, 2, 12}, 1);
    file.tensors["k"] = random_tensor(type, {B, T, 2, 12}, 2);
    file.tensors["v"] = random_tensor(type, {B, T, 4, 20}, 3);
    file.tensors["g"] = random_tensor(Type::f32, {B, T, 4}, 4, -1, 0);
    file.tensors["initial_state"] = random_tensor(Type::f32, {B, 4, 12, 20}, 5);
    return file;
}

inline Tensor offsets(const std::vector<int32_t> &values) {
    Tensor tensor{Type::i32, {static_cast<int64_t>(values.size())}, {}};
    for (int32_t value : values)
        for (int byte = 0; byte < 4; byte++) tensor.data.push_back(static_cast<uint8_t>(value >> (8 * byte)));
    return tensor;
}

}  // namespace cli_tests
#endif
