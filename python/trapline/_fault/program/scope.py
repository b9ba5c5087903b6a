"""The live frames at the moment of a fault: their variables lead to modules, tokenizers and data sets."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any

from trapline._fault.program import places
from trapline._library import options

_MAX_FRAMES = 400


def _chain(frame: FrameType | None) -> list[FrameType]:
    chain: list[FrameType] = []
    while frame is not None and len(chain) < _MAX_FRAMES:
        if not places.is_own(frame.f_code.co_filename):
            chain.append(frame)
        frame = frame.f_back
    return chain


_past = threading.local()  # .frames: of a call that is over, while its finding is completed


@contextmanager
def frames_of(trace: TracebackType | None) -> Iterator[None]:
    """Inside it, the live frames are those that a traceback has kept."""
    frames: list[FrameType] = []
    lines: dict[int, int] = {}
    while trace is not None:
        frames.insert(0, trace.tb_frame)
        lines[id(trace.tb_frame)] = trace.tb_lineno
        trace = trace.tb_next
    _past.lines = lines
    _past.frames = [frame for frame in frames if not places.is_own(frame.f_code.co_filename)][:_MAX_FRAMES]
    try:
        yield
    finally:
        _past.frames = None


def line_of(frame: FrameType) -> int:
    """The line that a frame of live_frames() is at; of a traceback's the one that raised: leaving a `with`
    moves the frame's own."""
    line = getattr(_past, "lines", {}).get(id(frame)) if getattr(_past, "frames", None) else None
    return frame.f_lineno if line is None else int(line)


def live_frames() -> list[FrameType]:
    """Frames of this thread, innermost first, then those of the main thread where this is another one."""
    if getattr(_past, "frames", None):
        return list(_past.frames)
    own = _chain(sys._getframe(1))
    main = threading.main_thread().ident
    if main is not None and main != threading.get_ident():
        own += _chain(sys._current_frames().get(main))
    return own


def variables(frame: FrameType) -> Iterator[tuple[str, Any]]:
    """Name and value of a frame's local variables, `self` first."""
    local = frame.f_locals
    items = list(local.items())
    items.sort(key=lambda item: item[0] != "self")
    return iter(items)


def members(value: Any) -> dict[str, Any]:
    """What an object's own ``__dict__`` holds; ``{}`` of one that has none, or that answers for another (a
    proxy outside of its request raises here)."""
    try:
        held = object.__getattribute__(value, "__dict__")
    except Exception:
        return {}
    return held if type(held) is dict else {}


def is_tensor(value: Any) -> bool:
    """True for a tensor; asks the type only."""
    import torch

    return issubclass(type(value), torch.Tensor)


def is_at_hand(tensor: Any) -> bool:
    """True where a tensor lies in host memory, so that looking at it waits for no device."""
    kind = tensor.device.type
    return kind == "cpu" or (kind == "cuda" and options.device_is_host())
