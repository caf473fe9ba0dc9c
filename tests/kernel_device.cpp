#include "kernel_device.h"

#include <algorithm>
#include <cstring>
#include <memory>

namespace kernels {
namespace {

constexpr size_t margin = 4096;  // a multiple of what any device aligns tensors to

std::string backend_of_tests = "cpu";
std::unique_ptr<halation::Context> context_of_tests;

std::vector<uint8_t> between_margins(const Placed &placed) {
    std::vector<uint8_t> bytes(placed.bytes() + 2 * margin, untouched_byte);
    if (placed.bytes()) std::memcpy(bytes.data() + margin, placed.data(), placed.bytes());
    return bytes;
}

}  // namespace

const std::string &tested_backend() {
    return backend_of_tests;
}

bool on_device() {
    return context_of_tests != nullptr;
}

void test_backend(const std::string &backend) {
    context_of_tests.reset();
    backend_of_tests = backend;
    if (backend == "cpu") return;
    context_of_tests = std::make_unique<halation::Context>(1);
    context_of_tests->add_kernels(*halation_kernels());
    context_of_tests->open_device(backend.c_str());
}

halation::Context &device_context() {
    return *context_of_tests;
}

DeviceCopy::DeviceCopy(const halation::Context &context, const Placed &placed)
    : sent_(between_margins(placed)), memory_(context, sent_.data(), sent_.size()) {
    const halation::Tensor there = placed.view();
    view_ = halation::Tensor(memory_.data(), there.type(), there.shape(), there.strides())
                .on(context.device().device, margin + placed.first_byte());
}

bool DeviceCopy::fetch(Placed *placed, bool *changed) {
    std::vector<uint8_t> found(sent_.size());
    memory_.copy_to(found.data(), found.size());
    *changed = found != sent_;
    if (placed && placed->bytes()) std::memcpy(placed->data(), found.data() + margin, placed->bytes());
    const auto untouched = [](uint8_t byte) { return byte == untouched_byte; };
    return std::all_of(found.begin(), found.begin() + margin, untouched) &&
           std::all_of(found.end() - margin, found.end(), untouched);
}

}  // namespace kernels
