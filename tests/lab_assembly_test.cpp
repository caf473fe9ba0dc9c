// The loops that `halation-lab show` finds in a kernel's assembly.
#include "lab/machine_code/loop_table.h"
#include "lab_assembly_data.h"

#include <catch2/catch.hpp>

#include <random>

using namespace assembly_data;
using namespace halation::lab;

namespace {

Instruction one(const std::string &line, Syntax syntax = Syntax::x86) {
    const auto instruction = instruction_of(line, syntax);
    REQUIRE(instruction.has_value());
    return *instruction;
}

}  // namespace

TEST_CASE("loops of a kernel for avx512: registers, masks, broadcasts") {
    const std::vector<Loop> loops = loops_of(file("recurrent_avx512.s"));
    REQUIRE(loops.size() == 2);
    const Loop &reads = loops[0], &sums = loops[1];
    CHECK(reads.name == "state_reads over key.ko, update");
    CHECK(reads.label == ".LBB0_239");
    CHECK(reads.depth == 3);
    CHECK(reads.innermost);
    CHECK(reads.instructions == 48);
    CHECK(reads.multiply_adds == 16);
    CHECK(reads.multiply_add_lanes == 256);
    CHECK(reads.operations == 512);
    CHECK(reads.lanes == 16);
    CHECK(reads.loads == 12);
    CHECK(reads.broadcasts == 4);
    CHECK(reads.stores == 0);
    CHECK(reads.stack_loads == 0);
    CHECK(reads.branches == 1);
    CHECK(reads.vector_registers == 13);
    CHECK(reads.registers_there_are == 32);
    CHECK(reads.calls.empty());
    CHECK(reads.lines.back() == "\tjne\t.LBB0_239");
    CHECK(sums.name == "query_sums_intm over outer, update");
    CHECK(sums.depth == 2);
    CHECK(sums.multiply_adds == 1);
    CHECK(sums.loads == 2);
    CHECK(sums.vector_registers == 2);
}

TEST_CASE("loops of a kernel for avx2: what is kept on the stack") {
    const std::vector<Loop> loops = loops_of(file("recurrent_avx2.s"));
    REQUIRE(loops.size() == 2);
    const Loop &reads = loops[0];
    CHECK(reads.multiply_adds == 16);
    CHECK(reads.lanes == 8);
    CHECK(reads.vector_registers == 16);
    CHECK(reads.registers_there_are == 16);
    CHECK(reads.vector_spills == 4);
    CHECK(reads.vector_reloads == 9);
    CHECK(reads.scalar_spills == 0);
    CHECK(reads.stack_loads == 9);
    CHECK(reads.stack_stores == 4);
    CHECK(reads.stores == 4);
}

TEST_CASE("loops of a kernel for 64-bit Arm") {
    const std::vector<Loop> loops = loops_of(file("chunkwise_neon.s"));
    REQUIRE(loops.size() == 2);
    const Loop &after = loops[0];
    CHECK(after.syntax == Syntax::arm);
    CHECK(after.name == "state_after over d.dk");
    CHECK(after.multiply_adds == 32);
    CHECK(after.multiplies == 8);
    CHECK(after.lanes == 4);
    CHECK(after.loads == 16);
    CHECK(after.stores == 4);
    CHECK(after.registers_there_are == 32);
    CHECK(after.vector_registers == 18);
    CHECK(loops[1].depth == 5);
    CHECK(loops[1].multiply_adds == 1);
    CHECK(loops[1].vector_registers == 3);
}

TEST_CASE("lines that end in a carriage return are the same lines") {
    for (const char *name : {"recurrent_avx512.s", "recurrent_avx2.s", "chunkwise_neon.s"}) {
        const std::string text = file(name);
        const std::vector<Loop> loops = loops_of(text), others = loops_of(with_carriage_returns(text));
        REQUIRE(loops.size() == others.size());
        CHECK(describe(loops, {}) == describe(others, {}));
        CHECK(loops[0].lines == others[0].lines);
    }
}

TEST_CASE("without comments, loops are found by the jumps back") {
    const std::vector<Loop> loops = loops_of(nested);
    REQUIRE(loops.size() == 2);
    CHECK(loops[0].name == ".LBB0_2");
    CHECK(loops[0].innermost);
    CHECK(loops[0].depth == 2);
    CHECK(loops[0].multiply_adds == 1);
    CHECK(loops[0].loads == 1);
    CHECK_FALSE(loops[1].innermost);
    CHECK(loops[1].depth == 1);
    CHECK(loops[1].multiplies == 1);
    CHECK(loops[1].stores == 1);

    std::string bare;
    for (const std::string &line : lines_of(file("recurrent_avx512.s"))) bare += line.substr(0, line.find('#')) + "\n";
    const std::vector<Loop> found = loops_of(bare);
    REQUIRE(found.size() == 2);
    CHECK(found[0].label == ".LBB0_239");
    CHECK(found[0].instructions == 48);
}

