/* The plain types of the C face: every number that crosses it has its one home here. The C++ rooms take
 * the numbers of their own enumerations from here (Predicate::kIndex = TRAPLINE_PREDICATE_INDEX), the guard's
 * adapters use them as they are, and python/trapline/_library/capi.py is made of this file by
 * scripts/binding.py.
 *
 * C99 and C++. Numbers are never changed or used again: new ones are appended.
 */
#ifndef TRAPLINE_TYPES_H_
#define TRAPLINE_TYPES_H_

#include <stddef.h>
#include <stdint.h>

/* Of all that is declared in include/trapline but native.h; an adapter that was built for another one must
 * not use the library. */
#define TRAPLINE_CAPI_VERSION 4

/* Of a tensor's elements. trapline_dtype_name says them in torch's words. */
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

/* What must hold for every element of the argument. */
typedef enum {
  TRAPLINE_PREDICATE_INDEX = 0,     /* integer in [0, bound), or the value of `also_arg` */
  TRAPLINE_PREDICATE_WRAPPED_INDEX, /* integer in [-bound, bound): negative values count from the end */
  TRAPLINE_PREDICATE_INDEX_LIST, /* a list as in x[i, None, j]: each integer tensor is a wrapped index of its
                                    dimension */
  TRAPLINE_PREDICATE_UNIT_INTERVAL,     /* number in [0, 1]; NaN is bad */
  TRAPLINE_PREDICATE_NON_NEGATIVE,      /* number >= 0; NaN is bad */
  TRAPLINE_PREDICATE_PROBABILITY_ROWS,  /* rows of the last dimension: finite, >= 0, sum > 0 */
  TRAPLINE_PREDICATE_OFFSETS,           /* integers: first is 0, ascending, none beyond bound */
  TRAPLINE_PREDICATE_FINITE_TO_INTEGER, /* floating point that is about to become integer: finite */
  TRAPLINE_PREDICATE_PADDED_INDEX, /* integer in [0, bound) in the first `also_arg`[row] elements of each row;
                                      the rest is padding */
  TRAPLINE_PREDICATE_ENDED_INDEX,  /* integer in [0, bound) up to the first -1 of its row */
  TRAPLINE_PREDICATE_PIVOTS,       /* integer in [1, bound]: LAPACK counts rows from 1 */
  TRAPLINE_PREDICATE_ENDS,         /* integers in [0, bound], ascending in each row: where groups end */
  TRAPLINE_PREDICATE_COUNTS,       /* integers >= 0; their sum is the bound where there is one */
  TRAPLINE_PREDICATE_LENGTHS,      /* integers >= 0; the sum of each row is at most the bound */
  TRAPLINE_PREDICATE_MASK_COUNT,   /* bool mask: as many elements as `bound` has are left when it is broadcast
                                      with `also_arg` */
  TRAPLINE_PREDICATE_COMPRESSED    /* integers: of each row the first is 0, each next one larger by 0 to
                                      `also_arg`, the last is the bound: indices of a sparse tensor */
} trapline_predicate;

/* What the argument that `also_arg` names is for. */
typedef enum {
  TRAPLINE_ALSO_NONE = 0, /* there is none */
  TRAPLINE_ALSO_ALLOWED,  /* an int: a value that is allowed besides the range (ignore_index) */
  TRAPLINE_ALSO_LENGTHS,  /* a tensor or a list of integers, as the overload has it: how many elements of each
                             row count. Its elements are read; of other tensors only the sizes */
  TRAPLINE_ALSO_FLAG,     /* a bool: when it is false, nothing is read */
  TRAPLINE_ALSO_BROADCAST, /* the tensor with which the checked one is broadcast */
  TRAPLINE_ALSO_STEP       /* an int: by how much an element may be larger than the one before it */
} trapline_also;

/* How the bound of an index is computed from the argument that `bound_arg` names. `dim_arg` names what says
 * which of its dimensions. */
typedef enum {
  TRAPLINE_BOUND_NONE = 0,
  TRAPLINE_BOUND_SIZE_OF_DIM, /* its size in the dimension `dim_arg`, an int; without it: in dimension 0 */
  TRAPLINE_BOUND_CLASSES, /* its size in dimension 1, or 0 when it has one dimension: the classes of a loss */
  TRAPLINE_BOUND_LAST_DIM, /* its size in the last dimension */
  TRAPLINE_BOUND_NUMEL,    /* its number of elements */
  TRAPLINE_BOUND_INTEGER,  /* bound_arg is an integer and is the bound itself; -1: unbounded (one_hot) */
  TRAPLINE_BOUND_PRODUCT,  /* bound_arg is a list of integers: their product (the output size of a pooling) */
  TRAPLINE_BOUND_MATRIX_ROWS, /* its size in the last dimension but one: the rows of a matrix */
  TRAPLINE_BOUND_SPATIAL, /* the product of its last n sizes, n = integers in the list `dim_arg`: a pooling's
                             input */
  TRAPLINE_BOUND_GROUPED /* the dimension of it and of the matrix `dim_arg` that a grouped matrix product cuts
                            into groups */
} trapline_bound;

