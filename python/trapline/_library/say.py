"""Lines on the program's stderr. Each begins with ``trapline:``; none of them may fail."""

from __future__ import annotations

import sys

from trapline._library import options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable


def say(text: str) -> None:
    """One line, or nothing where stderr is closed or missing."""
    try:
        if sys.stderr is not None:
            print(f"trapline: {text}", file=sys.stderr, flush=True)
    except (OSError, ValueError, AttributeError):
        pass


def say_if_ready(text: str) -> None:
    """One line, or nothing where stderr would make us wait: a pipe that nobody reads."""
    line = f"trapline: {text}\n"
    try:
        descriptor = sys.stderr.fileno()
    except (AttributeError, OSError, ValueError):  # none, or a notebook's
        if sys.stderr is not None:
            sys.stderr.write(line)
        return
    import os
    import select

    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)
    if any(event == select.POLLOUT for _, event in poll.poll(0)):
        os.write(descriptor, line.encode("utf-8", "replace")[:4096])


_present: Callable[[dict[str, Any]], None] | None = None


def present_with(show: Callable[[dict[str, Any]], None] | None) -> None:
    """From now on ``show(finding)`` shows what nobody caught, in the place of stderr; None: stderr again."""
    global _present
    _present = show


def shows_faults() -> bool:
    """True while Trapline itself says of a fault on stderr."""
    return _present is None


def present(finding: dict[str, Any]) -> None:
    """Shows a finding to whom :func:`present_with` has named."""
    if _present is not None:
        _present(finding)


def debug(text: str) -> None:
    """One line for TRAPLINE_DEBUG=1: a part of Trapline has stepped aside."""
    if options.debugs():
        say(text)


def debug_failure(what: str) -> None:
    """The same for the exception that is being handled, with its traceback."""
    if options.debugs():
        import traceback

        say(f"{what} failed:\n{traceback.format_exc().rstrip()}")
