/* What a generated kernel library hands to the runtime. Written by the build, read by the runtime; a user only
 * passes the table on. One table holds the rows (what a recurrence's tensors are) and the kernels (what was
 * compiled for which form, ISA and type).
 *
 * Dims. The shape of a tensor is a string of letters, outermost first:
 *   B sequences   N sequences or slots of a state   T tokens   S cached tokens
 *   H key heads   G value heads (HV)                K key channels   V value channels
 * e.g. q "BTHK", v "BTGV", g "BTG" or "BTGK", bonus "HK", initial_state "NGKV".
 *
 * A CPU kernel sees one sequence: its buffer for a tensor has the dims of that string without B and N, in
 * Halide's order (innermost first), all mins 0: q is (K, H, T), initial_state (V, K, G). H and G have the
 * same extent in a kernel: the runtime calls it for a range of value heads and gives q and k the stride that
 * leads from one value head's key head to the next (0 within a group). The innermost stride is 1. o and
 * final_state are outputs. initial_state and final_state may be the same memory. Scalars: `scale` (float), `causal`
 * (int32), `has_NAME` (int32: whether the caller gave the optional input NAME). Arguments are bound by the names in the
 * kernel's metadata.
 *
 * A kernel of a GPU (backend "cuda", "opencl" or "metal", isa "gpu") sees the whole batch: its buffers have the string's dims
 * with B and N, all mins 0, any strides, and device memory only. o alone is (V, G, T, S), or (V, T, S) where there are no heads:
 * tokens and sequences of this call, with the strides of the real o; the kernel puts them where `sequences` says. That is an
 * int32 input (8, S): of each sequence {index along B, first token, tokens, row of initial_state (-1: zero), row of final_state
 * (-1: not wanted), flags (1: skipped: outputs are zero, states untouched), first cached token, cached tokens}. A part of a
 * sequence's tokens may be there as a sequence of its own: where there is a cache, the last token is then the last cached; where
 * there is a state, parts follow one another in later launches, or put outputs that are put again by a later one. Absent states
 * are any device memory, and their rows are -1. Scalars besides those above, int32: value head g reads key head
 * (g / `key_head_step`) % `key_heads`; `most_tokens`: of any sequence of this call, and o's extent of tokens; `most_cached`:
 * cached tokens of any. initial_state has the extents of the problem and a row at least, given or not. A sequence without tokens
 * hands its state on. A kernel that serves states of bfloat16, too, has `initial_state_bits` and `final_state_bits`, which are those
 * two as uint16, with the same strides, and int32 scalars `reads_bits` and `writes_bits`: 1: that is what is there, 0: float32.
 */
#ifndef HALATION_KERNELS_H
#define HALATION_KERNELS_H

#include "halation.h"

/* What a kernel of chunks for a GPU keeps in an array of a token and value head at most, between its launches:
 * HALATION_KEPT_VECTORS vectors of key channels, rounded up to HALATION_KEPT_CHANNELS. */
#define HALATION_KEPT_VECTORS 2
#define HALATION_KEPT_CHANNELS 32

/* What a kernel of softmax for a GPU, form recurrent, keeps of a token: HALATION_CACHE_FLOATS for each value channel, rounded up
 * to HALATION_CACHE_CHANNELS of a head, and each of HALATION_CACHE_PARTS parts of the cache. */
#define HALATION_CACHE_FLOATS 3
#define HALATION_CACHE_CHANNELS 128
#define HALATION_CACHE_PARTS 32

/* What a kernel of bidirectional for a GPU keeps of a sequence: the state of every head, and that of each part of its tokens, key
 * and value channels rounded up to HALATION_PART_CHANNELS. A part has HALATION_PART_TOKENS tokens or a multiple of that, and
 * there are HALATION_PARTS at most. */
#define HALATION_PART_TOKENS 256
#define HALATION_PART_CHANNELS 64
#define HALATION_PARTS 32

