/* Halation: recurrent attention kernels, generated ahead of time.
 *
 * The C interface. A context holds what a caller owns (thread cap, allocator, kernels); a problem says
 * what is to be computed; a plan is the kernel chosen for a problem; arguments are the tensors of one call.
 *
 *     context -> can_run(problem)?  -> plan -> run(arguments), as often as you like
 *
 * Conventions
 *   - Every function that can fail returns a halation_status; halation_last_message() then says which
 *     argument was wrong, what it was and what it may be. Nothing aborts, throws or prints.
 *   - Structs begin with `size` (sizeof the struct as the caller compiled it) and `version`
 *     (HALATION_VERSION). HALATION_INIT(type) gives a zeroed struct with both set.
 *   - Tensors are DLPack DLTensors in row-major order with strides counted in elements (NULL: compact).
 *     Shapes are written [B, T, H, K]: B sequences, T tokens, H heads of q and k, HV heads of v, K channels
 *     of a key, V channels of a value. HV is a multiple of H.
 *   - Any stride will do, 0 and negative ones included, but an output's elements must be apart. Kernels read memory as it
 *     lies where its innermost stride is 1; what lies otherwise passes through scratch memory, a few tokens at a time.
 *   - Gates are natural logarithms of decays (retention's gamma alone is a decay itself). A state is computed in float32 and,
 * unless asked for otherwise, stored so.
 */
#ifndef HALATION_H
#define HALATION_H

#include <dlpack/dlpack.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32)
#define HALATION_API
#else
#define HALATION_API __attribute__((visibility("default")))
#endif

#define HALATION_VERSION 1

#ifdef __cplusplus
#define HALATION_INIT(type)               \
    ([] {                                 \
        type value{};                     \
        value.size = sizeof(type);        \
        value.version = HALATION_VERSION; \
        return value;                     \
    }())
#else
#define HALATION_INIT(type) ((type){.size = sizeof(type), .version = HALATION_VERSION})
#endif

typedef enum halation_status {
    HALATION_OK = 0,
    HALATION_INVALID_ARGUMENT = 1, /* the caller can mend it: a name, shape, type, stride or value */
    HALATION_UNSUPPORTED = 2,      /* understood, but no kernel here can do it; the message says why */
    HALATION_OUT_OF_MEMORY = 3,
    HALATION_INTERNAL_ERROR = 4 /* a fault of the library */
} halation_status;

/* The message of the last call on this thread that did not return HALATION_OK. Never NULL; valid until the
 * next call on this thread. */
HALATION_API const char *halation_last_message(void);

/* ---- context ------------------------------------------------------------------------------------- */

typedef struct halation_context halation_context;

/* What a generated library offers; its contents are in halation_kernels.h. */
typedef struct halation_kernel_table halation_kernel_table;

typedef struct halation_context_options {
    uint32_t size, version;
    int32_t threads; /* at most this many threads per call, the caller's included; 0: one per processor */
    /* Both or neither. `allocate` returns memory aligned to `alignment`, or NULL when there is none. Called
     * from the context's own threads too. */
    void *(*allocate)(void *user, size_t bytes, size_t alignment);
    void (*release)(void *user, void *memory, size_t bytes);
    void *allocator_user;
} halation_context_options;

/* `options` may be NULL. A new context has no kernels: add a table. Calls on one context are serialised;
 * contexts are independent of each other. */
HALATION_API halation_status halation_context_create(const halation_context_options *options, halation_context **context);
HALATION_API void halation_context_destroy(halation_context *context);

/* Makes the kernels of a generated library known to the context. The table must outlive the context. A
 * recurrence defined differently by two tables is refused. */
HALATION_API halation_status halation_context_add_kernels(halation_context *context, const halation_kernel_table *kernels);

/* The kernels that Halation itself ships (library halation_kernels). */
HALATION_API const halation_kernel_table *halation_kernels(void);

