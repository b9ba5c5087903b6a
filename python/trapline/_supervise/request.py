"""``trapline.request``: marks the work on one request, in a program that is no ASGI or WSGI application."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional

from trapline._library import current
from trapline._library.errors import DeviceAssertError, RequestRefused
from trapline._supervise import fingerprint, refused, work

if TYPE_CHECKING:
    from trapline._supervise.fingerprint import Content


class request:
    """Names the request that the block works on; refuses it if the same one caused a fault before.

    ``identifier``: its name, for people; without it, the process and a number. ``content``: what makes it the
    same as another one; without it the identifier does, so that it must not be used again for other work.

    Raises:
        RequestRefused: on entering, before anything of the request is worked on.
    """

    __slots__ = ("_fingerprint", "_works", "identifier")

    def __init__(self, identifier: Any = None, *, content: Optional[Content] = None) -> None:
        name = current.next_identifier() if identifier is None else str(identifier)
        self._fingerprint = (
            fingerprint.of_identifier(name) if content is None else fingerprint.of_content(content)
        )
        self.identifier = work.clean(name)
        self._works: list[current.Work] = []

    @property
    def fingerprint(self) -> str:
        """What the request is known by; docs/requests.md says how it is made."""
        return self._fingerprint

    def __enter__(self) -> request:
        refusal = refused.find(self._fingerprint)
        if refusal is not None:
            raise work.refusal_error(refusal, self.identifier)
        self._works.append(work.begin(self.identifier, self._fingerprint))
        return self

    def __exit__(self, kind: Any, error: Optional[BaseException], trace: Any) -> None:
        one = self._works.pop()
        if error is not None:
            current.mark(error, one)
            work.has_failed(one, error)
        work.end(one)
        if isinstance(error, DeviceAssertError) and not isinstance(error, RequestRefused):
            work.refuse_from_now(one)
