#include "demo_score.h"

#include "demo_counts.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace halation::demo {
namespace {

constexpr int terms = heads + 1;  // of a logit: the heads, then the prior

using Logits = std::array<float, alphabet>;
using Weights = std::array<double, terms>;

// Adds <vector, embedding of c> to the logit of every byte c.
void add_scores(const Task &task, const float *vector, Logits &logits) {
    for (int d = 0; d < dim; d++) {
        const float *column = task.embeddings() + d * alphabet;
        for (int c = 0; c < alphabet; c++) logits[c] += vector[d] * column[c];
    }
}

// Turns logits into exp(logit - largest logit); returns their sum.
double exponentials(Logits &logits, float &largest) {
    largest = *std::max_element(logits.begin(), logits.end());
    double sum = 0;
    for (float &x : logits) sum += x = std::exp(x - largest);
    return sum;
}

void make_unit(float *vector) {
    double squares = 0;
    for (int d = 0; d < dim; d++) squares += static_cast<double>(vector[d]) * vector[d];
    const double length = std::sqrt(squares);
    for (int d = 0; d < dim; d++) vector[d] = length > 0 ? static_cast<float>(vector[d] / length) : 0.0f;
}

// Solves the symmetric positive definite system A x = y by Gaussian elimination.
Weights solve(std::array<Weights, terms> A, Weights y) {
    for (int i = 0; i < terms; i++) {
        for (int r = i + 1; r < terms; r++) {
            const double factor = A[r][i] / A[i][i];
            for (int c = i; c < terms; c++) A[r][c] -= factor * A[i][c];
            y[r] -= factor * y[i];
        }
    }
    for (int i = terms - 1; i >= 0; i--) {
        for (int c = i + 1; c < terms; c++) y[i] -= A[i][c] * y[c];
        y[i] /= A[i][i];
    }
    return y;
}

struct Loss {
    double value = 0;
    Weights gradient{};
    std::array<Weights, terms> curvature{};
};

// Negative log likelihood of the tokens' next bytes under weights w. x[n][i] are the scores of term i.
Loss loss_at(const Weights &w, const std::vector<std::array<Logits, terms>> &x, const std::vector<uint8_t> &next) {
    Loss loss;
    for (size_t n = 0; n < x.size(); n++) {
        Logits p{};
        for (int i = 0; i < terms; i++) {
            for (int c = 0; c < alphabet; c++) p[c] += static_cast<float>(w[i]) * x[n][i][c];
        }
        float largest;
        const float own = p[next[n]];
        const double sum = exponentials(p, largest);
        loss.value += std::log(sum) + largest - own;
        Weights mean;
        for (int i = 0; i < terms; i++) {
            Logits px;
            double total = 0;
            for (int c = 0; c < alphabet; c++) total += px[c] = p[c] * x[n][i][c];
            mean[i] = total / sum;
            loss.gradient[i] += mean[i] - x[n][i][next[n]];
            for (int j = 0; j <= i; j++) {
                double product = 0;
                for (int c = 0; c < alphabet; c++) product += px[c] * x[n][j][c];
                loss.curvature[i][j] += product / sum - mean[i] * mean[j];
                loss.curvature[j][i] = loss.curvature[i][j];
            }
        }
    }
    for (int i = 0; i < terms; i++) loss.curvature[i][i] += 1e-3;  // a head that reads nothing stays at rest
    return loss;
}

// Newton's method, a step halved as long as the whole of it would not help.
Weights fit(const std::vector<std::array<Logits, terms>> &x, const std::vector<uint8_t> &next) {
    Weights w;
    w.fill(1);
    Loss loss = loss_at(w, x, next);
    for (int step = 0; step < 20; step++) {
        const Weights direction = solve(loss.curvature, loss.gradient);
        for (double length = 1; length > 1e-4; length /= 2) {
            Weights trial;
            for (int i = 0; i < terms; i++) trial[i] = w[i] - length * direction[i];
            const Loss trial_loss = loss_at(trial, x, next);
            if (trial_loss.value > loss.value) continue;
            const double gain = loss.value - trial_loss.value;
            w = trial;
            loss = trial_loss;
            if (gain < 1e-7 * loss.value) return w;
            break;
        }
    }
    return w;
}

std::vector<uint8_t> next_bytes(const Task &task, const std::vector<Range> &ranges) {
    std::vector<uint8_t> next;
    for (const Range &range : ranges) {
        for (int64_t i = 0; i < range.count; i++) next.push_back(task.byte(range.first + i + 1));
    }
    return next;
}

size_t fitted_count(size_t scored) {
    return static_cast<size_t>(fitted_share * static_cast<double>(scored));
}

// Goes through the text: see(byte) after every byte, predict(n) after those at which the n-th prediction is scored.
template<typename See, typename Predict> void walk(const std::vector<Range> &ranges, See see, Predict predict) {
    size_t n = 0;
    int64_t seen = 0;
    for (const Range &range : ranges) {
        for (int64_t t = range.first; t < range.first + range.count; t++) {
            while (seen <= t) see(seen++);
            predict(n++);
        }
    }
}

// The scores of every prediction, summed up.
class Tally {
public:
    explicit Tally(std::vector<uint8_t> next) : next_(std::move(next)) {}

