// A schedule of one's own: Halation's chunkwise one on tiles of one vector of value channels.
#include <schedules/schedules.h>

static void narrow_tiles(halation::Chunk &chunk, const halation::CpuMachine &machine) {
    halation::CpuMachine mine = machine;
    mine.value_vectors = 1;
    halation::chunkwise_cpu(chunk, mine);
}

static const halation::RegisterSchedule registered("narrow_tiles", narrow_tiles);
