/* libfake_cuda.so: a CUDA driver without a device. It serves the entry points of the driver API that Trapline
 * uses (TRAPLINE_CUDA_DRIVER=<path of libfake_cuda.so>) and what a test backend needs besides. "Device
 * memory" is host memory, so a backend may use its own allocator. Streams are threads with queues; how the
 * queues interleave is drawn from a seed. The check kernels run as their host build.
 *
 * A caller's mistake that the real driver answers with undefined behaviour (a stream or event that does not
 * exist, freed memory, a launch of something else than a check kernel) ends the process with one line on
 * stderr that begins with "fake_cuda:".
 *
 * Thread safety: every function may be called from any thread at any time. After a fork the child must not
 * call any of them, as with the real driver.
 */
#ifndef TRAPLINE_FAKE_CUDA_H_
#define TRAPLINE_FAKE_CUDA_H_

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define FAKE_CUDA_API __attribute__((visibility("default")))
#else
#define FAKE_CUDA_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* How the queues interleave from now on. Not a schedule: threads stay threads, the seed draws the pauses. */
FAKE_CUDA_API void fake_cuda_seed(uint64_t seed);

/* An operation of a test backend: `run(data)` executes on the stream's thread, after everything that was
 * enqueued on the stream before. Not executed, but still dropped from the queue, once the context is lost.
 * NULL is the default stream, which is a stream like any other here. */
FAKE_CUDA_API void fake_cuda_enqueue(void* stream, void (*run)(void*), void* data);

/* A device-side assert: the context is lost, and every cu* call from now on returns 710. May be called from
 * an operation on a stream. Mapped memory stays readable. */
FAKE_CUDA_API void fake_cuda_poison(void);
FAKE_CUDA_API int fake_cuda_poisoned(void);

/* Waits for all queues and clears the sticky error: as a new process would begin. Streams, events, memory
 * and modules stay. */
FAKE_CUDA_API void fake_cuda_reset(void);

/* Check kernels that ran so far. */
FAKE_CUDA_API long fake_cuda_launches(void);

/* Graph capture of one stream: from begin to end what is enqueued on it (check kernels, operations, copies)
 * is recorded and not executed. A graph lives as long as the process; replaying it enqueues its operations,
 * in order, on any stream. Calls that the real driver forbids while a stream captures (allocating, querying
 * an event, waiting) spoil the capture unless the calling thread is in the mode RELAXED: `end` then returns
 * NULL. */
FAKE_CUDA_API void fake_cuda_capture_begin(void* stream);
FAKE_CUDA_API void* fake_cuda_capture_end(void* stream);
FAKE_CUDA_API void fake_cuda_replay(void* graph, void* stream);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TRAPLINE_FAKE_CUDA_H_ */
