"""The tests' device in Python: ``tensor.to("fakedev")``, streams, events, capture. Its kernels run late."""

from __future__ import annotations

import contextlib
import ctypes
import sys

import torch

_lib = None
driver = None


class Lost(RuntimeError):
    """What every call says once a device-side assert has happened."""

    def __init__(self):
        super().__init__("CUDA error: device-side assert triggered")


def load(library, fake_cuda):
    """Registers the backend. ``torch.fakedev`` is this module from then on."""
    global _lib, driver
    if _lib is not None:
        return
    driver = ctypes.CDLL(fake_cuda, mode=ctypes.RTLD_GLOBAL)
    driver.fake_cuda_seed.argtypes = [ctypes.c_uint64]
    driver.fake_cuda_launches.restype = ctypes.c_long
    torch.ops.load_library(library)
    _lib = ctypes.CDLL(library)
    for name in ("event", "capture_end", "hold"):
        getattr(_lib, f"fakedev_{name}").restype = ctypes.c_void_p
    _lib.fakedev_stream_wait.argtypes = [ctypes.c_int, ctypes.c_void_p]
    _lib.fakedev_event_record.argtypes = [ctypes.c_void_p, ctypes.c_int]
    _lib.fakedev_event_synchronize.argtypes = [ctypes.c_void_p]
    _lib.fakedev_event_query.argtypes = [ctypes.c_void_p]
    _lib.fakedev_open.argtypes = [ctypes.c_void_p]
    _lib.fakedev_replay.argtypes = [ctypes.c_void_p, ctypes.c_int]
    torch.utils.rename_privateuse1_backend("fakedev")
    torch._register_device_module("fakedev", sys.modules[__name__])


def poisoned():
    return bool(driver.fake_cuda_poisoned())


def reset(seed=0):
    driver.fake_cuda_reset()
    driver.fake_cuda_seed(seed)


def _check(status):
    if status:
        raise Lost


# What torch.cuda has ------------------------------------------------------------------------------


def is_available():
    return True


def is_initialized():
    return True


def _is_in_bad_fork():
    return False


def device_count():
    return 1


def current_device():
    return 0


def manual_seed_all(seed):
    pass


def synchronize():
    _check(_lib.fakedev_synchronize())


class Stream:
    def __init__(self, number=None):
        self.number = _lib.fakedev_new_stream() if number is None else number

    def synchronize(self):
        _check(_lib.fakedev_stream_synchronize(self.number))

    def wait_event(self, event):
        _check(_lib.fakedev_stream_wait(self.number, event.handle))

    @contextlib.contextmanager
    def use(self):
        before = _lib.fakedev_use_stream(self.number)
        try:
            yield self
        finally:
            _lib.fakedev_use_stream(before)


@contextlib.contextmanager
def held(stream=0):
    """The device is far behind: what is enqueued on the stream in here runs when this ends."""
    gate = _lib.fakedev_hold(stream)
    try:
        yield
    finally:
        _lib.fakedev_open(gate)


class Event:
    def __init__(self):
        self.handle = _lib.fakedev_event()

    def record(self, stream):
        _check(_lib.fakedev_event_record(self.handle, stream.number))

    def synchronize(self):
        _check(_lib.fakedev_event_synchronize(self.handle))

    def query(self):
        return bool(_lib.fakedev_event_query(self.handle))


class Graph:
    """``with graph.capture(stream): ...`` records what is enqueued on the stream; ``replay`` runs it."""

    def __init__(self):
        self.handle = None

    @contextlib.contextmanager
    def capture(self, stream):
        with stream.use():
            _lib.fakedev_capture_begin(stream.number)
            try:
                yield self
            finally:
                self.handle = _lib.fakedev_capture_end(stream.number)
        assert self.handle, "the capture was spoilt"

    def replay(self, stream):
        _lib.fakedev_replay(self.handle, stream.number)
