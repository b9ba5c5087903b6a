/* The C face of the device checks: a contract's predicate applied to a tensor in device memory by a small
 * kernel on the operation's own stream, and what the kernel found, read by the host from mapped memory.
 *
 * The order of a guarded call is plan (sizes only, on the host), reserve (one slot per check), launch
 * (enqueued before the operation, on its stream), and, whenever the host comes by, poll. Nothing here waits
 * for the device but trapline_device_wait. The CUDA driver is loaded at run time; no CUDA is linked, and no
 * torch.
 *
 * Thread safety: every function may be called from any thread at any time. In a forked child every function
 * is without effect, since a CUDA context does not survive a fork.
 */
#ifndef TRAPLINE_DEVICE_H_
#define TRAPLINE_DEVICE_H_

#include "trapline/capi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The checks of one row for a call whose tensors are in device memory: as trapline_check, but only sizes,
 * strides and dtypes are looked at. `data` of the tensors may hold device addresses; they are copied, never
 * followed. For TRAPLINE_PREDICATE_PADDED_INDEX `also` is the lengths tensor (its data a device address) and
 * must be contiguous int64, or a list of them in host memory. Checks beyond `capacity` are left out, and so
 * is a tensor with more than TRAPLINE_DEVICE_DIMS dimensions after merging. */
TRAPLINE_API int trapline_device_plan(const trapline_contract* row, const trapline_arg* argument,
                                      const trapline_arg* bound, const trapline_arg* dim,
                                      const trapline_arg* also, trapline_device_check* checks, int capacity,
                                      int* count, trapline_scan* scan);

/* Loads the driver (libcuda.so.1, or the file named by TRAPLINE_CUDA_DRIVER) and, at the first call for a
 * device, the module and the mapped memory of the context that is current in the calling thread. 1: ready; 0:
 * not, and trapline_device_why() says why in one line. Must not be called for the first time while a stream
 * captures. */
TRAPLINE_API int trapline_device_ready(int device);
TRAPLINE_API const char* trapline_device_why(void);

/* A slot is the number under which the caller keeps its own record of the launch (stack, shapes). Slots are
 * dense from 0, process-wide; a slot comes back only after its launch has run and its report, if any, was
 * polled, and another poll gave a report after that one: the caller reads its record of the slot in peace, as
 * long as it polls in one thread at a time. -1: none can be had (driver error): do not check. */
TRAPLINE_API int64_t trapline_device_reserve(int device, void* stream, int flags);

/* Bytes of zeroed device memory that a launch of this check wants as scratch; 0: none. Scratch may be shared
 * by all launches of one stream, and is left zeroed. Capturing launches never want any. */
TRAPLINE_API int64_t trapline_device_scratch(const trapline_device_check* check, int flags);

/* Enqueues the check on `stream` (a CUstream) of the current context. `healed`: device address of numel
 * contiguous elements of the same dtype, or NULL for report only (TRAPLINE_HEAL_NONE has no copy). 1:
 * enqueued; 0: not (driver error, e.g. a context already lost, or an address that is not aligned to its
 * elements): the slot is free again. `stream` must be alive; what was launched on it may still run when it is
 * destroyed. */
TRAPLINE_API int trapline_device_launch(int device, void* stream, int64_t slot,
                                        const trapline_device_check* check, void* healed, void* scratch,
                                        int flags);

/* 0 when nothing can be there: one load of mapped memory per device in use, a nanosecond. */
TRAPLINE_API int trapline_device_pending(void);

/* Takes published reports, oldest launch first; each is given exactly once. A captured check runs again at
 * every replay: of several replays between two polls the last bad one is given. Returns how many were
 * written. */
TRAPLINE_API int trapline_device_poll(trapline_device_report* reports, int capacity);

/* Waits until every check launched so far on any stream of any device has run (not for what was enqueued
 * after it), without holding any lock while waiting. 1: done; 0: a driver error (the context is lost). */
TRAPLINE_API int trapline_device_wait(void);

/* The same for one stream's checks. */
TRAPLINE_API int trapline_device_wait_stream(int device, void* stream);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TRAPLINE_DEVICE_H_ */
