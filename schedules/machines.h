// Facts about machines, as data: what schedules read.
#ifndef HALATION_SCHEDULES_MACHINES_H
#define HALATION_SCHEDULES_MACHINES_H

#include <Halide.h>
#include <halation_kernels.h>

#include <map>
#include <string>

namespace halation {

struct CpuMachine {
    std::string isa;     // the name used by the variants table and the runtime
    std::string target;  // features of the Halide target, after arch-bits-os
    int lanes;           // floats in a vector register
    // 1: the products of all readers with the state share one pass over it, which takes readers x chunk x value_vectors
    // registers; 0: a pass each.
    int readers_together;

    // The chunkwise schedule.
    int chunk = 4;          // tokens in a chunk
    int value_vectors = 2;  // vectors of value channels in a tile of the state
    int key_unroll = 4;     // of the sum over key channels
    int segment = 128;      // tokens handed to a kernel at once
    // The same for one token.
    int decode_value_vectors = 4, decode_key_unroll = 1;
    // Value channels in a tile of the state, of one token or more.
    int value_tile(bool decode) const { return lanes * (decode ? decode_value_vectors : value_vectors); }
    // The parallel schedule: tokens in a block, rows of a block that are kept in registers.
    int parallel_block = 16, parallel_rows = 4;
    // ssm and hgrn: vectors of channels in a tile, tokens handed to a kernel at once.
    int scan_value_vectors = 1, scan_segment = 256;
    // softmax: keys whose products with a vector of queries are kept in registers.
    int key_rows = 8;

    // Parameters of a schedule of a user's own, by name.
    std::map<std::string, int> own{};
    int parameter(const std::string &name) const { return own.at(name); }
};

// How a block of threads of a GPU goes through sequences of ssm and hgrn.
struct ScanTile {
    int chunk;          // tokens in a chunk
    int channels;       // of a block
    int rows;           // elements of a channel's state in a thread's registers, a group; hgrn has one
    int token_threads;  // threads along tokens in what is done by tokens
    int sequences = 1;  // that a block serves at most, one after the other; fewer where that leaves less than scan_blocks
    int together = 1;   // tokens whose decays a thread reckons side by side, where N is known
    int each = 1;       // channels of a thread
    // What the next sequence starts from is asked for while one is served (sequence_ahead.h).
    bool sequences_ahead = false;
    int most_registers = 0;  // CUDA: of a thread; 0: as many as the compiler likes
};

// How a block of threads of a GPU shares out softmax attention: it has `queries` queries of a head, a tile, and goes through the
// cache `keys` tokens at a time. Its threads are lanes x rows: a thread has keys / lanes scores and `channels` value channels of
// each of queries / rows queries.
struct AttentionTile {
    int queries, keys;
    int lanes, rows;
    int channels;
    int key_slice;  // key channels of a tile of queries and a block of keys in shared memory at once
    int values;     // cached tokens whose values are loaded at once
    // 1: values go through shared memory; 0: each is read once, as it is needed.
    int share_values;
    // A cache is shared out over blocks of threads in parts, of whole blocks of keys, so many at most; 0: it is not. What they
    // give is read a few parts at once.
    int most_parts, parts_at_once;

