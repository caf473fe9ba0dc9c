// A small server of recurrent layers: requests arrive, prompts are taken in pieces between the decodes of others, states live
// in a pool of slots, and now and then a finished state is held against the same request run alone, bit for bit.
//
//     serve examples/serve_trace.csv --minutes 5
//
// It shows what a server has to do for these kernels (one packed call a layer and step: offsets, slots, fresh starts) and
// measures it. There is no model around them: what a token's q, k, v, g and beta are is drawn from its request and place.
#include <halation.hpp>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <deque>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <unistd.h>
#include <vector>

namespace {

struct Options {
    std::string trace;
    int64_t layers = 4, heads = 8, key_dim = 64, value_dim = 64;
    int64_t slots = 64;           // requests that run at a time
    int64_t prompt_tokens = 512;  // taken in one step, of all prompts together
    double minutes = 0;           // 0: the trace once
    int threads = 0;
    int check_every = 4;  // requests
};

struct Request {
    int64_t id, prompt, output;
    double arrival;  // seconds
    int64_t slot = -1, done = 0;
    double last_token = 0;  // when it came

    int64_t tokens() const { return prompt + output; }
};

double seconds() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

int64_t resident_bytes() {
    std::ifstream statm("/proc/self/statm");
    int64_t pages = 0, resident = 0;
    statm >> pages >> resident;
    return resident * sysconf(_SC_PAGESIZE);
}

// Times in buckets of 2 % each from a microsecond on: as many as there may be, in the same memory.
class Histogram {
public:
    void add(double time) {
        const double bucket = std::log(std::max(time, 1e-6) / 1e-6) / std::log(1.02);
        counts_[std::min(counts_.size() - 1, static_cast<size_t>(bucket))]++;
        total_++;
    }
    double quantile(double share) const {
        uint64_t left = static_cast<uint64_t>(share * static_cast<double>(total_));
        for (size_t i = 0; i < counts_.size(); i++) {
            if (counts_[i] > left) return 1e-6 * std::pow(1.02, static_cast<double>(i) + 0.5);
            left -= counts_[i];
        }
        return 0;
    }
    uint64_t total() const { return total_; }

private:
    std::array<uint64_t, 1000> counts_{};
    uint64_t total_ = 0;
};

// A number in [-1, 1) that depends on its arguments alone.
float noise(uint64_t a, uint64_t b) {
    uint64_t x = a * 0x9e3779b97f4a7c15u + b * 0xd1b54a32d192ed03u;
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    x ^= x >> 32;
    return static_cast<float>(static_cast<int32_t>(static_cast<uint32_t>(x))) * 0x1p-31f;
}

// The inputs and outputs of one layer for up to so many tokens.
class Tokens {
public:
    Tokens(const Options &options, int64_t most)
        : options_(options), q_(size(most * options.heads * options.key_dim)), k_(q_),
          v_(size(most * options.heads * options.value_dim)), o_(v_), g_(size(most * options.heads)), beta_(g_) {}

    // Token `token` of a request, at place `at`.
    void put(int64_t at, int64_t request, int64_t token, int64_t layer) {
        const int64_t H = options_.heads, K = options_.key_dim, V = options_.value_dim;
        const uint64_t seed =
            (static_cast<uint64_t>(request) * 1000003 + static_cast<uint64_t>(token)) * 61 + static_cast<uint64_t>(layer);
        for (int64_t h = 0; h < H; h++) {
            float *q = &q_[size((at * H + h) * K)], *k = &k_[size((at * H + h) * K)], *v = &v_[size((at * H + h) * V)];
            float norm = 1e-6f;
            for (int64_t d = 0; d < K; d++) {
                q[d] = noise(seed, size(h * K + d));
                k[d] = noise(seed + 1, size(h * K + d));
                norm += k[d] * k[d];
            }
            for (int64_t d = 0; d < K; d++) k[d] /= std::sqrt(norm);
            for (int64_t d = 0; d < V; d++) v[d] = noise(seed + 2, size(h * V + d));
            g_[size(at * H + h)] = -0.05f * (1 + noise(seed + 3, size(h)));
            beta_[size(at * H + h)] = 0.5f * (1 + noise(seed + 4, size(h)));
        }
    }