    // The probabilities are p / sum.
    template<typename Probabilities> void add(size_t n, const Probabilities &p, double sum) {
        if (n < fitted_count(next_.size())) return;
        count_++;
        result_.accuracy += std::max_element(p.begin(), p.end()) - p.begin() == next_[n];
        result_.bits -= std::log2(std::max(p[next_[n]] / sum, 1e-30));
    }
    Score result() const {
        Score means = result_;
        means.accuracy /= count_;
        means.bits /= count_;
        return means;
    }

private:
    std::vector<uint8_t> next_;
    Score result_;  // sums
    double count_ = 0;
};

}  // namespace

std::vector<Range> scored_ranges(int64_t tokens) {
    const int64_t predictions = tokens - 1;  // nothing follows the last byte
    const int64_t every = (predictions + most_scored - 1) / most_scored;
    std::vector<Range> ranges;
    for (int64_t first = 0; first < predictions; first += every * block) {
        ranges.push_back({first, std::min(block, predictions - first)});
    }
    return ranges;
}

Score score(const Task &task, const std::vector<Range> &ranges, std::vector<float> reads) {
    const std::vector<uint8_t> next = next_bytes(task, ranges);
    for (size_t i = 0; i < reads.size(); i += dim) make_unit(&reads[i]);

    std::vector<Logits> prior;
    ByteCounts counts;
    walk(
        ranges, [&](int64_t t) { counts.see(task.byte(t)); },
        [&](size_t) {
            Logits &logits = prior.emplace_back();
            for (int c = 0; c < alphabet; c++) logits[c] = static_cast<float>(std::log(counts.share(c)));
        });

    std::vector<std::array<Logits, terms>> fitted(fitted_count(next.size()));
    for (size_t n = 0; n < fitted.size(); n++) {
        for (int h = 0; h < heads; h++) {
            fitted[n][h] = {};
            add_scores(task, &reads[(n * heads + h) * dim], fitted[n][h]);
        }
        fitted[n][heads] = prior[n];
    }
    const Weights w = fit(fitted, next);

    Tally tally(next);
    for (size_t n = 0; n < next.size(); n++) {
        std::array<float, dim> mixed{};
        for (int h = 0; h < heads; h++) {
            for (int d = 0; d < dim; d++) mixed[d] += static_cast<float>(w[h]) * reads[(n * heads + h) * dim + d];
        }
        Logits p;
        for (int c = 0; c < alphabet; c++) p[c] = static_cast<float>(w[heads]) * prior[n][c];
        add_scores(task, mixed.data(), p);
        float largest;
        const double sum = exponentials(p, largest);
        tally.add(n, p, sum);
    }
    Score result = tally.result();
    std::copy_n(w.begin(), heads, result.weights.begin());
    result.prior_weight = w[heads];
    return result;
}

Score score_byte_counts(const Task &task, const std::vector<Range> &ranges) {
    ByteCounts counts;
    Tally tally(next_bytes(task, ranges));
    walk(
        ranges, [&](int64_t t) { counts.see(task.byte(t)); },
        [&](size_t n) {
            std::array<double, alphabet> p;
            for (int c = 0; c < alphabet; c++) p[c] = counts.share(c);
            tally.add(n, p, 1);
        });
    return tally.result();
}

Score score_context_counts(const Task &task, const std::vector<Range> &ranges) {
    ContextTable table(task);
    Tally tally(next_bytes(task, ranges));
    walk(
        ranges, [&](int64_t t) { table.see(t); }, [&](size_t n) { tally.add(n, table.probabilities(), 1); });
    return tally.result();
}

}  // namespace halation::demo
