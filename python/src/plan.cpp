#include "plan.h"
#include "errors.h"
#include "fields.h"
#include "gil.h"
#include "tensor.h"

#include <cstring>

namespace nb = nanobind;

namespace halation::python {
namespace {

// The vectors of halation_arguments.
const struct {
    const char *name;
    const DLTensor *halation_arguments::*member;
} vectors[] = {
    {"offsets", &halation_arguments::offsets},
    {"cache_offsets", &halation_arguments::cache_offsets},
    {"read_slots", &halation_arguments::read_slots},
    {"write_slots", &halation_arguments::write_slots},
    {"has_initial_state", &halation_arguments::has_initial_state},
    {"snapshot_sequences", &halation_arguments::snapshot_sequences},
    {"snapshot_tokens", &halation_arguments::snapshot_tokens},
    {"snapshot_slots", &halation_arguments::snapshot_slots},
};

// By its name alone: inputs of a recurrence may have none of these.
bool is_output(const char *name) {
    return !strcmp(name, "o") || !strncmp(name, "final_", 6) || !strncmp(name, "snapshot_", 9);
}

// The arguments of one call. Holds the arrays until the call is over, and no longer.
class Arguments {
public:
    Arguments(const nb::kwargs &given, bool runs) {
        tensors_.reserve(given.size());
        for (const auto [key, value] : given) {
            const char *name = text_field("tensors", key);
            if (!value.is_none()) add(name, value, runs);
        }
        arguments_.tensors = named_.data();
        arguments_.tensor_count = static_cast<int32_t>(named_.size());
    }

    const halation_arguments *get() const { return &arguments_; }

private:
    void add(const char *name, nb::handle value, bool runs) {
        for (const auto &vector : vectors)
            if (!strcmp(vector.name, name)) {
                arguments_.*vector.member = &tensors_.emplace_back(name, value, Access::read).view();
                return;
            }
        if (!strcmp(name, "workspace")) {
            const Tensor &memory = tensors_.emplace_back(name, value, runs ? Access::write : Access::read);
            if (!memory.is_compact()) raise(HALATION_INVALID_ARGUMENT, "workspace: has strides; must be compact");
            arguments_.workspace = static_cast<char *>(memory.view().data) + memory.view().byte_offset;
            arguments_.workspace_bytes = memory.bytes();
            return;
        }
        const Access access = runs && is_output(name) ? Access::write : Access::read;
        named_.push_back({name, &tensors_.emplace_back(name, value, access).view()});
    }

    std::vector<Tensor> tensors_;  // never grows beyond what is reserved: views point into it
    std::vector<halation_named_tensor> named_;
    halation_arguments arguments_ = HALATION_INIT(halation_arguments);
};

}  // namespace

Plan::Plan(std::shared_ptr<Context> context, nb::handle recurrence, const nb::kwargs &keywords) : context_(std::move(context)) {
    context_->check_process();
    const halation_problem problem = problem_of(recurrence, keywords);
    halation_status status;
    // A call in another thread may hold the context.
    without_gil([&] { status = halation_plan_create(context_->get(), &problem, &plan_); });
    check(status);
}

Plan::~Plan() {
    if (context_->is_of_this_process()) halation_plan_destroy(plan_);
}

halation_choice Plan::describe() const {
    auto choice = HALATION_INIT(halation_choice);
    check(halation_plan_describe(plan_, &choice));
    return choice;
}

size_t Plan::workspace(const nb::kwargs &given) const {
    const Arguments arguments(given, false);
    size_t bytes = 0;
    check(halation_plan_workspace(plan_, arguments.get(), &bytes));
    return bytes;
}

void Plan::run(const nb::kwargs &given) const {
    context_->check_process();
    const Arguments arguments(given, true);
    halation_status status;
    without_gil([&] { status = halation_run(plan_, arguments.get()); });
    check(status);
}

}  // namespace halation::python
