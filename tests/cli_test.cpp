// The command line as a user meets it: help, lists, wrong command lines, times, and the program that makes kernels.
#include "cli_fixture.h"

using namespace cli_tests;

TEST_CASE_METHOD(Cli, "cli: explains itself") {
    for (const char *arguments : {"--help", "list --help", "run --help", "check --help", "bench --help", "demo --help"}) {
        const Outcome outcome = halation(arguments);
        INFO(arguments);
        CHECK(outcome.code == 0);
        CHECK(outcome.error == "");
        INFO(outcome.out);
        CHECK(outcome.out.find("Usage: halation") != std::string::npos);
    }
    CHECK(halation("--version").out == "halation " HALATION_PROJECT_VERSION "\n");
    CHECK(halation("run --help").out.find("kernels exist for 1") != std::string::npos);  // --chunk
}

TEST_CASE_METHOD(Cli, "cli: refuses wrong command lines") {
    const std::string run = "run gated a -o b ";
    const std::pair<std::string, std::string> wrong[] = {
        {"", "A subcommand is required (see 'halation --help')"},
        {"fly", "there is no command 'fly' (see 'halation --help')"},
        {"run", "RECURRENCE is required (see 'halation run --help')"},
        {"run gated a", "--output is required (see 'halation run --help')"},
        {run + "--form quick", "--form: 'quick' is none of auto|recurrent|chunkwise|parallel (see 'halation run --help')"},
        {run + "--threads -1", "--threads: '-1' is no whole number from 0 to 1024 (see 'halation run --help')"},
        {run + "--threads two", "--threads: 'two' is no whole number from 0 to 1024 (see 'halation run --help')"},
        {"bench --tokens 0", "--tokens: '0' is no whole number from 1 to 16777216 (see 'halation bench --help')"},
        {run + "--fast", "The following argument was not expected: --fast (see 'halation run --help')"},
        {"check", "FILE is required (see 'halation check --help')"},
        {run + "--device 1",
         "--device: got 1; must be left out with --backend cpu, which has no devices (see 'halation run --help')"},
        {"check a --device 0",
         "--device: got 0; must be left out with --backend cpu, which has no devices (see 'halation check --help')"},
        {run + "--backend opencl --isa avx2",
         "--isa: got 'avx2', which is of the CPU; must be left out with --backend opencl (see 'halation run --help')"},
        {"check a --backend metal --isa neon",
         "--isa: got 'neon', which is of the CPU; must be left out with --backend metal (see 'halation check --help')"},
        {"bench --backend opencl",
         "--backend: got 'opencl'; bench times the CPU, device_bench times devices (see 'halation bench --help')"},
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
         {"\ngated_delta\n", "q [B,T,H,K], k [B,T,H,K], v [B,T,HV,V]", "g        [B,T,HV]: ", "chunkwise", "This machine"}) {
        INFO(text);
        CHECK(outcome.out.find(text) != std::string::npos);
    }
    // Whether the end of a short text is what cannot be written, or the midst of a long one.
    for (const char *command : {"--help", "list"}) {
        const Outcome full = outcome_of("( " HALATION_CLI " " + std::string(command) + " >/dev/full )");
        INFO(command);
        CHECK(full.code == 1);
        CHECK(full.error == "halation: standard output cannot be written: No space left on device\n");
    }

    // What each input is, a type of gates only where there are gates, and the heads of a cache.
    const auto entry = [&](const std::string &recurrence) {
        const size_t from = outcome.out.find("\n" + recurrence + "\n") + 1;
        return outcome.out.substr(from, outcome.out.find("\n\n", from) - from);
    };
    CHECK(entry("retention").find("gamma    [HV]: the decay itself") != std::string::npos);
    CHECK(entry("gla").find("g        [B,T,HV,K]: natural logarithm of the decay") != std::string::npos);
    CHECK(entry("ssm").find("D        [D]: weight of x") != std::string::npos);
    CHECK(entry("linear").find("gates") == std::string::npos);
    CHECK(entry("softmax").find("q [B,T,HV,K], k [B,S,H,K], v [B,S,H,V]\n    causal ") != std::string::npos);
}

TEST_CASE_METHOD(Cli, "cli: says once why an instruction set cannot be used") {
    safetensors::write(path("in"), gated());
    // One of the two is of another architecture.
    const std::string isa = halation("list").out.find("\n    neon ") == std::string::npos ? "neon" : "avx2";
    for (const std::string &command :
         {"run gated " + path("in") + " -o " + path("out"), "check " + path("in"), std::string("bench gated")}) {
        const Outcome outcome = halation(command + " --isa " + isa);
        INFO(command << outcome.out);
        CHECK(outcome.code == 1);
        const size_t at = outcome.error.find("no kernel for isa " + isa);
        CHECK(at != std::string::npos);
        CHECK(outcome.error.find("no kernel for isa", at + 1) == std::string::npos);
        CHECK(std::count(outcome.error.begin(), outcome.error.end(), '\n') == 1);
    }
}

