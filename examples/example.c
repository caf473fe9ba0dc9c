/* The C interface: one call of gated delta over 100 tokens, and what a refusal looks like. */
#include <halation.h>

#include <stdio.h>
#include <stdlib.h>

enum { T = 100, H = 4, D = 64 };

static float q[T * H * D], v[T * H * D], g[T * H], beta[T * H], o[T * H * D], state[H * D * D];

static void fail(const char *what) {
    fprintf(stderr, "%s: %s\n", what, halation_last_message());
    exit(1);
}

static DLTensor tensor(float *data, int rank, int64_t *shape) {
    const DLTensor view = {data, {kDLCPU, 0}, rank, {kDLFloat, 32, 1}, shape, NULL, 0};
    return view;
}

int main(void) {
    for (int i = 0; i < T * H * D; i++) q[i] = 0.1f, v[i] = 1.0f;
    for (int i = 0; i < T * H; i++) g[i] = -0.01f, beta[i] = 0.5f;

    halation_context *context;
    halation_plan *plan;
    if (halation_context_create(NULL, &context)) fail("context");
    if (halation_context_add_kernels(context, halation_kernels())) fail("kernels");

    halation_problem problem = HALATION_INIT(halation_problem);
    problem.recurrence = "gated_delta";
    problem.heads = problem.value_heads = H;
    problem.key_dim = problem.value_dim = D;
    problem.type = problem.gate_type = (DLDataType){kDLFloat, 32, 1};
    if (halation_plan_create(context, &problem, &plan)) fail("plan");

    int64_t tokens[] = {1, T, H, D}, gates[] = {1, T, H}, states[] = {1, H, D, D};
    const DLTensor views[] = {tensor(q, 4, tokens),   tensor(v, 4, tokens), tensor(g, 3, gates),
                              tensor(beta, 3, gates), tensor(o, 4, tokens), tensor(state, 4, states)};
    const halation_named_tensor named[] = {{"q", &views[0]},    {"k", &views[0]}, {"v", &views[1]},          {"g", &views[2]},
                                           {"beta", &views[3]}, {"o", &views[4]}, {"final_state", &views[5]}};
    halation_arguments arguments = HALATION_INIT(halation_arguments);
    arguments.tensors = named;
    arguments.tensor_count = sizeof named / sizeof named[0];
    if (halation_run(plan, &arguments)) fail("run");
    printf("o[0] = %g, o[last] = %g\n", o[0], o[T * H * D - 1]);

    arguments.tensor_count--; /* without the final state: as good */
    arguments.tensors++;      /* without q: refused, with the reason */
    if (halation_run(plan, &arguments) != HALATION_INVALID_ARGUMENT) return 1;
    printf("refused: %s\n", halation_last_message());

    halation_plan_destroy(plan);
    halation_context_destroy(context);
    return 0;
}