TEST_CASE("a loop's blocks need not lie together, and the largest function is the kernel") {
    const std::vector<Loop> loops = loops_of("k_argv:\n.LBB1_1: # =>This Inner Loop Header: Depth=1\n\tjne .LBB1_1\n"
                                             "k: # @k\n\tpushq %rbp\n"
                                             ".LBB0_3: # %\"7_for_a.s2.x.us12\"\n"
                                             "  # =>This Inner Loop Header: Depth=1\n"
                                             "\tvaddps %ymm0, %ymm1, %ymm1\n"
                                             "\tje .LBB0_9\n"
                                             "# %bb.4: # %then\n"
                                             "  #   in Loop: Header=BB0_3 Depth=1\n"
                                             "\tjmp .LBB0_3\n"
                                             "# %bb.5:\n"
                                             "\tvmulps %ymm0, %ymm1, %ymm1\n"
                                             ".LBB0_9: # %cold\n"
                                             "  #   in Loop: Header=BB0_3 Depth=1\n"
                                             "\tvzeroupper\n"
                                             "\tcallq expf@PLT\n\tcallq expf@PLT\n"
                                             "\tjmp .LBB0_3\n");
    REQUIRE(loops.size() == 1);
    CHECK(loops[0].name == "a over x, update 2");
    CHECK(loops[0].instructions == 7);
    CHECK(loops[0].adds == 1);
    CHECK(loops[0].multiplies == 0);
    CHECK(loops[0].branches == 3);
    CHECK(loops[0].calls == std::vector<std::string>{"expf"});
    CHECK(describe(loops, {}).find("loop 1: calls expf") != std::string::npos);
}

TEST_CASE("assembly as Apple's systems have it") {
    const std::vector<Loop> loops = loops_of("_k:                  ; @k\n"
                                             "LBB0_2:              ; %\"2_for_o.s0.v.vo\"\n"
                                             "                     ; =>This Inner Loop Header: Depth=1\n"
                                             "\tldr\tq1, [x8], #16 ; 16-byte Folded Reload\n"
                                             "\tfmla.4s\tv0, v1, v2\n"
                                             "\tfmul\tv3.4s, v1.4s, v2.s[1]\n"
                                             "\tb.ne\tLBB0_2\n"
                                             "; %bb.3:\n"
                                             "\tret\n");
    REQUIRE(loops.size() == 1);
    CHECK(loops[0].name == "o over v.vo");
    CHECK(loops[0].instructions == 4);
    CHECK(loops[0].multiply_adds == 1);
    CHECK(loops[0].multiplies == 1);
    CHECK(loops[0].vector_registers == 4);
    CHECK(loops[0].vector_reloads == 1);
}

TEST_CASE("text that is no kernel has no loops") {
    CHECK(loops_of("").empty());
    CHECK(loops_of("\n\n\r\n").empty());
    CHECK(loops_of("k:\n\tvaddps %ymm0, %ymm1, %ymm2\n\tretq\n").empty());
    CHECK(loops_of("k:\n\tjmp .LBB0_1\n.LBB0_1:\n\tretq\n").empty());
    CHECK(loops_of("# =>This Inner Loop Header: Depth=1\n# in Loop: Header=\n").empty());
    CHECK(loops_of("Lorem ipsum: dolor, sit (amet; consectetur\n:\n::\n%\n\"\n,,,\n").empty());
    CHECK(describe({}, {}) == "No loops.\n");
    // Whatever it is, there is an end to it.
    std::mt19937 draw(7);
    const std::string letters = "\t\t\n\n:.,#%(){}[]\"$ LBB0_1jnemovaps%ymm0vfmadd/;\r";
    for (int i = 0; i < 200; i++) {
        std::string text;
        for (int c = 0; c < 400; c++) text += letters[draw() % letters.size()];
        const std::vector<Loop> loops = loops_of(text);
        CHECK_FALSE(describe(loops, {}).empty());
    }
}

TEST_CASE("loops are called what Halide calls them") {
    CHECK(loop_name("%\"46_for_state_reads.s1.key$x.ko.us\"") == "state_reads over key.ko, update");
    CHECK(loop_name("%\"8_for_whole_log.s1.chunk_token$x\"") == "whole_log over chunk_token, update");
    CHECK(loop_name("%\"12_for_writes.s0.d.d.us\"") == "writes over d");
    CHECK(loop_name("%\"5_for_writes.s0.d.d.rebased\"") == "writes over d");
    CHECK(loop_name("%\"37_for_solve_sums.s1.inner.r353\"") == "solve_sums over inner, update");
    CHECK(loop_name("%\"3_for_reads.s0.i.us312\"") == "reads over i");
    CHECK(loop_name("%\"for output.s2.r$y.v\"") == "output over r.y.v, update 2");
    CHECK(loop_name("%true_bb") == "true_bb");
    CHECK(loop_name("") == "");
}

