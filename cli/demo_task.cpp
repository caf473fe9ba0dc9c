#include "demo_task.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <stdexcept>
#include <unordered_map>

namespace halation::demo {
namespace {

constexpr double pi = 3.14159265358979323846;

// splitmix64 (Steele, Lea, Flood 2014): the same numbers with every compiler and library.
struct Random {
    uint64_t state;
    uint64_t next() {
        uint64_t z = (state += 0x9e3779b97f4a7c15u);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
    }
    double uniform() { return (static_cast<double>(next() >> 11) + 0.5) * 0x1p-53; }
};

// A direction drawn evenly from the unit sphere, the same for the same seed and label.
std::array<float, dim> unit_vector(uint64_t seed, uint64_t label) {
    Random random{seed ^ Random{label}.next()};
    std::array<double, dim> normal;
    double squares = 0;
    for (int d = 0; d < dim; d += 2) {
        const double radius = std::sqrt(-2 * std::log(random.uniform())), angle = 2 * pi * random.uniform();
        normal[d] = radius * std::cos(angle);
        normal[d + 1] = radius * std::sin(angle);
        squares += radius * radius;
    }
    std::array<float, dim> unit;
    for (int d = 0; d < dim; d++) unit[d] = static_cast<float>(normal[d] / std::sqrt(squares));
    return unit;
}

}  // namespace

Text read_text(const std::string &path, int64_t most_bytes) {
    std::error_code error;
    if (std::filesystem::is_directory(path, error)) {
        throw std::runtime_error(fmt::format("cannot read '{}': it is a directory", path));
    }
    errno = 0;
    std::ifstream file(path, std::ios::binary);
    if (!file) throw std::runtime_error(fmt::format("cannot read '{}': {}", path, std::strerror(errno)));

    Text text;
    text.name = std::filesystem::path(path).filename().string();
    text.bytes.resize(static_cast<size_t>(most_bytes));
    file.read(reinterpret_cast<char *>(text.bytes.data()), most_bytes);
    if (file.bad()) throw std::runtime_error(fmt::format("cannot read '{}': {}", path, std::strerror(errno)));
    text.bytes.resize(static_cast<size_t>(file.gcount()));
    text.cut = file.peek() != std::ifstream::traits_type::eof();
    if (static_cast<int64_t>(text.bytes.size()) < shortest_text) {
        throw std::runtime_error(fmt::format("'{}' is too short: it has {} bytes, and the demonstration takes at least {}", path,
                                             text.bytes.size(), shortest_text));
    }
    return text;
}

Task::Task(Text text, uint64_t seed) : text_(std::move(text)) {
    const size_t tokens = text_.bytes.size();
    contexts_.resize((tokens + 1) * heads * dim);
    values_.resize(tokens * dim);
    embeddings_.resize(dim * alphabet);

    for (int byte = 0; byte < alphabet; byte++) {
        const auto unit = unit_vector(seed, static_cast<uint64_t>(byte));
        for (int d = 0; d < dim; d++) embeddings_[d * alphabet + byte] = unit[d];
    }
    // The label of a context: its bytes, and its length above them. A text has few distinct contexts, so each
    // vector is drawn once and then copied from where it was first.
    std::unordered_map<uint64_t, size_t> first_seen;
    uint64_t history = 0;
    for (size_t t = 0; t <= tokens; t++) {
        for (int h = 0; h < heads; h++) {
            const uint64_t order = h + 1, label = (order << 32) | (history & ((uint64_t(1) << (8 * order)) - 1));
            float *to = &contexts_[(t * heads + h) * dim];
            const auto [seen, is_new] = first_seen.emplace(label, (t * heads + h) * dim);
            if (is_new) {
                const auto unit = unit_vector(seed, label);
                std::copy(unit.begin(), unit.end(), to);
            } else {
                std::copy_n(&contexts_[seen->second], dim, to);
            }
        }
        if (t == tokens) break;
        const uint8_t byte = text_.bytes[t];
        for (int d = 0; d < dim; d++) values_[t * dim + d] = embeddings_[d * alphabet + byte];
        history = (history << 8) | byte;
    }
}

}  // namespace halation::demo