/* ---- devices -------------------------------------------------------------------------------------
 *
 * Kernels of the backends "cuda", "opencl" and "metal" run on the device of a context. Tensors are there too:
 *   cuda    DLTensor.device is {kDLCUDA, ordinal}, data a CUdeviceptr
 *   opencl  DLTensor.device is {kDLOpenCL, ordinal}, data a cl_mem of the device's cl_context; byte_offset a multiple of what
 *           the device aligns sub-buffers to, strides 0 or more
 *   metal   DLTensor.device is {kDLMetal, ordinal}, data an id<MTLBuffer> of the device, of any storage mode, whose hazards are
 *           tracked (the default); strides 0 or more
 * A cl_mem or id<MTLBuffer> must be one, of that context or device, and alive: drivers look into it, so that a pointer to
 * anything else, such as host memory, cannot be told from it and may end the program. Of a cl_mem that kernels may only read
 * (CL_MEM_READ_ONLY) an input may be, of one that they may only write "o" alone.
 * Offsets, slots and flags stay on the host: they are read before halation_run returns. What a run starts is put into one
 * queue, in order; it is never waited for, so that the host runs ahead. A run on a CUDA stream that is being captured becomes
 * part of the graph, slots and lengths as they were given; the plan must have been made before, and outlive the graph. The
 * driver's library is looked for when it is first asked about: programs that use Halation need none to start.
 */

typedef struct halation_device_info {
    uint32_t size, version;
    DLDevice device;       /* what tensors on it say */
    char backend[16];      /* "cuda", "opencl", "metal" */
    char name[128];        /* the driver's name of it */
    uint64_t memory_bytes; /* all of its memory */
    /* Of a context's device: CUcontext and CUstream, cl_context and cl_command_queue, or id<MTLDevice> and id<MTLCommandQueue>.
     */
    void *native_context, *native_queue;
} halation_device_info;

/* How many devices the backend has on this machine, at least one; HALATION_UNSUPPORTED, with the reason in
 * halation_last_message(), if there is none: no driver, no device, a backend that this library lacks. */
HALATION_API halation_status halation_backend_devices(const char *backend, int32_t *count);

/* What device `ordinal`, 0 to count - 1, of the backend is. OpenCL: the devices of all platforms, GPUs first. */
HALATION_API halation_status halation_backend_device(const char *backend, int32_t ordinal, halation_device_info *info);

typedef struct halation_device_options {
    uint32_t size, version;
    const char *backend; /* "cuda", "opencl" or "metal" */
    int32_t ordinal;     /* which device. With a native context or queue: which number its tensors have, or ignored (cuda) */
    /* The caller's own CUcontext and CUstream, cl_context and in-order cl_command_queue, or id<MTLDevice> and
     * id<MTLCommandQueue>, which must outlive the context; NULL: cuda: the primary context of the device, which the CUDA runtime
     * uses too, and its default stream; opencl, metal: a context or device is taken, a queue made. A native queue alone is
     * enough. */
    void *native_context, *native_queue;
} halation_device_options;

/* Gives the context its device; it has at most one. */
HALATION_API halation_status halation_context_open_device(halation_context *context, const halation_device_options *options);

/* From now on runs and copies go into this CUstream, cl_command_queue or id<MTLCommandQueue> of the same native context (NULL:
 * the one that was made, or CUDA's default stream). Plans keep memory that the work of successive runs shares: the caller sees to
 * it that what was put into the last queue is done before the new one goes on, e.g. by an event. */
HALATION_API halation_status halation_context_set_queue(halation_context *context, void *native_queue);

/* The context's device. */
HALATION_API halation_status halation_context_device(halation_context *context, halation_device_info *info);

/* Memory on the context's device: what DLTensor.data is there, of at least `bytes` bytes (more than 0), aligned as any tensor
 * needs. Released before the context is destroyed; work that uses it may still be under way. */
HALATION_API halation_status halation_device_allocate(halation_context *context, size_t bytes, void **data);
HALATION_API halation_status halation_device_release(halation_context *context, void *data);

