/* The C face of libtrapline: the contracts table, the checks over tensors in host memory, and the
 * diagnosis that turns facts into a finding. No torch, no Python, no exceptions across this border.
 *
 * The guard's adapters (C++ against the user's torch, or pure Python) call only what is declared here, so
 * neither the compiler nor the C++ standard library of the user's torch has to match Trapline's.
 *
 * Thread safety: every function may be called from any thread at any time.
 */
#ifndef TRAPLINE_CAPI_H_
#define TRAPLINE_CAPI_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRAPLINE_CAPI_VERSION 2

#if defined(__GNUC__)
#define TRAPLINE_API __attribute__((visibility("default")))
#else
#define TRAPLINE_API
#endif

/* Library version, "0.1.0". Static storage. */
TRAPLINE_API const char* trapline_version(void);

/* TRAPLINE_CAPI_VERSION of the loaded library; an adapter built for another one must not use it. */
TRAPLINE_API int trapline_capi_version(void);

/* Values are those of trapline::DType (core/tensor_view.hpp). */
typedef enum {
  TRAPLINE_BOOL = 0,
  TRAPLINE_UINT8,
  TRAPLINE_INT8,
  TRAPLINE_INT16,
  TRAPLINE_INT32,
  TRAPLINE_INT64,
  TRAPLINE_FLOAT16,
  TRAPLINE_BFLOAT16,
  TRAPLINE_FLOAT32,
  TRAPLINE_FLOAT64,
  TRAPLINE_OTHER_DTYPE = 255 /* complex, quantized, ...: contracts do not apply */
} trapline_dtype;

/* A borrowed strided tensor. `data` may be NULL when it is not in host memory or holds no element: then it
 * can give a bound (sizes are known) but is not read. Strides count elements. */
typedef struct {
  const void* data;
  const int64_t* sizes;
  const int64_t* strides;
  int32_t dim;
  int32_t dtype; /* trapline_dtype */
} trapline_tensor;

typedef enum {
  TRAPLINE_ARG_NONE = 0, /* absent or None */
  TRAPLINE_ARG_TENSOR = 1,
  TRAPLINE_ARG_INT = 2,
  TRAPLINE_ARG_LIST = 3, /* list of tensors; an element that is None has dim == -1 */
  TRAPLINE_ARG_SIZES = 4 /* list of integers (int[] in the schema): tensor.sizes[0 .. tensor.dim) hold them */
} trapline_arg_kind;

typedef struct {
  int32_t kind; /* trapline_arg_kind */
  int32_t list_size;
  int64_t integer;
  trapline_tensor tensor;
  const trapline_tensor* list;
} trapline_arg;

/* One row of the contracts table. Strings have static storage. Argument names are those of the ATen schema;
 * "" where the row needs none. */
typedef struct {
  const char* id; /* "nll_loss_forward.target": stable, unique */
  const char* op; /* ATen base name without overload; a trailing '_' (in-place) is a base name of its own.
                     With a dot ("bernoulli.out"): that overload alone */
  const char* argument;  /* the argument that is checked */
  const char* bound_arg; /* the tensor whose size bounds it */
  const char* dim_arg;   /* the int that names the dimension of bound_arg */
  const char* also_arg;  /* the int that is allowed besides the range: ignore_index; ctc_loss: target_lengths
                            (a tensor or a list of integers, as the overload has it), or whatever else of
                            the call the row needs */
  const char* public_op; /* what the user calls it: "cross_entropy" */
  const char* public_argument;
  int32_t predicate; /* trapline::Predicate */
  int32_t bound;     /* trapline::Bound */
  int32_t composite; /* 1: decomposed before the backend keys; hook it at the autograd keys too */
  int32_t remember;  /* 1: a violation is not an error by itself; it is kept as the possible origin of a later
                        one */
  int32_t on_cpu;    /* trapline::OnCpu: what PyTorch's own operation does with a bad value on the CPU */
  int32_t reads_also; /* 1: the elements of also_arg are read; else a tensor there gives its sizes only */
} trapline_contract;

/* The whole table; *count receives the number of rows. */
TRAPLINE_API const trapline_contract* trapline_contracts(size_t* count);

