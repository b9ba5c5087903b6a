"""The request that a thread or a task works on, so that whoever makes a finding can name it.

A context variable carries it: ``asyncio`` tasks and ``asyncio.to_thread`` take it along, and so do the thread
pools of anyio, Starlette and FastAPI. `loop.run_in_executor` and threads that a program starts do not.
"""

from __future__ import annotations

import itertools
import os
from contextvars import ContextVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Optional

    Named = tuple[str, bool]  # a request, and whether it is certain that it is the one

_MARK = "__trapline_request__"  # on an exception: the request that it left
_count = itertools.count(1)


class Work:
    """One request that is worked on.

    `above`: the one that it is a part of. `fault`: the finding of a fault in it; `certain`: that fault was
    raised by this very request, not just while no other was in flight. `number`: what calls to the device
    are marked with from its beginning on; None where another request was in flight then.
    """

    __slots__ = (
        "above",
        "certain",
        "fault",
        "fingerprint",
        "identifier",
        "is_open",
        "number",
        "slot",
        "token",
    )

    def __init__(self, identifier: str, fingerprint: str, above: Optional[Work]) -> None:
        self.identifier = identifier
        self.fingerprint = fingerprint
        self.above = above
        self.fault: Optional[dict[str, Any]] = None
        self.certain = False
        self.is_open = True
        self.number: Optional[int] = None
        self.slot = -1
        self.token: Any = None


_current: ContextVar[Optional[Work]] = ContextVar("trapline_request", default=None)
_open: dict[int, Work] = {}  # those in flight that are no part of another
_last: Optional[Work] = None  # that was begun, of those
_next_number: Optional[Callable[[], int]] = None


def number_by(function: Optional[Callable[[], int]]) -> None:
    """`function` gives a number that calls to the device are marked with from then on."""
    global _next_number
    _next_number = function


def next_identifier() -> str:
    """For a request that nobody has named: the process and a number."""
    return f"{os.getpid()}-{next(_count)}"


def enter(identifier: str, fingerprint: str) -> Work:
    """From now on this thread or task works on this request."""
    above = working_on()
    work = Work(identifier, fingerprint, above)
    if above is None:
        global _last
        alone = not _open
        _open[id(work)] = _last = work
        if alone and _next_number is not None:
            work.number = _next_number()
    work.token = _current.set(work)
    return work


def resume(work: Work) -> None:
    """Goes on with a request whose work was put aside by `suspend`."""
    work.token = _current.set(work)


def suspend(work: Work) -> None:
    """Puts the request's work aside; it stays in flight."""
    token, work.token = work.token, None
    if token is None:
        return
    try:
        _current.reset(token)
    except ValueError:  # left in another context than it was entered in
        if _current.get() is work:
            _current.set(work.above)


def leave(work: Work) -> None:
    """The request is done."""
    suspend(work)
    work.is_open = False
    _open.pop(id(work), None)


def working_on() -> Optional[Work]:
    """The request of this context, while it is in flight: tasks that it started may outlive it."""
    work = _current.get()
    return work if work is not None and work.is_open else None


def forget_all() -> None:
    """For a child process: the parent works on these."""
    global _last
    _last = None
    _open.clear()
    _current.set(None)


def _whose(late: bool, number: Optional[int] = None) -> tuple[Optional[Work], bool]:
    """The request that a fault found here and now belongs to, and whether that is certain.

    A device reports late, to whoever comes by; and a thread may have no context. Then the only request in
    flight is the likely one, and of several none is named. It is certain where the call is marked as one that
    was made since the request began, and no other request was in flight since.
    """
    work = None if late else working_on()
    if work is not None:
        return work, True
    alone = list(_open.values())
    if len(alone) != 1:
        return None, False
    begun = alone[0].number
    since = late and number is not None and begun is not None and number >= begun
    return alone[0], since and _last is alone[0]


def of_fault(late: bool, number: Optional[int] = None) -> Optional[Named]:
    """The request to name for a fault that is found here and now. `late`: by a device, some time ago;
    `number`: what the call was marked with."""
    if not _open:
        return None
    work, certain = _whose(late, number)
    return None if work is None else (work.identifier, certain)


def left_by(error: BaseException) -> Optional[Named]:
    """The request that this exception has left."""
    identifier = getattr(error, _MARK, None)
    return (identifier, True) if isinstance(identifier, str) else None


def name_in(facts: dict[str, Any], request: Optional[Named]) -> None:
    """Puts the request into the sample of these facts, or of a finding."""
    if request is None:
        return
    identifier, certain = request
    sample = dict(facts.get("sample") or {})
    if not certain and sample:
        return  # what is certain of the sample must not look likely, nor the other way round
    sample["request"] = identifier
    if not certain:
        sample["likely"] = True
    facts["sample"] = sample


def is_any() -> bool:
    """True while a request is in flight."""
    return bool(_open)


def told(finding: dict[str, Any], late: bool = False, number: Optional[int] = None) -> None:
    """A fault is about to be raised: the request, and those that it is a part of, know of it."""
    work, certain = _whose(late, number)
    while work is not None:
        if certain or not work.certain:
            work.fault, work.certain = finding, certain
        work = work.above


def mark(error: BaseException, work: Work) -> None:
    """This exception leaves the request: should it end the program, the finding names it."""
    try:
        if not isinstance(getattr(error, _MARK, None), str):
            setattr(error, _MARK, work.identifier)
    except Exception:  # a class that takes no attributes
        pass