/* Copies `bytes` bytes to or from memory of the device, `offset` bytes from its beginning, after all work in the queue.
 * Returns when it is done. */
HALATION_API halation_status halation_device_copy_to(halation_context *context, void *data, size_t offset, const void *from,
                                                     size_t bytes);
HALATION_API halation_status halation_device_copy_from(halation_context *context, const void *data, size_t offset, void *to,
                                                       size_t bytes);

/* Waits for all work in the queue. Faults of kernels show up here and in copies. */
HALATION_API halation_status halation_device_synchronize(halation_context *context);

/* ---- problem and plan ---------------------------------------------------------------------------- */

typedef enum halation_form {
    HALATION_FORM_AUTO = 0,      /* by each sequence's own length: recurrent for one token, else chunkwise */
    HALATION_FORM_RECURRENT = 1, /* token by token, state in place */
    HALATION_FORM_CHUNKWISE = 2, /* chunk by chunk, state carried */
    HALATION_FORM_PARALLEL = 3   /* all tokens at once: masked products, quadratic work; where there is a state, on CPUs only */
} halation_form;

typedef enum halation_head_mapping {
    HALATION_HEADS_GROUPED = 0, /* value head h reads key head h / (HV / H) */
    HALATION_HEADS_TILED = 1    /* value head h reads key head h % H */
} halation_head_mapping;

/* HALATION_INIT(halation_problem) and the recurrence, dims and types make a problem: 0 is every other field's default. */
typedef struct halation_problem {
    uint32_t size, version;
    const char *recurrence;  /* "gated_delta", ...: one of the names that the added tables define */
    const char *backend;     /* "cpu"; "cuda", "opencl", "metal": the context's device is one; NULL: "cpu" */
    const char *isa;         /* "x86_64", "avx2", "avx512", "neon"; NULL: the best this machine has; of a device: "gpu" */
    const char *feature_map; /* linear_normalized, bidirectional: "elu+1", "relu", "softmax", "identity"; NULL: its default */
    halation_form form;
    halation_head_mapping head_mapping;
    /* Tokens in a chunk, 0: the schedule's own. One that no kernel here has is refused, with form auto too; one-token sequences,
     * which auto gives to the form recurrent, have none. */
    int32_t chunk;
    int32_t non_causal;         /* softmax: 1 lets every query see the whole cache; ignored elsewhere */
    int64_t heads, value_heads; /* H and HV; 1 and 1 where the recurrence has no heads */
    int64_t key_dim, value_dim; /* K and V; hgrn: K = 1, V = D; ssm: K = N, V = D */
    DLDataType type;            /* of q, k, v, o: float32, float16 or bfloat16 */
    DLDataType gate_type;       /* of gates, beta, a, b, bonus: float32 or `type`; ignored where there are none */
    /* How initial_state, final_state and snapshot_state are stored: float32 ({0, 0, 0} too) or bfloat16. A call computes in
     * float32 throughout and rounds each element once, to nearest, when it stores the state: an error of at most 2^-9 of the
     * element per call, which the next call starts from. Normalizers are float32 always. */
    DLDataType state_type;
    /* Multiplies what a token reads of the state: the output, but of ssm C^T S alone, not D x; of softmax q^T k. 0 or NaN: the
     * recurrence's default. */
    double scale;
} halation_problem;

/* What a plan would run, or why it cannot. */
typedef struct halation_choice {
    uint32_t size, version;
    halation_form form; /* HALATION_FORM_AUTO if it depends on the length of each sequence */
    int32_t chunk;      /* tokens in a chunk of the chunkwise kernel, 1 for recurrent, 0 for parallel */
    char kernel[128];   /* name of the kernel; with AUTO, names joined by '+' */
    char isa[16];
    char reason[512]; /* refused: why. Chosen: why better ISAs or forms were passed over, or empty */
} halation_choice;

/* Whether the problem can be run: HALATION_OK, or HALATION_INVALID_ARGUMENT / HALATION_UNSUPPORTED with the
 * reason in `choice` and in halation_last_message(). Runs nothing; of a device's kernels the code is loaded. `choice` may be
 * NULL. */
