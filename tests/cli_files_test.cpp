// The command line as a user meets it: files in, files out, checks, and what is wrong with files.
#include "cli_fixture.h"

using namespace cli_tests;

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
          "tensor 'initial_state' is F16, but must be F32 or BF16\n");
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

    CHECK(refusal("gated", said("scale", "big")) == "metadata scale is 'big', but must be a finite number other than 0\n");
    CHECK(refusal("gated", said("scale", "inf")) == "metadata scale is 'inf', but must be a finite number other than 0\n");
    CHECK(refusal("gated", said("scale", "0")) == "metadata scale is '0', but must be a finite number other than 0\n");
    CHECK(refusal("gated", said("heads", "odd")) == "metadata heads is 'odd', but must be grouped or tiled\n");
    CHECK(refusal("gated", said("causal", "maybe")) == "metadata causal is 'maybe', but must be true or false\n");
    CHECK(refusal("gated", said("feature_map", "relu")) == "metadata feature_map is 'relu', but gated has no feature map\n");
    CHECK(refusal("gla", gated()) == "metadata says recurrence 'gated', but 'gla' was asked for\n");
    CHECK(refusal("gated", gated(), "--backend metal").find("metal") != std::string::npos);
    CHECK(refusal("gated", gated(), "--chunk 7").find("chunk 7") != std::string::npos);
    CHECK(refusal("gated", gated(), "--chunk 7 --form recurrent").find("chunk: got 7") != std::string::npos);
}

// Two key heads that four heads of queries read.
File softmax(int64_t T, int64_t S) {
    File file;
    file.metadata["recurrence"] = "softmax";
    file.tensors["q"] = random_tensor(Type::f32, {1, T, 4, 12}, 1);
    file.tensors["k"] = random_tensor(Type::f32, {1, S, 2, 12}, 2);
    file.tensors["v"] = random_tensor(Type::f32, {1, S, 2, 20}, 3);
    return file;
}

TEST_CASE_METHOD(Cli, "cli: reads the cache of softmax, packed too") {
    File file = softmax(9, 14);
    const auto checks = [&] {
        safetensors::write(path("in"), file);
        const Outcome outcome = halation("check " + path("in"));
        INFO(outcome.out << outcome.error);
        CHECK(outcome.code == 0);
    };
    checks();
    file.tensors["offsets"] = offsets({0, 4, 4, 9});
    file.tensors["cache_offsets"] = offsets({0, 7, 8, 14});
    checks();
    file = softmax(9, 9);
    file.tensors["offsets"] = offsets({0, 4, 9});  // and the cache is the sequence itself
    checks();
    file = softmax(9, 5);
    file.metadata["causal"] = "false";
    checks();

    const auto packed = [](int64_t S, const std::map<std::string, Tensor> &vectors) {
        File wrong = softmax(9, S);
        for (const auto &[name, tensor] : vectors) wrong.tensors[name] = tensor;
        return wrong;
    };
    CHECK(refusal("softmax", softmax(9, 5)).find("only S = 5 tokens are cached") != std::string::npos);
    CHECK(refusal("softmax", packed(14, {{"offsets", offsets({0, 9})}})) ==
          "there are 'offsets', but no 'cache_offsets', without which S = 14 must be T = 9\n");
    CHECK(refusal("softmax", packed(14, {{"cache_offsets", offsets({0, 14})}})) ==
          "there are 'cache_offsets', but no 'offsets' of the queries\n");
    CHECK(refusal("softmax", packed(14, {{"offsets", offsets({0, 9})}, {"cache_offsets", offsets({0, 9})}})) ==
          "tensor 'cache_offsets' ends with 9, but must end with S = 14\n");
    CHECK(refusal("softmax", packed(14, {{"offsets", offsets({0, 9})}, {"cache_offsets", offsets({0, 9, 14})}})) ==
          "tensor 'cache_offsets' has 3 elements, but must have 2 as 'offsets' has\n");
    file = softmax(9, 14);
    file.tensors["q"] = random_tensor(Type::f32, {1, 9, 3, 12}, 1);
    CHECK(refusal("softmax", file) == "tensor 'q' has HV = 3 heads, but must have a multiple of the H = 2 of 'k'\n");
    file.tensors["v"] = random_tensor(Type::f32, {1, 14, 3, 20}, 1);
    CHECK(refusal("softmax", file) == "tensor 'v' has shape [1, 14, 3, 20], but must be [B,S,H,V] with H = 2 as in 'k'\n");
}

