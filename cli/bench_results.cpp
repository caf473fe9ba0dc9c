#include "bench_results.h"

#include "command_line.h"
#include "safetensors/output_file.h"
#include "safetensors/safetensors.h"

#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <type_traits>

namespace halation::cli {
namespace {

using Json = nlohmann::ordered_json;

template<typename R, typename Each> void each_field(R &r, Each each) {
    each("shape", r.shape), each("recurrence", r.recurrence), each("type", r.type), each("kernel", r.kernel);
    each("batch", r.batch), each("tokens", r.tokens), each("cached", r.cached), each("heads", r.heads);
    each("value_heads", r.value_heads), each("key_dim", r.key_dim), each("value_dim", r.value_dim), each("threads", r.threads);
    each("least_seconds", r.least), each("median_seconds", r.median), each("multiply_adds", r.multiply_adds);
    each("limit_seconds", r.limit), each("binding", r.binding), each("peers", r.peers);
}

template<typename T> void read_field(const Json &json, const char *name, T &value) {
    // What has a fraction, or is too large, would be taken for something else.
    if constexpr (std::is_integral_v<T>) {
        const bool fits = json.is_number_integer() && json.get<double>() >= 0 &&
                          json.get<double>() <= static_cast<double>(std::numeric_limits<T>::max() / 2);
        if (!fits) throw Error(std::string(name) + " is no such number");
    }
    value = json.get<T>();
}

}  // namespace

std::string BenchResult::key() const {
    return fmt::format("{} {} {} B{} T{} S{} H{} HV{} K{} V{} threads {}", shape, recurrence, type, batch, tokens, cached, heads,
                       value_heads, key_dim, value_dim, threads);
}

void write_bench(const std::string &path, const BenchFile &file) {
    Json json{
        {"halation_bench", 1}, {"version", file.version}, {"cpu", file.cpu}, {"date", file.date}, {"results", Json::array()}};
    for (const BenchResult &result : file.results) {
        Json one;
        each_field(result, [&](const char *name, const auto &value) { one[name] = value; });
        if (result.memory >= 0) one["memory_bytes"] = result.memory;  // to be read, not compared
        json["results"].push_back(one);
    }
    safetensors::write_whole(path, json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
}

BenchFile read_bench(const std::string &path) {
    std::ifstream in(path);
    if (!in) throw Error("cannot read " + path + ": " + std::strerror(errno));
    try {
        const Json json = Json::parse(in);
        if (json.at("halation_bench").get<int>() != 1) throw Error("it has another version of the format");
        BenchFile file{
            json.at("cpu").get<std::string>(), json.at("date").get<std::string>(), json.at("version").get<std::string>(), {}};
        if (!json.at("results").is_array()) throw Error("results is no array");
        for (const Json &one : json.at("results")) {
            BenchResult &result = file.results.emplace_back();
            each_field(result, [&](const char *name, auto &value) { read_field(one.at(name), name, value); });
            if (!(result.least > 0) || !(result.median > 0)) throw Error("a time is not above 0");
        }
        return file;
    } catch (const std::exception &error) {
        throw Error(path + " is no file of halation bench --json: " + error.what());
    }
}

std::string comparison(const BenchFile &now, const BenchFile &before) {
    std::map<std::string, const BenchResult *> old;
    for (const BenchResult &result : before.results) old[result.key()] = &result;
    std::string text;
    if (now.cpu != before.cpu)
        text += fmt::format("another processor: {}, before {}\n", now.cpu, safetensors::in_quotes(before.cpu));
    text += fmt::format("{:<18} {:>7} {:>11} {:>11} {:>8}  {}\n", "recurrence", "tokens", "before ms", "now ms", "ratio", "");
    int common = 0;
    for (const BenchResult &result : now.results) {
        const auto found = old.find(result.key());
        if (found == old.end()) continue;
        common++;
        // Another, because it was asked for, or because another build chooses another.
        const BenchResult &old_one = *found->second;
        const std::string kernels = result.kernel == old_one.kernel
                                        ? ""
                                        : " (" + result.kernel + "; before " + safetensors::in_quotes(old_one.kernel) + ")";
        text += fmt::format("{:<18} {:>7} {:>11.4f} {:>11.4f} {:>8.3f}  {}{}\n", result.recurrence, result.tokens,
                            1e3 * old_one.median, 1e3 * result.median, result.median / old_one.median, result.shape, kernels);
    }
    if (common == 0) throw Error("the file to compare with has none of these shapes");
    return text;
}

}  // namespace halation::cli
