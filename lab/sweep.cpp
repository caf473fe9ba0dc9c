#include "sweep.h"

#include "candidate.h"
#include "generators/kernel_files.h"
#include "report/report.h"
#include "safetensors/output_file.h"
#include "subject.h"
#include "work_folder.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <fmt/format.h>
#include <mutex>
#include <stdexcept>
#include <thread>

namespace halation::lab {
namespace {

using Clock = std::chrono::steady_clock;

volatile std::sig_atomic_t interrupted = 0;

// Ctrl-C stops after what is under way; a second one at once.
void interrupt(int) {
    interrupted = 1;
    std::signal(SIGINT, SIG_DFL);
}

std::string minutes_text(double seconds) {
    if (seconds < 90) return fmt::format("{:.0f} s", seconds);
    return fmt::format("{:.0f} min", seconds / 60);
}

// "1,2,4"; of many the first and the last.
std::string values_text(const std::vector<int> &values) {
    if (values.size() > 8) return fmt::format("{},{}, ... {}", values[0], values[1], values.back());
    return fmt::format("{}", fmt::join(values, ","));
}

class Runner {
public:
    Runner(Sweep &sweep, const SweepPlan &plan)
        : sweep_(sweep), plan_(plan), candidates_(plan.search, sweep.axes, plan.start, plan.seed), writer_(plan.results) {
        shipped_ = {sweep.subject, {}, folder_.sub("shipped")};
        shipped_.subject.schedule.clear();
        shipped_loop_nest_ = loop_nest_of(variant_of(shipped_.subject, {}));
    }

    bool run() {
        say(text_of(sweep_.subject));
        for (const Axis &axis : sweep_.axes)
            say(fmt::format("  {:<22} {:<30} shipped {}", axis.name, values_text(axis.values), axis.shipped));
        if (writer_.empty()) writer_.begin(sweep_);
        const Result shipped = make_and_check(shipped_, make_timeout);
        if (shipped.status != Status::timed) throw std::runtime_error("the shipped schedule: " + shipped.reason);
        bool ended = false;
        while (!stopped()) {
            const std::vector<Parameters> next = candidates_.next(sweep_.results);
            ended = next.empty();
            if (ended) break;
            round(next);
        }
        if (!interrupted) last_round();
        write_report();
        return ended;
    }

private:
    static constexpr double make_timeout = 300;

    bool late() const {
        const double seconds = std::chrono::duration<double>(Clock::now() - begin_).count();
        return plan_.most_seconds > 0 && seconds > plan_.most_seconds;
    }
    bool stopped() const { return interrupted || late() || (plan_.most_candidates > 0 && done_ >= plan_.most_candidates); }

    // A few times as many as are made at once: timing waits for all of them.
    void round(const std::vector<Parameters> &all) {
        const size_t at_once = static_cast<size_t>(plan_.jobs) * 4;
        for (size_t first = 0; first < all.size() && !stopped(); first += at_once) {
            size_t last = std::min(all.size(), first + at_once);
            if (plan_.most_candidates > 0) last = std::min(last, first + static_cast<size_t>(plan_.most_candidates - done_));
            size_t left = all.size() - last;
            if (plan_.most_candidates > 0)
                left = std::min(left, static_cast<size_t>(plan_.most_candidates - done_) - (last - first));
            batch({all.begin() + static_cast<std::ptrdiff_t>(first), all.begin() + static_cast<std::ptrdiff_t>(last)}, left);
        }
    }

