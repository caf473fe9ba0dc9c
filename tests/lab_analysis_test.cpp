// What `halation-lab show` says of a kernel's loops. Only the last test needs llvm-mca, and is skipped where it is not.
#include "lab/machine_code/loop_table.h"
#include "lab_assembly_data.h"

#include <catch2/catch.hpp>

#include <iostream>

using namespace assembly_data;
using namespace halation::lab;

TEST_CASE("a report of llvm-mca: units that are busy with something else") {
    const Loop loop = loops_of(file("recurrent_avx512.s"))[0];
    const Analysis analysis = parse_analysis(file("llvm_mca_masks.txt"), loop);
    REQUIRE(analysis.known);
    CHECK(analysis.cycles == Approx(16.11));
    CHECK(analysis.dispatch_width == 6);
    CHECK(analysis.instructions_per_cycle == Approx(2.98));
    CHECK(analysis.multiply_adds_per_cycle == Approx(256 / 16.11).epsilon(1e-3));
    CHECK(words_for_unit(analysis.busiest) == "multiply-add units");
    CHECK(analysis.bound == "masks in vector units, 99 %");
    CHECK_FALSE(analysis.alone);
    const Analysis other = parse_analysis(with_carriage_returns(file("llvm_mca_masks.txt")), loop);
    CHECK(other.bound == analysis.bound);
}

TEST_CASE("a report of llvm-mca: a dependency chain") {
    const Loop loop = loops_of(file("recurrent_avx512.s"))[1];
    const Analysis analysis = parse_analysis(file("llvm_mca_chain.txt"), loop);
    REQUIRE(analysis.known);
    CHECK(analysis.cycles == Approx(4.18));
    CHECK(analysis.micro_operations == Approx(7));
    CHECK(analysis.throughput == Approx(1.2));
    CHECK(analysis.busiest == "ICXPort5");
    CHECK(analysis.busiest_cycles == Approx(1.33));
    CHECK(analysis.dependency_pressure == Approx(33.97));
    CHECK(analysis.bound == "dependency chain of 4 cycles; multiply-add units 32 %");
}

TEST_CASE("a report that cannot be read says so") {
    const std::string report = file("llvm_mca_chain.txt");
    for (const size_t length : {size_t(0), size_t(30), size_t(150), report.find("Resource pressure per")}) {
        const Analysis analysis = parse_analysis(report.substr(0, length), Loop());
        CHECK_FALSE(analysis.known);
        CHECK(analysis.reason == "the report of llvm-mca cannot be read");
    }
}

TEST_CASE("units in words") {
    const std::pair<const char *, const char *> units[] = {{"SKXPort0", "multiply-add units"},
                                                           {"ICXPort3", "loads"},
                                                           {"HWPort4", "stores"},
                                                           {"HWPort6", "integer units"},
                                                           {"ICXFPDivider", "divider"},
                                                           {"Zn3FPP1", "multiply-add units"},
                                                           {"Zn3Load", "loads"},
                                                           {"Zn4FP45", "vector loads and stores"},
                                                           {"A57UnitL", "loads"},
                                                           {"N1UnitV0", "multiply-add units"},
                                                           {"Unheard", "Unheard"},
                                                           {"", ""}};
    for (const auto &[unit, words] : units) CHECK(words_for_unit(unit) == words);
}

TEST_CASE("the processor whose model is taken is like the host's") {
    const Host zen5 = host_of("vendor_id\t: AuthenticAMD\ncpu family\t: 26\n");
    CHECK(zen5.vendor == Vendor::amd);
    CHECK(zen5.family == 26);
    CHECK(processors_for("avx512", zen5) == std::vector<std::string>{"znver5", "icelake-server", "skylake-avx512"});
    CHECK(processors_for("avx2", zen5).front() == "znver5");
    const Host intel = host_of("vendor_id\t: GenuineIntel\ncpu family\t: 6\n");
    CHECK(processors_for("avx512", intel) == std::vector<std::string>{"icelake-server", "skylake-avx512"});
    const Host apple = host_of("CPU implementer\t: 0x61\n");
    CHECK(processors_for("neon", apple).front() == "apple-m1");
    CHECK(processors_for("neon", zen5).front() == "neoverse-n1");
    for (const char *isa : {"x86_64", "avx2", "avx512", "neon"})
        for (const Host &host : {zen5, intel, apple, host_of(""), host_of("vendor_id")})
            CHECK_FALSE(processors_for(isa, host).empty());
}

