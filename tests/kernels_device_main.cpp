// Runs the tests on a device of each backend that has one here. HALATION_TEST_BACKEND=cuda, opencl or metal: of that alone.
// A backend without a device is skipped, unless it was asked for so or HALATION_REQUIRE_CUDA, HALATION_REQUIRE_OPENCL is set. So
// is Metal where this program emulates it (metal_emulator.h), unless it was asked for.
#define CATCH_CONFIG_RUNNER
#include "halation_kernels.h"
#include "kernel_device.h"

#include <catch2/catch.hpp>

#include <cstdlib>
#include <iostream>

namespace {

#ifdef HALATION_METAL_EMULATED
constexpr bool metal_is_emulated = true;
#else
constexpr bool metal_is_emulated = false;
#endif

bool has_kernels(const std::string &backend) {
    const halation_kernel_table &table = *halation_kernels();
    for (int i = 0; i < table.kernel_count; i++)
        if (table.kernels[i].backend == backend) return true;
    return false;
}

std::string from_environment(const char *name) {
    const char *text = std::getenv(name);
    return text ? text : "";
}

// Why the backend cannot be tested; empty: it can.
std::string reason_against(const std::string &backend) {
    int32_t count = 0;
    if (halation_backend_devices(backend.c_str(), &count) != HALATION_OK) return halation_last_message();
    return has_kernels(backend) ? "" : "no kernels of " + backend + " were built";
}

int run_on(const std::string &backend, bool required, Catch::Session &session) {
    const std::string reason = reason_against(backend);
    if (!reason.empty()) {
        std::cout << (required ? "failed: " + backend + " must be tested, but " : "skipped: ") << reason << std::endl;
        return required;
    }
    kernels::test_backend(backend);
    std::cout << "on " << backend << ": " << kernels::device_context().device().name << std::endl;
    const int failures = session.run();
    kernels::test_backend("cpu");
    return failures;
}

}  // namespace

int main(int argc, char **argv) {
    Catch::Session session;
    if (const int code = session.applyCommandLine(argc, argv)) return code;
    const std::string only = from_environment("HALATION_TEST_BACKEND");
    if (!only.empty() && only != "cuda" && only != "opencl" && only != "metal") {
        std::cout << "HALATION_TEST_BACKEND: got '" << only << "'; may be cuda, opencl or metal" << std::endl;
        return 2;
    }
    std::vector<std::pair<const char *, const char *>> backends = {{"cuda", "HALATION_REQUIRE_CUDA"},
                                                                   {"opencl", "HALATION_REQUIRE_OPENCL"}};
    if (!metal_is_emulated || only == "metal") backends.emplace_back("metal", "HALATION_REQUIRE_METAL");
    int result = 0;
    for (const auto &[backend, requirement] : backends)
        if (only.empty() || only == backend) result |= run_on(backend, only == backend || std::getenv(requirement), session);
    return result;
}