TEST_CASE_METHOD(Cli, "cli: keeps states in bfloat16 if they come so") {
    File file = gated();
    file.tensors["initial_state"] = random_tensor(Type::bf16, {2, 4, 12, 20}, 5);
    safetensors::write(path("in"), file);
    REQUIRE(halation("run gated " + path("in") + " -o " + path("out")).code == 0);
    const Tensor state = safetensors::read(path("out")).tensors.at("final_state");
    CHECK(state.type == Type::bf16);
    CHECK(oracle::error(array_of(state), oracle::run(inputs_of(file)).final_state) < 0x1p-8);
    const Outcome outcome = halation("check " + path("in") + " --form recurrent");
    INFO(outcome.out << outcome.error);
    CHECK(outcome.code == 0);
    CHECK(outcome.out.find("/3.9e-03") != std::string::npos);  // 2^-8
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

    // The input as output, under another name too.
    fs::create_symlink(path("in"), path("link"));
    const std::string before = contents(path("in"));
    for (const char *output : {"in", "link"}) {
        outcome = halation("run gated " + path("in") + " -o " + path(output));
        CHECK(outcome.code == 1);
        CHECK(outcome.error == "halation: " + path(output) + ": is both input and output, and would be lost\n");
        CHECK(contents(path("in")) == before);
    }
    fs::remove(path("link"));

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

TEST_CASE_METHOD(Cli, "cli: writes outputs whole or not at all, wherever they are") {
    safetensors::write(path("in"), gated());
    const std::string run = "run gated " + path("in") + " -o ";
    const auto is_alone = [&] { return std::distance(fs::directory_iterator(folder / "files"), fs::directory_iterator()) == 1; };
    // A file that may not grow: the limit is in blocks of 512 bytes, the message fits into one.
    Outcome outcome = outcome_of("( ulimit -f 1; " HALATION_CLI " " + run + path("out") + " )");
    CHECK(outcome.code == 1);
    CHECK(outcome.error == "halation: " + path("out") + ": cannot be written: File too large\n");
    CHECK(is_alone());
    // Through a link to nothing yet: the link stays one.
    fs::create_symlink("target", path("link"));
    outcome = halation(run + path("link"));
    CHECK(outcome.code == 0);
    CHECK(fs::is_symlink(path("link")));
    CHECK(safetensors::read(path("target")).tensors.count("o") == 1u);
    fs::remove(path("link"));
    fs::remove(path("target"));
    // Into a pipe: tensors alone, what is said of them elsewhere.
    outcome = outcome_of("( " HALATION_CLI " " + run + "/dev/stdout | cat > " + path("piped") + " )");
    CHECK(outcome.error.find("computed by gated_") != std::string::npos);
    CHECK(safetensors::read(path("piped")).tensors.count("final_state") == 1u);
    fs::remove(path("piped"));
    // A name as long as names may be.
    const std::string longest(255, 'x');
    CHECK(halation(run + path(longest)).code == 0);
    CHECK(safetensors::read(path(longest)).tensors.count("o") == 1u);
    fs::remove(path(longest));
    outcome = halation(run + "''");
    CHECK(outcome.error == "halation: '': cannot be written: No such file or directory\n");
    CHECK(is_alone());
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
    outcome = halation("check " + path("in") + " --backend opencl --form parallel");
    CHECK(outcome.code == 1);
    CHECK(outcome.error.find("nothing was checked") != std::string::npos);

    // What no kernel can have is said of the file, once, and is no kernel's fault.
    File heads;
    heads.metadata["recurrence"] = "gated";
    const int64_t many = (1 << 20) + 1;
    for (const char *name : {"q", "k"}) heads.tensors[name] = random_tensor(Type::f32, {1, 1, 1, 1}, 1);
    heads.tensors["v"] = random_tensor(Type::f32, {1, 1, many, 1}, 2);
    heads.tensors["g"] = random_tensor(Type::f32, {1, 1, many}, 3, -1, 0);
    safetensors::write(path("in"), heads);
    outcome = halation("check " + path("in"));
    CHECK(outcome.code == 1);
    CHECK(outcome.error.rfind("halation: " + path("in") + ": key_dim, value_dim, value_heads: got 1, 1, 1048577;", 0) == 0u);
    CHECK(std::count(outcome.error.begin(), outcome.error.end(), '\n') == 1);
    CHECK(outcome.out.find("\n0 right, 0 wrong, 0 refused, 0 skipped, 1 file not checked\n") != std::string::npos);
}

TEST_CASE_METHOD(Cli, "cli: check says why a device took no form, not that another form has no kernels") {
    const std::string listed = halation("list").out;
    if (listed.find("\n    opencl:0 ") == std::string::npos || listed.find("\n    recurrent  opencl: ") == std::string::npos) {
        WARN("skipped: there is no OpenCL device, or this build has no kernels for it");
        return;
    }
    File file;
    file.metadata["recurrence"] = "gated";
    const int64_t K = 1 << 20;
    for (const char *name : {"q", "k"}) file.tensors[name] = random_tensor(Type::f32, {1, 1, 1, K}, 1);
    file.tensors["v"] = random_tensor(Type::f32, {1, 1, 1, 1}, 2);
    file.tensors["g"] = random_tensor(Type::f32, {1, 1, 1}, 3, -1, 0);
    safetensors::write(path("in"), file);
    const Outcome outcome = halation("check " + path("in") + " --backend opencl");
    INFO(outcome.out << outcome.error);
    CHECK(outcome.code == 1);
    CHECK(outcome.error.find(": nothing was checked: key_dim: got 1048576; may be 1 to ") != std::string::npos);
    CHECK(outcome.out.find("no kernel for form parallel of recurrence gated on backend opencl; kernels exist for: ") !=
          std::string::npos);
}
