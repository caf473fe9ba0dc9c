#include "machine_code_analyzer.h"

#include "lab/process.h"

#include <cstdlib>
#include <exception>
#include <fstream>
#include <sstream>

namespace halation::lab {
namespace {

bool starts(const std::string &text, const std::string &start) {
    return text.compare(0, start.size(), start) == 0;
}

// How many fused multiply-adds of whole vectors a processor begins in a cycle, where LLVM's model is to be checked by it:
// that of Zen 3 in LLVM 14 has half of what Zen 3 has, and every loop here would seem bound by it.
struct Processor {
    const char *name;
    Vendor vendor;
    int family;  // of AMD
    int of_512_bits, of_256_bits;
};
const Processor x86_processors[] = {
    // The newest first of each vendor; a host takes those of its own family or older, then the other vendor's.
    {"znver5", Vendor::amd, 26, 2, 2},   {"znver4", Vendor::amd, 25, 1, 2},          {"znver3", Vendor::amd, 25, 0, 2},
    {"znver2", Vendor::amd, 23, 0, 2},   {"icelake-server", Vendor::intel, 0, 2, 2}, {"skylake-avx512", Vendor::intel, 0, 2, 2},
    {"skylake", Vendor::intel, 0, 0, 2}, {"haswell", Vendor::intel, 0, 0, 2},
};

bool suits(const Processor &processor, const std::string &isa, const Host &host) {
    if (isa == "avx512" && processor.of_512_bits == 0) return false;
    if (processor.vendor != Vendor::amd) return true;
    // Zen 2 takes less in a cycle than any later one: Intel's are nearer to those.
    if (processor.family == 23 ? host.family != 23 : processor.family > host.family) return false;
    // Zen 4 has one multiply-add unit of 512 bits, Zen 5 has two.
    return isa != "avx512" || host.family == processor.family;
}

const Processor *x86_processor(const std::string &name) {
    for (const Processor &processor : x86_processors)
        if (name == processor.name) return &processor;
    return nullptr;
}

std::vector<std::string> arguments(const Analyzer &analyzer, int turns) {
    return {analyzer.program,
            analyzer.syntax == Syntax::x86 ? "-mtriple=x86_64-unknown-linux-gnu" : "-mtriple=aarch64-unknown-linux-gnu",
            "-mcpu=" + analyzer.processor,
            "-iterations=" + std::to_string(turns),
            "-instruction-info=0",
            "-bottleneck-analysis",
            "-"};
}

// Multiply-adds that need nothing of each other.
std::string probe(const std::string &isa) {
    std::string lines;
    const std::string at = isa == "avx512" ? "%zmm" : "%ymm";
    for (int i = 2; i < 12; i++)
        lines += isa == "neon"     ? "fmla v" + std::to_string(i) + ".4s, v0.4s, v1.4s\n"
                 : isa == "x86_64" ? "mulps %xmm0, %xmm" + std::to_string(i) + "\n"
                                   : "vfmadd231ps " + at + "0, " + at + "1, " + at + std::to_string(i) + "\n";
    return lines;
}

std::string program_in_path() {
    if (in_path("llvm-mca")) return "llvm-mca";
    for (int version = 40; version >= 11; version--) {
        const std::string name = "llvm-mca-" + std::to_string(version);
        if (in_path(name)) return name;
    }
    return "";
}

std::string model_with(const std::string &unit) {
    const std::pair<const char *, const char *> models[] = {
        {"SKX", "Skylake server"}, {"ICX", "Ice Lake server"}, {"SPR", "Sapphire Rapids"}, {"SKL", "Skylake"},
        {"HW", "Haswell"},         {"BW", "Broadwell"},        {"Zn2", "Zen 2"},           {"Zn3", "Zen 3"},
        {"Zn4", "Zen 4"},          {"Zn5", "Zen 5"},           {"A57", "Cortex-A57"},      {"CortexA55", "Cortex-A55"},
        {"Cy", "Apple Cyclone"},   {"N1", "Neoverse N1"},      {"N2", "Neoverse N2"},      {"V1", "Neoverse V1"},
        {"V2", "Neoverse V2"}};
    for (const auto &[prefix, name] : models)
        if (starts(unit, prefix)) return name;
    return "";
}

// Why a processor's model does not serve; empty if it does, and then the analyzer has its name.
std::string try_processor(Analyzer &analyzer, const std::string &isa) {
    const Finished finished = run_process(arguments(analyzer, 100), 20, probe(isa));
    if (finished.code != 0 || finished.timed_out) return "failed: " + finished.err.substr(0, finished.err.find('\n'));
    if (finished.err.find("not a recognized processor") != std::string::npos) return "is not known to it";
    const Analysis analysis = parse_analysis(finished.out, Loop());
    if (!analysis.known) return "gives a report that cannot be read";
    const Processor *processor = x86_processor(analyzer.processor);
    const int expected = !processor ? 0 : isa == "avx512" ? processor->of_512_bits : isa == "avx2" ? processor->of_256_bits : 0;
    if (expected && analysis.throughput > 1.3 * 10 / expected) return "is modelled with too few multiply-add units";
    analyzer.model = model_with(analysis.busiest);
    return "";
}

}  // namespace

Host host_of(const std::string &cpuinfo) {
    Host host;
    std::istringstream in(cpuinfo);
    for (std::string line; std::getline(in, line);) {
        const size_t colon = line.find(':');
        if (colon == std::string::npos) continue;
        const std::string value = line.substr(std::min(line.size(), colon + 2));
        if (starts(line, "vendor_id"))
            host.vendor = value == "AuthenticAMD" ? Vendor::amd : value == "GenuineIntel" ? Vendor::intel : Vendor::other;
        if (starts(line, "CPU implementer") && value == "0x61") host.vendor = Vendor::apple;
        if (starts(line, "cpu family")) host.family = static_cast<int>(std::strtol(value.c_str(), nullptr, 10));
    }
    return host;
}

Host this_host() {
    std::ifstream in("/proc/cpuinfo");
    std::ostringstream text;
    text << in.rdbuf();
    return host_of(text.str());
}

std::vector<std::string> processors_for(const std::string &isa, const Host &host) {
    if (isa == "neon")
        return host.vendor == Vendor::apple ? std::vector<std::string>{"apple-m1", "neoverse-n1"}
                                            : std::vector<std::string>{"neoverse-n1", "cortex-a57"};
    std::vector<std::string> own, others;
    for (const Processor &processor : x86_processors) {
        if (!suits(processor, isa, host)) continue;
        (processor.vendor == host.vendor ? own : others).push_back(processor.name);
    }
    if (host.vendor != Vendor::amd && host.vendor != Vendor::intel) others = {"icelake-server", "skylake-avx512", "haswell"};
    own.insert(own.end(), others.begin(), others.end());
    return own;
}

Analyzer find_analyzer(const std::string &isa, const Host &host, const std::string &program) {
    Analyzer analyzer;
    analyzer.syntax = isa == "neon" ? Syntax::arm : Syntax::x86;
    analyzer.program = program.empty() ? program_in_path() : program;
    if (analyzer.program.empty()) {
        analyzer.missing = "llvm-mca is not in PATH; it is part of LLVM (Debian: package llvm)";
        return analyzer;
    }
    std::string tried;
    try {
        for (const std::string &processor : processors_for(isa, host)) {
            analyzer.processor = processor;
            const std::string fault = try_processor(analyzer, isa);
            if (fault.empty()) return analyzer;
            tried += (tried.empty() ? "" : "; ") + processor + " " + fault;
        }
        analyzer.missing = analyzer.program + " has no processor to take for " + isa + ": " + tried;
    } catch (const std::exception &error) {
        analyzer.missing = error.what();
    }
    analyzer.processor.clear();
    return analyzer;
}

std::vector<Analysis> analyze(const std::vector<Loop> &loops, const Analyzer &analyzer) {
    std::vector<Analysis> analyses(loops.size());
    for (size_t at = 0; at < loops.size(); at++)
        if (loops[at].vector_arithmetic() > 0) analyses[at] = analyze(loops[at], analyzer);
    return analyses;
}

Analysis analyze(const Loop &loop, const Analyzer &analyzer) {
    Analysis analysis;
    analysis.reason = analyzer.missing;
    if (!analyzer.usable()) return analysis;
    std::string input;
    for (const std::string &line : loop.lines) {
        const auto instruction = instruction_of(line, loop.syntax);
        if (instruction && !instruction->call) input += instruction->text() + "\n";
    }
    try {
        const Finished finished = run_process(arguments(analyzer, loop.innermost ? 100 : 1), 60, input);
        if (finished.timed_out) {
            analysis.reason = analyzer.program + " took longer than a minute";
        } else if (finished.code != 0) {
            analysis.reason = analyzer.program + ": " + finished.err.substr(0, finished.err.find('\n'));
        } else {
            analysis = parse_analysis(finished.out, loop);
        }
    } catch (const std::exception &error) {
        analysis.reason = error.what();
    }
    analysis.processor = analyzer.processor, analysis.model = analyzer.model;
    return analysis;
}

}  // namespace halation::lab