TEST_CASE("no program, no analysis, but everything else") {
    const Analyzer analyzer = find_analyzer("avx512", Host(), "/nonexistent/llvm-mca");
    CHECK_FALSE(analyzer.usable());
    CHECK(analyzer.missing.find("/nonexistent/llvm-mca") != std::string::npos);
    const std::vector<Loop> loops = loops_of(file("recurrent_avx512.s"));
    const std::string text = describe(loops, analyze(loops, analyzer));
    CHECK(text.find("state_reads over key.ko, update") != std::string::npos);
    CHECK(text.find("Not analyzed: ") != std::string::npos);
    // A program that is another one.
    CHECK_FALSE(find_analyzer("avx512", Host(), "false").usable());
    CHECK_FALSE(find_analyzer("avx512", Host(), "echo").usable());
}

TEST_CASE("tables fit in 110 columns, and copies of a loop are one line") {
    std::vector<Loop> loops = loops_of(file("recurrent_avx2.s"));
    loops.push_back(loops[0]);
    loops.push_back(loops_of(nested)[1]);
    loops.push_back(Loop());
    loops[1].name = std::string(70, 'x');
    loops[1].calls = std::vector<std::string>(12, "a_function_with_a_name");
    std::vector<Analysis> analyses(loops.size());
    for (size_t at = 0; at < loops.size(); at++) analyses[at] = parse_analysis(file("llvm_mca_chain.txt"), loops[at]);
    analyses[1].bound = std::string(60, 'y') + "; " + std::string(60, 'z');
    analyses[3].known = false, analyses[3].reason = std::string(90, 'w');
    const std::string text = describe(loops, analyses);
    for (const std::string &line : lines_of(text)) CHECK(line.size() <= 110);
    CHECK(text.find("state_reads over key.ko, update (x2)") != std::string::npos);
    CHECK(text.find("around: .LBB0_1") != std::string::npos);
    CHECK(text.find("and 1 innermost loop without arithmetic of vectors") != std::string::npos);
    CHECK(text.find("loop 1: 4 spills and 9 reloads of vector registers a turn; it uses 16 of 16 registers.") !=
          std::string::npos);
    CHECK(describe({Loop()}, {}) == "1 loop, none with arithmetic of vectors.\n");
}

TEST_CASE("llvm-mca, where it is") {
    const std::pair<const char *, const char *> kernels[] = {
        {"avx512", "recurrent_avx512.s"}, {"avx2", "recurrent_avx2.s"}, {"neon", "chunkwise_neon.s"}};
    for (const auto &[isa, kernel] : kernels) {
        const Analyzer analyzer = find_analyzer(isa);
        if (!analyzer.usable()) {
            std::cerr << "skipped: " << analyzer.missing << "\n";
            continue;
        }
        CHECK_FALSE(analyzer.processor.empty());
        const std::vector<Loop> loops = loops_of(file(kernel));
        const std::vector<Analysis> analyses = analyze(loops, analyzer);
        for (size_t at = 0; at < loops.size(); at++) {
            INFO(isa << " " << loops[at].name << ": " << analyses[at].reason);
            REQUIRE(analyses[at].known);
            CHECK(analyses[at].cycles > 0);
            CHECK(analyses[at].multiply_adds_per_cycle <= 64);
            CHECK_FALSE(analyses[at].bound.empty());
        }
        CHECK(describe(loops, analyses).find("As llvm-mca models " + analyzer.processor) != std::string::npos);
    }
}
