// Runs lowered code of a block of threads, as far as its integers are known: what is stored, where, and from which elements of
// the kernel's inputs it comes. Threads follow one another, each from the beginning to the end, in rounds: it finds what others
// have stored in the round before, at the barriers that they had met, until nothing changes any more.
#ifndef HALATION_TESTS_THREAD_RUN_H
#define HALATION_TESTS_THREAD_RUN_H

#include "lowered.h"

#include <string>
#include <vector>

namespace thread_run {

struct Event {
    bool is_store;
    int64_t thread;
    std::string array;
    int64_t at;
    Halide::Expr value;  // of a store: an expression of elements of arrays that nothing stores
};

struct Result {
    std::vector<Event> events;       // in order: stores, and loads of elements that nothing stores
    std::vector<std::string> races;  // elements that one thread stores and another loads between the same barriers

    std::vector<Event> of(const std::string &array) const;                      // those of one array
    int64_t first(const std::string &array, int64_t thread, int64_t at) const;  // where it is in `events`; -1: nowhere
};

// `table`: arrays of integers whose elements are known. `thread`: the loop over threads.
Result run(const Halide::Internal::Stmt &s, const lowered::Values &values, const std::string &thread,
           const std::map<std::string, std::vector<int32_t>> &table = {});

// The same stores, in the same order for each thread.
bool same_stores(const std::vector<Event> &a, const std::vector<Event> &b);

}  // namespace thread_run
#endif