/* What PyTorch's own operation does on the CPU with a value that violates the row. Where it looks at every
 * value that it reads, what it accepts is no fault, and what it says belongs to the finding. */
typedef enum {
  TRAPLINE_ON_CPU_REFUSES = 0, /* throws */
  TRAPLINE_ON_CPU_PARTLY,  /* throws for some values and takes others for what they are not; touches no memory
                              but its own */
  TRAPLINE_ON_CPU_AT_ENDS, /* throws for the first and for the last element; reads wherever those between them
                              say */
  TRAPLINE_ON_CPU_SILENT /* reads or writes wherever the value says, or computes garbage: never to be run with
                            it */
} trapline_on_cpu;

/* What becomes of a bad element in the copy that the operation gets instead. */
typedef enum {
  TRAPLINE_HEAL_NONE = 0, /* no element is harmless by itself: wait before the operation runs */
  TRAPLINE_HEAL_ELEMENT,  /* each bad element alone: clamped into the range; NaN becomes the lower end */
  TRAPLINE_HEAL_ROW,      /* a bad row of probabilities becomes a row of equal ones */
  TRAPLINE_HEAL_ALL,      /* a list (row) of offsets or ends becomes all zeros when any is bad, and so
                             does a mask that takes too many */
  TRAPLINE_HEAL_REPORT    /* the operation does no harm: report only, no copy (a cast of NaN to integer) */
} trapline_heal;

/* Which part of a predicate an element broke. */
typedef enum {
  TRAPLINE_REASON_NONE = 0,
  TRAPLINE_REASON_BELOW,
  TRAPLINE_REASON_ABOVE,
  TRAPLINE_REASON_NAN,
  TRAPLINE_REASON_INF,
  TRAPLINE_REASON_NEGATIVE,
  TRAPLINE_REASON_ZERO_SUM,
  TRAPLINE_REASON_NOT_ASCENDING,
  TRAPLINE_REASON_FIRST_NOT_ZERO,
  TRAPLINE_REASON_TOO_MANY, /* counts whose sum is more than there is */
  TRAPLINE_REASON_TOO_FEW   /* counts whose sum is less than it has to be */
} trapline_reason;

/* One row of the contracts table. Strings have static storage. Argument names are those of the operation's
 * schema; "" where the row needs none. */
typedef struct {
  const char* id; /* "nll_loss_forward.target": stable, unique */
  const char* op; /* "aten::nll_loss_forward": full name without overload; a trailing '_' (in-place) is an
                     operation of its own. With a dot ("aten::bernoulli.out"): that overload alone */
  const char* argument;  /* the argument that is checked */
  const char* bound_arg; /* the tensor or the integers that bound it */
  const char* dim_arg;   /* what says which dimensions of bound_arg: trapline_bound */
  const char* also_arg;  /* one more argument that the predicate needs */
  const char* public_op; /* what the user calls it: "cross_entropy" */
  const char* public_argument;
  int32_t predicate; /* trapline_predicate */
  int32_t bound;     /* trapline_bound */
  int32_t also;      /* trapline_also: what also_arg is for */
  int32_t heal;      /* trapline_heal */
  int32_t composite; /* 1: decomposed before the backend keys; hook it at the autograd keys too */
  int32_t remember;  /* 1: a violation is not an error by itself; it is kept as the possible origin of a later
                        one */
  int32_t on_cpu;    /* trapline_on_cpu: what PyTorch's own operation does with a bad value on the CPU */
} trapline_contract;

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
  int32_t reason; /* trapline_reason: which part of the predicate failed */
  int64_t also;
} trapline_scan;

typedef enum {
  TRAPLINE_OK = 0,
  TRAPLINE_VIOLATED = 1,
  TRAPLINE_NOT_APPLICABLE = 2 /* dtype, shape or missing data: the operation's own checks have the word */
} trapline_verdict;

/* Which elements trapline_offenders marks. */
typedef enum {
  TRAPLINE_OFFENDERS_ELEMENTS = 0, /* those that are bad by themselves, as trapline_check counts them */
  /* What trapline_heal_copy takes for bad: also a row of probabilities that sums to nothing, and all of what
   * it heals as a whole (TRAPLINE_HEAL_ALL). */
  TRAPLINE_OFFENDERS_HEALED = 1
} trapline_offenders_kind;

/* A bad value, and how many elements have it. */
typedef struct {
  int64_t ivalue; /* of integers and bool */
  double fvalue;  /* of floating point */
  int64_t count;
} trapline_value;

