// Tables and kernels as a generated library might get them wrong.
#include "runtime_fakes.h"

#include <HalideRuntime.h>

#include <catch2/catch.hpp>

#include <tuple>

using namespace fakes;

namespace {

// One row and one kernel that a test may spoil.
struct OwnTable {
    std::vector<halation_row_tensor> inputs;
    std::vector<halation_row> rows;
    std::vector<halation_kernel> kernels;
    halation_kernel_table made{};

    explicit OwnTable(const char *recurrence) {
        for (int i = 0; i < table()->row_count; i++)
            if (!strcmp(table()->rows[i].name, recurrence)) rows.push_back(table()->rows[i]);
        for (int i = 0; i < table()->kernel_count; i++)
            if (!strcmp(table()->kernels[i].recurrence, recurrence)) kernels.push_back(table()->kernels[i]);
        inputs.assign(rows[0].inputs, rows[0].inputs + rows[0].input_count);
    }
    Failure add_to(halation::Context &context) {
        rows[0].inputs = inputs.data();
        made = {sizeof made,
                HALATION_VERSION,
                "own",
                rows.data(),
                static_cast<int32_t>(rows.size()),
                kernels.data(),
                static_cast<int32_t>(kernels.size())};
        return failure_of(halation_context_add_kernels(context.get(), &made));
    }
    Failure add() {
        halation::Context context(1);
        return add_to(context);
    }
};

// Metadata that a test may spoil; found by a function that takes no argument, hence static.
std::vector<halide_filter_argument_t> spoilt;

const halide_filter_metadata_t *spoilt_metadata() {
    static halide_filter_metadata_t metadata;
    metadata = {1, static_cast<int32_t>(spoilt.size()), spoilt.data(), "host", "spoilt"};
    return &metadata;
}

struct Spoilt {
    OwnTable own{"gated"};

    Spoilt() {
        own.kernels.resize(1);
        const halide_filter_metadata_t *sound = own.kernels[0].metadata();
        spoilt.assign(sound->arguments, sound->arguments + sound->num_arguments);
        own.kernels[0].metadata = spoilt_metadata;
    }
    halide_filter_argument_t &named(const char *name) {
        for (halide_filter_argument_t &argument : spoilt)
            if (!strcmp(argument.name, name)) return argument;
        throw std::runtime_error(name);
    }
    void erase(const char *name) { spoilt.erase(spoilt.begin() + (&named(name) - spoilt.data())); }
    Failure ask(const char *recurrence = "gated") {
        halation::Context context(1);
        const Failure added = own.add_to(context);
        if (added.status != HALATION_OK) return added;
        halation::Problem problem(recurrence, 1, 1, 4, 4);
        return failure_of(halation_can_run(context.get(), &problem, nullptr));
    }
};

}  // namespace

TEST_CASE("the best ISA that the machine has is taken, the first added among equals") {
    halation::Context context(1);
    OwnTable own("gated");
    halation_kernel better = own.kernels[0];
#if defined(__x86_64__)
    better.isa = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? "avx2" : "x86_64";
#endif
    better.name = "gated_recurrent_better";
    own.kernels.push_back(better);
    better.name = "gated_recurrent_second";
    own.kernels.push_back(better);
    REQUIRE(own.add_to(context).status == HALATION_OK);
    halation::Problem problem("gated", 1, 1, 4, 4);
    problem.form = HALATION_FORM_RECURRENT;
    const std::string chosen = halation::Plan(context, problem).describe().kernel;
    CHECK(chosen == (std::string(better.isa) == own.kernels[0].isa ? "gated_recurrent" : "gated_recurrent_better"));
    problem.isa = own.kernels[0].isa;
    CHECK(std::string(halation::Plan(context, problem).describe().kernel) == "gated_recurrent");
}

