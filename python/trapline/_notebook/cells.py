"""How a fault ends a cell: the lines of the user's that led to it, and the one sentence.

The report stands below the cell; thirty lines of PyTorch's own frames would push it off the screen. ``%tb``
still shows them.
"""

from __future__ import annotations

import sys
from typing import Any

from trapline._fault.program import source
from trapline._library.say import debug_failure

_MAX_FRAMES = 8
_RULE = "-" * 75


def show_error(shell: Any, kind: Any, value: Any, trace: Any, tb_offset: Any = None) -> None:
    """Shows the exception as IPython would, but shorter; it is the cell's error all the same."""
    try:
        lines = short(kind, value)
        sys.last_type, sys.last_value, sys.last_traceback = kind, value, trace  # for %tb and %debug
        shell._showtraceback(kind, value, lines)  # a kernel tells its front end by this
    except Exception:
        debug_failure("the cell's error")
        shell.showtraceback((kind, value, trace), tb_offset=tb_offset)


def short(kind: Any, value: Any) -> list[str]:
    """The lines of the traceback."""
    stack = value.finding.get("stack", [])
    cell = next((at for at, frame in enumerate(stack) if source.is_notebook(frame["file"])), 0)
    frames = [frame for frame in stack[cell:] if frame.get("user")]  # before it: what runs cells
    lines = [_RULE, f"{kind.__name__} (%tb shows the whole traceback)"]
    if len(frames) > _MAX_FRAMES:
        lines.append(f"({len(frames) - _MAX_FRAMES} frames before)")
    for frame in frames[-_MAX_FRAMES:]:
        lines.append(_place(frame))
        if frame.get("code", "").strip():
            lines.append(f"----> {frame['line']} {frame['code'].strip()}")
    return [*lines, "", f"{kind.__name__}: {value}"]


def _place(frame: dict[str, Any]) -> str:
    cell = source.cell_of(frame["file"])
    function = frame.get("function", "")
    inside = f" in {function}" if function and not function.startswith("<") else ""
    return (
        f"Cell In[{cell}], line {frame['line']}{inside}"
        if cell
        else f"{frame['file']}:{frame['line']}{inside}"
    )
