// How fast this machine is at best, measured: what times of kernels are held against.
#ifndef HALATION_BENCH_LIMITS_H
#define HALATION_BENCH_LIMITS_H

#include <string>

namespace bench {

struct Limits {
    double multiply_adds_per_second;  // float32, in vectors of the ISA, from registers
    double exps_per_second;           // the same, of a polynomial of degree 6 after the power of two is split off
    double bytes_per_second;          // reading two arrays and writing a third, none of which fits a cache
};

// Takes about a second. isa: x86_64, avx2, avx512 or neon, which this processor must have.
Limits measure_limits(const std::string &isa, int threads);

// The processor's name, as the system says it.
std::string processor_name();

// One per processor, if `threads` is 0.
int thread_count(int threads);

}  // namespace bench
#endif
