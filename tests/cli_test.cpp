// The command line as a user meets it: the built program is run, and its output, messages and exit codes looked at.
#include "case_file.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sys/wait.h>

namespace {

namespace fs = std::filesystem;
using safetensors::File;
using safetensors::Tensor;
using safetensors::Type;

struct Outcome {
    int code;
    std::string out, error;
};

std::string contents(const fs::path &path) {
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

    Outcome halation(const std::string &arguments) const {
        const std::string out = (folder / "out").string(), error = (folder / "error").string();
        const int status = std::system((HALATION_CLI " " + arguments + " >'" + out + "' 2>'" + error + "'").c_str());
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

Tensor random_tensor(Type type, std::vector<int64_t> shape, unsigned seed, double low = -1, double high = 1) {
    std::mt19937 generator(seed);
    std::uniform_real_distribution<double> distribution(low, high);
    int64_t count = 1;
    for (int64_t extent : shape) count *= extent;
    std::vector<double> values(count);
    for (double &value : values) value = distribution(generator);
    return safetensors::tensor(type, std::move(shape), values);
}

// gated with two key heads and four value heads.
File gated(Type type = Type::f32, int64_t B = 2, int64_t T = 21) {
    File file;
    file.metadata["recurrence"] = "gated";
    file.tensors["q"] = random_tensor(type, {B, T, 2, 12}, 1);
    file.tensors["k"] = random_tensor(type, {B, T, 2, 12}, 2);
    file.tensors["v"] = random_tensor(type, {B, T, 4, 20}, 3);
    file.tensors["g"] = random_tensor(Type::f32, {B, T, 4}, 4, -1, 0);
    file.tensors["initial_state"] = random_tensor(Type::f32, {B, 4, 12, 20}, 5);
    return file;
}

Tensor offsets(const std::vector<int32_t> &values) {
    Tensor tensor{Type::i32, {static_cast<int64_t>(values.size())}, {}};
    for (int32_t value : values)
        for (int byte = 0; byte < 4; byte++) tensor.data.push_back(static_cast<uint8_t>(value >> (8 * byte)));
    return tensor;
}

TEST_CASE_METHOD(Cli, "cli: explains itself") {
    for (const char *arguments : {"--help", "list --help", "run --help", "check --help"}) {
        const Outcome outcome = halation(arguments);
        INFO(arguments);
        CHECK(outcome.code == 0);
        CHECK(outcome.error == "");
        INFO(outcome.out);
        CHECK(outcome.out.find("Usage: halation") != std::string::npos);
    }
}

TEST_CASE_METHOD(Cli, "cli: refuses wrong command lines") {
    const std::string run = "run gated a -o b ";
    const std::pair<std::string, std::string> wrong[] = {
        {"", "A subcommand is required (see 'halation --help')"},
        {"fly", "there is no command 'fly' (see 'halation --help')"},
        {"run", "RECURRENCE is required (see 'halation run --help')"},
        {"run gated a", "--output is required (see 'halation run --help')"},
        {run + "--form quick", "--form: 'quick' is none of auto|recurrent|chunkwise|parallel (see 'halation run --help')"},
        {run + "--threads 0", "--threads: Value 0 not in range 1 to 4096 (see 'halation run --help')"},
        {run + "--fast", "The following argument was not expected: --fast (see 'halation run --help')"},
        {"check", "IN is required (see 'halation check --help')"},
        {"check a --tolerance nan", "--tolerance: 'nan' is not a finite number from 0 up (see 'halation check --help')"},
    };
    for (const auto &[arguments, message] : wrong) {
        const Outcome outcome = halation(arguments);
        INFO(arguments);
        CHECK(outcome.code == 2);
        CHECK(outcome.error == "halation: " + message + "\n");
        CHECK(outcome.out == "");
    }
}

TEST_CASE_METHOD(Cli, "cli: lists recurrences and kernels") {
    const Outcome outcome = halation("list");
    INFO(outcome.error);
    CHECK(outcome.code == 0);
    for (const char *text :
         {"\ngated_delta\n", "q [B,T,H,K], k [B,T,H,K], v [B,T,HV,V]", "g [B,T,HV]", "chunkwise", "This machine"}) {
        INFO(text);
        CHECK(outcome.out.find(text) != std::string::npos);
    }
    CHECK(std::system(HALATION_CLI " list >/dev/full 2>&1") != 0);
}

TEST_CASE_METHOD(Cli, "cli: runs every form") {
    const File file = gated();
    safetensors::write(path("in"), file);
    const oracle::Outputs expected = oracle::run(inputs_of(file));
    for (const char *options : {"", "--form auto", "--form recurrent", "--form chunkwise", "--threads 1"}) {
        const Outcome outcome = halation("run gated " + path("in") + " -o " + path("out") + " " + options);
        INFO(outcome.error);
        REQUIRE(outcome.code == 0);
        CHECK(outcome.error == "");
        const File out = safetensors::read(path("out"));
        CHECK(out.tensors.size() == 2u);
        CHECK(out.metadata.at("recurrence") == "gated");
        CHECK(out.metadata.at("kernel").find("gated_") != std::string::npos);
        INFO(options);
        CHECK(oracle::error(array_of(out.tensors.at("o")), expected.o) < 1e-5);
        INFO(options);
        CHECK(oracle::error(array_of(out.tensors.at("final_state")), expected.final_state) < 1e-5);
    }
}

TEST_CASE_METHOD(Cli, "cli: takes metadata and options") {
    File file = gated();
    file.metadata["scale"] = "0.5";
    file.metadata["heads"] = "tiled";
    safetensors::write(path("in"), file);
    const auto close = [&](const std::string &options, const oracle::Inputs &inputs) {
        const Outcome outcome = halation("run gated " + path("in") + " -o " + path("out") + " " + options);
        if (outcome.code != 0) return false;
        return oracle::error(array_of(safetensors::read(path("out")).tensors.at("o")), oracle::run(inputs).o) < 1e-5;
    };
    oracle::Inputs inputs = inputs_of(file);
    CHECK(close("", inputs));
    inputs.heads = oracle::Heads::grouped;
    CHECK(close("--heads grouped", inputs));
    CHECK_FALSE(close("", inputs));
}

TEST_CASE_METHOD(Cli, "cli: runs low precision") {
    const std::string kernels = halation("list").out;
    for (const Type type : {Type::f16, Type::bf16}) {
        if (kernels.find(std::string(" ") + safetensors::name(type) + "(gates F32)") == std::string::npos) {
            WARN("skipped: this build has no kernels for " << safetensors::name(type));
            continue;
        }
        safetensors::write(path("in"), gated(type));
        const Outcome outcome = halation("run gated " + path("in") + " -o " + path("out"));
        INFO(outcome.error);
        REQUIRE(outcome.code == 0);
        const File out = safetensors::read(path("out"));
        CHECK(out.tensors.at("o").type == type);
        CHECK(out.tensors.at("final_state").type == Type::f32);
        CHECK(halation("check " + path("in")).code == 0);
    }
}

TEST_CASE_METHOD(Cli, "cli: runs packed and empty batches") {
    File file = gated(Type::f32, 1, 69);
    file.tensors["offsets"] = offsets({0, 0, 5, 5, 69, 69});
    file.tensors["initial_state"] = random_tensor(Type::f32, {5, 4, 12, 20}, 5);
    safetensors::write(path("in"), file);
    REQUIRE(halation("run gated " + path("in") + " -o " + path("out")).code == 0);
    const File out = safetensors::read(path("out"));
    CHECK(out.tensors.at("final_state").shape == (std::vector<int64_t>{5, 4, 12, 20}));
    CHECK(oracle::error(array_of(out.tensors.at("o")), oracle::run(inputs_of(file)).o) < 1e-5);

    for (const int64_t B : {0, 2}) {
        const File nothing = gated(Type::f32, B, 0);
        safetensors::write(path("in"), nothing);
        const Outcome outcome = halation("run gated " + path("in") + " -o " + path("out"));
        INFO(outcome.error);
        REQUIRE(outcome.code == 0);
        CHECK(safetensors::read(path("out")).tensors.at("final_state").data == nothing.tensors.at("initial_state").data);
    }
}

TEST_CASE_METHOD(Cli, "cli: refuses wrong files") {
    const auto changed = [](auto change) {
        File file = gated();
        change(file);
        return file;
    };
    const auto without = [&](const char *name) { return changed([&](File &file) { file.tensors.erase(name); }); };
    const auto with = [&](const char *name, const Tensor &tensor) {
        return changed([&](File &file) { file.tensors[name] = tensor; });
    };
    const auto said = [&](const char *key, const char *value) {
        return changed([&](File &file) { file.metadata[key] = value; });
    };
    const auto tensor = [](Type type, std::vector<int64_t> shape) { return random_tensor(type, std::move(shape), 9); };

    CHECK(refusal("gated", without("k")) == "tensor 'k' [B,T,H,K] is missing, which gated needs\n");
    CHECK(refusal("gated", with("beta", tensor(Type::f32, {1}))) ==
          "tensor 'beta' is none that gated has: q, k, v, g, initial_state, offsets, expect.o, expect.final_state\n");
    CHECK(refusal("gated", with("expect.state", tensor(Type::f32, {1}))) ==
          "tensor 'expect.state' is none that gated has: q, k, v, g, initial_state, offsets, expect.o, "
          "expect.final_state\n");
    CHECK(refusal("gated", with("k", tensor(Type::f16, {2, 21, 2, 12}))) == "tensor 'k' is F16, but must be F32 as 'q' is\n");
    CHECK(refusal("gated", with("q", Tensor{Type::u8, {1}, {0}})) == "tensor 'q' is U8, but must be F32, F16 or BF16\n");
    CHECK(refusal("gated", with("g", tensor(Type::f16, {2, 21, 4}))) == "tensor 'g' is F16, but must be F32\n");
    CHECK(refusal("gated", with("initial_state", tensor(Type::f16, {2, 4, 12, 20}))) ==
          "tensor 'initial_state' is F16, but must be F32\n");
    CHECK(refusal("gated", with("k", tensor(Type::f32, {2, 21, 2, 13}))) ==
          "tensor 'k' has shape [2, 21, 2, 13], but must be [B,T,H,K] with K = 12 as in 'q'\n");
    CHECK(refusal("gated", with("g", tensor(Type::f32, {2, 21, 4, 12}))) ==
          "tensor 'g' has shape [2, 21, 4, 12], but must be [B,T,HV]\n");
    CHECK(refusal("gated", with("v", tensor(Type::f32, {2, 21, 3, 20}))) ==
          "tensor 'g' has shape [2, 21, 4], but must be [B,T,HV] with HV = 3 as in 'v'\n");
    CHECK(refusal("gated", changed([&](File &file) {
                      file.tensors["v"] = tensor(Type::f32, {2, 21, 3, 20});
                      file.tensors["g"] = tensor(Type::f32, {2, 21, 3});
                  })) == "tensor 'v' has HV = 3 heads, but must have a multiple of the H = 2 of 'q'\n");
    CHECK(refusal("gated", with("initial_state", tensor(Type::f32, {3, 4, 12, 20}))) ==
          "tensor 'initial_state' has shape [3, 4, 12, 20], but must be [B,HV,K,V] with B = 2 as in 'q'\n");
    CHECK(refusal("gated", with("offsets", offsets({0, 21}))) ==
          "tensor 'q' has B = 2, but must have B = 1 because there are 'offsets'\n");

    const auto packed = [&](const Tensor &tensor) {
        File file = gated(Type::f32, 1);
        file.tensors.erase("initial_state");
        file.tensors["offsets"] = tensor;
        return file;
    };
    CHECK(refusal("gated", packed(offsets({1, 21}))) == "tensor 'offsets' begins with 1, but must begin with 0\n");
    CHECK(refusal("gated", packed(offsets({0, 20}))) == "tensor 'offsets' ends with 20, but must end with T = 21\n");
    CHECK(refusal("gated", packed(offsets({0, 9, 8, 21}))) ==
          "tensor 'offsets' falls from 9 to 8 at element 2, but must never fall\n");
    CHECK(refusal("gated", packed(offsets({}))) ==
          "tensor 'offsets' has shape [0], but must be [N+1], N being the number of sequences\n");
    CHECK(refusal("gated", packed(tensor(Type::f32, {2}))) == "tensor 'offsets' is F32, but must be I32 or I64\n");

    CHECK(refusal("gated", said("scale", "big")) == "metadata scale is 'big', but must be a finite number\n");
    CHECK(refusal("gated", said("scale", "inf")) == "metadata scale is 'inf', but must be a finite number\n");
    CHECK(refusal("gated", said("heads", "odd")) == "metadata heads is 'odd', but must be grouped or tiled\n");
    CHECK(refusal("gated", said("causal", "maybe")) == "metadata causal is 'maybe', but must be true or false\n");
    CHECK(refusal("gated", said("feature_map", "relu")) == "metadata feature_map is 'relu', but gated has no feature map\n");
    CHECK(refusal("gla", gated()) == "metadata says recurrence 'gated', but 'gla' was asked for\n");
    CHECK(refusal("gated", gated(), "--backend metal").find("metal") != std::string::npos);
    CHECK(refusal("gated", gated(), "--chunk 7").find("chunk 7") != std::string::npos);
    CHECK(refusal("gated", gated(), "--chunk 7 --form recurrent").find("chunk: got 7") != std::string::npos);
}

TEST_CASE_METHOD(Cli, "cli: refuses what is not a problem") {
    Outcome outcome = halation("run gated " + path("none") + " -o " + path("out"));
    CHECK(outcome.code == 1);
    CHECK(outcome.error == "halation: " + path("none") + ": cannot be opened: No such file or directory\n");

    File file = gated();
    file.metadata.clear();
    safetensors::write(path("in"), file);
    outcome = halation("run lstm " + path("in") + " -o " + path("out"));
    CHECK(outcome.code == 1);
    INFO(outcome.error);
    CHECK(outcome.error.rfind("halation: there is no recurrence 'lstm'; there are ", 0) == 0u);
    CHECK(halation("run gated " + path("in") + " -o " + path("out")).code == 0);  // no metadata is needed here

    outcome = halation("check " + path("in"));
    CHECK(outcome.code == 1);
    CHECK(outcome.error == "halation: " + path("in") + ": metadata has no 'recurrence', which says what the file is for\n");

    outcome = halation("run gated " + path("in") + " -o " + path("missing/out"));
    CHECK(outcome.code == 1);
    CHECK(outcome.error == "halation: " + path("missing/out") + ": cannot be written: No such file or directory\n");
    outcome = halation("run gated " + path("in") + " -o /dev/full");
    CHECK(outcome.code == 1);
    CHECK(outcome.error == "halation: /dev/full: cannot be written: No space left on device\n");
}

TEST_CASE_METHOD(Cli, "cli: checks what the kernels and the files say") {
    Outcome outcome =
        halation("check " HALATION_TEST_DATA "/gated_1.safetensors " HALATION_TEST_DATA "/gated_delta_grouped.safetensors");
    INFO(outcome.out << outcome.error);
    CHECK(outcome.code == 0);
    for (const char *text :
         {"OK ", "recurrent", "chunkwise", " o ", " expect.o ", " final_state ", " expect.final_state ", " 0 wrong"}) {
        INFO(text << outcome.out);
        CHECK(outcome.out.find(text) != std::string::npos);
    }
    INFO(outcome.out);
    CHECK(outcome.out.find("FAIL") == std::string::npos);

    // A file that expects something else.
    File file = gated();
    const oracle::Array o = oracle::run(inputs_of(file)).o;
    file.tensors["expect.o"] = safetensors::tensor(Type::f32, o.shape, o.values);
    safetensors::write(path("in"), file);
    CHECK(halation("check " + path("in")).code == 0);
    file.tensors["expect.o"].data[3] ^= 0x40;
    safetensors::write(path("in"), file);
    outcome = halation("check " + path("in") + " --form recurrent");
    CHECK(outcome.code == 1);
    INFO(outcome.out);
    CHECK(outcome.out.find("FAIL ") != std::string::npos);
    INFO(outcome.out);
    CHECK(outcome.out.find("\n0 right, ") != std::string::npos);

    file.tensors.erase("expect.o");
    safetensors::write(path("in"), file);
    CHECK(halation("check " + path("in") + " --tolerance 1e-12").code == 1);
    CHECK(halation("check " + path("in") + " --tolerance 1e-3").code == 0);

    // One bad file does not keep the others from being checked.
    std::ofstream(path("bad")) << "not tensors";
    outcome = halation("check " + path("bad") + " " + path("in"));
    CHECK(outcome.code == 1);
    CHECK(outcome.out.find("OK ") != std::string::npos);
    INFO(outcome.error);
    CHECK(std::count(outcome.error.begin(), outcome.error.end(), '\n') == 1);

    // Nothing checked is not all right.
    outcome = halation("check " + path("in") + " --backend opencl");
    CHECK(outcome.code == 1);
    CHECK(outcome.error.find("nothing was checked") != std::string::npos);
}

}  // namespace
