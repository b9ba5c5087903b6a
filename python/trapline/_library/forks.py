"""One place for what a forked child must not inherit: locks that another thread held, and counts."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable

_renewals: list[Callable[[], None]] = []


def in_child(renew: Callable[[], None]) -> None:
    """Calls ``renew`` in every child that is forked from now on. It must not take a lock."""
    if not _renewals and hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_renew)
    if renew not in _renewals:
        _renewals.append(renew)


def _renew() -> None:
    for renew in _renewals:
        renew()
