// Device code of Metal, compiled for the processor of the host: the text as it is but for attributes, with
// tests/metal/metal_stdlib in place of Apple's.
#ifndef HALATION_TESTS_METAL_LIBRARY_H
#define HALATION_TESTS_METAL_LIBRARY_H

#include "metal_threads.h"

#include <map>
#include <string>
#include <vector>

namespace metal_emulator {

struct Function {
    int buffers;  // with that of the scalars, if there are any
    bool has_scalars, has_barriers;
    std::vector<unsigned> pointee_bytes;  // of each argument; the last is the threadgroup memory
    ThreadFunction run;
};

struct Library {
    std::map<std::string, Function> functions;
};

// Compiled once, and kept in a folder by its content. NULL, with the reason: the text is not what the emulator knows, or the
// compiler refuses it. The compiler is $HALATION_METAL_CXX, if set.
const Library *compile(const std::string &text, std::string *fault);

}  // namespace metal_emulator
#endif
