// What `halation bench` measured: a line of a table, an object of a file.
#ifndef HALATION_CLI_BENCH_RESULTS_H
#define HALATION_CLI_BENCH_RESULTS_H

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace halation::cli {

struct BenchResult {
    std::string shape;  // the model's name in a file of shapes; empty: none
    std::string recurrence, type, kernel;
    int64_t batch = 1, tokens = 1, cached = 0, heads = 1, value_heads = 1, key_dim = 1, value_dim = 1;
    int threads = 1;
    double least = 0, median = 0;         // seconds of a call
    double multiply_adds = 0, limit = 0;  // of a call; seconds at this machine's best
    std::string binding;                  // what that is: multiply-adds, exps or memory
    int64_t memory = -1;                  // bytes that the first call took beyond its tensors; -1: not known
    std::map<std::string, double> peers;  // by name: median of the ratios peer / ours, taken in turn

    // What must be the same for two results to be compared.
    std::string key() const;
};

struct BenchFile {
    std::string cpu, date, version;
    std::vector<BenchResult> results;
};

void write_bench(const std::string &path, const BenchFile &file);  // throws Error
BenchFile read_bench(const std::string &path);                     // throws Error naming the file

// The table of two files' common results, this one's times over the other's. Throws Error if there are none.
std::string comparison(const BenchFile &now, const BenchFile &before);

}  // namespace halation::cli
#endif