TEST_CASE_METHOD(Cli, "cli: times kernels") {
    const auto lines = [](const std::string &text) { return std::count(text.begin(), text.end(), '\n'); };
    const std::string bench = "bench --repetitions 1 --heads-count 2 --key-dim 16 --value-dim 16 --tokens ";
    Outcome outcome = halation(bench + "3,1 5 --heads tiled --value-heads-count 4");  // everything
    INFO(outcome.out << outcome.error);
    CHECK(outcome.code == 0);
    CHECK(lines(outcome.out) == 2 + 3 * std::stoi(halation("list").out));  // it begins with how many there are
    CHECK(outcome.out.rfind("B 1  H 2  HV 4  K 16  V 16  (without heads: N 16  D 16)  threads all\n", 0) == 0u);

    outcome = halation("bench ssm,hgrn --repetitions 1 --tokens 4 --threads 1");
    CHECK(outcome.out.rfind("B 1  N 128  D 128  threads 1\n", 0) == 0u);
    CHECK(lines(outcome.out) == 4);

    // Decoding is timed against a cache.
    CHECK(halation(bench + "1 -- softmax").out.find(", after 4096 cached tokens\n") != std::string::npos);
    CHECK(halation(bench + "1 --cached 7 -- softmax linear").out.find(", after 7 cached tokens\n") != std::string::npos);
    outcome = halation(bench + "1 --cached 7 -- linear");
    CHECK(outcome.code == 1);
    CHECK(outcome.error == "halation: --cached: none of the recurrences to time has a cache; softmax has\n");

    outcome = halation(bench + "3 --type f32,bf16 --threads 1 2 --peers -- gated softmax");
    CHECK(outcome.code == 0);
    CHECK(lines(outcome.out) == 2 * (2 + 4) + 1);
    CHECK(outcome.out.find("  x plain  x ggml ") != std::string::npos);

    outcome = halation("bench bidirectional --form recurrent");
    CHECK(outcome.code == 1);
    CHECK(outcome.error.rfind("halation: nothing was timed: recurrence bidirectional has no form recurrent", 0) == 0u);
}

TEST_CASE_METHOD(Cli, "cli: bench writes its results and compares them") {
    const std::string bench = "bench --threads 1 --tokens 3 --repetitions 1 ";
    std::ofstream(path("shapes.txt"))
        << "# name recurrence H HV K V\nsmall gated_delta 2 4 16 8  # one\n\nlarger gla 1 1 20 24\n";
    Outcome outcome = halation(bench + "--shapes " + path("shapes.txt") + " --json " + path("first.json"));
    INFO(outcome.out << outcome.error);
    CHECK(outcome.code == 0);
    CHECK(outcome.out.find(" small: gated_delta_") != std::string::npos);
    const std::string json = contents(path("first.json"));
    for (const char *text :
         {"\"halation_bench\": 1", "\"shape\": \"larger\"", "\"value_heads\": 4", "\"median_seconds\": ", "\"limit_seconds\": "})
        CHECK(json.find(text) != std::string::npos);
    outcome = halation(bench + "--shapes " + path("shapes.txt") + " --compare " + path("first.json"));
    CHECK(outcome.code == 0);
    CHECK(outcome.out.find("\nagainst " + path("first.json")) != std::string::npos);
    CHECK(outcome.out.find("larger\n") != std::string::npos);

    std::ofstream(path("bad.txt")) << "name gla 1 1 20\n";
    std::ofstream(path("more.txt")) << "name gla 1 1 20 20 junk\n";
    std::ofstream(path("real.txt")) << "\xef\xbb\xbf# BOM\nname gla 1 1 20 16.9\r\n";
    std::ofstream(path("other.txt")) << "name lstm 1 1 20 20\n";
    const auto changed = [&](const char *name, const std::string &from, const std::string &to) {
        std::string text = json;
        text.replace(text.find(from), from.size(), to);
        std::ofstream(path(name)) << text;
    };
    changed("zero.json", "\"median_seconds\": ", "\"median_seconds\": 0, \"was\": ");
    changed("part.json", "\"tokens\": 3", "\"tokens\": 3.5");
    changed("kernel.json", "\"kernel\": \"", "\"kernel\": \"old\\n_");
    std::ofstream(path("none.json")) << "{}";
    const std::pair<std::string, std::string> wrong[] = {
        {"gla --compare " + path("first.json") + " --key-dim 8", "the file to compare with has none of these shapes"},
        {"gla --key-dim 8 --compare " + path("none.json"), path("none.json") + " is no file of halation bench --json: "},
        {"gla --compare " + path("nothing.json"), "cannot read " + path("nothing.json")},
        {"gla --json " + path("no/folder.json"), path("no/folder.json")},
        {"--shapes " + path("bad.txt"),
         path("bad.txt") + ", line 1: expected a name in ASCII, a recurrence, and the numbers H HV K V"},
        {"--shapes " + path("more.txt"), path("more.txt") + ", line 1: expected a name in ASCII"},
        {"--shapes " + path("real.txt"), path("real.txt") + ", line 2: '16.9' is no whole number above 0"},
        {"--shapes " + path("other.txt"), path("other.txt") + ", line 1: "},
        {"--shapes " + path(""), "cannot read " + path("") + ": it is a folder"},
        {"gla --compare " + path("zero.json"), path("zero.json") + " is no file of halation bench --json: a time is not above 0"},
        {"gla --compare " + path("part.json"),
         path("part.json") + " is no file of halation bench --json: tokens is no such number"},
        {"gla --shapes " + path("shapes.txt"), "--shapes: its file names the recurrences; leave out gla"},
    };
    outcome = halation(bench + "--shapes " + path("shapes.txt") + " --compare " + path("kernel.json"));
    CHECK(outcome.out.find("; before 'old") != std::string::npos);
    for (const std::string &empty : {std::string("--json ''"), std::string("--compare ''"), std::string("--shapes ''"),
                                     "--shapes " + path("shapes.txt") + " --key-dim 8"}) {
        outcome = halation(bench + empty);
        INFO(empty << ": " << outcome.error);
        CHECK(outcome.code == 2);
        CHECK(std::count(outcome.error.begin(), outcome.error.end(), '\n') == 1);
    }
    // Who reads a pipe gets the results, and not its end before them.
    outcome = outcome_of("cd '" + folder.string() + "' && mkfifo pipe && { cat pipe >piped & } && timeout 60 " HALATION_CLI " " +
                         bench + "--json pipe -- linear && wait");
    CHECK(outcome.code == 0);
    CHECK(contents(folder / "piped").find("\"halation_bench\": 1") != std::string::npos);

    for (const auto &[arguments, message] : wrong) {
        outcome = halation(bench + arguments);
        INFO(arguments << ": " << outcome.error);
        CHECK(outcome.code == 1);
        CHECK(outcome.error.rfind("halation: " + message, 0) == 0u);
        CHECK(std::count(outcome.error.begin(), outcome.error.end(), '\n') == 1);
    }
}

