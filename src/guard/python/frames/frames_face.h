/* What the module trapline_frames, which fits one Python, gives the adapter, which fits all. */
#ifndef TRAPLINE_GUARD_PYTHON_FRAMES_FACE_H_
#define TRAPLINE_GUARD_PYTHON_FRAMES_FACE_H_

#include "guard/frames.h"

/* The capsule's name; another number for another face. */
#define TRAPLINE_FRAMES_CAPSULE "trapline_frames.walk.1"

/* As trapline_frames_walk(). */
typedef int (*trapline_frames_walker)(trapline_frame* out, int max);

typedef struct {
  trapline_frames_walker walk; /* NULL where this Python's frames can be read with the GIL only */
} trapline_frames_face;

#endif /* TRAPLINE_GUARD_PYTHON_FRAMES_FACE_H_ */