    halation::NamedTensors tensors(int64_t count) {
        const int64_t H = options_.heads, K = options_.key_dim, V = options_.value_dim;
        return {{"q", {q_.data(), {1, count, H, K}}},    {"k", {k_.data(), {1, count, H, K}}},
                {"v", {v_.data(), {1, count, H, V}}},    {"g", {g_.data(), {1, count, H}}},
                {"beta", {beta_.data(), {1, count, H}}}, {"o", {o_.data(), {1, count, H, V}}}};
    }

private:
    static size_t size(int64_t count) { return static_cast<size_t>(count); }

    const Options &options_;
    std::vector<float> q_, k_, v_, o_, g_, beta_;
};

halation::Problem problem_of(const Options &options) {
    return halation::Problem("gated_delta", options.heads, options.heads, options.key_dim, options.value_dim);
}

class Server {
public:
    Server(const Options &options, std::vector<Request> trace)
        : options_(options), trace_(std::move(trace)), most_tokens_(options.prompt_tokens + 1 + options.slots),
          context_(options.threads), alone_(1), tokens_(options, most_tokens_),
          state_size_(options.heads * options.key_dim * options.value_dim) {
        for (halation::Context *context : {&context_, &alone_}) context->add_kernels(*halation_kernels());
        plan_ = std::make_unique<halation::Plan>(context_, problem_of(options));
        plan_alone_ = std::make_unique<halation::Plan>(alone_, problem_of(options));
        for (int64_t slot = options.slots - 1; slot >= 0; slot--) free_.push_back(slot);
        // A pool is never cleared: a slot's next owner starts without reading it.
        pools_.resize(static_cast<size_t>(options.layers));
        for (auto &pool : pools_) pool.assign(static_cast<size_t>(options.slots * state_size_), std::nanf(""));
    }

    // True if nothing was lost and every state checked was right.
    bool run() {
        begin_ = seconds();
        double next_report = 10;
        int64_t memory_warm = 0;
        for (arrive(); more_ || !running_.empty() || !waiting_.empty(); arrive()) {
            step();
            const double elapsed = seconds() - begin_;
            if (memory_warm == 0 && finished_ >= 2 * options_.slots) memory_warm = resident_bytes();
            if (elapsed >= next_report) {
                report(elapsed);
                next_report = elapsed + 10;
            }
            if (options_.minutes > 0 && elapsed > 60 * options_.minutes) more_ = false;
        }
        const double elapsed = seconds() - begin_;
        report(elapsed);
        std::printf("requests: %lld arrived, %lld finished, %lld states checked bit for bit, %lld wrong\n", number(arrived_),
                    number(finished_), number(checked_), number(wrong_));
        std::printf("decode: %llu tokens, between two tokens of a request p50 %.3f ms, p99 %.3f ms\n",
                    static_cast<unsigned long long>(between_.total()), 1e3 * between_.quantile(0.5),
                    1e3 * between_.quantile(0.99));
        std::printf("first token: p50 %.1f ms, p99 %.1f ms after arrival\n", 1e3 * first_.quantile(0.5),
                    1e3 * first_.quantile(0.99));
        std::printf("time in kernels: %.0f %%; memory: %.1f MB after warming up, %.1f MB at the end\n",
                    100 * in_kernels_ / elapsed, static_cast<double>(memory_warm) / 1e6,
                    static_cast<double>(resident_bytes()) / 1e6);
        return arrived_ == finished_ && wrong_ == 0;
    }

private:
    struct Piece {
        Request *request;
        int64_t first, count;  // tokens
    };

    static long long number(int64_t value) { return static_cast<long long>(value); }

    // Seconds since the beginning, without those in which there was nothing to do.
    double clock() const { return seconds() - begin_ + skipped_; }
    double next_arrival() const { return trace_[next_].arrival + offset_; }

    // Requests whose time has come, of the trace over and over while there is time. A long queue holds its clients off.
    void arrive() {
        if (more_ && running_.empty() && waiting_.empty()) skipped_ += std::max(0.0, next_arrival() - clock());
        while (more_ && next_arrival() <= clock() && waiting_.size() < 256) {
            Request request = trace_[next_];
            request.id = arrived_++;
            request.arrival = next_arrival();
            waiting_.push_back(request);
            if (++next_ < trace_.size()) continue;
            next_ = 0;
            offset_ += trace_.back().arrival;
            if (options_.minutes <= 0) more_ = false;
        }
    }