typedef struct {
  int64_t bad;   /* offending elements; 0: none */
  int64_t total; /* elements looked at */
  int64_t first; /* row-major position of the first offending element in the argument's own shape; -1: none */
  int32_t is_float;           /* which of the pairs below hold */
  int32_t list_position;      /* which tensor of a list; -1 when the argument is no list */
  int64_t ivalue, imin, imax; /* offending value; smallest and largest of all elements */
  double fvalue, fmin, fmax;  /* min and max leave NaN out; NaN when there is no other element */
  int64_t lo, hi;             /* valid integers are [lo, hi); for float contracts see the row */
  int32_t has_also;
  int32_t reason; /* trapline::Reason: which part of the predicate failed */
  int64_t also;
} trapline_scan;

typedef enum {
  TRAPLINE_OK = 0,
  TRAPLINE_VIOLATED = 1,
  TRAPLINE_NOT_APPLICABLE = 2 /* dtype, shape or missing data: the operation's own checks have the word */
} trapline_verdict;

/* Applies one row to the arguments of a call. `argument` is required; the others may be NULL where the row
 * names none. Fills *out for TRAPLINE_OK (min, max, total) and TRAPLINE_VIOLATED. Never allocates on the
 * TRAPLINE_OK path. */
TRAPLINE_API int trapline_check(const trapline_contract* row, const trapline_arg* argument,
                                const trapline_arg* bound, const trapline_arg* dim, const trapline_arg* also,
                                trapline_scan* out);

/* Data at rest: labels, ids, weights and probabilities that no operation has been given yet. */
typedef enum {
  TRAPLINE_DATA_LABELS = 0, /* integers in [0, limit), or ignore_index */
  TRAPLINE_DATA_IDS,        /* integers in [0, limit); the last dimension is a sequence when positions >= 0 */
  TRAPLINE_DATA_FINITE,     /* floating point: no NaN, no infinity */
  TRAPLINE_DATA_PROBABILITIES /* floating point: rows of the last dimension are finite, >= 0, with a sum > 0
                               */
} trapline_data_kind;

typedef struct {
  int32_t kind; /* trapline_data_kind */
  int32_t has_ignore_index;
  int64_t limit;        /* labels: classes; ids: rows of the table; else unused */
  int64_t ignore_index; /* labels */
  int64_t positions;    /* ids: the longest sequence; -1: not checked */
} trapline_data_rule;

/* One sweep over a tensor in host memory, of any integer (labels, ids) or floating point dtype; floating
 * point labels and ids must be whole numbers. TRAPLINE_NOT_APPLICABLE for other dtypes; else *out is filled
 * as by trapline_check, but for `first`, which is -1. */
TRAPLINE_API int trapline_data_check(const trapline_data_rule* rule, const trapline_tensor* tensor,
                                     trapline_scan* out);

/* The same, element by element, as a JSON object that can be merged with those of other parts of the data.
 * `first_row`: number of the tensor's first row in the whole. {"error": text} when it does not apply. To be
 * released with trapline_free. */
TRAPLINE_API char* trapline_data_tally(const trapline_data_rule* rule, const trapline_tensor* tensor,
                                       int64_t first_row);

/* Merges tallies (a JSON list, in the order of the data) into {"findings": [...], "total": n}; `subject` is a
 * JSON object with what is known of the data: source, name, dtype, shape. {"error": text} when they cannot be
 * read. To be released with trapline_free. */
TRAPLINE_API char* trapline_data_findings(const trapline_data_rule* rule, const char* tallies,
                                          const char* subject);

/* Turns facts (JSON, see docs/facts.md) into a finding (JSON, finding.schema.json). Returns a string to be
 * released with trapline_free. Facts that cannot be read give {"error": "what: why: what to do"}; an
 * exception that is none of Trapline's business gives {"finding": null}; otherwise {"finding": {...}}. Never
 * returns NULL except when memory is exhausted. */
TRAPLINE_API char* trapline_diagnose(const char* facts_json);

/* A report (JSON, finding.schema.json) as the text that `trapline run` prints, for the terminal or file
 * behind `descriptor`. To be released with trapline_free; NULL when it is no report, or memory is exhausted.
 */
TRAPLINE_API char* trapline_render(const char* report_json, int descriptor);
TRAPLINE_API void trapline_free(char* text);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TRAPLINE_CAPI_H_ */
