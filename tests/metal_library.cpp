#include "metal_library.h"

#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <regex>
#include <sstream>
#include <unistd.h>

namespace metal_emulator {
namespace {

// As tests/metal/metal_stdlib has it.
struct Entry {
    int pointers;
    const unsigned *pointee_bytes;
    ThreadFunction run;
};

const std::string folder_of_shim = HALATION_METAL_SHIM, folder_of_cache = HALATION_METAL_CACHE;
// Rounding and NaNs as the text says them: nothing is fused or reordered.
// Kernels of several texts have the same names, so those are hidden from one another.
const std::string options =
    " -std=c++17 -O2 -shared -fPIC -fvisibility=hidden -fsigned-char -fwrapv -fno-strict-aliasing -ffp-contract=off -w";

std::string read(const std::string &path) {
    std::ifstream in(path);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
}

std::string compiler() {
    const char *given = std::getenv("HALATION_METAL_CXX");
    return given && *given ? given : HALATION_METAL_COMPILER;
}

// What the signature of a kernel says: buffers are numbered from 0 on in the order of the arguments, threadgroup memory is last.
bool read_signature(const std::string &signature, Function *function) {
    static const std::regex attribute(R"(\[\[\s*(buffer|threadgroup)\((\d+)\)\s*\]\])");
    function->buffers = 0;
    int threadgroup_memories = 0;
    for (std::sregex_iterator i(signature.begin(), signature.end(), attribute), end; i != end; ++i) {
        const int number = std::stoi((*i)[2]);
        if (threadgroup_memories > 0 || number != ((*i)[1] == "buffer" ? function->buffers : 0)) return false;
        ((*i)[1] == "buffer" ? function->buffers : threadgroup_memories)++;
    }
    function->has_scalars = signature.find("_scalar_args") != std::string::npos;
    return threadgroup_memories == 1 &&
           signature.find("threadgroup_position_in_grid") < signature.find("thread_position_in_threadgroup");
}

// The kernels of a text, but for what only the compiled code tells.
bool read_functions(const std::string &text, std::map<std::string, Function> *functions) {
    static const std::regex kernel(R"(kernel void (\w+)\()");
    for (std::sregex_iterator i(text.begin(), text.end(), kernel), end; i != end; ++i) {
        const auto begin = static_cast<size_t>(i->position());
        const size_t body = text.find('{', begin), next = text.find("kernel void ", begin + 1);
        Function &function = (*functions)[(*i)[1]];
        if (body == std::string::npos || !read_signature(text.substr(begin, body - begin), &function)) return false;
        function.has_barriers = text.substr(body, next - body).find("threadgroup_barrier(") != std::string::npos;
    }
    return !functions->empty();
}

// Where arguments are bound was read above; one of the words for it means something else to the compiler of the host.
std::string without_attributes(std::string text) {
    for (size_t at = 0; (at = text.find("[[", at)) != std::string::npos;) text.erase(at, text.find("]]", at) + 2 - at);
    return text;
}

// The shared object of a text, made if it is not there. Programs that make the same one at the same time each write their own
// file, and the last one stays.
std::string object_of(const std::string &source, std::string *fault) {
    const std::string command = compiler() + options;
    const size_t content = std::hash<std::string>()(source + command + read(folder_of_shim + "/metal_stdlib"));
    std::ostringstream name;
    name << folder_of_cache << "/" << std::hex << content;
    const std::string object = name.str() + ".so";
    if (std::filesystem::exists(object)) return object;
    std::filesystem::create_directories(folder_of_cache);
    const std::string own = name.str() + "." + std::to_string(getpid());
    std::ofstream(own + ".cpp") << source;
    const std::string whole = command + " -I'" + folder_of_shim + "' '" + own + ".cpp' -o '" + own + ".so' 2>'" + own + ".log'";
    if (std::system(whole.c_str()) != 0) {
        *fault = "the compiler of the host refuses it: " + read(own + ".log").substr(0, 1500);
        return "";
    }
    std::filesystem::remove(own + ".log");
    std::filesystem::rename(own + ".cpp", name.str() + ".cpp");
    std::filesystem::rename(own + ".so", object);
    return object;
}

std::unique_ptr<Library> load(const std::string &text, std::string *fault) {
    auto library = std::make_unique<Library>();
    if (!read_functions(text, &library->functions)) {
        *fault = "there is no kernel in it, or one whose arguments are not numbered as the emulator binds them";
        return nullptr;
    }
    std::string source = without_attributes(text) + "\n";
    for (const auto &[name, function] : library->functions) source += "HALATION_MSL_ENTRY(" + name + ")\n";
    source += "extern \"C\" { __attribute__((visibility(\"default\"))) void (*halation_msl_barrier)(int); }\n";
    const std::string object = object_of(source, fault);
    if (object.empty()) return nullptr;
    void *handle = dlopen(object.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        *fault = dlerror();
        return nullptr;
    }
    *static_cast<void (**)(int)>(dlsym(handle, "halation_msl_barrier")) = barrier;
    for (auto &[name, function] : library->functions) {
        const auto entry_of = reinterpret_cast<Entry (*)()>(dlsym(handle, (name + "_entry").c_str()));
        const Entry entry = entry_of();
        function.pointee_bytes.assign(entry.pointee_bytes, entry.pointee_bytes + entry.pointers);
        function.run = entry.run;
    }
    return library;
}

}  // namespace

const Library *compile(const std::string &text, std::string *fault) {
    static std::mutex mutex;
    static std::map<std::string, std::unique_ptr<Library>> known;
    const std::lock_guard<std::mutex> lock(mutex);
    std::unique_ptr<Library> &library = known[text];
    if (!library) library = load(text, fault);
    return library.get();
}

}  // namespace metal_emulator
