// A prompt, then token after token, on a device: tensors in its memory, the state in place.  device [cuda|opencl|metal]
#include <halation.hpp>

#include <cstdio>
#include <vector>

namespace {

void compute(const char *backend) {
    const int64_t prompt = 50, generated = 20, H = 4, D = 64;
    const std::vector<float> q(prompt * H * D, 0.1f), v(q.size(), 1.0f), g(prompt * H, -0.01f), beta(g.size(), 0.5f);
    const size_t state_bytes = H * D * D * sizeof(float);

    halation::Context context;
    context.add_kernels(*halation_kernels());
    const halation_device_info device = context.open_device(backend);  // throws halation::Error saying why there is none
    halation::Problem problem("gated_delta", H, H, D, D);              // auto: chunkwise, recurrent for one token
    problem.backend = backend;
    halation::Plan plan(context, problem);
    std::printf("%s (%s): %s\n", device.name, device.backend, plan.describe().kernel);

    const auto place = [&](const std::vector<float> &values) {
        return halation::DeviceMemory(context, values.data(), values.size() * sizeof(float));
    };
    const halation::DeviceMemory there_q = place(q), there_v = place(v), there_g = place(g), there_beta = place(beta);
    const halation::DeviceMemory there_o(context, v.size() * sizeof(float)), there_state(context, state_bytes);

    const auto on_device = [&](const halation::DeviceMemory &memory, std::vector<int64_t> shape) {
        return halation::Tensor(memory.data(), halation::float32, std::move(shape)).on(device.device);
    };
    // Puts the work into the device's queue and returns.
    const auto step = [&](int64_t tokens, bool continues) {
        halation::NamedTensors tensors = {
            {"q", on_device(there_q, {1, tokens, H, D})},         {"k", on_device(there_q, {1, tokens, H, D})},
            {"v", on_device(there_v, {1, tokens, H, D})},         {"g", on_device(there_g, {1, tokens, H})},
            {"beta", on_device(there_beta, {1, tokens, H})},      {"o", on_device(there_o, {1, tokens, H, D})},
            {"final_state", on_device(there_state, {1, H, D, D})}};
        if (continues) tensors.emplace_back("initial_state", on_device(there_state, {1, H, D, D}));
        plan.run(tensors);
    };
    // Waits for what is in the queue.
    const auto output_of_token = [&](int64_t token) {
        float value;
        there_o.copy_to(&value, sizeof value, static_cast<size_t>(token * H * D) * sizeof value);
        return value;
    };
    step(prompt, false);
    std::printf("after the prompt: %g\n", output_of_token(prompt - 1));
    for (int64_t t = 0; t < generated; t++) {
        step(1, true);
        if (t % 5 == 4) std::printf("after %lld tokens: %g\n", static_cast<long long>(t + 1), output_of_token(0));
    }
}

}  // namespace

int main(int argc, char **argv) {
    try {
        compute(argc > 1 ? argv[1] : "opencl");
    } catch (const halation::Error &error) {
        std::fprintf(stderr, "device: %s\n", error.what());
        return 1;
    }
}
