"""What was recorded before the fault, by the guard and by ``--watch nan``: nothing where they are not there.

Both are handed in, so that nothing here knows them.
"""

from __future__ import annotations

from typing import Any, Callable, Optional

Calls = list[dict[str, Any]]
_guard: Any = None
_watch: Optional[Callable[[], Optional[dict[str, Any]]]] = None
_thorough = False
_again: Optional[Callable[[Any, str], dict[str, Any]]] = None


def by_guard(guard: Any) -> None:
    """`guard` has `history()` and `remembered()`; None: there is no guard any more."""
    global _guard
    _guard = guard


def by_watch(facts: Optional[Callable[[], Optional[dict[str, Any]]]], thorough: bool = True) -> None:
    """`facts` says what the watch has seen; None: nobody watches any more. `thorough`: in every module."""
    global _watch, _thorough
    _watch, _thorough = facts, thorough


def by_replay(again: Optional[Callable[[Any, str], dict[str, Any]]]) -> None:
    """`again` runs the statements again that made a tensor, which was given to a function of that name."""
    global _again
    _again = again


def made_again(value: Any, function: str) -> dict[str, Any]:
    """`op` and `origin` of the operation that made a value not finite of finite numbers, where the program's
    statements run again; {} where that cannot be seen, or nobody runs them."""
    return {} if _again is None else _again(value, function)


def history() -> Calls:
    """The last guarded calls, oldest first."""
    return [] if _guard is None else _guard.history()


def remembered() -> Calls:
    """Values that are no error by themselves but may be the origin of this one (NaN casts), newest first."""
    return [] if _guard is None else _guard.remembered()


def is_watched() -> bool:
    """True where `--watch nan` would tell no more."""
    return _watch is not None and (_thorough or _watch() is not None)


def watched() -> Optional[dict[str, Any]]:
    """The first NaN or Inf that the watch saw; None where it saw none or nobody watches."""
    return None if _watch is None else _watch()
