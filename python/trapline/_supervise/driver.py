"""Whether the CUDA contexts of this process live, asked of the driver without disturbing anything.

What is needed of the question, and why it is asked so:

- It makes no context. `cuDevicePrimaryCtxGetState` says which devices have one; the others are not touched.
  The CUDA runtime, and torch with it, would make one on the current device of the thread that asks.
- It does not wait. `cuStreamQuery` answers at once, "not ready" while there is work.
- It tells of a lost context: "may also return error codes from previous, asynchronous launches" (CUDA driver
  API, cuStreamQuery); after a device-side assert every call that looks at the context returns its error.
- It does not disturb a capture. A thread in the mode RELAXED may make calls that are potentially unsafe
  while others capture: neither is the call refused nor their capture invalidated
  (cuThreadExchangeStreamCaptureMode). The mode is the thread's own, and is put back. PyTorch asks
  from its NCCL watchdog in this way (pull request 148594, where the runtime's function for the mode was
  seen to make a context).
- The stream that is asked is the per-thread default stream of the asking thread, which has no work.

Not yet seen on a GPU.
"""

from __future__ import annotations

import ctypes
from typing import Any, Optional

from trapline._library import options

_PER_THREAD_STREAM = ctypes.c_void_p(2)  # CU_STREAM_PER_THREAD
_RELAXED = 2  # CU_STREAM_CAPTURE_MODE_RELAXED
# Errors after which, by CUresult's own words, the context "must be destroyed" or the process is inconsistent.
_LOST = frozenset((214, 220, 700, 702, 710, 714, 715, 716, 717, 718, 719))


_NAMES = (
    "cuCtxGetCurrent",
    "cuCtxSetCurrent",
    "cuDeviceGetCount",
    "cuDevicePrimaryCtxGetState",
    "cuDevicePrimaryCtxRelease_v2",
    "cuDevicePrimaryCtxRetain",
    "cuGetErrorString",
    "cuStreamQuery",
    "cuThreadExchangeStreamCaptureMode",
)


class Driver:
    """The driver's library. It may be asked in any thread, which then is as it was before."""

    def __init__(self) -> None:
        """Raises OSError or AttributeError: there is none, or it is too old."""
        self._lib: Any = ctypes.CDLL(options.cuda_driver() or "libcuda.so.1")
        for name in _NAMES:
            getattr(self._lib, name)

    def lost(self) -> Optional[str]:
        """The error of a context that is lost; "" where all live; None where there is none."""
        count, before, mode = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_int(_RELAXED)
        if self._lib.cuDeviceGetCount(ctypes.byref(count)) != 0:
            return None
        self._lib.cuCtxGetCurrent(ctypes.byref(before))
        self._lib.cuThreadExchangeStreamCaptureMode(ctypes.byref(mode))
        try:
            answers = [self._ask(device) for device in range(count.value)]
        finally:
            self._lib.cuThreadExchangeStreamCaptureMode(ctypes.byref(mode))
            self._lib.cuCtxSetCurrent(before)
        told = [f"cuda:{device}: {error}" for device, error in enumerate(answers) if error]
        if told:
            return told[0]
        return None if all(answer is None for answer in answers) else ""

    def _ask(self, device: int) -> Optional[str]:
        flags, active = ctypes.c_uint(), ctypes.c_int()
        state = self._lib.cuDevicePrimaryCtxGetState(device, ctypes.byref(flags), ctypes.byref(active))
        if state != 0 or not active.value:
            return None
        context = ctypes.c_void_p()
        result = self._lib.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
        if result == 0:
            result = self._lib.cuCtxSetCurrent(context)
            if result == 0:
                result = self._lib.cuStreamQuery(_PER_THREAD_STREAM)
            self._lib.cuDevicePrimaryCtxRelease_v2(device)
        return self._text(result) if result in _LOST else ""

    def _text(self, error: int) -> str:
        text = ctypes.c_char_p()
        known = self._lib.cuGetErrorString(error, ctypes.byref(text)) == 0 and text.value
        return (text.value or b"").decode("ascii", "replace") if known else f"error {error}"
