// How much memory a call takes beyond what it is given.
#ifndef HALATION_BENCH_MEMORY_H
#define HALATION_BENCH_MEMORY_H

#include <cstdint>
#include <functional>

namespace bench {

// Bytes by which this process's resident memory grew at most while `call` ran: scratch memory, stacks of threads, pages of
// code seen for the first time. -1 where the system does not tell (it is Linux that does).
int64_t memory_taken(const std::function<void()> &call);

}  // namespace bench
#endif
