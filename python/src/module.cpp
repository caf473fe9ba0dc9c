// The extension halation._halation: halation.h for Python, name by name.
#include "context.h"
#include "errors.h"
#include "fields.h"
#include "gil.h"
#include "plan.h"
#include "recurrences.h"

#include <nanobind/stl/string.h>

namespace nb = nanobind;
using namespace halation::python;

namespace {

// A plan keeps the context alive, but not its Python object, which may hold plans.
struct SharedContext {
    std::shared_ptr<Context> context;
};

struct Choice {
    halation_choice value;
};

#define BATCH_SIGNATURE                                                                                             \
    "offsets: object = None, cache_offsets: object = None, read_slots: object = None, write_slots: object = None, " \
    "has_initial_state: object = None, snapshot_sequences: object = None, snapshot_tokens: object = None, "         \
    "snapshot_slots: object = None, workspace: object = None, **tensors: object"

void add_context(nb::module_ &module) {
    nb::class_<SharedContext>(
        module, "Context", nb::is_weak_referenceable(),
        "Threads, memory and kernels: Halation's own, and those that are added. Calls on one context wait for each other.")
        .def(
            "__init__",
            [](SharedContext *self, nb::handle threads) {
                const auto count = static_cast<int>(integer_field("threads", threads, INT32_MIN, INT32_MAX));
                new (self) SharedContext{std::make_shared<Context>(count)};
            },
            nb::arg("threads").none() = 0, nb::sig("def __init__(self, threads: int = 0) -> None"),
            "threads: at most this many per call, the caller's included; 0: one per processor.")
        .def(
            "add_kernels",
            [](SharedContext &self, nb::handle library, nb::handle function) {
                const nb::object path = nb::module_::import_("os").attr("fsdecode")(library);
                self.context->add_kernels(text_field("library", path), text_field("function", function));
            },
            nb::arg("library").none(), nb::arg("function").none(),
            nb::sig("def add_kernels(self, library: str | os.PathLike[str], function: str) -> None"),
            "Adds the table that the function of a shared library returns. The library stays loaded as long as the context and "
            "its plans.")
        .def(
            "recurrences", [](const SharedContext &self) { return recurrences_of(self.context->tables()); },
            nb::sig("def recurrences(self) -> dict[str, Recurrence]"), "What the kernels of this context can compute, by name.");
}

void add_plan(nb::module_ &module) {
    nb::class_<Choice>(module, "Choice", "What a plan would run.")
        .def_prop_ro(
            "form", [](const Choice &choice) { return name_of(choice.value.form); },
            "auto if it depends on the length of each sequence.")
        .def_prop_ro(
            "chunk", [](const Choice &choice) { return choice.value.chunk; },
            "Tokens in a chunk of the chunkwise kernel, 1 for recurrent, 0 for parallel.")
        .def_prop_ro(
            "kernel", [](const Choice &choice) { return std::string(choice.value.kernel); },
            "Name of the kernel; with form auto, names joined by '+'.")
        .def_prop_ro("isa", [](const Choice &choice) { return std::string(choice.value.isa); })
        .def_prop_ro(
            "reason", [](const Choice &choice) { return std::string(choice.value.reason); },
            "Why better ISAs or forms were passed over, or empty.")
        .def("__repr__", [](const Choice &choice) { return std::string("<halation.Choice ") + choice.value.kernel + ">"; });
    nb::class_<Plan>(module, "Plan", "The kernel chosen for a problem. Raises with the reason if there is none.")
        .def(
            "__init__",
            [](Plan *self, nb::handle context, nb::handle recurrence, const nb::kwargs &problem) {
                if (!nb::isinstance<SharedContext>(context))
                    raise_type_error("context: got " + shown(context) + "; must be a halation.Context");
                new (self) Plan(nb::cast<SharedContext &>(context).context, recurrence, problem);
            },
            nb::arg("context").none(), nb::arg("recurrence").none(), nb::arg("problem"),
            nb::sig("def __init__(self, context: Context, recurrence: str, *, heads: int, value_heads: int, key_dim: int, "
                    "value_dim: int, type: str = 'float32', gate_type: str = 'float32', state_type: str = 'float32', "
                    "form: str = 'auto', isa: str | None = None, backend: str | None = None, scale: float | None = None, "
                    "feature_map: str | None = None, head_mapping: str = 'grouped', chunk: int = 0, "
                    "non_causal: bool = False) -> None"),
            "The fields of halation_problem. A recurrence without heads has heads and value_heads 1, one without keys key_dim 1.")
        .def("describe", [](const Plan &plan) { return Choice{plan.describe()}; })
        .def(
            "workspace", [](const Plan &plan, const nb::kwargs &arguments) { return plan.workspace(arguments); },
            nb::sig("def workspace(self, *, " BATCH_SIGNATURE ") -> int"),
            "Scratch bytes that a run with these arguments takes. Only shapes are looked at.")
        .def(
            "run", [](const Plan &plan, const nb::kwargs &arguments) { plan.run(arguments); },
            nb::sig("def run(self, *, " BATCH_SIGNATURE ") -> None"),
            "Runs the kernel on arrays of the caller's, by name: the inputs of the recurrence, o, initial_state, final_state and "
            "so\n"
            "on. Outputs are written in place; None is as if not given. Other Python threads go on while the kernel runs.");
}

}  // namespace

NB_MODULE(_halation, module) {
    add_errors(module);
    add_recurrences(module);
    add_context(module);
    add_plan(module);
    watch_the_end();
}
