#include "device_code.h"

#include <algorithm>
#include <map>
#include <vector>

namespace halation {

using namespace Halide;
using namespace Halide::Internal;

namespace {

bool ends_with(const std::string &text, const std::string &end) {
    return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

// halide_cuda_initialize_kernels(state, address of the image, bytes in it): finds the image, puts another in its place.
class ChangeImages : public IRMutator {
public:
    explicit ChangeImages(const std::function<std::string(const std::string &)> &change) : change_(change) {}

    std::map<std::string, Buffer<>> changed;  // by name

private:
    using IRMutator::visit;

    Expr visit(const Call *op) override {
        if (!ends_with(op->name, "_initialize_kernels")) return IRMutator::visit(op);
        const Call *address = op->args.size() == 3 ? op->args[1].as<Call>() : nullptr;
        const Variable *image = address && address->args.size() == 1 ? address->args[0].as<Variable>() : nullptr;
        if (!image || !image->image.defined() || !is_const(op->args[2]))
            throw CompileError(op->name + " is not called with an image and its size");
        const Buffer<> before = image->image;
        const std::string code(static_cast<const char *>(before.data()), before.size_in_bytes());
        const std::string made = change_(code);
        Buffer<uint8_t> after(static_cast<int>(made.size()), before.name());
        std::copy(made.begin(), made.end(), after.data());
        changed[before.name()] = after;
        const Expr variable = Variable::make(image->type, image->name, after);
        return Call::make(op->type, op->name,
                          {op->args[0], Call::make(address->type, address->name, {variable}, address->call_type),
                           static_cast<int>(made.size())},
                          op->call_type);
    }

    const std::function<std::string(const std::string &)> &change_;
};

}  // namespace

Module with_device_code(const Module &module, const std::function<std::string(const std::string &)> &change) {
    ChangeImages images(change);
    Module result(module.name(), module.target(), module.get_metadata_name_map());
    for (LoweredFunc function : module.functions()) {
        function.body = images.mutate(function.body);
        result.append(function);
    }
    if (images.changed.empty()) throw CompileError("a kernel for a GPU has no device code");
    for (const Buffer<> &buffer : module.buffers()) {
        const auto found = images.changed.find(buffer.name());
        result.append(found == images.changed.end() ? buffer : found->second);
    }
    return result;
}

}  // namespace halation
