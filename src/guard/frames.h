/* The calling thread's own Python frames: code object and instruction offset of each, innermost first.
 *
 * A thread that is inside a C call cannot change its own frame chain, so the chain is read without the GIL
 * and without touching a reference count: tens of nanoseconds, where taking the GIL back can cost 0.1 ms when
 * another Python thread is busy. Names and lines are looked up only when a report is made.
 */
#ifndef TRAPLINE_GUARD_FRAMES_H_
#define TRAPLINE_GUARD_FRAMES_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  void* code;    /* PyCodeObject* */
  int32_t lasti; /* byte offset of the instruction, as f_lasti of Python */
} trapline_frame;

/* 1 when frames can be read without the GIL in this build; 0: only trapline_frames_with_gil works. */
int trapline_frames_without_gil(void);

/* Fills at most `max` frames with borrowed code objects; needs no GIL. 0 where the thread has no Python
 * state. */
int trapline_frames_walk(trapline_frame* out, int max);

/* The same by the public API; the caller holds the GIL and owns one reference to every code object. */
int trapline_frames_with_gil(trapline_frame* out, int max);

#ifdef __cplusplus
}
#endif

#endif /* TRAPLINE_GUARD_FRAMES_H_ */
