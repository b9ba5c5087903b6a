"""What a DataLoader's worker knows of its exception, and its text does not say: the facts travel with it."""

from __future__ import annotations

import json
import sys
from typing import Any, Callable, Optional

from trapline._exceptions import raised
from trapline._library.say import debug_failure

Facts = dict[str, Any]
_ATTRIBUTE = "_trapline_facts"
_IN_WORKER = "in DataLoader worker process"
_MAX_TEXT = 1 << 20
_originals: dict[str, Callable[..., Any]] = {}


def install(collect: Callable[[BaseException], Optional[Facts]]) -> None:
    """PyTorch wraps what ends a worker's task, and raises it again in the program."""
    if _originals:
        return
    from torch._utils import ExceptionWrapper

    original = ExceptionWrapper.__init__

    def __init__(self: Any, exc_info: Any = None, where: str = "in background") -> None:
        exc_info = sys.exc_info() if exc_info is None else exc_info
        original(self, exc_info, where)
        try:
            if _IN_WORKER in where and isinstance(exc_info[1], Exception):
                facts = collect(exc_info[1])
                if facts and len(json.dumps(facts)) <= _MAX_TEXT:
                    setattr(self, _ATTRIBUTE, facts)
        except Exception:
            debug_failure("facts of a worker")

    _originals["__init__"] = original
    ExceptionWrapper.__init__ = __init__  # type: ignore[method-assign]


def uninstall() -> None:
    if _originals:
        from torch._utils import ExceptionWrapper

        ExceptionWrapper.__init__ = _originals.pop("__init__")  # type: ignore[method-assign]


def facts_of(error: BaseException) -> Facts:
    """The facts that came with an exception which PyTorch raises again."""
    for frame, _ in reversed(raised.frames_in(error.__traceback__)):
        if frame.f_code.co_name == "reraise":
            held = getattr(frame.f_locals.get("self"), "__dict__", {}).get(_ATTRIBUTE)
            return held if type(held) is dict else {}
    return {}
