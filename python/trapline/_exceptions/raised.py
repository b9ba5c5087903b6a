"""What an exception is: the name that its type goes by, whose code raised it, the words that count."""

from __future__ import annotations

import re
from types import FrameType, TracebackType
from typing import Optional

from trapline._fault.program import places

_FAKE_TENSORS = re.compile(r"got (\w+)\((?:'(.*?)'|\"(.*?)\")\)", re.S)


def traced(name: str, message: str) -> str:
    """torch.compile finds many of these errors while it traces: then the program's own frames are text."""
    return message.partition("\nfrom user code:\n")[2] if name.startswith("torch._dynamo.") else ""


def type_name(error: BaseException) -> str:
    kind = type(error)
    plain = kind.__module__ == "builtins" or (kind.__module__, kind.__name__) == ("torch", "AcceleratorError")
    if plain:
        return kind.__name__
    if issubclass(kind, Exception) and _raised_by(error) == kind.__module__.partition(".")[0]:
        base = next((one for one in kind.__mro__ if one in (RuntimeError, ValueError, IndexError)), kind)
        return base.__name__  # an installed package's own class, raised in its own check
    return f"{kind.__module__}.{kind.__name__}"


def _raised_by(error: BaseException) -> str:
    """The installed package whose code raised the exception; "" for the user's and for torch's."""
    raised = frames_in(error.__traceback__)[-1:]
    if not raised or places.is_user(raised[0][0].f_code):
        return ""
    package = str(raised[0][0].f_globals.get("__name__") or "").partition(".")[0]
    return "" if package in ("torch", "__main__") else package


def unwrapped(name: str, message: str) -> tuple[str, str]:
    """torch.compile and TorchScript carry the operation's own error as text."""
    if name.startswith("torch._dynamo."):
        inner = _FAKE_TENSORS.search(message)
        if inner:
            return inner.group(1), inner.group(2) or inner.group(3) or ""
    if message.startswith("The following operation failed in the TorchScript interpreter."):
        last = re.findall(r"^(\w+(?:Error|Exception)): (.*)", message, re.M | re.S)
        if last:
            return last[-1]
    return name, message


def carried(error: BaseException) -> Optional[BaseException]:
    """The exception that a validator of pydantic's raised: its own holds it among the details only."""
    kind = type(error)
    if kind.__name__ != "ValidationError" or kind.__module__.partition(".")[0] != "pydantic_core":
        return None
    try:
        details = error.errors(include_url=False, include_input=False)  # type: ignore[attr-defined]
        inner = (details[0].get("ctx") or {}).get("error") if len(details) == 1 else None
    except Exception:
        return None
    return inner if isinstance(inner, Exception) and inner.__traceback__ is not None else None


def carries(outer: BaseException, error: BaseException) -> bool:
    return carried(outer) is error


def frames_in(trace: Optional[TracebackType]) -> list[tuple[FrameType, int]]:
    """(frame, instruction) outermost first."""
    found = []
    while trace is not None:
        found.append((trace.tb_frame, trace.tb_lasti))
        trace = trace.tb_next
    return found
