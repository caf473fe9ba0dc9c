// The task of the demonstration: predict the next byte of a text with nothing but an associative memory.
//
// A memory is written with pairs (context -> byte that followed) and read with the present context. There is
// no training: a context's key and a byte's value are fixed pseudo-random unit vectors.
#ifndef HALATION_CLI_DEMO_TASK_H
#define HALATION_CLI_DEMO_TASK_H

#include <cstdint>
#include <string>
#include <vector>

namespace halation::demo {

constexpr int heads = 3;  // head h has the last h + 1 bytes as its context
constexpr int dim = 64;   // channels of a key and of a value
constexpr int alphabet = 256;
constexpr int64_t block = 128;           // tokens that are read in one call
constexpr int64_t shortest_text = 2048;  // bytes below which there is nothing to measure

struct Text {
    std::string name;  // without directories
    std::vector<uint8_t> bytes;
    bool cut = false;  // the file is longer than what was asked for
};

// At most `most_bytes` from the start of the file. Throws std::runtime_error with one line if the file cannot
// be read or is shorter than shortest_text.
Text read_text(const std::string &path, int64_t most_bytes);

// The text as the inputs of a recurrence, causally: token t is read after byte t was seen. It writes
// (context before byte t -> byte t) and asks with the context that ends in byte t, so the answer is a guess
// at byte t + 1, which no write up to t has seen.
class Task {
public:
    Task(Text text, uint64_t seed);

    const Text &text() const { return text_; }
    int64_t tokens() const { return static_cast<int64_t>(text_.bytes.size()); }
    uint8_t byte(int64_t t) const { return text_.bytes[static_cast<size_t>(t)]; }

    // [T, heads, dim]. The query of token t is the key of token t + 1.
    const float *keys() const { return contexts_.data(); }
    const float *queries() const { return contexts_.data() + heads * dim; }
    // [T, dim], the same for every head.
    const float *values() const { return values_.data(); }
    // [dim, alphabet]: the embedding of every byte, by column.
    const float *embeddings() const { return embeddings_.data(); }

private:
    Text text_;
    std::vector<float> contexts_, values_, embeddings_;
};

}  // namespace halation::demo
#endif
