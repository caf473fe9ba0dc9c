// The schedules: in what order, where and how wide the Funcs of an algorithm are computed. One named function a file.
#ifndef HALATION_SCHEDULES_SCHEDULES_H
#define HALATION_SCHEDULES_SCHEDULES_H

#include "../generators/attention.h"
#include "../generators/bidirectional.h"
#include "../generators/chunk.h"
#include "../generators/scan.h"
#include "../generators/scan_chunk.h"
#include "parameters.h"

namespace halation {

void chunkwise_cpu(Chunk &chunk, const CpuMachine &machine);
void recurrent_cpu(Chunk &chunk, const CpuMachine &machine);
void parallel_cpu(Chunk &chunk, const CpuMachine &machine);
void scan_cpu(Scan &scan, const CpuMachine &machine);
// `placed`: the output of a batch, see batch.h; v, h and t are its Vars for value channels, value heads and tokens, n for
// sequences.
void chunk_gpu(Chunk &chunk, Halide::Func &placed, const GpuMachine &machine);
void scan_gpu(ScanChunk &scan, Halide::Func &placed, const ScanTile &tile, const GpuMachine &machine);  // likewise, without heads
void softmax_gpu(OnlineAttention &attention, Halide::Func &placed);
void softmax_cpu(Attention &attention, bool decode, const CpuMachine &machine);
void bidirectional_cpu(Bidirectional &bidirectional, const CpuMachine &machine);
void bidirectional_gpu(Bidirectional &bidirectional, Halide::Func &placed, const GpuMachine &machine);

// A schedule of a user's own, in place of the three for the chunk algorithm: what SCHEDULE NAME of halation_add_kernels()
// chooses. A source file says, at namespace scope:
//     static halation::RegisterSchedule mine("mine", my_schedule, {{"tile", 2, 1, 8, {1, 2, 4}}});
// Its parameters are what SCHEDULE mine tile=4 sets and halation-lab varies; my_schedule reads machine.parameter("tile").
using ChunkSchedule = void (*)(Chunk &chunk, const CpuMachine &machine);
struct RegisteredSchedule {
    ChunkSchedule schedule;
    std::vector<ScheduleParameter> parameters;
    std::string fault;  // why it cannot be used; empty: it can
};
struct RegisterSchedule {
    RegisterSchedule(const std::string &name, ChunkSchedule schedule, std::vector<ScheduleParameter> parameters = {});
};
std::vector<std::string> schedule_names();
// Throws Halide::CompileError listing the known names, or saying what is wrong with this one.
const RegisteredSchedule &schedule_named(const std::string &name);

}  // namespace halation
#endif