#ifdef __cplusplus
extern "C" {
#endif

struct halide_filter_metadata_t;

typedef enum halation_tensor_role {
    HALATION_ROLE_DATA = 0, /* of the problem's type: q, k, v, o */
    HALATION_ROLE_GATE = 1, /* of the problem's gate type */
    HALATION_ROLE_STATE = 2 /* float32, carried from call to call */
} halation_tensor_role;

/* What an input that the caller leaves out is taken to be. */
typedef enum halation_default {
    HALATION_DEFAULT_REQUIRED = 0,
    HALATION_DEFAULT_ZERO = 1,
    HALATION_DEFAULT_ONE = 2,
    HALATION_DEFAULT_RETENTION = 3 /* 1 - 2^(-5-h) for value head h */
} halation_default;

typedef struct halation_row_tensor {
    const char *name;
    const char *dims;
    halation_tensor_role role;
    halation_default otherwise;
    int32_t last_axis_optional; /* 1: the caller may leave the last axis out; its value then serves all channels */
} halation_row_tensor;

typedef struct halation_row {
    const char *name;
    const char *formula;               /* one line, for `list` */
    const halation_row_tensor *inputs; /* q, k, v, gates; not the states */
    int32_t input_count;
    const char *output_dims;         /* of "o" */
    const char *state_dims;          /* of initial_state and final_state; NULL: no state */
    const char *normalizer_dims;     /* of initial_normalizer and final_normalizer; NULL: none */
    const char *default_feature_map; /* NULL: the row has no feature map */
    double default_scale;            /* NaN: K^-0.5, or 1 with a feature map */
    const char *refused[4];          /* by halation_form: NULL if the row has the form, else why not */
    /* What a token costs at least, for benches; nothing else reads it: multiply-adds with each element of a head's state, and
     * exponentials, as dims of what they are of: "GK,GV". NULL: none. */
    int32_t state_products;
    const char *exps;
} halation_row;

typedef struct halation_kernel {
    const char *name;                                     /* gated_delta_chunkwise_cpu_avx512_f32 */
    const char *recurrence, *backend, *isa, *feature_map; /* feature_map NULL: none */
    halation_form form;
    DLDataType type, gate_type;
    int32_t key_dim, value_dim;   /* K and V that it is compiled for; 0: any */
    int32_t chunk;                /* tokens in a chunk */
    int32_t segment;              /* most tokens in one call of the kernel, a multiple of chunk; 0: a whole sequence (a GPU) */
    int32_t value_tile;           /* value channels may be split over calls at multiples of this; 0: they may not */
    int (*run)(void **arguments); /* Halide's argv entry point; arguments[0] points to the user context */
    const struct halide_filter_metadata_t *(*metadata)(void);
} halation_kernel;

struct halation_kernel_table {
    uint32_t size, version;
    const char *name;
    const halation_row *rows;
    int32_t row_count;
    const halation_kernel *kernels;
    int32_t kernel_count;
};

/* Device code for several architectures of one backend, as a kernel hands it to `load`: this, part_count parts, and what they
 * point to. CUDA's, with a kernel for each: code that does not begin with the magic word is PTX or one cubin. */
#define HALATION_DEVICE_CODE_MAGIC "HALATION" /* without the 0 at its end */
typedef struct halation_device_code {
    char magic[8];
    uint32_t part_count;
    uint32_t reserved; /* 0 */
} halation_device_code;
typedef struct halation_device_code_part {
    uint32_t architecture; /* 90: machine code for compute capability 9.x, x >= 0; 0: PTX with a 0 at its end, for any */
    uint32_t bytes;
    uint64_t offset; /* from the beginning of the halation_device_code */
} halation_device_code_part;

/* A launch of device code, as a kernel's host code asks for it. */
typedef struct halation_launch {
    const void *code;  /* as it was given to `load`: its address is its identity */
    const char *entry; /* name of the function in it */
    int32_t grid[3];   /* blocks */
    int32_t block[3];  /* threads in a block */
    int32_t shared_bytes;
    int32_t argument_count;
    const size_t *argument_bytes;
    void *const *arguments;  /* each points to the value; of a buffer, to its 64-bit device handle */
    const int8_t *is_buffer; /* 1: a buffer */
} halation_launch;

/* The user context of every generated kernel: what its halide_malloc, halide_free and halide_error reach, and the functions that
 * launch device code. The generated library's own glue calls these; the runtime fills them in for each task, the first three for
 * kernels of a CPU, all for those of a GPU. Those that return an int return 0 if all is well; of a failure the runtime has
 * the message already. */
typedef struct halation_kernel_context {
    void *(*allocate)(struct halation_kernel_context *, size_t bytes); /* 64-byte aligned, or NULL */
    void (*release)(struct halation_kernel_context *, void *memory);
    void (*error)(struct halation_kernel_context *, const char *message);
    int (*load)(struct halation_kernel_context *, const void *code, size_t bytes); /* the text or binary in the object */
    int (*launch)(struct halation_kernel_context *, const halation_launch *launch);
    /* Memory for what a kernel keeps from launch to launch; the contents are anything. */
    int (*device_allocate)(struct halation_kernel_context *, size_t bytes, uint64_t *handle);
    int (*device_release)(struct halation_kernel_context *, uint64_t handle);
} halation_kernel_context;

#ifdef __cplusplus
}
#endif
#endif
