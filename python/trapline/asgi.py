"""Middleware for ASGI applications: a request that causes a fault is answered with its cause, and only once.

Starlette, FastAPI::

    app.add_middleware(trapline.asgi.RequestMiddleware)

any other::

    app = trapline.asgi.RequestMiddleware(app)

docs/requests.md says what is answered, what a fingerprint is and what is left alone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, MutableMapping
from typing import Any, Callable, Optional

from trapline._library import current
from trapline._supervise import fingerprint, http, work

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

__all__ = ["RequestMiddleware"]


class RequestMiddleware:
    """Names each HTTP request in findings, answers 400 with the cause where it has a fault, and refuses it
    the next time. ``status``: another answer than 400, from 400 to 499.

    Websockets, lifespan and questions after the server's health pass by untouched.
    """

    def __init__(self, app: App, *, status: int = 400) -> None:
        self.app = app
        self.status = http.checked_status(status)

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or http.is_health(scope["method"], scope["path"]):
            await self.app(scope, receive, send)
            return
        headers = _headers(scope)
        name = http.identifier(headers.get(b"x-request-id"))
        body = _Body(receive)
        await body.read_ahead()
        print_ = body.fingerprint(scope, http.length(headers.get(b"content-length")))
        refusal = http.refusal_of(print_, name, self.status)
        if refusal is not None:
            await _answer(send, refusal)
            return
        one = work.begin(name, print_)
        sending = _Sending(send, one, self.status)
        try:
            await self.app(scope, body.receive, sending)
            await sending.end()
        except Exception as error:
            current.mark(error, one)
            work.has_failed(one, error)
            answer = http.answer_to_error(one, error, self.status)
            if answer is None or sending.started:  # what was begun cannot be answered otherwise
                await sending.end()
                raise
            await _answer(send, answer)
        finally:
            work.end(one)


def _headers(scope: MutableMapping[str, Any]) -> dict[bytes, str]:
    """The two headers that matter. Of one that is sent twice the first counts."""
    found: dict[bytes, str] = {}
    for name, value in scope.get("headers") or ():
        if name in (b"x-request-id", b"content-length"):
            found.setdefault(bytes(name), bytes(value).decode("utf-8", "replace"))
    return found


class _Body:
    """The request's body: what a fingerprint looks at is read ahead, and handed on as it came."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._pieces: deque[bytes] = deque()  # not the messages: a client may send single bytes
        self._size = 0
        self._last: Optional[Message] = None  # what came instead of a piece
        self.is_whole = False

    async def read_ahead(self) -> None:
        while self._size < http.BODY_LIMIT and not self.is_whole:
            message = await self._receive()
            if message["type"] != "http.request":
                self._last = message
                return
            piece = message.get("body", b"")
            self._pieces.append(piece)
            self._size += len(piece)
            self.is_whole = not message.get("more_body", False)

    def fingerprint(self, scope: MutableMapping[str, Any], told: Optional[int]) -> str:
        path = scope.get("raw_path") or scope["path"].encode("utf-8", "surrogatepass")
        target = path + b"?" + scope.get("query_string", b"")
        size = self._size if self.is_whole else told
        body = bytearray()  # join() needs eighty bytes for each piece
        for piece in self._pieces:
            body += piece
        return fingerprint.of_http(scope["method"], target, memoryview(body)[: http.BODY_LIMIT], size)

    async def receive(self) -> Message:
        """`receive` for the application."""
        if self._pieces:
            piece = self._pieces.popleft()
            more = bool(self._pieces) or not self.is_whole
            return {"type": "http.request", "body": piece, "more_body": more}
        last, self._last = self._last, None
        return await self._receive() if last is None else last


class _Sending:
    """`send` for the application. The head of an answer with an error waits for its body: where a framework
    has made it of a fault, the request gets the cause instead."""

    def __init__(self, send: Send, one: current.Work, status: int) -> None:
        self.send = send
        self.one = one
        self.status = status
        self.started = False
        self.replaced = False
        self.head: Optional[Message] = None

    async def __call__(self, message: Message) -> None:
        if self.replaced:
            return
        if message["type"] == "http.response.start" and message["status"] >= 400 and not self.started:
            work.has_failed(self.one)
            self.head = message
            return
        head, self.head = self.head, None
        if head is not None:
            answer = http.answer_to_status(self.one, head["status"], self.status)
            if answer is not None:
                self.started = self.replaced = True
                await _answer(self.send, answer)
                return
            self.started = True
            await self.send(head)
        self.started = True
        await self.send(message)

    async def end(self) -> None:
        """The application is done; a head without a body is not ours to complete."""
        head, self.head = self.head, None
        if head is not None:
            self.started = True
            await self.send(head)


async def _answer(send: Send, answer: http.Answer) -> None:
    headers = [(name.encode(), value.encode()) for name, value in answer.headers()]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})
