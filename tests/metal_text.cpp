// Looks into the objects of kernels for Metal without a Mac: metal_text TEXTS LINUX_FOLDER OSX_FOLDER IOS_FOLDER NAME...
// What an object for macOS or iOS holds as text of device code must be what the one for Linux holds, with which kernels are
// tested; it must be an object for that system and 64-bit Arm; and it may need nothing that its library and the system do not
// have. The texts are left in the folder TEXTS.
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iostream>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

std::string read(const std::string &path) {
    std::ifstream in(path, std::ios::binary);
    std::ostringstream bytes;
    bytes << in.rdbuf();
    if (!in || bytes.str().empty()) throw std::runtime_error("cannot read " + path);
    return bytes.str();
}

// The one text of device code of an object.
std::string device_code(const std::string &object) {
    const std::string begin = "#pragma clang diagnostic ignored \"-Wunused-function\"\n#include <metal_stdlib>";
    const size_t at = object.find(begin);
    if (at == std::string::npos) throw std::runtime_error("has no text of device code");
    if (object.find(begin, at + 1) != std::string::npos) throw std::runtime_error("has two texts of device code");
    return object.substr(at, object.find('\0', at) - at);
}

template<typename T> T at(const std::string &bytes, size_t offset) {
    if (offset + sizeof(T) > bytes.size()) throw std::runtime_error("ends too early");
    T value;
    std::memcpy(&value, bytes.data() + offset, sizeof value);
    return value;
}

struct MachObject {
    uint32_t platform = 0;  // 1: macOS, 2: iOS
    std::set<std::string> undefined;
};

// The load commands and symbols of a Mach-O object of 64-bit Arm.
MachObject read_mach(const std::string &bytes) {
    constexpr uint32_t magic = 0xfeedfacf, arm64 = 0x0100000c, object = 1, command_symbols = 2, command_build_version = 0x32;
    if (at<uint32_t>(bytes, 0) != magic) throw std::runtime_error("is no 64-bit Mach-O file");
    if (at<uint32_t>(bytes, 4) != arm64) throw std::runtime_error("is not for 64-bit Arm");
    if (at<uint32_t>(bytes, 12) != object) throw std::runtime_error("is no object");
    MachObject found;
    size_t command = 32;
    for (uint32_t i = 0; i < at<uint32_t>(bytes, 16); i++, command += at<uint32_t>(bytes, command + 4)) {
        if (at<uint32_t>(bytes, command) == command_build_version) found.platform = at<uint32_t>(bytes, command + 8);
        if (at<uint32_t>(bytes, command) != command_symbols) continue;
        const size_t symbols = at<uint32_t>(bytes, command + 8), count = at<uint32_t>(bytes, command + 12),
                     names = at<uint32_t>(bytes, command + 16);
        for (size_t s = 0; s < count; s++) {
            const size_t symbol = symbols + 16 * s;
            const uint8_t type = at<uint8_t>(bytes, symbol + 4);
            if ((type & 0xe0) == 0 && (type & 0x0e) == 0 && (type & 1))
                found.undefined.insert(&bytes[names + at<uint32_t>(bytes, symbol)]);
        }
    }
    return found;
}

// Of runtime/kernel_glue.cpp and kernel_glue_gpu.cpp, which are in every library of kernels, and of any system.
const std::set<std::string> expected = {"_halide_copy_to_device",
                                        "_halide_device_and_host_free_as_destructor",
                                        "_halide_device_and_host_malloc",
                                        "_halide_device_free",
                                        "_halide_device_free_as_destructor",
                                        "_halide_device_malloc",
                                        "_halide_metal_device_interface",
                                        "_halide_metal_finalize_kernels",
                                        "_halide_metal_initialize_kernels",
                                        "_halide_metal_run",
                                        "_halide_error",
                                        "_halide_free",
                                        "_halide_malloc",
                                        "_memcpy",
                                        "_memset"};

void check(const std::string &path, uint32_t platform, const std::string &text) {
    const std::string bytes = read(path);
    if (device_code(bytes) != text) throw std::runtime_error("has another text of device code than the object for Linux");
    const MachObject object = read_mach(bytes);
    if (object.platform != platform)
        throw std::runtime_error("is for platform " + std::to_string(object.platform) + ", not " + std::to_string(platform));
    if (!object.undefined.count("_halide_metal_run")) throw std::runtime_error("does not call halide_metal_run");
    for (const std::string &symbol : object.undefined)
        if (!expected.count(symbol) && symbol.rfind("_halide_error_", 0) != 0)
            throw std::runtime_error("needs " + symbol + ", which no library of kernels has");
}

}  // namespace

int main(int argc, char **argv) {
    if (argc < 6) {
        std::cerr << "usage: metal_text TEXTS LINUX_FOLDER OSX_FOLDER IOS_FOLDER NAME...\n";
        return 2;
    }
    const std::string texts = argv[1], linux_folder = argv[2], osx_folder = argv[3], ios_folder = argv[4];
    int wrong = 0;
    const auto guarded = [&](const std::string &path, const auto &body) {
        try {
            body();
        } catch (const std::exception &error) {
            std::cerr << path << ": " << error.what() << "\n";
            wrong++;
        }
    };
    for (int i = 5; i < argc; i++) {
        const std::string file = "/" + std::string(argv[i]) + ".o";
        std::string text;
        guarded(linux_folder + file, [&] {
            text = device_code(read(linux_folder + file));
            std::ofstream(texts + "/" + argv[i] + ".metal") << text;
        });
        guarded(osx_folder + file, [&] { check(osx_folder + file, 1, text); });
        guarded(ios_folder + file, [&] { check(ios_folder + file, 2, text); });
    }
    std::cout << argc - 5 << " kernels, " << wrong << " objects with faults\n";
    return wrong > 0;
}