TEST_CASE("a kernel made for the problem's dims is preferred, one made for others is none") {
    halation::Context context(1);
    OwnTable own("gated");
    halation_kernel narrow = own.kernels[0];
    for (const auto &[name, key_dim, value_dim] :
         {std::tuple("gated_k4", 4, 0), std::tuple("gated_k4_v4", 4, 4), std::tuple("gated_v8", 0, 8)}) {
        narrow.name = name;
        narrow.key_dim = key_dim;
        narrow.value_dim = value_dim;
        own.kernels.push_back(narrow);
    }
    REQUIRE(own.add_to(context).status == HALATION_OK);
    const auto chosen = [&](int64_t key_dim, int64_t value_dim) {
        halation::Problem problem("gated", 1, 1, key_dim, value_dim);
        problem.form = HALATION_FORM_RECURRENT;
        return std::string(halation::Plan(context, problem).describe().kernel);
    };
    CHECK(chosen(4, 4) == "gated_k4_v4");
    CHECK(chosen(4, 8) == "gated_k4");
    CHECK(chosen(5, 8) == "gated_v8");
    CHECK(chosen(5, 5) == "gated_recurrent");

    halation::Context without(1);
    OwnTable only("gated");
    only.kernels.assign(1, narrow);
    only.kernels[0].key_dim = 64;
    REQUIRE(only.add_to(without).status == HALATION_OK);
    halation::Problem problem("gated", 1, 1, 32, 8);
    problem.form = HALATION_FORM_RECURRENT;
    CHECK(failure_of([&] { halation::Plan plan(without, problem); })
              .says("no kernel for key_dim and value_dim 32 and 8 for form recurrent of recurrence gated on backend cpu; kernels "
                    "exist for: 64 "
                    "and 8"));
}

TEST_CASE("a table is checked before it is relied on") {
    OwnTable own("gated");
    SECTION("negative dims") {
        own.kernels[0].key_dim = -1;
        CHECK(own.add().says("key_dim is -1 and value_dim 0; neither may be negative"));
    }
    SECTION("sound") {
        CHECK(own.add().status == HALATION_OK);
    }
    SECTION("the same twice, and a copy of it") {
        halation::Context context(1);
        context.add_kernels(*table());
        context.add_kernels(*table());
        CHECK(own.add_to(context).status == HALATION_OK);
        CHECK(own.add_to(context).status == HALATION_OK);
    }
    SECTION("defined otherwise") {
        halation::Context context(1);
        context.add_kernels(*table());
        own.inputs[3].dims = "BTGK";
        CHECK(own.add_to(context).says("'own' defines recurrence gated differently"));
    }
    SECTION("version") {
        halation::Context context(1);
        halation_kernel_table other = *table();
        other.version = 9;
        CHECK(failure_of(halation_context_add_kernels(context.get(), &other)).says("version 9"));
        CHECK(failure_of(halation_context_add_kernels(context.get(), nullptr)).says("is NULL"));
        CHECK(failure_of(halation_context_add_kernels(nullptr, table())).says("context: is NULL"));
    }
    SECTION("dims") {
        for (const char *dims : {"BTX", "BTTK", "TB", "NTK", "", "B", "BTHKVSG"}) {
            own.inputs[0].dims = dims;
            CHECK(own.add().says("dims '"));
        }
    }
    SECTION("state dims") {
        for (const char *dims : {"BGKV", "GKV", "N", "NKV"}) {
            own.rows[0].state_dims = dims;
            CHECK(own.add().status == HALATION_INVALID_ARGUMENT);
        }
    }
    SECTION("names") {
        own.inputs[1].name = "q";
        CHECK(own.add().says("two inputs are named 'q'"));
        own.inputs[1].name = "o";
        CHECK(own.add().says("named 'o'"));
    }
    SECTION("two rows") {
        own.rows.push_back(own.rows[0]);
        CHECK(own.add().says("two rows"));
    }
    SECTION("kernel of no row") {
        own.kernels[0].recurrence = "nothing";
        CHECK(own.add().says("its recurrence nothing has no row"));
    }
    SECTION("kernel of no known isa") {
        own.kernels[0].isa = "mmx";
        CHECK(own.add().says("isa mmx is not known"));
    }
    SECTION("enums of no meaning") {
        const int nine = 9;
        memcpy(&own.kernels[0].form, &nine, sizeof nine);
        CHECK(own.add().says("kernel gated_recurrent: form is 9"));
        memcpy(&own.inputs[2].role, &nine, sizeof nine);
        CHECK(own.add().says("role of v is 9"));
        own.inputs[2].role = HALATION_ROLE_DATA;
        memcpy(&own.inputs[2].otherwise, &nine, sizeof nine);
        CHECK(own.add().says("default of v is 9"));
    }
    SECTION("kernel without entry") {
        own.kernels[0].run = nullptr;
        CHECK(own.add().says("lacks"));
    }
    SECTION("segment of broken chunks") {
        own.kernels[1].segment = 6;
        CHECK(own.add().says("a segment is whole chunks"));
    }
    SECTION("optional input without an inner line") {
        own.inputs[3] = {"g", "BT", HALATION_ROLE_GATE, HALATION_DEFAULT_ONE, 0};
        CHECK(own.add().says("its innermost axis may not be T"));
    }
}

