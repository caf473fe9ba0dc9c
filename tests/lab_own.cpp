// Recurrences and schedules of the lab that lab_cli_test runs: good ones, and such as nobody should write.
#include "schedules/schedules.h"

#include <chrono>
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

// Says something else each time it is asked: the kernel and the loop it is held against cannot agree.
halation::Row fickle() {
    halation::Row row = with_inputs("fickle");
    row.k = [](const Token &token) {
        static int asked = 0;
        return token["k"] * static_cast<float>(++asked);
    };
    return row;
}

const halation::RegisterRow rows[] = {halation::RegisterRow(with_inputs("value_gated")), halation::RegisterRow(fickle())};

void crashes(halation::Chunk &, const halation::CpuMachine &) {
    std::abort();
}

// Against what the carry pass asks for.
void breaks(halation::Chunk &chunk, const halation::CpuMachine &machine) {
    halation::chunkwise_cpu(chunk, machine);
    chunk.output.parallel(chunk.chunk_loop);
}

void tiles(halation::Chunk &chunk, const halation::CpuMachine &machine) {
    halation::CpuMachine mine = machine;
    mine.value_vectors = machine.parameter("own_tile");
    halation::chunkwise_cpu(chunk, mine);
}

const halation::RegisterSchedule schedules[] = {
    {"crashes", crashes}, {"breaks", breaks}, {"tiles", tiles, {{"own_tile", 1, 1, 4, {1, 2}}}}};

}  // namespace
