"""What Trapline runs of the program by itself: a fault in it is nobody's, and nobody is told of it."""

from __future__ import annotations

import threading
from contextlib import contextmanager

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_here = threading.local()


@contextmanager
def running() -> Iterator[None]:
    """Inside it, in this thread."""
    before = is_running()
    _here.running = True
    try:
        yield
    finally:
        _here.running = before


def is_running() -> bool:
    return bool(getattr(_here, "running", False))
