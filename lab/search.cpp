#include "search.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace halation::lab {
namespace {

// Less than that is noise: a climb that followed it would wander.
constexpr double worth_a_step = 0.997;
// A grid is written down in full; a larger one is what random search is for.
constexpr double largest_grid = 100000;

const Result *best_of(const std::vector<Result> &results) {
    const Result *best = nullptr;
    for (const Result &result : results)
        if (result.status == Status::timed && (!best || result.ratio < best->ratio)) best = &result;
    return best;
}

const Result *result_for(const std::vector<Result> &results, const Parameters &parameters) {
    for (const Result &result : results)
        if (result.parameters == parameters) return &result;
    return nullptr;
}

}  // namespace

Candidates::Candidates(Search search, std::vector<Axis> axes, Parameters start, unsigned seed)
    : search_(search), axes_(std::move(axes)), start_(std::move(start)), random_(seed) {
    if (search_ != Search::grid) return;
    if (combinations() > largest_grid)
        throw std::runtime_error("a grid of " + std::to_string(static_cast<long long>(combinations())) +
                                 " candidates is more than anyone waits for; give fewer values, or --search random");
    for (double i = 0; i < combinations(); i++) shuffled_.push_back(combination(i));
    // So that what is known when somebody stops it is not one corner.
    std::shuffle(shuffled_.begin(), shuffled_.end(), random_);
}

double Candidates::combinations() const {
    double count = 1;
    for (const Axis &axis : axes_) count *= static_cast<double>(axis.values.size());
    return count;
}

Parameters Candidates::combination(double index) const {
    Parameters parameters = start_;
    for (const Axis &axis : axes_) {
        const double size = static_cast<double>(axis.values.size());
        parameters[axis.name] = axis.values[static_cast<size_t>(std::fmod(index, size))];
        index = std::floor(index / size);
    }
    return parameters;
}

bool Candidates::is_new(const Parameters &parameters) {
    return asked_.insert(parameters).second;
}

std::vector<Parameters> Candidates::next(const std::vector<Result> &results) {
    // What failed may have failed for want of memory, or a compiler: in another run it is tried again.
    for (const Result &result : results)
        if (result.status != Status::failed) asked_.insert(result.parameters);
    constexpr size_t batch = 16;
    std::vector<Parameters> found;
    switch (search_) {
    case Search::climb:
        return round_of_climb(results);
    case Search::grid:
        while (found.size() < batch && !shuffled_.empty()) {
            if (is_new(shuffled_.back())) found.push_back(shuffled_.back());
            shuffled_.pop_back();
        }
        break;
    case Search::random:
        // Where nearly all have been asked for, a draw seldom meets a new one.
        for (int draws = 0; draws < 10000 && found.size() < batch; draws++) {
            const double index = std::floor(std::uniform_real_distribution<double>(0, combinations())(random_));
            const Parameters parameters = combination(std::min(index, combinations() - 1));
            if (is_new(parameters)) found.push_back(parameters);
        }
        break;
    }
    return found;
}

// Of each parameter the best value that the last round saw: steps that help apart often help together.
Parameters Candidates::best_steps(const std::vector<Result> &results) const {
    Parameters together = centre_;
    for (const Axis &axis : axes_) {
        const Result *best = nullptr;
        for (const int value : axis.values) {
            Parameters changed = centre_;
            changed[axis.name] = value;
            const Result *result = result_for(results, changed);
            if (result && result->status == Status::timed && (!best || result->ratio < best->ratio)) best = result;
        }
        if (best) together[axis.name] = best->parameters.at(axis.name);
    }
    return together;
}

std::vector<Parameters> Candidates::round_of_climb(const std::vector<Result> &results) {
    const Result *best = best_of(results);
    if (climbing_) {
        if (!best) return {};
        const Parameters together = best_steps(results);
        if (is_new(together)) return {together};
        // No better than where the last round began: the top, as far as steps of one parameter see.
        const Result *centre = result_for(results, centre_);
        if (centre && centre->status == Status::timed && best->ratio > worth_a_step * centre->ratio) return {};
        if (best->parameters == centre_) return {};
    }
    climbing_ = true;
    centre_ = best ? best->parameters : start_;
    std::vector<Parameters> found;
    const auto add = [&](const Parameters &parameters) {
        if (is_new(parameters)) found.push_back(parameters);
    };
    add(centre_);
    for (const Axis &axis : axes_)
        for (const int value : axis.values) {
            Parameters changed = centre_;
            changed[axis.name] = value;
            add(changed);
        }
    return found;
}

}  // namespace halation::lab
