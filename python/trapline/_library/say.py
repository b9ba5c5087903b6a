"""Lines on the program's stderr. Each begins with ``trapline:``; none of them may fail."""

from __future__ import annotations

import sys

from trapline._library import options


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


_shows_faults = True


def leave_faults_to_caller() -> None:
    """From now on somebody else shows the findings of this process: a test runner, with its own results."""
    global _shows_faults
    _shows_faults = False


def shows_faults() -> bool:
    """True while Trapline itself says of a fault on stderr."""
    return _shows_faults


def debug(text: str) -> None:
    """One line for TRAPLINE_DEBUG=1: a part of Trapline has stepped aside."""
    if options.debugs():
        say(text)


def debug_failure(what: str) -> None:
    """The same for the exception that is being handled, with its traceback."""
    if options.debugs():
        import traceback

        say(f"{what} failed:\n{traceback.format_exc().rstrip()}")
