"""What happens on a fault: facts are collected, a finding is made and written, an exception is returned.

The guard's adapters call `handler` with a violation. Everything here runs only then (except the bookkeeping
of `batches`, well under a microsecond per batch), so it may be slow, but it must state only what was seen.
"""

from __future__ import annotations

from typing import Any

from trapline._fault.data import batches, recorded
from trapline._fault.violation import handler
from trapline._library import current

__all__ = ["handler", "install", "uninstall"]


def install(guard: Any = None) -> None:
    """Start the bookkeeping of DataLoader batches. Call it once torch is imported.

    `guard` says what it has recorded: `history()`, `remembered()`, and who wants to hear of each batch,
    `batch_listener()`.
    """
    batches.install()
    recorded.by_guard(guard)
    batches.tell_each(None if guard is None else guard.batch_listener())
    current.number_by(None if guard is None else batches.next_number)


def uninstall() -> None:
    """End the bookkeeping."""
    current.number_by(None)
    batches.tell_each(None)
    recorded.by_guard(None)
    batches.uninstall()