    int value_channels() const { return lanes * channels; }
};

// A tile of sums of products that a block of threads of a GPU has, row_threads x column_threads: each sums rows / row_threads x
// columns / column_threads, and all go through what is summed a slice at a time.
struct ProductTile {
    int rows, columns;
    int row_threads, column_threads;
    int slice;
};

// One schedule serves all GPU APIs; this is what it is told of them.
struct GpuMachine {
    std::string backend;  // the name used by the variants table and the runtime
    std::string target;   // features of the Halide target, after arch-bits-os
    bool has_double;
    bool one_shared_array;  // a kernel has one array of shared memory for all types
    int chunk = 8;          // tokens in a chunk, each a thread of a block in what is done by tokens
    int value_lanes = 32;   // value channels of a block; threads along them in what is done by value channels
    // Key channels of the state in a thread's registers. H200: with 16 decode is up to 1.8 times as slow, with 8 twice.
    int key_rows = HALATION_KEPT_CHANNELS;
    // The same in a kernel for one K, of several tokens: key channels of so many value channels. What is read of a token then
    // serves several value channels at once. H200, prefill of gated and gated_delta, next to 32 x 1: 0.90, 0.93 of the time.
    int chunk_key_rows = 8, chunk_value_channels = 4;
    int product_rows = 16;  // key channels that a thread sums over in the products of tokens
    // Chunks whose part of the normalizer a thread asks for at once; not more of it than HALATION_KEPT_VECTORS is kept.
    int normalizer_chunks = 2 * chunk;
    // The normalizer of one token: threads along key channels, channels of each, heads of a block. All heads of 128 sequences are
    // then at once on an H200.
    int normalizer_threads = 64, normalizer_rows = 2, normalizer_heads = 4;
    // ssm and hgrn, a token at a time and by chunks; known: in a kernel for one N, which has less to ask of each element and
    // three barriers a chunk. H200, 4096 channels, N 16, next to what is here, each alone: decode of 128 sequences 25 us; 34 with
    // a sequence a block (which then reads A for each), 30 and 35 with 8 and 4 rows and two sequences. Prefill of 4096 tokens
    // 0.38; 0.42 with chunks of 16, 0.41 with token after token, 0.45 with a row a thread, 0.63 with four. hgrn 0.106 ms; 0.126
    // with chunks of 32.
    // Since then, in CUDA graphs: decode of 128 sequences of ssm takes 20.7 us where it took 37.3 (a copy's speed: 0.84, 0.46),
    // with what a channel reads and writes in registers, sequences asked for ahead, and no more registers a thread than let
    // scan_blocks be on the device at once; of one sequence 3.3 for 3.5. hgrn, with two channels a thread and blocks of 256: 5.5
    // for 6.6, of one sequence 2.6 for 2.4. Prefill of 8192 tokens of ssm: 723 us for 939, with shared_vectors.h and fewer
    // instructions in saturated_decay().
    ScanTile ssm_decode = {1, 32, 4, 1, 8}, ssm_prefill = {8, 16, 2, 8};
    ScanTile ssm_known_decode = {1, 32, 16, 1, 8, 1, 1, true, 128}, ssm_known_prefill = {32, 16, 2, 16, 1, 8};
    ScanTile hgrn_decode = {1, 256, 1, 1, 1, 1, 2}, hgrn_prefill = {64, 16, 1, 16};
    int scan_blocks = 2048;  // as many as an H200 runs at once, of a warp and 128 registers a thread
    const ScanTile &ssm(bool decode, bool known) const {
        if (known) return decode ? ssm_known_decode : ssm_known_prefill;
        return decode ? ssm_decode : ssm_prefill;
    }
    const ScanTile &hgrn(bool decode) const { return decode ? hgrn_decode : hgrn_prefill; }
    // softmax. Of many queries: 32 x 64 scores by 8 x 16 threads, 4 x 4 each, then 4 x 8 sums; with 168 registers a thread three
    // such blocks share a multiprocessor (CUDA), so that one computes while another waits. Of one query: each of 128 threads has
    // the score of a key, then a value channel.
    AttentionTile prefill = {32, 64, 16, 8, 8, 16, 8, 1, 0, 0};
    AttentionTile decode = {1, 128, HALATION_CACHE_CHANNELS, 1, 1, 32, 32, 0, HALATION_CACHE_PARTS, 4};
    // bidirectional: key channels, then tokens, by value channels.
    ProductTile product = {HALATION_PART_CHANNELS, HALATION_PART_CHANNELS, 8, 16, 16};
};

const GpuMachine &gpu_machine(const std::string &backend);
const GpuMachine &gpu_machine(const Halide::Target &target);
const CpuMachine &cpu_machine(const Halide::Target &target);
const CpuMachine &cpu_machine(const std::string &isa);

}  // namespace halation
#endif
