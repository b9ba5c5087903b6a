// The path of `--watch light` that every training step takes: whether its loss is finite, and counting steps.
// What is rare, or not sure, is Python's part (python/trapline/_watch), which is told by False and then
// drains what was counted here.
#pragma once

#include "kernel/python.hpp"

namespace trapline::kernel {

// gate_type() -> Gate: what an outermost module's calls go through. It keeps a call until its step was taken,
// and calls the module; where Python is to keep it (not armed, or autocast is on), its own `_noted` instead.
PyObject* watch_gate_type(PyObject* self, PyObject* ignored);

// keep(module, args, kwargs, more) -> bool: the same for a call that Python knows more of. False: not armed.
PyObject* watch_keep(PyObject* self, PyObject* args);

// passes(loss) -> bool: it is one finite number in host memory, and the first loss of its step. Armed for a
// device: it is there; it is not read.
PyObject* watch_passes(PyObject* self, PyObject* loss);

// arrived() -> bool: after `backward`; the gradient of the probe holds nothing that is not finite.
PyObject* watch_arrived(PyObject* self, PyObject* ignored);

// stepped(optimizer) -> bool: it is the only one, of a step with one loss, and it is not yet time for a look.
PyObject* watch_stepped(PyObject* self, PyObject* optimizer);

// arm(optimizer, probe, grad_enabled, any_autocast, next, on_device): weak references to the optimizer and to
// a parameter that backward reaches late; what to ask; and when a step is looked at again, as
// time.perf_counter() says it.
PyObject* watch_arm(PyObject* self, PyObject* args);

// drain() -> (steps, losses, loss, calls, backwards): how many were counted, the losses of the last of them,
// that of the step being made or None, its calls, and its passed calls of `backward`. Until it is armed again
// nothing passes.
PyObject* watch_drain(PyObject* self, PyObject* ignored);

}  // namespace trapline::kernel