    void admit() {
        while (!waiting_.empty() && !free_.empty()) {
            running_.push_back(std::make_unique<Request>(waiting_.front()));
            waiting_.pop_front();
            running_.back()->slot = free_.back();
            free_.pop_back();
        }
    }

    // One token of every request that is past its prompt; the rest of the step for prompts, whole chunks at a time.
    std::vector<Piece> batch() {
        std::vector<Piece> pieces;
        int64_t room = options_.prompt_tokens;
        for (auto &request : running_) {
            const int64_t left = request->prompt - request->done;
            if (left <= 0) {
                pieces.push_back({request.get(), request->done, 1});
                continue;
            }
            int64_t count = std::min(left, room / 64 * 64);
            if (left - count == 1 && count > 0)
                count++;  // a single token would be another kernel's: not bitwise the whole prompt
            if (count == 0) continue;
            pieces.push_back({request.get(), request->done, count});
            room -= std::min(room, count);
        }
        return pieces;
    }

    void step() {
        admit();
        const std::vector<Piece> pieces = batch();
        if (pieces.empty()) return;
        offsets_.assign(1, 0);
        slots_.clear();
        has_state_.clear();
        for (const Piece &piece : pieces) {
            offsets_.push_back(offsets_.back() + static_cast<int32_t>(piece.count));
            slots_.push_back(static_cast<int32_t>(piece.request->slot));
            has_state_.push_back(piece.first > 0);
        }
        const int64_t n = static_cast<int64_t>(pieces.size());
        halation::Batch batch;
        batch.offsets = {offsets_.data(), {n + 1}};
        batch.read_slots = batch.write_slots = {slots_.data(), {n}};
        batch.has_initial_state = {has_state_.data(), {n}};
        for (int64_t layer = 0; layer < options_.layers; layer++) {
            for (int64_t i = 0; i < n; i++)
                for (int64_t t = 0; t < pieces[static_cast<size_t>(i)].count; t++)
                    tokens_.put(offsets_[static_cast<size_t>(i)] + t, pieces[static_cast<size_t>(i)].request->id,
                                pieces[static_cast<size_t>(i)].first + t, layer);
            halation::NamedTensors tensors = tokens_.tensors(offsets_.back());
            const halation::Tensor pool(pools_[static_cast<size_t>(layer)].data(),
                                        {options_.slots, options_.heads, options_.key_dim, options_.value_dim});
            tensors.push_back({"initial_state", pool});
            tensors.push_back({"final_state", pool});
            const double before = seconds();
            plan_->run(tensors, batch);
            in_kernels_ += seconds() - before;
        }
        account(pieces);
    }

    void account(const std::vector<Piece> &pieces) {
        const double now = clock();
        for (const Piece &piece : pieces) {
            Request &request = *piece.request;
            request.done += piece.count;
            computed_ += piece.count;
            if (request.done < request.prompt) continue;
            if (piece.first < request.prompt)
                first_.add(now - request.arrival);
            else
                between_.add(now - request.last_token);
            request.last_token = now;
        }
        for (auto &request : running_) {
            if (request->done < request->tokens()) continue;
            if (request->id % options_.check_every == 0) check(*request);
            free_.push_back(request->slot);
            finished_++;
            request.reset();
        }
        running_.erase(std::remove(running_.begin(), running_.end(), nullptr), running_.end());
    }

    // The same request alone: its prompt in one call, then token by token.
    void check(const Request &request) {
        checked_++;
        bool right = true;
        std::vector<float> state(static_cast<size_t>(state_size_));
        Tokens prompt(options_, request.prompt);
        const halation::Tensor view(state.data(), {1, options_.heads, options_.key_dim, options_.value_dim});
        for (int64_t layer = 0; layer < options_.layers; layer++) {
            for (int64_t t = 0; t < request.prompt; t++) prompt.put(t, request.id, t, layer);
            halation::NamedTensors tensors = prompt.tensors(request.prompt);
            tensors.push_back({"final_state", view});
            plan_alone_->run(tensors);
            for (int64_t t = request.prompt; t < request.tokens(); t++) {
                prompt.put(0, request.id, t, layer);
                tensors = prompt.tensors(1);
                tensors.push_back({"initial_state", view});
                tensors.push_back({"final_state", view});
                plan_alone_->run(tensors);
            }
            const float *row = pools_[static_cast<size_t>(layer)].data() + request.slot * state_size_;
            right = right && !std::memcmp(row, state.data(), state.size() * sizeof(float));
        }
        if (!right) wrong_++;
    }

