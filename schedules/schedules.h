// The schedules: in what order, where and how wide the Funcs of an algorithm are computed. One named function a file.
#ifndef HALATION_SCHEDULES_SCHEDULES_H
#define HALATION_SCHEDULES_SCHEDULES_H

#include "../generators/chunk.h"
#include "machines.h"

namespace halation {

void chunkwise_cpu(Chunk &chunk, const CpuMachine &machine);
void recurrent_cpu(Chunk &chunk, const CpuMachine &machine);
void parallel_cpu(Chunk &chunk, const CpuMachine &machine);

}  // namespace halation
#endif
