"""Beginning and ending the work on one request, for ``trapline.request`` and the middleware."""

from __future__ import annotations

import time
import traceback
from typing import Any, Optional

from trapline._library import current, forks, options
from trapline._library.errors import DeviceAssertError, RequestRefused
from trapline._library.say import say
from trapline._supervise import inflight, lost, refused

MAX_IDENTIFIER = 128
_MAX_CHAIN = 16
_NO_CODE = "TL901"
_END_WITHIN_S = 1.0  # the supervisor mostly needs a few milliseconds; it may also let the process live

forks.in_child(current.forget_all)


def clean(identifier: str) -> str:
    """An identifier that can stand in a line of a log, whatever a client has sent."""
    text = identifier[:MAX_IDENTIFIER]
    return text if text.isprintable() else "".join(c if c.isprintable() else "?" for c in text)


def begin(identifier: str, fingerprint: str) -> current.Work:
    """This thread or task works on the request from now on, and the supervisor can see it.

    Of a request within a request the outer one is seen: together they would be two suspects.
    """
    work = current.enter(identifier, fingerprint)
    if work.above is None:
        work.slot = inflight.take(fingerprint, identifier)
    return work


def has_failed(work: current.Work, error: Optional[BaseException] = None) -> None:
    """The request ends with an exception or an error. It may have taken the CUDA context with it.

    Then those that are in flight now stay noted, and this thread waits for the end of the process: where it
    is the one that accepts connections, those that come now are left to the next process.
    """
    if work.slot < 0 or not lost.error() or inflight.is_kept():
        return
    inflight.keep()
    if options.context_socket() is None:
        return
    if error is not None:  # the supervisor reads it; nobody else may get to print it
        told = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        say(f"request {work.identifier} ended with a lost CUDA context:\n{told.rstrip()}")
    time.sleep(_END_WITHIN_S)


def end(work: current.Work) -> None:
    """The request is done."""
    slot, work.slot = work.slot, -1
    inflight.give_back(slot)
    current.leave(work)


def refuse_from_now(work: current.Work) -> None:
    """The request has a fault that is certainly its own: the next one like it is refused."""
    if work.certain and work.fault is not None:
        refused.remember(work.fingerprint, *told_by(work.fault), work.identifier)


def told_by(finding: dict[str, Any]) -> tuple[str, str]:
    """Code and summary of a finding; one that came as text only has no code of its own."""
    return str(finding.get("code") or _NO_CODE), str(finding.get("summary") or "")


def fault_in(error: BaseException) -> Optional[DeviceAssertError]:
    """The fault that this exception is, was raised from, or has in its group."""
    waiting: list[Optional[BaseException]] = [error]
    for _ in range(_MAX_CHAIN):
        link = waiting.pop(0) if waiting else None
        if isinstance(link, DeviceAssertError):
            return link
        if link is not None:
            waiting += [*getattr(link, "exceptions", ()), link.__cause__]
            if not link.__suppress_context__:
                waiting.append(link.__context__)
    return None


def refusal_error(refusal: refused.Refusal, identifier: str) -> RequestRefused:
    """The exception for a request that is not tried again."""
    sample = {"request": identifier}
    finding = {"code": refusal.code, "summary": refusal.summary, "sample": sample}
    text = f"this request caused a fault before (request {refusal.request}): {refusal.summary}"
    return RequestRefused(text, finding)