HALATION_API halation_status halation_can_run(halation_context *context, const halation_problem *problem,
                                              halation_choice *choice);

typedef struct halation_plan halation_plan;

HALATION_API halation_status halation_plan_create(halation_context *context, const halation_problem *problem,
                                                  halation_plan **plan);
HALATION_API void halation_plan_destroy(halation_plan *plan);
HALATION_API halation_status halation_plan_describe(const halation_plan *plan, halation_choice *choice);

/* ---- one call ------------------------------------------------------------------------------------ */

typedef struct halation_named_tensor {
    const char *name;
    const DLTensor *tensor;
} halation_named_tensor;

typedef struct halation_arguments {
    uint32_t size, version;
    /* The inputs of the recurrence by name, the output "o", and the states: "initial_state" (absent: zero)
     * and "final_state" (absent: not wanted), which may be the same memory; likewise "initial_normalizer"
     * and "final_normalizer" for linear_normalized; and "snapshot_state", "snapshot_normalizer", see below. A name the
     * recurrence does not have is refused. */
    const halation_named_tensor *tensors;
    int32_t tensor_count;
    /* Packed batch: B = 1 and sequence n is tokens offsets[n] .. offsets[n+1]; [N+1], int32 or int64, on the
     * host, from 0 to T, never falling. NULL: N = B sequences of T tokens. */
    const DLTensor *offsets;
    /* softmax only, with offsets: sequence n sees tokens cache_offsets[n] .. cache_offsets[n+1] of k and v, whose B is 1;
     * [N+1], int32 or int64, on the host, from 0 to S, never falling. */
    const DLTensor *cache_offsets;
    /* State pool: sequence n starts from row read_slots[n] of initial_state and leaves its state in row
     * write_slots[n] of final_state; [N], int32 or int64, on the host. -1 in either skips the sequence: its
     * outputs are zero and no row is touched. Two sequences may not write one slot. NULL: row n. */
    const DLTensor *read_slots, *write_slots;
    /* [N], bool or uint8, on the host: 0 starts sequence n from a zero state without reading its row.
     * NULL: all start from initial_state if that is given. */
    const DLTensor *has_initial_state;
    /* Snapshots: the state after the first snapshot_tokens[i] tokens of sequence snapshot_sequences[i] goes to row
     * snapshot_slots[i] of snapshot_state (-1: is not taken). All three [M], int32 or int64, on the host, in any order.
     * snapshot_state may be the pool that final_state is, as long as no two rows written are the same. A snapshot is bitwise
     * what final_state would be of the plan's kernel over those tokens alone, and never changes an output. Where it does not
     * fall on a whole chunk, the tokens since the last one are computed twice. On a device a sequence is computed by one launch
     * after the other for each token at which its state is wanted, beside those of other sequences. */
    const DLTensor *snapshot_sequences, *snapshot_tokens, *snapshot_slots;
    /* Scratch memory of at least halation_plan_workspace() bytes, 64-byte aligned; NULL: from the context's
     * allocator. Results never depend on its contents. Of no use on a device, where the plan keeps what it needs: a run that
     * needs more than any before allocates it, which a CUDA stream that is being captured refuses. */
    void *workspace;
    size_t workspace_bytes;
} halation_arguments;

/* Scratch bytes that a run with these arguments takes, 0 on a device. Only shapes are looked at. */
HALATION_API halation_status halation_plan_workspace(const halation_plan *plan, const halation_arguments *arguments,
                                                     size_t *bytes);

/* Checks every argument, then runs; on a device: puts all into its queue. On anything but HALATION_OK no output was touched,
 * except after HALATION_OUT_OF_MEMORY or HALATION_INTERNAL_ERROR, where outputs are unspecified. */
HALATION_API halation_status halation_run(halation_plan *plan, const halation_arguments *arguments);

#ifdef __cplusplus
}
#endif
#endif
