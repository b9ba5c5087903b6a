/* The C face of libtrapline_native: what a guarded program without Python needs besides libtrapline. The
 * stack's source lines, the finding, the report file.
 *
 * Thread safety: every function may be called from any thread at any time.
 */
#ifndef TRAPLINE_NATIVE_H_
#define TRAPLINE_NATIVE_H_

#include "trapline/capi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One argument of the call. Borrowed. */
typedef struct {
  const char* name;   /* of the ATen schema */
  const char* device; /* of a tensor: "cpu" */
  trapline_arg value; /* kind TRAPLINE_ARG_NONE: something that has no plain form */
} trapline_native_arg;

typedef struct {
  const trapline_contract* row;
  const trapline_scan* scan;
  const char* op;    /* "aten::nll_loss_forward" */
  int32_t arguments; /* number of `argument` */
  int32_t offender;  /* which of them the scan speaks of */
  const trapline_native_arg* argument;
} trapline_native_fault;

/* Tells `trapline run` that the guard is in this process, built for this torch ("2.13.0"). */
TRAPLINE_API void trapline_native_started(const char* torch_version);

/* Makes the finding of a fault in the calling thread and writes it into the report folder
 * (TRAPLINE_REPORT_DIR), where there is one. Returns its headline, "cross_entropy: target[3] is 10, ...", to
 * be released with trapline_free. Never NULL except when memory is exhausted.
 *
 * With TRAPLINE_ON_FAULT=stop it does not return: the process ends with exit code 65. */
TRAPLINE_API char* trapline_native_report(const trapline_native_fault* fault);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TRAPLINE_NATIVE_H_ */
