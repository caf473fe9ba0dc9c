#include "kernel_run.h"
#include "kernel_device.h"

#include <catch2/catch.hpp>

#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <set>

namespace kernels {
namespace {

// Results may not depend on what is in the library's scratch memory.
void *allocate_nan(void *, size_t bytes, size_t alignment) {
    void *memory = nullptr;
    if (posix_memalign(&memory, alignment, bytes)) return nullptr;
    return std::memset(memory, 0xff, bytes);
}
void release(void *, void *memory, size_t) {
    std::free(memory);
}

const char *name_of(halation_form form) {
    const char *const names[] = {"auto", "recurrent", "chunkwise", "parallel"};
    return names[form];
}

void skip(const std::string &what, const std::string &reason) {
    static std::set<std::string> said;
    if (said.insert(what).second) std::cout << "skipped: " << what << ": " << reason << std::endl;
}

class Runner {
public:
    Runner(const Problem &problem, const How &how) : problem_(problem), row_(*problem.recurrence.row), how_(how) {
        for (const auto &[name, tensor] : problem.inputs) {
            const bool over = how.in_place && how.final_state && name.rfind("initial_", 0) == 0;
            Placed &placed = place(over ? "final_" + name.substr(8) : name, tensor.type, tensor.shape);
            placed.put(tensor);
            if (!over) placed.make_read_only();
            tensors_.emplace_back(name, &placed);
        }
        result("o", problem.type, problem.shape(row_.output_dims));
        if (how.final_state) states("final_");
        if (!how.snapshot_slots.empty() && !how.one_pool) states("snapshot_");
        for (const char *kind : {"state", "normalizer"}) {
            if (how.snapshot_slots.empty() || !how.one_pool) break;
            const auto final = placed_.find(std::string("final_") + kind);
            if (final != placed_.end()) tensors_.emplace_back(std::string("snapshot_") + kind, final->second.get());
        }
    }

    Results run(const Kernel &kernel) {
        halation::Plan plan(context(how_.threads), problem_for(problem_, kernel));
        if (how_.nan_workspace && on_device()) leave_nan(plan);
        call(plan);
        fetch();
        Results results;
        results.choice = plan.describe();
        for (const auto &name : results_) {
            Placed &placed = *placed_.at(name);
            results.tensors[name] = placed.get();
            INFO(problem_.text() << ": " << results.choice.kernel);
            INFO("written outside of " << name);
            CHECK(placed.nothing_else_was_written());
        }
        return results;
    }

private:
    void call(halation::Plan &plan) {
        const halation::NamedTensors tensors = views();
        halation::Batch batch;
        const auto vector = [](auto &values) {
            return values.empty() ? halation::Tensor() : halation::Tensor(values.data(), {static_cast<int64_t>(values.size())});
        };
        batch.offsets = vector(problem_.offsets);
        batch.cache_offsets = vector(problem_.cache_offsets);
        batch.read_slots = vector(how_.read_slots);
        batch.write_slots = vector(how_.write_slots);
        batch.has_initial_state = vector(how_.has_initial_state);
        batch.snapshot_sequences = vector(how_.snapshot_sequences);
        batch.snapshot_tokens = vector(how_.snapshot_tokens);
        batch.snapshot_slots = vector(how_.snapshot_slots);
        std::unique_ptr<Guarded> workspace;
        if (how_.nan_workspace && !on_device()) {
            batch.workspace_bytes = (plan.workspace(tensors, batch) + 63) / 64 * 64;
            workspace = std::make_unique<Guarded>(batch.workspace_bytes, Meets::end);
            batch.workspace = workspace->data();
        }
        plan.run(tensors, batch);
    }
    // A device's scratch memory is the plan's, which keeps what the last call left there.
    void leave_nan(halation::Plan &plan) const {
        Problem spoilt = problem_;
        for (auto &[name, tensor] : spoilt.inputs) std::fill(tensor.data.begin(), tensor.data.end(), untouched_byte);
        Runner(spoilt, how_).call(plan);
    }
    std::vector<int64_t> state_shape(const char *dims) const {
        std::vector<int64_t> shape = problem_.shape(dims);
        if (how_.slots) shape[0] = how_.slots;
        return shape;
    }
    Placing placing(const std::string &name) const {
        Placing placing;
        placing.meets = how_.meets;
        placing.gap = how_.padded ? 3 : 0;
        placing.forwards = tested_backend() == "opencl" || tested_backend() == "metal";
        if (how_.layout_seed) placing.seed = how_.layout_seed + static_cast<unsigned>(std::hash<std::string>()(name));
        const auto broadcast = how_.broadcast.find(name);
        if (broadcast != how_.broadcast.end()) placing.broadcast = static_cast<int>(broadcast->second);
        return placing;
    }
    Placed &place(const std::string &name, Type type, const std::vector<int64_t> &shape) {
        auto &placed = placed_[name];
        if (!placed) placed = std::make_unique<Placed>(type, shape, placing(name));
        return *placed;
    }
    void states(const std::string &which) {
        if (row_.state_dims) result(which + "state", problem_.state_type, state_shape(row_.state_dims));
        if (row_.normalizer_dims) result(which + "normalizer", Type::f32, state_shape(row_.normalizer_dims));
    }
    void result(const std::string &name, Type type, const std::vector<int64_t> &shape) {
        tensors_.emplace_back(name, &place(name, type, shape));
        results_.push_back(name);
    }
    // As a call takes them: where they were placed, or copies of that on the device.
    halation::NamedTensors views() {
        halation::NamedTensors all;
        for (const auto &[name, placed] : tensors_) {
            if (on_device()) copies_.try_emplace(placed, device_context(), *placed);
            all.emplace_back(name, on_device() ? copies_.at(placed).view() : placed->view());
        }
        return all;
    }
    void fetch() {
        for (const auto &[name, placed] : placed_) {
            const auto copy = copies_.find(placed.get());
            if (copy == copies_.end()) continue;
            INFO(problem_.text() << ": " << name);
            const bool result = std::find(results_.begin(), results_.end(), name) != results_.end();
            bool changed = false;
            CHECK(copy->second.fetch(result ? placed.get() : nullptr, &changed));
            CHECK((result || !changed));
        }
    }

