// The set of code objects that the guard holds a reference to, readable without a lock or the GIL.
//
// A frame that is kept longer than its call must keep its code object alive, and taking a reference needs the
// GIL. So the first sight of a code object takes the GIL once and a reference for ever; later sights are a
// look-up.
#pragma once

#include "guard/frames.h"

namespace trapline::guard {

// Makes sure that all code objects of the frames outlive them. Returns how many frames, counted from the
// innermost, may be kept: fewer than `count` only when the set is full or Python is going down.
int keep_alive(const trapline_frame* frames, int count);

// Walks the calling thread's frames and keeps their code objects alive.
inline int capture(trapline_frame* out, int max) { return keep_alive(out, trapline_frames_walk(out, max)); }

}  // namespace trapline::guard
