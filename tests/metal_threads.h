// The threads of a Metal threadgroup, as fibers of one thread of the host: each runs to its next barrier, then the next one has
// its turn. A kernel that lacks a barrier gives other results in another order of them.
#ifndef HALATION_TESTS_METAL_THREADS_H
#define HALATION_TESTS_METAL_THREADS_H

#include <cstddef>
#include <functional>
#include <set>
#include <string>

namespace metal_emulator {

// In what order threads take turns, and threadgroups come.
struct Order {
    enum Kind { forward, reverse, shuffled } kind = forward;
    unsigned seed = 0;

    // "forward", "reverse", or the number that a shuffled order is drawn with; throws std::runtime_error.
    static Order named(const std::string &name);
};

// A kernel for one thread.
using ThreadFunction = void (*)(const unsigned *group, const unsigned *thread, void *const *arguments);

struct Grid {
    unsigned groups[3], threads[3];
};

struct GridCall {
    ThreadFunction run;
    bool has_barriers;
    void *const *arguments;
    std::function<void()> before_group;
    // Says what lies near an address that may not be touched.
    std::function<std::string(const void *)> describe_address;
};

// Runs all threadgroups. What is wrong with the kernel, empty if nothing is: barriers that not all threads of a threadgroup come
// to, memory touched that may not be.
std::string run_grid(const Grid &grid, const Order &order, const GridCall &call);

// The barrier that kernels call. They are told apart by their lines in a text, on which Halide writes one each.
void barrier(int line);

// Of all launches of this thread of the host from now on: the barriers that threads pass without waiting, as if they were not in
// the text; at first none.
void leave_out_barriers(const std::set<int> &lines);

// Those that threads of a group have waited at, in launches of this thread of the host, since the last call.
std::set<int> take_barriers_met();

}  // namespace metal_emulator
#endif
