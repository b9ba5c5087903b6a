"""The live frames at the moment of a fault: their variables lead to modules, tokenizers and data sets."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

from . import places

_MAX_FRAMES = 400


def _chain(frame: FrameType | None) -> list[FrameType]:
    chain: list[FrameType] = []
    while frame is not None and len(chain) < _MAX_FRAMES:
        if not places.is_own(frame.f_code.co_filename):
            chain.append(frame)
        frame = frame.f_back
    return chain


def live_frames() -> list[FrameType]:
    """Frames of this thread, innermost first, then those of the main thread where this is another one."""
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


def is_tensor(value: Any) -> bool:
    """True for a tensor; asks the type only."""
    import torch

    return issubclass(type(value), torch.Tensor)