TEST_CASE("a kernel whose metadata does not fit its row is a fault of the library") {
    Spoilt spoil;
    std::string words;
    SECTION("unknown argument") {
        spoil.named("g").name = "gates";
        words = "argument gates is no tensor of the recurrence, nor scale or causal";
    }
    SECTION("input for output") {
        spoil.named("o").kind = halide_argument_kind_input_buffer;
        words = "argument o must be an output buffer";
    }
    SECTION("output for input") {
        spoil.named("q").kind = halide_argument_kind_output_buffer;
        words = "argument q must be an input buffer";
    }
    SECTION("dimensions") {
        spoil.named("k").dimensions = 4;
        words = "argument k has 4 dimensions; dims 'BTHK' make it 3";
    }
    SECTION("type") {
        spoil.named("v").type = halide_type_t(halide_type_bfloat, 16);
        words = "argument v is of type bfloat16; must be float32";
    }
    SECTION("scale") {
        spoil.named("scale").type = halide_type_t(halide_type_float, 64);
        words = "argument scale must be a float32 scalar";
    }
    SECTION("no user context") {
        spoil.erase("__user_context");
        words = "its first argument and no other must be __user_context";
    }
    SECTION("no output") {
        spoil.erase("o");
        words = "argument o is missing";
    }
    SECTION("half a state") {
        spoil.erase("final_state");
        words = "argument final_state is missing";
    }
    SECTION("segments without a state") {
        spoil.erase("final_state");
        spoil.erase("initial_state");
        words = "no state leads from one to the next";
    }
    SECTION("too many") {
        spoilt.resize(40, spoilt.back());
        words = "too many arguments";
    }
    const Failure failure = spoil.ask();
    INFO(failure.message);
    CHECK(failure.status == HALATION_INTERNAL_ERROR);
    CHECK(failure.says("kernel gated_recurrent: "));
    CHECK(failure.says(words.c_str()));
}

TEST_CASE("a kernel without states runs, and refuses states") {
    Spoilt spoil;
    spoil.erase("final_state");
    spoil.erase("initial_state");
    spoil.own.kernels[0].segment = 0;
    spoil.own.kernels[0].run = [](void **) { return 0; };
    halation::Context context(1);
    REQUIRE(spoil.own.add_to(context).status == HALATION_OK);
    Gated data(1, 5, 1, 1, 4, 4);
    halation::Plan plan(context, gated_problem(data));
    plan.run(data.tensors(false, false));
    for (const bool initial : {true, false}) {
        const Failure failure = failure_of([&] { plan.run(data.tensors(initial, !initial)); });
        CHECK(failure.status == HALATION_UNSUPPORTED);
        CHECK(failure.says(initial ? "initial_state: given, but kernel" : "final_state: given, but kernel"));
    }
}

TEST_CASE("a kernel that is causal only refuses non_causal = 1") {
    OwnTable own("cached");
    const halide_filter_metadata_t *sound = own.kernels[0].metadata();
    spoilt.assign(sound->arguments, sound->arguments + sound->num_arguments);
    spoilt.erase(spoilt.begin() + 4);  // causal
    own.kernels[0].metadata = spoilt_metadata;
    halation::Context context(1);
    REQUIRE(own.add_to(context).status == HALATION_OK);
    halation::Problem problem("cached", 1, 1, 4, 4);
    CHECK(halation_can_run(context.get(), &problem, nullptr) == HALATION_OK);
    problem.non_causal = 1;
    const Failure failure = failure_of(halation_can_run(context.get(), &problem, nullptr));
    CHECK(failure.status == HALATION_UNSUPPORTED);
    CHECK(failure.says("non_causal: got 1"));
}
