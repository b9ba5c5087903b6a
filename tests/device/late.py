"""The tests' hand on the device of ``trapline run --cpu`` while its work is late: how far behind it is, and
its context. Everything else is ``torch.cuda``."""

from __future__ import annotations

import contextlib
import ctypes
import threading

from trapline import _cpu_backend

driver = None
_Work = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_kept = []  # what a stream may still call


def load(path):
    global driver
    driver = ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
    driver.fake_cuda_seed.argtypes = [ctypes.c_uint64]
    driver.fake_cuda_enqueue.argtypes = [ctypes.c_void_p, _Work, ctypes.c_void_p]


def poisoned():
    return bool(driver.fake_cuda_poisoned())


def reset(seed=0):
    """A living context, as in a new process."""
    if _cpu_backend.device is not None:
        _cpu_backend.device.restore_context()
    driver.fake_cuda_reset()
    driver.fake_cuda_seed(seed)


def come():
    """Until the device has done everything; unlike ``torch.cuda.synchronize()`` it tells nobody."""
    driver.cuCtxSynchronize()


def busy(milliseconds):
    """The device has this to do first. Unlike `held` nothing of Python is in its queue: what waits for the
    device with the interpreter's lock goes on."""
    sleep = ctypes.cast(ctypes.CDLL(None).usleep, _Work)
    driver.fake_cuda_enqueue(None, sleep, ctypes.c_void_p(int(milliseconds * 1000)))


@contextlib.contextmanager
def held(stream=None):
    """The device is far behind: what is put on the stream in here is done when this ends."""
    opened = threading.Event()
    wait = _Work(lambda _: opened.wait() and None)
    _kept.append(wait)
    driver.fake_cuda_enqueue(None if stream is None else stream.cuda_stream, wait, None)
    try:
        yield
    finally:
        opened.set()
