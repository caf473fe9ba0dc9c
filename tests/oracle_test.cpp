// The oracle against an independent implementation (tests/data), against hand-made numbers, and against itself where
// one recurrence is a special case of another.
#include "case_file.h"

#include <catch2/catch.hpp>

#include <filesystem>
#include <limits>
#include <random>

namespace {

using oracle::Array;
using oracle::error;
using oracle::Inputs;
using oracle::Outputs;

const double inf = std::numeric_limits<double>::infinity();

Array random_array(std::vector<int64_t> shape, unsigned seed, double low = -1, double high = 1) {
    std::mt19937 generator(seed);
    std::uniform_real_distribution<double> distribution(low, high);
    int64_t n = 1;
    for (int64_t extent : shape) n *= extent;
    Array array{std::move(shape), std::vector<double>(n)};
    for (double &value : array.values) value = static_cast<float>(distribution(generator));
    return array;
}

Array map(Array array, double (*f)(double)) {
    for (double &value : array.values) value = f(value);
    return array;
}

// Random inputs that suit any recurrence with heads.
Inputs problem(const std::string &recurrence, int64_t B, int64_t T, int64_t H, int64_t HV, int64_t K, int64_t V) {
    Inputs in;
    in.recurrence = recurrence;
    in.tensors["q"] = random_array({B, T, H, K}, 1);
    in.tensors["k"] = random_array({B, T, H, K}, 2, -.4, .4);
    in.tensors["v"] = random_array({B, T, HV, V}, 3);
    in.tensors["initial_state"] = random_array({B, HV, K, V}, 4);
    const bool per_head = recurrence == "gated" || recurrence == "gated_delta";
    in.tensors["g"] = per_head ? random_array({B, T, HV}, 5, -1, 0) : random_array({B, T, HV, K}, 5, -1, 0);
    in.tensors["gv"] = random_array({B, T, HV, V}, 6, -1, 0);
    in.tensors["beta"] = random_array({B, T, HV}, 7, 0, 1);
    in.tensors["a"] = random_array({B, T, H, K}, 8, -.4, .4);
    in.tensors["b"] = random_array({B, T, H, K}, 9, -.4, .4);
    in.tensors["bonus"] = random_array({H, K}, 10);
    if (recurrence == "linear_normalized") in.tensors["initial_normalizer"] = random_array({B, HV, K}, 11, 0, 1);
    return in;
}

const char *const with_state[] = {"linear", "linear_normalized", "retention", "gated", "gla", "gla_outer", "rwkv6",
                                  "delta",  "gated_delta",       "kda",       "rwkv7"};

// Tokens first .. last of every tensor that has tokens.
Array cut(const Array &array, int64_t first, int64_t last) {
    const int64_t B = array.shape[0], T = array.shape[1], row = static_cast<int64_t>(array.values.size()) / (B * T);
    Array result{array.shape, {}};
    result.shape[1] = last - first;
    for (int64_t b = 0; b < B; b++)
        result.values.insert(result.values.end(), array.values.begin() + (b * T + first) * row,
                             array.values.begin() + (b * T + last) * row);
    return result;
}

Inputs cut(Inputs in, int64_t first, int64_t last) {
    for (auto &[name, array] : in.tensors)
        if (name != "bonus" && name != "gamma" && name.rfind("initial", 0) != 0) array = cut(array, first, last);
    return in;
}

TEST_CASE("oracle: agrees with the independent implementation") {
    int files = 0;
    for (const auto &entry : std::filesystem::directory_iterator(HALATION_TEST_DATA)) {
        if (entry.path().extension() != ".safetensors") continue;
        INFO(entry.path().filename().string());
        files++;
        const safetensors::File file = safetensors::read(entry.path().string());
        const Outputs outputs = oracle::run(inputs_of(file));
        CHECK(error(outputs.o, array_of(file.tensors.at("expect.o"))) < 1e-6);
        const auto state = file.tensors.find("expect.final_state");
        if (state != file.tensors.end()) {
            CHECK(error(outputs.final_state, array_of(state->second)) < 1e-6);
        }
        const Outputs in_float = oracle::run_in_float(inputs_of(file));
        CHECK(error(in_float.o, outputs.o) < 1e-6);
        INFO("not computed in float");
        CHECK(error(in_float.o, outputs.o) > 1e-9);
    }
    CHECK(files == 14);
}

TEST_CASE("oracle: one token by hand") {
    // K = 2, V = 1: S0 = (1, 2), k = (1, 3), v = 4, q = (1, 1), scale 1.
    Inputs in;
    in.scale = 1;
    in.tensors = {{"q", {{1, 1, 1, 2}, {1, 1}}}, {"k", {{1, 1, 1, 2}, {1, 3}}},
                  {"v", {{1, 1, 1, 1}, {4}}},    {"initial_state", {{1, 1, 2, 1}, {1, 2}}},
                  {"beta", {{1, 1, 1}, {.5}}},   {"bonus", {{1, 2}, {2, 1}}},
                  {"a", {{1, 1, 1, 2}, {1, 1}}}, {"b", {{1, 1, 1, 2}, {1, 0}}},
                  {"gamma", {{1}, {.5}}},        {"gv", {{1, 1, 1, 1}, {std::log(.25)}}}};
    const Array per_head{{1, 1, 1}, {std::log(.5)}}, per_key{{1, 1, 1, 2}, {std::log(.5), std::log(.25)}};
    const auto expect = [&](const char *recurrence, const Array &g, double o, std::vector<double> state) {
        INFO(recurrence);
        in.recurrence = recurrence;
        in.tensors["g"] = g;
        const Outputs out = oracle::run(in);
        CHECK(out.o.values.at(0) == Approx(o).margin(1e-12));
        CHECK(out.final_state.values.at(0) == Approx(state.at(0)).margin(1e-12));
        CHECK(out.final_state.values.at(1) == Approx(state.at(1)).margin(1e-12));
    };
    expect("linear", per_head, 19, {5, 14});
    expect("retention", per_head, 17.5, {4.5, 13});
    expect("gated", per_head, 17.5, {4.5, 13});
    expect("gla", per_key, 17, {4.5, 12.5});
    expect("gla_outer", per_key, 16.25, {4.125, 12.125});
    expect("rwkv6", per_key, 23, {4.5, 12.5});          // (1 + 2) + (2 * 1 + 1 * 3) * 4
    expect("delta", per_head, -3, {-.5, -2.5});         // u = .5 (4 - 7)
    expect("gated_delta", per_head, 2.5, {.75, 1.75});  // u = .5 (4 - 3.5)
    expect("kda", per_key, 5, {1.5, 3.5});              // u = .5 (4 - 2)
    expect("rwkv7", per_key, 20, {7.5, 12.5});          // w = 1 + 2, not decayed
}

TEST_CASE("oracle: normalized by hand") {
    Inputs in;
    in.recurrence = "linear_normalized";
    in.tensors = {{"q", {{1, 1, 1, 2}, {1, 0}}}, {"k", {{1, 1, 1, 2}, {2, -1}}}, {"v", {{1, 1, 1, 1}, {4}}}};
    in.feature_map = "relu";  // phi(q) = (1, 0), phi(k) = (2, 0)
    Outputs out = oracle::run(in);
    CHECK(out.o.values[0] == Approx(4).epsilon(1e-14));  // scale 1: a weighted mean of the values
    CHECK(out.final_normalizer.values == (std::vector<double>{2, 0}));
    in.tensors["q"].values = {-1, -1};  // 0 / 0
    CHECK(oracle::run(in).o.values[0] == 0);
    in.feature_map = "";  // elu+1: phi(k) = (3, 1/e)
    CHECK(oracle::run(in).final_normalizer.values[1] == Approx(std::exp(-1)).margin(1e-15));
    in.feature_map = "softmax";
    out = oracle::run(in);
    CHECK(out.final_normalizer.values[0] + out.final_normalizer.values[1] == Approx(1).margin(1e-15));
    CHECK(out.final_normalizer.values[0] == Approx(1 / (1 + std::exp(-3))).margin(1e-15));
    in.feature_map = "tanh";
    CHECK_THROWS_AS(oracle::run(in), std::invalid_argument);
}

TEST_CASE("oracle: hgrn and ssm by hand") {
    Inputs in;
    in.recurrence = "hgrn";
    in.tensors = {{"v", {{1, 2, 1}, {3, 5}}}, {"g", {{1, 2, 1}, {0, std::log(.5)}}}, {"initial_state", {{1, 1}, {1}}}};
    CHECK(oracle::run(in).o.values == (std::vector<double>{4, 7}));
    CHECK(oracle::run(in).final_state.values == (std::vector<double>{7}));

    in.recurrence = "ssm";  // D = 1, N = 2: S = exp(dt A) S + B dt x = (.5 * 2, .25 * 4) + (1, 2) * 6
    in.tensors = {{"x", {{1, 1, 1}, {3}}},    {"dt", {{1, 1, 1}, {2}}},    {"A", {{1, 2}, {std::log(.5) / 2, std::log(.25) / 2}}},
                  {"B", {{1, 1, 2}, {1, 2}}}, {"C", {{1, 1, 2}, {1, -1}}}, {"initial_state", {{1, 2, 1}, {2, 4}}}};
    Outputs out = oracle::run(in);
    CHECK(out.final_state.values[0] == Approx(7).margin(1e-12));
    CHECK(out.final_state.values[1] == Approx(13).margin(1e-12));
    CHECK(out.o.values[0] == Approx(-6).margin(1e-12));
    in.tensors["D"] = {{1}, {10}};
    CHECK(oracle::run(in).o.values[0] == Approx(24).margin(1e-12));
    in.tensors["z"] = {{1, 1, 1}, {2}};
    CHECK(oracle::run(in).o.values[0] == Approx(24 * 2 / (1 + std::exp(-2))).margin(1e-12));
}

TEST_CASE("oracle: softmax reads the cache") {
    Inputs in;
    in.recurrence = "softmax";
    const int64_t T = 3, S = 7, K = 5, V = 4;
    in.tensors = {
        {"q", random_array({1, T, 2, K}, 1)}, {"k", random_array({1, S, 1, K}, 2)}, {"v", random_array({1, S, 1, V}, 3)}};
    const Outputs causal = oracle::run(in);
    for (int64_t t = 0; t < T; t++) {  // query t alone, with the tokens that it sees
        Inputs one = in;
        one.causal = false;
        one.tensors["q"] = cut(in.tensors["q"], t, t + 1);
        for (const char *name : {"k", "v"}) one.tensors[name] = cut(in.tensors[name], 0, S - T + t + 1);
        CHECK(error(oracle::run(one).o, cut(causal.o, t, t + 1)) < 1e-15);
    }
    in.tensors["v"] = map(in.tensors["v"], [](double) { return 1.; });
    for (double value : oracle::run(in).o.values) CHECK(value == Approx(1).margin(1e-15));
    in.tensors["q"] = random_array({1, S + 1, 2, K}, 1);
    CHECK_THROWS_AS(oracle::run(in), std::invalid_argument);
}

TEST_CASE("oracle: bidirectional is linear at the last token") {
    for (const char *feature_map : {"", "identity", "elu+1", "relu", "softmax"}) {
        INFO(feature_map);
        const bool normalized = std::string(feature_map) != "" && std::string(feature_map) != "identity";
        Inputs in = problem("bidirectional", 2, 9, 2, 4, 5, 3);
        in.feature_map = feature_map;
        const Outputs out = oracle::run(in);
        CHECK(out.final_state.shape.empty());
        in.recurrence = normalized ? "linear_normalized" : "linear";
        in.tensors.erase("initial_state");
        CHECK(error(cut(out.o, 8, 9), cut(oracle::run(in).o, 8, 9)) < 1e-14);
    }
}

TEST_CASE("oracle: special cases agree") {
    const int64_t B = 2, T = 20, H = 2, K = 6, V = 5;
    // delta, gated_delta and kda are rwkv7 with k beta, b = -beta k, a = exp(g) k.
    for (const char *name : {"delta", "gated_delta", "kda"}) {
        INFO(name);
        Inputs in = problem(name, B, T, H, H, K, V);
        const Outputs expected = oracle::run(in);
        Inputs low_rank = in;
        low_rank.recurrence = "rwkv7";
        Array g = random_array({B, T, H, K}, 0);
        for (size_t i = 0; i < g.values.size(); i++) {
            const double beta = in.tensors["beta"].values[i / K], k = in.tensors["k"].values[i];
            g.values[i] = std::string(name) == "delta"         ? 0
                          : std::string(name) == "gated_delta" ? in.tensors["g"].values[i / K]
                                                               : in.tensors["g"].values[i];
            low_rank.tensors["k"].values[i] = beta * k;
            low_rank.tensors["b"].values[i] = -beta * k;
            low_rank.tensors["a"].values[i] = std::exp(g.values[i]) * k;
        }
        low_rank.tensors["g"] = g;
        CHECK(error(oracle::run(low_rank).o, expected.o) < 1e-13);
        CHECK(error(oracle::run(low_rank).final_state, expected.final_state) < 1e-13);

        Inputs per_channel = in;  // beta per value channel, all equal
        per_channel.tensors["beta"] = {{B, T, H, V}, {}};
        for (double beta : in.tensors["beta"].values)
            per_channel.tensors["beta"].values.insert(per_channel.tensors["beta"].values.end(), V, beta);
        CHECK(error(oracle::run(per_channel).o, expected.o) == 0);
    }
    // gla_outer with gv = 0 is gla; gla with g = 0 is linear; with the bonus 1 and one token, rwkv6 from nothing is
    // linear.
    Inputs in = problem("gla_outer", B, T, H, H, K, V), other = in;
    in.tensors["gv"] = map(in.tensors["gv"], [](double) { return 0.; });
    other.recurrence = "gla";
    CHECK(error(oracle::run(in).o, oracle::run(other).o) == 0);
    other.tensors["g"] = map(other.tensors["g"], [](double) { return 0.; });
    in.recurrence = "linear";
    CHECK(error(oracle::run(in).o, oracle::run(other).o) == 0);
}

TEST_CASE("oracle: split anywhere carries the state") {
    for (const char *name : with_state) {
        INFO(name);
        const Inputs in = problem(name, 2, 12, 2, 4, 3, 5);
        const Outputs whole = oracle::run(in);
        for (int64_t at : {0, 1, 5, 12}) {
            const Outputs first = oracle::run(cut(in, 0, at));
            Inputs rest = cut(in, at, 12);
            rest.tensors["initial_state"] = first.final_state;
            if (rest.tensors.count("initial_normalizer")) rest.tensors["initial_normalizer"] = first.final_normalizer;
            const Outputs second = oracle::run(rest);
            CHECK(error(first.o, cut(whole.o, 0, at)) == 0);
            CHECK(error(second.o, cut(whole.o, at, 12)) == 0);
            CHECK(second.final_state.values == whole.final_state.values);
            CHECK(second.final_normalizer.values == whole.final_normalizer.values);
        }
    }
}

TEST_CASE("oracle: packed sequences are independent") {
    for (const char *name : with_state) {
        INFO(name);
        Inputs in = problem(name, 1, 69, 2, 4, 3, 5);
        in.offsets = {0, 0, 5, 5, 69, 69};
        in.tensors["initial_state"] = random_array({5, 4, 3, 5}, 12);
        if (in.tensors.count("initial_normalizer")) in.tensors["initial_normalizer"] = random_array({5, 4, 3}, 13, 0, 1);
        const Outputs packed = oracle::run(in);
        for (size_t n = 0; n < 5; n++) {
            Inputs alone = cut(in, in.offsets[n], in.offsets[n + 1]);
            alone.offsets.clear();
            const auto row = [&](const Array &all) {
                Array one{all.shape, {}};
                const size_t size = all.values.size() / 5;
                one.shape[0] = 1;
                one.values.assign(all.values.begin() + n * size, all.values.begin() + (n + 1) * size);
                return one;
            };
            alone.tensors["initial_state"] = row(in.tensors["initial_state"]);
            if (in.tensors.count("initial_normalizer"))
                alone.tensors["initial_normalizer"] = row(in.tensors["initial_normalizer"]);
            const Outputs out = oracle::run(alone);
            CHECK(out.o.values == cut(packed.o, in.offsets[n], in.offsets[n + 1]).values);
            CHECK(out.final_state.values == row(packed.final_state).values);
        }
    }
}

TEST_CASE("oracle: grouped and tiled heads") {
    // H = 2 and HV = 4: grouped reads heads 0 0 1 1, tiled 0 1 0 1.
    for (const char *name : with_state) {
        INFO(name);
        for (const bool tiled : {false, true}) {
            Inputs in = problem(name, 1, 6, 2, 4, 3, 5), repeated = in;
            if (tiled) in.heads = oracle::Heads::tiled;
            for (const char *tensor : {"q", "k", "a", "b", "bonus"}) {
                const Array &from = in.tensors[tensor];
                Array to{from.shape, {}};
                const size_t heads = from.shape.size() - 2;
                to.shape[heads] = 4;
                for (size_t token = 0; token < from.values.size() / 6; token++)
                    for (size_t h = 0; h < 4; h++)
                        for (size_t d = 0; d < 3; d++)
                            to.values.push_back(from.values[(token * 2 + (tiled ? h % 2 : h / 2)) * 3 + d]);
                repeated.tensors[tensor] = to;
            }
            CHECK(oracle::run(in).o.values == oracle::run(repeated).o.values);
        }
    }
    Inputs in = problem("linear", 1, 6, 2, 3, 3, 5);
    CHECK_THROWS_AS(oracle::run(in), std::invalid_argument);
}

TEST_CASE("oracle: extreme gates") {
    for (const char *name : {"gated", "gla", "gla_outer", "rwkv6", "gated_delta", "kda", "rwkv7"}) {
        INFO(name);
        Inputs in = problem(name, 1, 8, 1, 1, 3, 5);
        std::vector<double> &g = in.tensors["g"].values;
        const size_t width = g.size() / 8;

        std::fill_n(g.begin() + 5 * width, width, -inf);  // a full reset at token 5
        const Outputs reset = oracle::run(in);
        Inputs rest = cut(in, 5, 8);
        if (std::string(name) != "rwkv7" && std::string(name) != "rwkv6") {  // those still read the state before
            rest.tensors.erase("initial_state");
            CHECK(oracle::run(rest).o.values == cut(reset.o, 5, 8).values);
        }
        for (double value : reset.final_state.values) CHECK(std::isfinite(value));

        in.tensors["initial_state"] = map(in.tensors["initial_state"], [](double) { return 0.; });
        std::fill(g.begin(), g.end(), -.1);
        std::fill_n(g.begin(), width, 5000.);  // decays nothing but zeros
        for (const Outputs &out : {oracle::run(in), oracle::run_in_float(in)})
            for (double value : out.o.values) CHECK(std::isfinite(value));
    }
    Inputs in;
    in.recurrence = "hgrn";
    in.tensors = {{"v", {{1, 2, 1}, {3, 5}}}, {"g", {{1, 2, 1}, {5000, -inf}}}};
    CHECK(oracle::run(in).o.values == (std::vector<double>{3, 5}));
}

TEST_CASE("oracle: retention decays by default") {
    Inputs in = problem("retention", 1, 8, 3, 3, 2, 2), with_gamma = in;
    with_gamma.tensors["gamma"] = {{3}, {1 - 1. / 32, 1 - 1. / 64, 1 - 1. / 128}};
    CHECK(oracle::run(in).o.values == oracle::run(with_gamma).o.values);
}

TEST_CASE("oracle: nothing to do") {
    for (const char *name : with_state) {
        for (const int64_t B : {0, 2}) {
            const Inputs in = problem(name, B, 0, 1, 1, 3, 5);
            const Outputs out = oracle::run(in);
            CHECK(out.o.values.empty());
            CHECK(out.final_state.values == in.tensors.at("initial_state").values);
        }
    }
}

TEST_CASE("oracle: says which tensor is wrong") {
    const auto message = [](const Inputs &in) {
        try {
            oracle::run(in);
        } catch (const std::invalid_argument &error) {
            return std::string(error.what());
        }
        return std::string("no error");
    };
    Inputs in = problem("gated_delta", 1, 4, 1, 2, 3, 5);
    in.tensors.erase("beta");
    CHECK(message(in) == "gated_delta needs tensor 'beta'");
    in = problem("gated_delta", 1, 4, 1, 2, 3, 5);
    in.tensors["g"] = random_array({1, 4, 3}, 1);
    CHECK(message(in) == "tensor 'g' has shape [1, 4, 3] where [1, 4, 2] is wanted");
    in.recurrence = "lstm";
    CHECK(message(in).find("no recurrence 'lstm'; it has linear, ") != std::string::npos);
    in = problem("linear", 1, 4, 1, 1, 3, 5);
    in.offsets = {0, 3, 2, 4};
    CHECK(message(in) == "offsets fall after sequence 1");
}

TEST_CASE("error: is relative to the whole tensor") {
    const double nan = std::nan("");
    CHECK(error({{2}, {3, 4.5}}, {{2}, {3, 4}}) == Approx(.1).epsilon(1e-14));
    CHECK(error({{2}, {0, 0}}, {{2}, {0, 0}}) == 0);
    CHECK(error({{1}, {1e-30}}, {{1}, {0}}) == inf);
    CHECK(error({{1}, {nan}}, {{1}, {0}}) == inf);
    CHECK(error({{1}, {0}}, {{1}, {nan}}) == inf);
    CHECK(error({{1}, {inf}}, {{1}, {-inf}}) == inf);
    CHECK(error({{2}, {inf, 1}}, {{2}, {inf, 1}}) == 0);
    CHECK(error({{1}, {1}}, {{1, 1}, {1}}) == inf);
    CHECK(error({}, {}) == 0);
}

TEST_CASE("bound: is the float loop's own error when that is large") {
    Inputs in = problem("gated", 1, 20, 1, 1, 3, 5);
    CHECK(oracle::bound(in).o == 1e-5);
    // One decay near 1, over and over: exp(g) in float is wrong by half a unit in the last place each time.
    in = problem("gated", 1, 20000, 1, 1, 1, 1);
    in.tensors["g"] = map(in.tensors["g"], [](double) { return static_cast<double>(-1.03e-5f); });
    in.tensors["initial_state"].values = {100};
    in.tensors["k"] = map(in.tensors["k"], [](double) { return 0.; });
    CHECK(oracle::bound(in).final_state > 1e-4);
    CHECK(oracle::bound(in).final_state < 1e-2);
}

}  // namespace
