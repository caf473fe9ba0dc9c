// Facts about machines, as data: what schedules read.
#ifndef HALATION_SCHEDULES_MACHINES_H
#define HALATION_SCHEDULES_MACHINES_H

#include <Halide.h>

#include <string>

namespace halation {

struct CpuMachine {
    std::string isa;     // the name used by the variants table and the runtime
    std::string target;  // features of the Halide target, after arch-bits-os
    int lanes;           // floats in a vector register

    // Tiles of the chunkwise schedule: chunk length, vectors of value channels in a tile of the state, unroll of the
    // sum over key channels, tokens handed to a kernel at once.
    int chunk, value_vectors, key_unroll, segment;
    // Whether the products of all readers with the state share one pass over it: they need readers x chunk x value_vectors
    // registers.
    bool readers_together;
    // The same for one token.
    int decode_value_vectors, decode_key_unroll;
    // The parallel schedule: tokens in a block, rows of a block that are kept in registers.
    int parallel_block, parallel_rows;
    // ssm and hgrn: vectors of channels in a tile, tokens handed to a kernel at once.
    int scan_value_vectors, scan_segment;
    // softmax: keys whose products with a vector of queries are kept in registers.
    int key_rows;
};

const CpuMachine &cpu_machine(const Halide::Target &target);
const CpuMachine &cpu_machine(const std::string &isa);

}  // namespace halation
#endif
