#include "demo_measure.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>

namespace halation::demo {
namespace {

constexpr double not_there = NAN;
constexpr size_t width = static_cast<size_t>(heads) * dim;

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

double median(std::vector<double> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

// The sums behind ||x - reference|| / ||reference||.
struct Difference {
    double squares = 0, reference_squares = 0;
    void add(const float *x, const float *reference, size_t count) {
        for (size_t i = 0; i < count; i++) {
            const double difference = static_cast<double>(x[i]) - reference[i];
            squares += difference * difference;
            reference_squares += static_cast<double>(reference[i]) * reference[i];
        }
    }
    double relative() const { return std::sqrt(squares / reference_squares); }
};

bool can_run(const Context &context, const Memory &memory, halation_form form) {
    return refusal(context, memory, form).empty();
}

// The form that takes many tokens at once.
halation_form many_token_form(const Context &context, const Memory &memory) {
    for (halation_form form : {HALATION_FORM_CHUNKWISE, HALATION_FORM_PARALLEL}) {
        if (can_run(context, memory, form)) return form;
    }
    return HALATION_FORM_RECURRENT;
}

// Without a state a token sees a cache that ends with it, so there the recurrent form is a call for each token.
void run_form(Runner &runner, halation_form form, int64_t first, int64_t count, float *reads) {
    if (form != HALATION_FORM_RECURRENT || runner.has_state()) return runner.run(first, count, reads);
    for (int64_t t = 0; t < count; t++) runner.run(first + t, 1, reads + static_cast<size_t>(t) * width);
}

}  // namespace

Reading read_text_through(const Context &context, const Task &task, const Memory &memory, const std::vector<Range> &ranges,
                          Progress &progress) {
    const halation_form form = many_token_form(context, memory);
    Runner runner(context, task, memory, form);
    std::optional<Runner> recurrent;
    if (form == HALATION_FORM_CHUNKWISE && can_run(context, memory, HALATION_FORM_RECURRENT)) {
        recurrent.emplace(context, task, memory, HALATION_FORM_RECURRENT);
    }
    Reading reading;
    const halation_choice choice = runner.choice();
    reading.kernel = choice.kernel;
    reading.isa = choice.isa;

    Difference difference;
    std::vector<float> reads, recurrent_reads;
    auto range = ranges.begin();
    for (int64_t first = 0; first < task.tokens(); first += block) {
        const int64_t count = std::min(block, task.tokens() - first);
        const bool scored = range != ranges.end() && range->first == first;
        if (!scored && !runner.has_state()) continue;

        reads.resize(static_cast<size_t>(count) * width);
        runner.load(first, count);
        run_form(runner, form, first, count, reads.data());
        if (recurrent) {
            recurrent_reads.resize(reads.size());
            recurrent->load(first, count);
            recurrent->run(first, count, recurrent_reads.data());
            difference.add(recurrent_reads.data(), reads.data(), reads.size());
        }
        if (runner.has_state()) {
            reading.state_norm.push_back({static_cast<double>(first + count), runner.state_norm()});
        }
        if (scored) {
            reading.reads.insert(reading.reads.end(), reads.begin(),
                                 reads.begin() + static_cast<std::ptrdiff_t>(static_cast<size_t>(range->count) * width));
            ++range;
        }
        progress.at(first, task.tokens());
    }
    reading.recurrent_to_chunkwise = recurrent ? difference.relative() : not_there;
    return reading;
}

Agreement compare_forms(const Context &context, const Task &task, const Memory &memory) {
    const int64_t tokens = std::min(parallel_tokens, task.tokens());
    const auto reads_in = [&](halation_form form) {
        std::vector<float> reads;
        if (!can_run(context, memory, form)) return reads;
        reads.resize(static_cast<size_t>(tokens) * width);
        Runner runner(context, task, memory, form);
        runner.load(0, tokens);
        run_form(runner, form, 0, tokens, reads.data());
        return reads;
    };
    const auto relative = [](const std::vector<float> &x, const std::vector<float> &reference) {
        if (x.empty() || reference.empty()) return not_there;
        Difference difference;
        difference.add(x.data(), reference.data(), x.size());
        return difference.relative();
    };
    const auto recurrent = reads_in(HALATION_FORM_RECURRENT), chunkwise = reads_in(HALATION_FORM_CHUNKWISE),
               parallel = reads_in(HALATION_FORM_PARALLEL);
    return {relative(recurrent, chunkwise), relative(recurrent, parallel), relative(chunkwise, parallel)};
}

Timing time_at(const Context &context, const Task &task, const Memory &memory, int64_t length) {
    Timing timing{not_there, not_there, 0};
    std::vector<float> reads(static_cast<size_t>(length) * width);
    const halation_form prefill = many_token_form(context, memory);
    if (prefill != HALATION_FORM_RECURRENT) {
        Runner runner(context, task, memory, prefill);
        timing.state_bytes = runner.state_bytes();
        runner.load(0, length);
        // At least three runs after one to warm up, and up to a fifth of a second; a run that is longer than that by
        // itself counts as it is.
        std::vector<double> seconds;
        double spent = 0;
        for (int i = 0; i < 50 && (i < 4 ? spent < 1 : spent < 0.2); i++) {
            runner.forget();
            const auto start = Clock::now();
            runner.run(0, length, reads.data());
            seconds.push_back(seconds_since(start));
            spent += seconds.back();
        }
        if (seconds.size() > 1) seconds.erase(seconds.begin());
        timing.prefill = median(std::move(seconds)) / static_cast<double>(length);
    }
    if (can_run(context, memory, HALATION_FORM_RECURRENT)) {
        Runner runner(context, task, memory, HALATION_FORM_RECURRENT);
        timing.state_bytes = runner.state_bytes();
        const int64_t tokens = std::min<int64_t>(block, length), first = length - tokens;
        runner.load(first, tokens);
        std::vector<double> seconds;
        while (seconds.size() < block) {
            for (int64_t t = 0; t < tokens; t++) {
                const auto start = Clock::now();
                runner.run(first + t, 1, reads.data());
                seconds.push_back(seconds_since(start));
            }
        }
        timing.decode = median(std::move(seconds));
    }
    return timing;
}

double crossover(const std::vector<Point> &a, const std::vector<Point> &b) {
    for (size_t i = 1; i < std::min(a.size(), b.size()); i++) {
        const double before = std::log(a[i - 1].y / b[i - 1].y), after = std::log(a[i].y / b[i].y);
        if ((before > 0) == (after > 0)) continue;
        return a[i - 1].x * std::pow(a[i].x / a[i - 1].x, before / (before - after));
    }
    return not_there;
}

}  // namespace halation::demo