    void batch(const std::vector<Parameters> &parameters, size_t left_in_round) {
        std::vector<Result> results(parameters.size());
        std::vector<Candidate> candidates;
        for (size_t i = 0; i < parameters.size(); i++)
            candidates.push_back({sweep_.subject, parameters[i], folder_.sub(std::to_string(i))});
        say(fmt::format("making {} candidates", parameters.size()));
        std::vector<char> is_made(parameters.size());
        std::atomic<size_t> next{0}, left{left_in_round + parameters.size()};
        std::mutex recording;
        const auto record = [&](const Result &result) {
            add(result);
            done_++;
            progress(result, --left);
        };
        std::vector<std::thread> workers;
        for (int job = 0; job < plan_.jobs; job++)
            workers.emplace_back([&] {
                for (size_t i = next++; i < parameters.size() && !interrupted && !late(); i = next++) {
                    results[i] = made(candidates[i]);
                    is_made[i] = 1;
                    const std::lock_guard<std::mutex> lock(recording);
                    if (results[i].status != Status::timed) record(results[i]);
                }
            });
        for (std::thread &worker : workers) worker.join();
        for (size_t i = 0; i < results.size() && !interrupted && !late(); i++) {
            if (!is_made[i] || results[i].status != Status::timed) continue;
            time_candidate(candidates[i], shipped_, plan_.seconds_each, results[i]);
            record(results[i]);
        }
        write_report();
    }

    // What cannot even be said is refused without a process.
    static Result made(const Candidate &candidate) {
        Result result;
        result.parameters = candidate.parameters;
        try {
            variant_of(candidate.subject, candidate.parameters);
            return make_and_check(candidate, make_timeout);
        } catch (const Halide::Error &error) {
            result.status = Status::refused;
            result.reason = error.what();
        }
        return result;
    }

    // The best few once more and longer: the least of many noisy figures is too small. Again, as long as one that was not in it
    // looks better than the best that was.
    void last_round() {
        const std::string folder = folder_.sub("last");
        bool said = false;
        for (int i = 0; i < 12; i++) {
            Result *next = nullptr;
            for (Result &result : sweep_.results)
                if (result.status == Status::timed && !result.last_round && (!next || result.ratio < next->ratio)) next = &result;
            const Result *best = sweep_.best();
            if (!next || (i >= 4 && best && best->last_round && next->ratio > best->ratio)) return;
            if (!said) say("timing the best once more, longer");
            said = true;
            const Candidate candidate{sweep_.subject, next->parameters, folder};
            Result again = made(candidate);
            if (again.status == Status::timed) time_candidate(candidate, shipped_, 6 * plan_.seconds_each, again);
            again.last_round = true;
            add(again);
            progress(again, 0);
        }
    }

    void write_report() const {
        const Result *best = sweep_.best();
        const std::string best_loop_nest = best ? loop_nest_of(variant_of(sweep_.subject, best->parameters)) : "";
        safetensors::write_whole(plan_.report, report_page(sweep_, best_loop_nest, shipped_loop_nest_));
    }

    void add(const Result &result) {
        writer_.add(result);
        sweep_.put(result);
    }

    void progress(const Result &result, size_t left) const {
        const double seconds = std::chrono::duration<double>(Clock::now() - begin_).count();
        std::string what = result.status == Status::timed
                               ? fmt::format("{:.4f} ms, {:.3f} of the shipped", 1e3 * result.seconds, result.ratio)
                               : fmt::format("{}: {}", name_of(result.status), result.reason);
        const Result *best = sweep_.best();
        say(fmt::format("{:>4}  {}  {}{}{}", sweep_.results.size(), text_of(result.parameters), what,
                        best ? fmt::format("; best {:.3f}", best->ratio) : "",
                        left && done_
                            ? fmt::format("; {} left{}, {}", left, plan_.search == Search::climb ? " of this round" : "",
                                          minutes_text(seconds / done_ * static_cast<double>(left)))
                            : ""));
    }

    static void say(const std::string &line) { fmt::print(stderr, "{}\n", line); }

    Sweep &sweep_;
    const SweepPlan &plan_;
    Candidates candidates_;
    WorkFolder folder_;
    SweepWriter writer_;
    Candidate shipped_;
    std::string shipped_loop_nest_;
    int done_ = 0;
    Clock::time_point begin_ = Clock::now();
};

}  // namespace

bool run_sweep(Sweep &sweep, const SweepPlan &plan) {
    interrupted = 0;
    const auto before = std::signal(SIGINT, interrupt);
    const bool ended = Runner(sweep, plan).run();
    std::signal(SIGINT, before);
    return ended;
}

}  // namespace halation::lab
