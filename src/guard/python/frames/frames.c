/* The one part of the guard that depends on the version of Python: CPython's frames. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <frameobject.h>

#include "guard/python/frames/frames_face.h"

#ifdef Py_GIL_DISABLED
#error "trapline: free-threaded Python is not supported: use a build of Python with the GIL"
#endif

/* CPython keeps the frame layout in internal headers from 3.11 on. They come with Python.h nearly everywhere;
 * where a distribution leaves them out, the walk reports nothing and callers take the public API. */
#if PY_VERSION_HEX < 0x030B0000
#define TRAPLINE_RAW_FRAMES 1
#elif PY_VERSION_HEX >= 0x030F0000
#define TRAPLINE_RAW_FRAMES 0 /* a layout that nobody has checked yet */
#elif PY_VERSION_HEX >= 0x030E0000 && __has_include("internal/pycore_interpframe.h")
#define TRAPLINE_RAW_FRAMES 1
#define Py_BUILD_CORE 1
#include "internal/pycore_code.h"
#include "internal/pycore_interpframe.h"
#include "internal/pycore_interpframe_structs.h"
#elif PY_VERSION_HEX < 0x030E0000 && __has_include("internal/pycore_frame.h")
#define TRAPLINE_RAW_FRAMES 1
#define Py_BUILD_CORE 1
#include "internal/pycore_code.h"
#include "internal/pycore_frame.h"
#else
#define TRAPLINE_RAW_FRAMES 0
#endif

#if !TRAPLINE_RAW_FRAMES
static const trapline_frames_walker walk = NULL;
#elif PY_VERSION_HEX < 0x030B0000
static int walk(trapline_frame* out, int max) {
  const PyThreadState* state = PyGILState_GetThisThreadState();
  int count = 0;
  if (state == NULL) return 0;
  for (const PyFrameObject* frame = state->frame; frame != NULL && count < max; frame = frame->f_back) {
    out[count].code = frame->f_code;
#if PY_VERSION_HEX >= 0x030A0000
    out[count].lasti = frame->f_lasti * 2; /* 3.10 counts instructions, Python's own f_lasti bytes */
#else
    out[count].lasti = frame->f_lasti;
#endif
    ++count;
  }
  return count;
}
#else
static int walk(trapline_frame* out, int max) {
  const PyThreadState* state = PyGILState_GetThisThreadState();
  int count = 0;
  if (state == NULL) return 0;
#if PY_VERSION_HEX >= 0x030D0000
  const struct _PyInterpreterFrame* frame = state->current_frame;
#else
  const struct _PyInterpreterFrame* frame = state->cframe->current_frame;
#endif
  for (; frame != NULL && count < max; frame = frame->previous) {
#if PY_VERSION_HEX >= 0x030E0000
    if (frame->owner >= FRAME_OWNED_BY_INTERPRETER) continue;
    PyCodeObject* code = _PyFrame_GetCode((struct _PyInterpreterFrame*)frame);
    const char* at = (const char*)frame->instr_ptr;
#elif PY_VERSION_HEX >= 0x030D0000
    if (frame->owner == FRAME_OWNED_BY_CSTACK) continue;
    PyCodeObject* code = (PyCodeObject*)frame->f_executable;
    const char* at = (const char*)frame->instr_ptr;
#elif PY_VERSION_HEX >= 0x030C0000
    if (frame->owner == FRAME_OWNED_BY_CSTACK) continue;
    PyCodeObject* code = frame->f_code;
    const char* at = (const char*)frame->prev_instr;
#else
    PyCodeObject* code = frame->f_code;
    const char* at = (const char*)frame->prev_instr;
#endif
    out[count].code = code;
    out[count].lasti = (int32_t)(at - (const char*)_PyCode_CODE(code));
    ++count;
  }
  return count;
}
#endif

static trapline_frames_face face;

static PyModuleDef module_definition = {PyModuleDef_HEAD_INIT,
                                        "trapline_frames",
                                        "Reads this Python's frames for the guard.",
                                        -1,
                                        NULL,
                                        NULL,
                                        NULL,
                                        NULL,
                                        NULL};

PyMODINIT_FUNC PyInit_trapline_frames(void) {
  PyObject* module = PyModule_Create(&module_definition);
  if (module == NULL) return NULL;
  face.walk = walk;
  PyObject* capsule = PyCapsule_New(&face, TRAPLINE_FRAMES_CAPSULE, NULL);
  if (capsule == NULL || PyModule_AddObject(module, "walk", capsule) != 0) {
    Py_XDECREF(capsule);
    Py_DECREF(module);
    return NULL;
  }
  return module;
}