TEST_CASE("what an instruction does with memory") {
    const auto kinds = [](const Instruction &i) { return std::make_pair(i.load, i.store); };
    const std::pair<bool, bool> neither{false, false}, load{true, false}, store{false, true}, both{true, true};
    CHECK(kinds(one("\tvmovaps\t(%rdi), %ymm0")) == load);
    CHECK(kinds(one("\tvmovaps\t%zmm0, 64(%rsp) {%k1}")) == store);
    CHECK(kinds(one("\tvfmadd231ps\t-12(%rdx){1to16}, %zmm1, %zmm2")) == load);
    CHECK(kinds(one("\taddq\t%rax, 8(%rdi)")) == both);
    CHECK(kinds(one("\tincl\t(%rdi)")) == both);
    CHECK(kinds(one("\tcmpl\t$0, 272(%rsp)")) == load);
    CHECK(kinds(one("\timulq\t(%rdi)")) == load);
    CHECK(kinds(one("\tleaq\t8(%rdi,%rsi,4), %rax")) == neither);
    CHECK(kinds(one("\tmovaps\t.LCPI0_4(%rip), %xmm1")) == load);
    CHECK(kinds(one("\tjmpq\t*(%rax)")) == neither);
    CHECK(kinds(one("\tvextractf128\t$1, %ymm0, (%rdi)")) == store);
    CHECK(kinds(one("\tldp\tq0, q1, [x3]", Syntax::arm)) == load);
    CHECK(kinds(one("\tst1\t{ v0.4s }, [x3], #16", Syntax::arm)) == store);
    CHECK(kinds(one("\tadd\tx3, x3, #128", Syntax::arm)) == neither);
    CHECK(one("\tvfmadd231ps\t-12(%rdx){1to16}, %zmm1, %zmm2").broadcast);
    CHECK(one("\tvbroadcastss\t(%rdx), %zmm1").broadcast);
    CHECK(one("\tshufps\t$0, %xmm1, %xmm1").broadcast);
    CHECK(one("\tld1r\t{ v0.4s }, [x3]", Syntax::arm).broadcast);
    CHECK(one("\tldr\tq3, [sp, #272]  // 16-byte Folded Reload", Syntax::arm).stack);
    CHECK(one("\tldr\tq3, [sp, #272]  // 16-byte Folded Reload", Syntax::arm).spilled_bytes == 16);
}

TEST_CASE("what an instruction computes") {
    CHECK(one("\tvfnmadd213pd\t%zmm0, %zmm1, %zmm2").work == Work::multiply_add);
    CHECK(one("\tvfnmadd213pd\t%zmm0, %zmm1, %zmm2").lanes == 8);
    CHECK(one("\tvfmadd231ss\t%xmm0, %xmm1, %xmm2").work == Work::other);
    CHECK(one("\tmulps\t%xmm0, %xmm1").work == Work::multiply);
    CHECK(one("\tvsubps\t%ymm0, %ymm1, %ymm2").work == Work::add);
    CHECK(one("\tvdivps\t%ymm0, %ymm1, %ymm2").work == Work::divide);
    CHECK(one("\tfmls\tv0.2d, v1.2d, v2.d[0]", Syntax::arm).lanes == 2);
    CHECK(one("\tfmadd\ts0, s1, s2, s3", Syntax::arm).work == Work::other);
    CHECK(one("\tvpternlogd\t$255, %zmm20, %zmm20, %zmm3").vector_registers == std::set<int>{3, 20});
    CHECK(one("\tfmla\tv4.4s, v6.4s, v21.s[0]", Syntax::arm).vector_registers == std::set<int>{4, 6, 21});
    CHECK(one("\tldr\ts6, [x1, x2, lsl #2]", Syntax::arm).vector_registers == std::set<int>{6});
    CHECK_FALSE(instruction_of("\t.p2align\t4", Syntax::x86));
    CHECK_FALSE(instruction_of(".LBB0_1:", Syntax::x86));
    CHECK_FALSE(instruction_of("  # vaddps", Syntax::x86));
}

TEST_CASE("multiply-adds where none are fused are pairs") {
    const Loop loop =
        loops_of("k:\n.LBB0_1:\n\tmulps (%rdi), %xmm1\n\tmulps %xmm2, %xmm3\n\taddps %xmm1, %xmm0\n\tjne .LBB0_1\n")[0];
    CHECK(loop.multiply_adds == 0);
    CHECK(loop.multiply_add_lanes == 4);
    CHECK(loop.registers_there_are == 16);
}
