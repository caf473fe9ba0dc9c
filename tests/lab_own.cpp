// Recurrences and schedules of the lab that lab_cli_test runs: good ones, and such as nobody should write.
#include "schedules/schedules.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace {

using halation::Token;

halation::Row with_inputs(const char *name) {
    halation::Row row(name, "S_t = exp(gv) S_{t-1} + k v^T");
    row.input("q", "BTHK").input("k", "BTHK").input("v", "BTGV");
    row.gate("gv", "BTGV");
    row.log_decay_per_value_channel = [](const Token &token) { return token["gv"]; };
    return row;
}

// Says something else to the loop, which asks with a name, than to the generator, which asks with a load.
halation::Row fickle() {
    halation::Row row = with_inputs("fickle");
    row.k = [](const Token &token) {
        const Halide::Expr k = token["k"];
        return k.as<Halide::Internal::Variable>() ? k : k * 2.0f;
    };
    return row;
}

// Grows beyond all floats on random inputs.
halation::Row overflows() {
    halation::Row row = with_inputs("overflows");
    row.log_decay_per_value_channel = [](const Token &token) { return 9.0f - token["gv"]; };
    return row;
}

const halation::RegisterRow rows[] = {halation::RegisterRow(with_inputs("value_gated")), halation::RegisterRow(fickle()),
                                      halation::RegisterRow(overflows())};

void crashes(halation::Chunk &, const halation::CpuMachine &) {
    std::abort();
}

// Against what the carry pass asks for.
void breaks(halation::Chunk &chunk, const halation::CpuMachine &machine) {
    halation::chunkwise_cpu(chunk, machine);
    chunk.output.parallel(chunk.chunk_loop);
}

void hangs(halation::Chunk &, const halation::CpuMachine &) {
    std::this_thread::sleep_for(std::chrono::hours(1));
}

void chatters(halation::Chunk &chunk, const halation::CpuMachine &machine) {
    std::puts("{\"status\": \"timed\"}");
    halation::chunkwise_cpu(chunk, machine);
}

void leaves(halation::Chunk &, const halation::CpuMachine &) {
    std::exit(0);
}

void tiles(halation::Chunk &chunk, const halation::CpuMachine &machine) {
    halation::CpuMachine mine = machine;
    mine.value_vectors = machine.parameter("own_tile");
    halation::chunkwise_cpu(chunk, mine);
}

// Replaces the whole state before any of it is read.
void hastens(halation::Chunk &m, const halation::CpuMachine &) {
    for (Halide::Func f : {m.query_sums, m.state_taken, m.state_sums, m.final_state_copy, m.state_reads, m.output_sums})
        f.compute_at(m.output, m.h);
}

const halation::RegisterSchedule schedules[] = {{"crashes", crashes},
                                                {"breaks", breaks},
                                                {"hangs", hangs},
                                                {"chatters", chatters},
                                                {"leaves", leaves},
                                                {"hastens", hastens},
                                                {"two words", tiles},
                                                {"outside", tiles, {{"own_tile", 9, 1, 4, {1, 2}}}},
                                                {"tiles", tiles, {{"own_tile", 1, 1, 4, {1, 2}}}}};

}  // namespace
