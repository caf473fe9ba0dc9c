#include "row_loop.h"

#include "expression.h"

#include <cmath>
#include <stdexcept>

namespace halation::lab {
namespace {

// One input: where its values are, and which axes it has.
template<typename T> struct InputValues {
    std::vector<T> values;
    std::string dims;  // of B T H G K V, as given: without an axis that was left out
    std::vector<int64_t> shape;

    struct Place {
        int64_t b, t, h, g, d, v;
    };
    T at(const Place &p) const {
        int64_t index = 0;
        for (size_t i = 0; i < dims.size(); i++) {
            const char letter = dims[i];
            const int64_t at = letter == 'B'   ? p.b
                               : letter == 'T' ? p.t
                               : letter == 'H' ? p.h
                               : letter == 'G' ? p.g
                               : letter == 'K' ? p.d
                                               : p.v;
            index = index * shape[i] + at;
        }
        return values[static_cast<size_t>(index)];
    }
};

struct Sizes {
    int64_t B, T, H, G, K, V;
};

template<typename T> class RowLoop {
public:
    RowLoop(const Row &row, const oracle::Inputs &in) : row_(row), in_(in) {
        for (const RowInput &input : row.inputs) names_.push_back(input.name);
        sizes_ = sizes();
        for (const RowInput &input : row.inputs) inputs_.push_back(values_of(input));
        q_ = vector_of(row.q), k_ = vector_of(row.k), v_ = vector_of(row.v);
        a_ = vector_of(row.a), b_ = vector_of(row.b), beta_ = vector_of(row.beta), bonus_ = vector_of(row.bonus);
        decay_ = vector_of(row.decay_per_head), log_head_ = vector_of(row.log_decay_per_head);
        log_key_ = vector_of(row.log_decay_per_key_channel), log_value_ = vector_of(row.log_decay_per_value_channel);
    }

    oracle::Outputs run() {
        const auto [B, tokens, H, G, K, V] = sizes_;
        oracle::Outputs out;
        out.o.shape = {B, tokens, G, V};
        out.o.values.resize(static_cast<size_t>(B * tokens * G * V));
        out.final_state.shape = {B, G, K, V};
        if (row_.normalized) out.final_normalizer.shape = {B, G, K};
        for (place_.b = 0; place_.b < B; place_.b++)
            for (place_.g = 0; place_.g < G; place_.g++) {
                place_.h = place_.g / (G / H);
                start(place_.b * G + place_.g);
                for (place_.t = 0; place_.t < tokens; place_.t++) {
                    const T *o = token();
                    for (int64_t v = 0; v < V; v++)
                        out.o.values[static_cast<size_t>(((place_.b * tokens + place_.t) * G + place_.g) * V + v)] = o[v];
                }
                out.final_state.values.insert(out.final_state.values.end(), state_.begin(), state_.end());
                if (row_.normalized)
                    out.final_normalizer.values.insert(out.final_normalizer.values.end(), normalizer_.begin(), normalizer_.end());
            }
        return out;
    }

private:
    const oracle::Array &tensor(const std::string &name) const {
        const auto found = in_.tensors.find(name);
        if (found == in_.tensors.end()) throw std::invalid_argument("the input " + name + " is missing");
        return found->second;
    }

    Sizes sizes() const {
        Sizes s{1, 1, 1, 1, 1, 1};
        const std::pair<char, int64_t *> letters[] = {{'B', &s.B}, {'T', &s.T}, {'H', &s.H},
                                                      {'G', &s.G}, {'K', &s.K}, {'V', &s.V}};
        for (const RowInput &input : row_.inputs) {
            if (!in_.tensors.count(input.name)) continue;
            for (size_t axis = 0; axis < tensor(input.name).shape.size(); axis++)
                for (const auto &[letter, extent] : letters)
                    if (input.dims[axis] == letter) *extent = tensor(input.name).shape[axis];
        }
        return s;
    }

    InputValues<T> values_of(const RowInput &input) const {
        if (!in_.tensors.count(input.name)) return default_of(input);
        const oracle::Array &given = tensor(input.name);
        std::string dims;
        for (const char letter : input.dims)
            if (letter != '(' && letter != ')') dims += letter;
        return {{given.values.begin(), given.values.end()}, dims.substr(0, given.shape.size()), given.shape};
    }

    InputValues<T> default_of(const RowInput &input) const {
        using Otherwise = RowInput::Otherwise;
        if (input.otherwise == Otherwise::required) tensor(input.name);
        if (input.otherwise != Otherwise::retention) return {{T(input.otherwise == Otherwise::one ? 1 : 0)}, "", {}};
        InputValues<T> gamma{{}, "G", {sizes_.G}};
        for (int64_t g = 0; g < sizes_.G; g++)
            gamma.values.push_back(static_cast<T>(1 - std::exp2(-5.0 - static_cast<double>(g))));
        return gamma;
    }

    // Null where the row does not have it.
    Evaluator<T> vector_of(const TokenExpr &expr) const {
        if (!expr) return nullptr;
        const Token token([this](const std::string &name) {
            if (!row_.find(name)) throw std::invalid_argument("the row " + row_.name + " has no input " + name);
            return Halide::Internal::Variable::make(Halide::Float(32), name);
        });
        return evaluator_of<T>(expr(token), names_);
    }

    void start(int64_t sequence_and_head) {
        const auto part = [&](const char *name, int64_t size) {
            const auto found = in_.tensors.find(name);
            if (found == in_.tensors.end()) return std::vector<T>(static_cast<size_t>(size));
            const auto first = found->second.values.begin() + sequence_and_head * size;
            return std::vector<T>(first, first + size);
        };
        state_ = part("initial_state", sizes_.K * sizes_.V);
        normalizer_ = part("initial_normalizer", sizes_.K);
    }

    // The values of an expression at this token, along key or value channels.
    std::vector<T> along(const Evaluator<T> &f, int64_t &channel, int64_t count) {
        std::vector<T> result(static_cast<size_t>(count)), inputs(inputs_.size());
        for (channel = 0; channel < count; channel++) {
            for (size_t i = 0; i < inputs_.size(); i++) inputs[i] = inputs_[i].at(place_);
            result[static_cast<size_t>(channel)] = f(inputs);
        }
        channel = 0;
        return result;
    }
    std::vector<T> keys(const Evaluator<T> &f) { return along(f, place_.d, sizes_.K); }
    std::vector<T> values(const Evaluator<T> &f) { return along(f, place_.v, sizes_.V); }
    T number(const Evaluator<T> &f) {
        int64_t once = 0;
        return along(f, once, 1)[0];
    }

    std::vector<T> features(std::vector<T> x) const {
        const std::string map = in_.feature_map.empty() ? row_.default_feature_map : in_.feature_map;
        if (map == "elu+1")
            for (T &one : x) one = one > 0 ? one + 1 : std::exp(one);
        if (map == "relu")
            for (T &one : x) one = one > 0 ? one : T(0);
        if (map == "softmax") {
            T most = x[0], sum = 0;
            for (const T one : x) most = std::max(most, one);
            for (T &one : x) sum += one = std::exp(one - most);
            for (T &one : x) one /= sum;
        }
        return x;
    }

    T &state(int64_t d, int64_t v) { return state_[static_cast<size_t>(d * sizes_.V + v)]; }
    // x^T S
    std::vector<T> read(const std::vector<T> &x) {
        std::vector<T> sums(static_cast<size_t>(sizes_.V));
        for (int64_t d = 0; d < sizes_.K; d++)
            for (int64_t v = 0; v < sizes_.V; v++) sums[static_cast<size_t>(v)] += x[static_cast<size_t>(d)] * state(d, v);
        return sums;
    }
    // S += x y^T
    void write(const std::vector<T> &x, const std::vector<T> &y) {
        for (int64_t d = 0; d < sizes_.K; d++)
            for (int64_t v = 0; v < sizes_.V; v++) state(d, v) += x[static_cast<size_t>(d)] * y[static_cast<size_t>(v)];
    }

    void decay() {
        const T head = decay_ ? number(decay_) : log_head_ ? std::exp(number(log_head_)) : T(1);
        std::vector<T> key(static_cast<size_t>(sizes_.K), head), value(static_cast<size_t>(sizes_.V), T(1));
        if (log_key_) key = keys(log_key_);
        if (log_value_) {
            value = values(log_value_);
            for (T &one : value) one = std::exp(one);
        }
        for (int64_t d = 0; d < sizes_.K; d++) {
            T &one = key[static_cast<size_t>(d)];
            if (log_key_) one = std::exp(one);
            if (row_.normalized) normalizer_[static_cast<size_t>(d)] *= one;
            for (int64_t v = 0; v < sizes_.V; v++) state(d, v) *= one * value[static_cast<size_t>(v)];
        }
    }

    // One token; its outputs, which are good until the next.
    T *token() {
        const std::vector<T> q = features(keys(q_)), k = features(keys(k_)), v = values(v_);
        std::vector<T> seen;
        if (row_.read == Read::before_write) {
            seen = read(q);
            if (bonus_) {
                const std::vector<T> bonus = keys(bonus_);
                T product = 0;
                for (size_t d = 0; d < q.size(); d++) product += q[d] * bonus[d] * k[d];
                for (size_t i = 0; i < v.size(); i++) seen[i] += product * v[i];
            }
        }
        std::vector<T> written = v, low_rank;
        if (row_.write == Write::low_rank) low_rank = read(keys(a_));
        decay();
        if (row_.write == Write::delta) {
            const std::vector<T> old = read(k), beta = values(beta_);
            for (size_t i = 0; i < v.size(); i++) written[i] = beta[i] * (v[i] - old[i]);
        }
        write(k, written);
        if (row_.write == Write::low_rank) write(keys(b_), low_rank);
        if (row_.read == Read::after_write) seen = read(q);
        T divisor = 1;
        if (row_.normalized) {
            divisor = 0;
            for (size_t d = 0; d < k.size(); d++) divisor += q[d] * (normalizer_[d] += k[d]);
        }
        const double by_key_dim = row_.normalized ? 1 : 1 / std::sqrt(static_cast<double>(sizes_.K));
        const T scale = static_cast<T>(std::isnan(in_.scale) ? by_key_dim : in_.scale);
        output_.resize(seen.size());
        for (size_t i = 0; i < seen.size(); i++) output_[i] = seen[i] == 0 && divisor == 0 ? T(0) : scale * (seen[i] / divisor);
        return output_.data();
    }

    const Row &row_;
    const oracle::Inputs &in_;
    std::vector<std::string> names_;
    Sizes sizes_;
    std::vector<InputValues<T>> inputs_;
    Evaluator<T> q_, k_, v_, a_, b_, beta_, bonus_, decay_, log_head_, log_key_, log_value_;
    typename InputValues<T>::Place place_{0, 0, 0, 0, 0, 0};
    std::vector<T> state_, normalizer_, output_;
};

}  // namespace

oracle::Outputs run_row(const Row &row, const oracle::Inputs &inputs) {
    return RowLoop<double>(row, inputs).run();
}

oracle::Outputs run_row_in_float(const Row &row, const oracle::Inputs &inputs) {
    return RowLoop<float>(row, inputs).run();
}

}  // namespace halation::lab
