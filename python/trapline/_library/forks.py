"""One place for what a forked child must not inherit: locks that another thread held, and counts."""

from __future__ import annotations

import _thread
import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable

_renewals: list[Callable[[], None]] = []
_notes: list[Callable[[], None]] = []


def in_child(renew: Callable[[], None]) -> None:
    """Calls ``renew`` in every child that is forked from now on. It must not take a lock."""
    if not _renewals and hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_renew)
    if renew not in _renewals:
        _renewals.append(renew)


def in_parent(note: Callable[[], None]) -> None:
    """Calls ``note`` in this process after each fork from now on. It must not take a lock."""
    if not _notes and hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_parent=_note)
    if note not in _notes:
        _notes.append(note)


def _note() -> None:
    for note in _notes:
        note()


def _renew() -> None:
    for renew in _renewals:
        renew()


# Work that must not be cut in two by a fork: the child would have half of its changes, and the locks of
# modules that another thread was importing.
_PATIENCE_S = 2.0  # work that takes longer, or waits for the thread that forks, is cut all the same
_at_work: set[int] = set()  # thread identifiers
_forking = False


class whole:
    """``with forks.whole():`` — a fork in another thread waits until this is done, and this until it is."""

    def __enter__(self) -> None:
        self._mine = _thread.get_ident()
        self._outermost = self._mine not in _at_work
        if not self._outermost:
            return
        deadline = time.monotonic() + _PATIENCE_S
        _at_work.add(self._mine)  # before looking: one of the two sees the other
        while _forking and time.monotonic() < deadline:
            _at_work.discard(self._mine)
            time.sleep(0.001)
            _at_work.add(self._mine)

    def __exit__(self, *_: object) -> None:
        if self._outermost:
            _at_work.discard(self._mine)


def _wait_for_others() -> None:
    global _forking
    _forking = True
    deadline = time.monotonic() + _PATIENCE_S
    while _at_work - {_thread.get_ident()} and time.monotonic() < deadline:
        time.sleep(0.001)


def _has_forked() -> None:
    global _forking
    _forking = False


def _is_forked() -> None:
    _has_forked()
    _at_work.intersection_update({_thread.get_ident()})


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_wait_for_others, after_in_parent=_has_forked, after_in_child=_is_forked)