    const Problem &problem_;
    const halation_row &row_;
    const How &how_;
    std::map<std::string, std::unique_ptr<Placed>> placed_;
    std::map<Placed *, DeviceCopy> copies_;
    std::vector<std::string> results_;
    std::vector<std::pair<std::string, Placed *>> tensors_;
};

}  // namespace

std::string Kernel::text() const {
    return std::string(name_of(form)) + " " + isa;
}

halation::Context &context(int threads) {
    if (on_device()) return device_context();
    static std::map<int, std::unique_ptr<halation::Context>> all;
    auto &found = all[threads];
    if (!found) {
        auto options = HALATION_INIT(halation_context_options);
        options.threads = threads;
        options.allocate = allocate_nan;
        options.release = release;
        found = std::make_unique<halation::Context>(options);
        found->add_kernels(*halation_kernels());
    }
    return *found;
}

halation::Problem problem_for(const Problem &problem, const Kernel &kernel) {
    halation::Problem result(problem.recurrence.row->name, problem.H, problem.HV, problem.K, problem.V);
    result.backend = tested_backend().c_str();
    result.isa = kernel.isa.empty() ? nullptr : kernel.isa.c_str();
    result.feature_map = problem.recurrence.feature_map.empty() ? nullptr : problem.recurrence.feature_map.c_str();
    result.form = kernel.form;
    result.head_mapping = problem.heads;
    result.non_causal = !problem.causal;
    result.type = dl_type(problem.type);
    result.gate_type = dl_type(problem.gate_type);
    result.state_type = dl_type(problem.state_type);
    result.scale = problem.scale;
    return result;
}

Results run(const Problem &problem, const Kernel &kernel, const How &how) {
    return Runner(problem, how).run(kernel);
}

void each_kernel(const Problem &problem, const std::function<void(const Kernel &)> &body,
                 const std::vector<halation_form> &forms) {
    const halation_kernel_table &table = *halation_kernels();
    const halation_row &row = *problem.recurrence.row;
    for (halation_form form : {HALATION_FORM_RECURRENT, HALATION_FORM_CHUNKWISE, HALATION_FORM_PARALLEL}) {
        if (!forms.empty() && std::find(forms.begin(), forms.end(), form) == forms.end()) continue;
        if (row.refused[form]) {
            skip(std::string(row.name) + " " + name_of(form), row.refused[form]);
            continue;
        }
        std::set<std::string> isas;
        for (int i = 0; i < table.kernel_count; i++)
            if (table.kernels[i].backend == tested_backend() && !std::strcmp(table.kernels[i].recurrence, row.name))
                isas.insert(table.kernels[i].isa);
        for (const std::string &isa : isas) {
            const Kernel kernel{form, isa};
            const halation::Problem asked = problem_for(problem, kernel);
            const halation_status status = halation_can_run(context(1).get(), &asked, nullptr);
            if (status == HALATION_OK) {
                INFO(problem.text());
                INFO(kernel.text());
                body(kernel);
                continue;
            }
            INFO(problem.text() << ", " << kernel.text() << ": " << halation_last_message());
            CHECK(status == HALATION_UNSUPPORTED);  // anything else is a fault of the test
            skip(std::string(row.name) + " " + kernel.text(), halation_last_message());
        }
    }
}

double error(const Tensor &result, const oracle::Array &reference) {
    return oracle::error({result.shape, safetensors::values(result)}, reference);
}

void check_close(const Results &results, const std::map<std::string, Expected> &expected, double times) {
    INFO(results.choice.kernel);
    for (const auto &[name, tensor] : results.tensors) {
        const Expected &wanted = expected.at(name);
        INFO(name);
        CHECK(std::isfinite(wanted.bound));
        CHECK(error(tensor, wanted.value) <= times * wanted.bound);
    }
}

void check_close(const Problem &problem, const Kernel &kernel, const How &how) {
    check_close(run(problem, kernel, how), expected(problem));
}

void check_all_kernels(const Problem &problem) {
    const auto wanted = expected(problem);
    each_kernel(problem, [&](const Kernel &kernel) { check_close(run(problem, kernel), wanted); });
}

bool same_bits(const Tensor &a, const Tensor &b) {
    return a.type == b.type && a.shape == b.shape && a.data == b.data;
}

void check_same_bits(const Results &results, const Results &other) {
    for (const auto &[name, tensor] : results.tensors) {
        INFO(results.choice.kernel << ": " << name);
        CHECK(same_bits(tensor, other[name]));
    }
}

void check_layouts(const Problem &problem, const Kernel &kernel) {
    const Results compact = run(problem, kernel);
    for (unsigned seed = 1; seed <= 6; seed++) {
        INFO("layout " << seed);
        How how;
        how.layout_seed = seed;
        how.in_place = seed % 2;
        check_same_bits(run(problem, kernel, how), compact);
    }
}

void check_agree(const Results &results, const Results &other, const std::map<std::string, Expected> &expected) {
    for (const auto &[name, tensor] : results.tensors) {
        INFO(results.choice.kernel << " and " << other.choice.kernel << ": " << name);
        const oracle::Array reference = {other[name].shape, safetensors::values(other[name])};
        CHECK(error(tensor, reference) <= 2 * expected.at(name).bound);
    }
}

Results joined(const Results &first, const Results &second) {
    Results results = second;
    Tensor &o = results.tensors.at("o");
    const Tensor &begin = first["o"], &end = second["o"];
    o.shape[1] = begin.shape[1] + end.shape[1];
    o.data.clear();
    for (int64_t b = 0; b < o.shape[0]; b++)
        for (const Tensor *part : {&begin, &end}) {
            const auto bytes = static_cast<int64_t>(part->data.size()) / o.shape[0];
            o.data.insert(o.data.end(), part->data.begin() + b * bytes, part->data.begin() + (b + 1) * bytes);
        }
    return results;
}

void start_from(Problem &problem, const Results &results) {
    for (const char *name : {"state", "normalizer"}) {
        const auto found = results.tensors.find(std::string("final_") + name);
        if (found != results.tensors.end()) problem.inputs[std::string("initial_") + name] = found->second;
    }
    problem.initial_state = true;
}

Tensor row_of(const Tensor &tensor, int64_t n) {
    Tensor row = tensor;
    const auto bytes = static_cast<int64_t>(tensor.data.size()) / tensor.shape[0];
    row.shape[0] = 1;
    row.data.assign(tensor.data.begin() + n * bytes, tensor.data.begin() + (n + 1) * bytes);
    return row;
}

}  // namespace kernels
