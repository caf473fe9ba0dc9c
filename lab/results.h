// What a sweep found: a file of one JSON object a line, the first of which says what was searched, the rest what became of
// each candidate. A line is written as soon as it is known, so that a sweep that was stopped goes on where it was.
#ifndef HALATION_LAB_RESULTS_H
#define HALATION_LAB_RESULTS_H

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace halation::lab {

using Parameters = std::map<std::string, int>;      // of a schedule, by name
std::string text_of(const Parameters &parameters);  // "chunk=4,segment=64"

// One parameter that a sweep varies.
struct Axis {
    std::string name;
    std::vector<int> values;
    int shipped;  // what Halation's schedule has
};

// What is timed. Seconds are those of one call.
struct Subject {
    std::string recurrence, form, backend, isa, type, gates, feature_map, schedule;
    int64_t batch, tokens, heads, value_heads, key_dim, value_dim;
    bool known_key_dim, known_value_dim;  // whether kernels are made for these dims alone
    int threads;
    int64_t cached = 0;  // softmax: tokens in the cache before the queries
};

// How fast a call could be on this machine at best.
struct Limit {
    std::string cpu;
    double multiply_adds, bytes;                        // of one call, at least
    double multiply_adds_per_second, bytes_per_second;  // measured, with the threads of the subject
    double seconds() const;
    const char *binding() const;  // "multiply-adds" or "memory"
};

enum class Status {
    timed,
    refused,  // the schedule does not allow it: said by the generator
    wrong,    // its results are not those of the plain loop
    failed,   // it crashed, or took too long to make
};
const char *name_of(Status status);

struct Result {
    Parameters parameters;
    Status status = Status::failed;
    std::string reason;  // where it was not timed
    double error = 0;    // the largest error of all checks, where it was checked
    double allowed = 0;  // what that may be
    double compile_seconds = 0;
    double seconds = 0, least = 0;                    // median and least of a call
    double shipped_seconds = 0;                       // median of the shipped schedule's, in turn with these
    bool last_round = false;                          // whether it was timed once more, longer, at the end
    double ratio = 0, ratio_low = 0, ratio_high = 0;  // to the shipped schedule, in turn: median and quartiles; below 1 is faster
};

struct Sweep {
    Subject subject;
    Limit limit;
    std::vector<Axis> axes;
    std::string date;  // of its start
    std::vector<Result> results;

    void put(const Result &result);  // a candidate that was timed again has its later figures
    const Result *best() const;      // the least ratio; null if none was timed
};

// One line of JSON each, and back. Throws std::exception where it is none.
std::string line_of(const Subject &subject);
Subject subject_of(const std::string &line);
std::string line_of(const Result &result);
Result result_of(const std::string &line);

// Throws std::runtime_error naming the file and line.
Sweep read_sweep(const std::string &path);

// Appends to the file of a sweep, which it keeps from other processes. A last line without its end is cut off.
class SweepWriter {
public:
    explicit SweepWriter(const std::string &path);  // throws std::runtime_error
    ~SweepWriter();
    SweepWriter(const SweepWriter &) = delete;
    SweepWriter &operator=(const SweepWriter &) = delete;
    bool empty() const { return empty_; }  // whether it has to begin
    void begin(const Sweep &sweep);
    void add(const Result &result);

private:
    void line(const std::string &text);
    [[noreturn]] void fail(const std::string &what) const;
    std::string path_;
    int file_ = -1;
    bool empty_ = true;
};

}  // namespace halation::lab
#endif
