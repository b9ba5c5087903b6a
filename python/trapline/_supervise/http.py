"""What the ASGI and the WSGI middleware have in common: which requests, what is answered."""

from __future__ import annotations

import json
from typing import Optional

from trapline._library import current
from trapline._library.errors import RequestRefused
from trapline._supervise import fingerprint, refused, work

BODY_LIMIT = fingerprint.BODY_LIMIT
CONTENT_TYPE = "application/problem+json"
# Where monitors ask whether the server is well. Such a request is nobody's data, and one that happens to be
# in flight when the process dies must not be refused ever after.
HEALTH = frozenset(
    (
        "/health",
        "/healthz",
        "/livez",
        "/live",
        "/readyz",
        "/ready",
        "/metrics",
        "/ping",
        "/status",
        "/startupz",
    )
)
_READS = ("GET", "HEAD", "OPTIONS")
_MAX_DIGITS = 18


def is_health(method: str, path: str) -> bool:
    """Whether this is a monitor's question."""
    return method in _READS and path.rstrip("/") in HEALTH


def identifier(header: Optional[str]) -> str:
    """The client's name for the request, or one of ours."""
    return work.clean(header) if header else current.next_identifier()


def length(header: Optional[str]) -> Optional[int]:
    """What Content-Length says; None where it says nothing that makes sense."""
    text = header or ""
    is_number = text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS
    return int(text) if is_number else None


def checked_status(status: int) -> int:
    """Raises ValueError for a status that is no error of the client's."""
    if not 400 <= status <= 499:
        raise ValueError(
            f"trapline: RequestMiddleware: status={status} is none from 400 to 499: use one of them"
        )
    return status


class Answer:
    """The answer to a request with a fault, instead of the application's."""

    def __init__(self, status: int, code: str, summary: str, request: str, is_refused: bool) -> None:
        self.status = status
        said = summary if not is_refused else f"not tried again, since it caused a fault before: {summary}"
        self.body = json.dumps(
            {
                "type": f"urn:trapline:{code}",
                "title": "This request causes a fault",
                "status": status,
                "detail": said,
                "code": code,
                "request": request,
                "refused": is_refused,
                "see": f"trapline why {code}",
            }
        ).encode()

    def headers(self) -> list[tuple[str, str]]:
        size = str(len(self.body))
        return [("content-type", CONTENT_TYPE), ("content-length", size), ("cache-control", "no-store")]


def refusal_of(print_: str, name: str, status: int) -> Optional[Answer]:
    """The answer to a request that is refused; None: it is worked on."""
    refusal = refused.find(print_)
    if refusal is None:
        return None
    return Answer(status, refusal.code, refusal.summary, name, True)


def answer_to_error(one: current.Work, error: BaseException, status: int) -> Optional[Answer]:
    """The answer where this exception is a fault of the request; None: it is somebody else's."""
    fault = work.fault_in(error)
    if fault is None:
        return None
    if isinstance(fault, RequestRefused):  # a part of the request was refused
        return Answer(status, *work.told_by(fault.finding), one.identifier, True)
    if one.fault is None:
        return None
    work.refuse_from_now(one)
    return Answer(status, *work.told_by(one.fault), one.identifier, False)


def answer_to_status(one: current.Work, answered: int, status: int) -> Optional[Answer]:
    """The same where a framework has made its own answer of the exception: Flask and Django do."""
    if answered < 500 or one.fault is None or not one.certain:
        return None
    work.refuse_from_now(one)
    return Answer(status, *work.told_by(one.fault), one.identifier, False)