TEST_CASE_METHOD(Cli, "halation_generate: says in one line what is wrong") {
    const std::string kernel = "kernel '" + path("") + "' ", gla = kernel + "name=x recurrence=gla form=recurrent isa=avx2 ";
    const std::pair<std::string, std::string> wrong[] = {
        {kernel + "name=x recurrence=lstm form=recurrent isa=avx2", "no recurrence named 'lstm'"},
        {kernel + "name=x recurrence=gla form=backward isa=avx2", "no form 'backward'"},
        {kernel + "name=x recurrence=hgrn form=parallel isa=avx2", "hgrn has no parallel form"},
        {kernel + "name=x recurrence=gla form=recurrent isa=sse", "'sse'"},
        {kernel + "name=1x recurrence=gla form=recurrent isa=avx2", "name: got '1x'; must be a C identifier"},
        {gla + "backend=vulkan", "no backend 'vulkan'"},
        {gla + "os=beos", "no os 'beos'"},
        {gla + "type=f64", "no type 'f64'"},
        {gla + "gates=f16", "no gate type 'f16'"},
        {gla + "feature_map=relu", "no feature map 'relu'"},
        {gla + "key_dim=0", "key_dim: got '0'; may be any, or 1 to 65536"},
        {gla + "value_dim=33", "value_dim: got 33; must be any, or a multiple of 32 for isa avx2, form recurrent"},
        {gla + "parameters=chunks=8", "no schedule parameter 'chunks'; there are: chunk, value_vectors"},
        {gla + "parameters=chunk=7", "segment: got 128; must be a multiple of chunk, 7"},
        {gla + "schedule=mine", "no schedule 'mine' was registered; there are: none"},
        {gla + "colour=red", "'colour=red' is no word of a variant; they are name, recurrence, form"},
        {gla + "parallel", "'parallel' is no word of a variant"},
        {"kernel '" + path("none") + "' name=x recurrence=gla form=recurrent isa=avx2", "No such file or directory"},
        {"table f '" + path("none") + "' '" + path("out.cpp") + "'", "cannot read"},
        {"-g halation_chunk recurrence=gla form=recurrent -o '" + path("") + "'", "target=host"},
        {"-g halation_chunk recurrence=gla form=recurrent target=host", "-o DIR"},
        {"-g halation_chunk recurrence=lstm form=recurrent target=host -o '" + path("") + "'", "no recurrence named 'lstm'"},
    };
    for (const auto &[arguments, message] : wrong) {
        const Outcome outcome = outcome_of(HALATION_GENERATE " " + arguments);
        INFO(arguments);
        CHECK(outcome.code == 1);
        INFO(outcome.error);
        CHECK(outcome.error.rfind("halation_generate: ", 0) == 0u);
        CHECK(outcome.error.find(message) != std::string::npos);
        CHECK(std::count(outcome.error.begin(), outcome.error.end(), '\n') == 1);
        CHECK(fs::is_empty(folder / "files"));
    }
    CHECK(outcome_of(HALATION_GENERATE).code == 2);
    CHECK(outcome_of(HALATION_GENERATE " --help").code == 0);
}
