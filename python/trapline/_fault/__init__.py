"""What happens on a fault: facts are collected, a finding is made and written, an exception is returned.

The guard's adapters call `handler` with a violation. Everything here runs only then (except the bookkeeping
of `batches`, well under a microsecond per batch), so it may be slow, but it must state only what was seen.
"""

from __future__ import annotations

from trapline._fault.data import batches
from trapline._fault.violation import handler

__all__ = ["handler", "install", "uninstall"]


def install() -> None:
    """Starts the bookkeeping of DataLoader batches. Call it once torch is imported."""
    batches.install()


def uninstall() -> None:
    """Ends the bookkeeping."""
    batches.uninstall()