    void report(double elapsed) {
        std::printf("%7.1f s: %lld requests finished, %zu running, %zu waiting, %.0f tokens/s, %.1f MB\n", elapsed,
                    number(finished_), running_.size(), waiting_.size(), static_cast<double>(computed_) / elapsed,
                    static_cast<double>(resident_bytes()) / 1e6);
        std::fflush(stdout);
    }

    const Options &options_;
    const std::vector<Request> trace_;
    const int64_t most_tokens_;
    halation::Context context_, alone_;
    std::unique_ptr<halation::Plan> plan_, plan_alone_;
    Tokens tokens_;
    const int64_t state_size_;
    std::vector<std::vector<float>> pools_;  // by layer: [slots, heads, key_dim, value_dim]
    std::vector<int64_t> free_;
    std::deque<Request> waiting_;
    std::vector<std::unique_ptr<Request>> running_;
    std::vector<int32_t> offsets_, slots_;
    std::vector<uint8_t> has_state_;

    size_t next_ = 0;
    double begin_ = 0, offset_ = 0, skipped_ = 0;
    bool more_ = true;
    int64_t arrived_ = 0, finished_ = 0, checked_ = 0, wrong_ = 0, computed_ = 0;
    double in_kernels_ = 0;
    Histogram between_, first_;
};

// Lines "arrival in seconds, tokens of the prompt, tokens to be generated", by arrival; # begins a comment.
std::vector<Request> read_trace(const std::string &path) {
    std::ifstream in(path);
    if (!in) throw std::runtime_error(path + ": cannot be read");
    std::vector<Request> trace;
    int line_number = 0;
    for (std::string line; std::getline(in, line);) {
        line_number++;
        if (line.empty() || line[0] == '#') continue;
        std::replace(line.begin(), line.end(), ',', ' ');
        std::istringstream fields(line);
        Request request{};
        request.slot = -1;
        std::string more;
        if (!(fields >> request.arrival >> request.prompt >> request.output) || fields >> more || request.prompt < 1 ||
            request.output < 0 || request.arrival < (trace.empty() ? 0 : trace.back().arrival))
            throw std::runtime_error(path + ", line " + std::to_string(line_number) +
                                     ": must be arrival, prompt tokens >= 1, output tokens >= 0, with arrivals that do not fall");
        trace.push_back(request);
    }
    if (trace.empty()) throw std::runtime_error(path + ": has no requests");
    return trace;
}

}  // namespace

int main(int argc, char **argv) {
    Options options;
    CLI::App app(
        "Serves a trace of requests with gated_delta layers, batched continuously, and checks states against solo runs.");
    app.add_option("TRACE", options.trace, "lines of: arrival in seconds, prompt tokens, output tokens")->required();
    app.add_option("--minutes", options.minutes, "repeat the trace for so long; 0: once")->check(CLI::Range(0.0, 1e4));
    app.add_option("--layers", options.layers)->check(CLI::Range(1, 1000));
    app.add_option("--heads", options.heads)->check(CLI::Range(1, 1000));
    app.add_option("--slots", options.slots, "requests that run at a time")->check(CLI::Range(1, 100000));
    app.add_option("--prompt-tokens", options.prompt_tokens, "tokens of prompts in one step")->check(CLI::Range(64, 1 << 20));
    app.add_option("--threads", options.threads, "0: one per processor")->check(CLI::Range(0, 1024));
    app.add_option("--check-every", options.check_every, "every so many requests, hold the state against the request alone")
        ->check(CLI::Range(1, 1 << 30));
    CLI11_PARSE(app, argc, argv);
    try {
        return Server(options, read_trace(options.trace)).run() ? 0 : 1;
    } catch (const std::exception &error) {
        std::fprintf(stderr, "serve: %s\n", error.what());
        return 1;
    }
}