/* Data at rest: labels, ids, weights and probabilities that no operation has been given yet. */
typedef enum {
  TRAPLINE_DATA_LABELS = 0, /* integers in [0, limit), or ignore_index */
  TRAPLINE_DATA_IDS,        /* integers in [0, limit); the last dimension is a sequence when positions >= 0 */
  TRAPLINE_DATA_FINITE,     /* floating point: no NaN, no infinity */
  TRAPLINE_DATA_PROBABILITIES /* floating point: rows of the last dimension, finite, >= 0, sum > 0 */
} trapline_data_kind;

typedef struct {
  int32_t kind; /* trapline_data_kind */
  int32_t has_ignore_index;
  int64_t limit;        /* labels: classes; ids: rows of the table; else unused */
  int64_t ignore_index; /* labels */
  int64_t positions;    /* ids: the longest sequence; -1: not checked */
} trapline_data_rule;

enum { TRAPLINE_DEVICE_DIMS = 12 };

/* One kernel launch: one tensor, one predicate. A plain value; it borrows nothing but device memory. */
typedef struct {
  const trapline_contract* row;
  int32_t predicate;     /* trapline_predicate; an index list is one check with a wrapped index per tensor */
  int32_t dtype;         /* trapline_dtype of the tensor */
  int32_t heal;          /* trapline_heal */
  int32_t list_position; /* which tensor of a list; -1 when the argument is no list */
  int32_t dim;           /* at most TRAPLINE_DEVICE_DIMS; neighbouring dimensions may have been merged */
  int32_t has_also;
  int32_t repeated; /* TRAPLINE_PREDICATE_MASK_COUNT: bit d is set where the mask is broadcast along dimension
                       d: `sizes` are then those of the broadcast mask, not merged. `numel` is of the mask's
                       own shape, always */
  int64_t lo, hi, also;    /* as in trapline_scan */
  int64_t numel, last_dim; /* elements; size of the last dimension (a row), 1 for a 0-dim tensor; 0 when
                              all labels of TRAPLINE_PREDICATE_PADDED_INDEX are in one row */
  int64_t sizes[TRAPLINE_DEVICE_DIMS], strides[TRAPLINE_DEVICE_DIMS]; /* strides count elements */
  const void* data; /* device address of the first element; filled in by the caller before the launch */
  /* TRAPLINE_PREDICATE_PADDED_INDEX: device address of `lengths_count` contiguous int64, else NULL. NULL
   * after the plan also when the lengths came as a list: then the caller copies them to the device. */
  const void* lengths;
  int64_t lengths_count;
} trapline_device_check;

typedef enum {
  TRAPLINE_PLAN_NOTHING = 0, /* the row does not apply, or no element can be bad */
  TRAPLINE_PLAN_CHECK = 1,   /* *count checks are to be launched */
  TRAPLINE_PLAN_VIOLATED =
      2 /* known from the sizes alone: an index into a dimension of size 0. *scan has bad,
           total, first, lo, hi and list_position; the value is the caller's to read */
} trapline_plan_verdict;

enum {
  TRAPLINE_LAUNCH_CAPTURING = 1 /* the stream captures a graph: the slot is kept for ever, one block runs */
};

typedef struct {
  int64_t slot;
  int32_t device;
  int32_t list_position;
  const trapline_contract* row;
  trapline_scan scan; /* as trapline_check gives it for the same elements in host memory */
} trapline_device_report;

/* How an argument of the checked operation is made of what a check in a compiled graph is given: Python reads
 * the graph's text and says it to the adapter in these numbers. */
typedef enum {
  TRAPLINE_SITE_NONE = 0, /* absent or None */
  TRAPLINE_SITE_CHECKED,  /* the tensor that is checked */
  TRAPLINE_SITE_TENSOR,   /* one of the check's other tensors */
  TRAPLINE_SITE_SHAPE,    /* a tensor of which only sizes and dtype are there: they are among the numbers */
  TRAPLINE_SITE_INT,      /* a number */
  TRAPLINE_SITE_INTS,     /* several */
  TRAPLINE_SITE_FLAG,     /* a number that the text itself holds: `start` */
  TRAPLINE_SITE_LIST      /* a list of these */
} trapline_site_kind;

/* What became of a file of the report folder. */
typedef enum {
  TRAPLINE_FILE_WRITTEN = 0,
  TRAPLINE_FILE_ENOUGH = 1, /* this process has written as many findings as are of use: none was written */
  TRAPLINE_FILE_FAILED = 2
} trapline_file_verdict;

/* Findings that one process writes into a report folder, but for the one that ends it. */
#define TRAPLINE_MAX_FINDINGS 20

/* A process that `--on-fault stop` ends has this exit code: EX_DATAERR of sysexits.h. */
#define TRAPLINE_EXIT_STOPPED 65

#endif /* TRAPLINE_TYPES_H_ */
