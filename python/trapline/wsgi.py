"""Middleware for WSGI applications: a request that causes a fault is answered with its cause, and only once.

Flask::

    app.wsgi_app = trapline.wsgi.RequestMiddleware(app.wsgi_app)

Django (wsgi.py) and any other::

    application = trapline.wsgi.RequestMiddleware(application)

docs/requests.md says what is answered, what a fingerprint is and what is left alone.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from http import HTTPStatus
from typing import Any, Callable, Optional

from trapline._library import current
from trapline._supervise import fingerprint, http, work

Environ = dict[str, Any]
StartResponse = Callable[..., Callable[[bytes], object]]
App = Callable[[Environ, StartResponse], Iterable[bytes]]

__all__ = ["RequestMiddleware"]


class RequestMiddleware:
    """Names each request in findings, answers 400 with the cause where it has a fault, and refuses it the
    next time. ``status``: another answer than 400, from 400 to 499.

    Questions after the server's health pass by untouched.
    """

    def __init__(self, app: App, *, status: int = 400) -> None:
        self.app = app
        self.status = http.checked_status(status)

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        method = environ.get("REQUEST_METHOD", "")
        if http.is_health(method, environ.get("PATH_INFO", "")):
            return self.app(environ, start_response)
        name = http.identifier(_text(environ.get("HTTP_X_REQUEST_ID")))
        print_ = _fingerprint(method, environ, _read_ahead(environ))
        refusal = http.refusal_of(print_, name, self.status)
        if refusal is not None:
            return _answer(start_response, refusal)
        return _Response(self, work.begin(name, print_), environ, start_response).begin()


def _text(header: Optional[str]) -> Optional[str]:
    """A header as its sender meant it: WSGI hands on its bytes as Latin-1."""
    return None if header is None else header.encode("latin-1", "replace").decode("utf-8", "replace")


def _read_ahead(environ: Environ) -> bytes:
    """The body as far as a fingerprint looks; the application reads it again from ``wsgi.input``."""
    given, length = environ.get("wsgi.input"), http.length(environ.get("CONTENT_LENGTH"))
    if given is None or (length is None and not environ.get("wsgi.input_terminated")):
        return b""  # where it ends only the application can know
    wanted = http.BODY_LIMIT if length is None else min(length, http.BODY_LIMIT)
    pieces, missing = [], wanted
    while missing > 0:
        piece = given.read(missing)
        if not piece:
            break
        pieces.append(piece)
        missing -= len(piece)
    ahead = b"".join(pieces)
    if missing > 0 or length == wanted:
        environ["wsgi.input"] = io.BytesIO(ahead)
    else:
        rest = None if length is None else length - len(ahead)
        environ["wsgi.input"] = io.BufferedReader(_Rest(ahead, given, rest))
    return ahead


class _Rest(io.RawIOBase):
    """What was read ahead, and after it the server's own input, never read beyond its length."""

    def __init__(self, ahead: bytes, given: Any, left: Optional[int]) -> None:
        self._ahead = memoryview(ahead)
        self._given = given
        self._left = left

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        size = len(buffer)
        if self._ahead:
            piece: Any = self._ahead[:size]
            self._ahead = self._ahead[size:]
        else:
            piece = self._given.read(size if self._left is None else min(size, self._left))
            if self._left is not None:
                self._left -= len(piece)
        buffer[: len(piece)] = piece
        return len(piece)


def _fingerprint(method: str, environ: Environ, ahead: bytes) -> str:
    path = environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", "")
    target = f"{path}?{environ.get('QUERY_STRING', '')}".encode("latin-1", "replace")
    length = http.length(environ.get("CONTENT_LENGTH"))
    if length is None and len(ahead) < http.BODY_LIMIT:
        length = len(ahead)
    return fingerprint.of_http(method, target, ahead, length)


def _answer(start_response: StartResponse, answer: http.Answer, *exc_info: Any) -> list[bytes]:
    start_response(f"{answer.status} {HTTPStatus(answer.status).phrase}", answer.headers(), *exc_info)
    return [answer.body]


class _Response:
    """The application's answer, as an iterable: the request is in flight until it is closed."""

    def __init__(
        self, middleware: RequestMiddleware, one: current.Work, environ: Environ, start: StartResponse
    ) -> None:
        self._app = middleware.app
        self._status = middleware.status
        self._one = one
        self._environ = environ
        self._start_response = start
        self._head: Optional[tuple] = None  # what the application has said, not yet handed on
        self._started = False
        self._chunks: Optional[Iterator[bytes]] = None
        self._close: Callable[[], object] = lambda: None

    def begin(self) -> Iterable[bytes]:
        """Calls the application."""
        try:
            result = self._app(self._environ, self._take_head)
        except Exception as error:
            answer = self._answer_to(error)
            self.close()
            if answer is None:
                raise
            return answer
        except BaseException:
            self.close()
            raise
        self._close = getattr(result, "close", self._close)
        current.suspend(self._one)
        files = self._environ.get("wsgi.file_wrapper")
        if isinstance(files, type) and isinstance(result, files):  # the server sends the file by itself
            self._hand_on_head()
            work.end(self._one)
            return result
        self._chunks = iter(result)
        return self

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        chunks = self._chunks
        if chunks is None:
            raise StopIteration
        current.resume(self._one)
        try:
            chunk = next(chunks)
        except StopIteration:
            replaced = self._hand_on_head()
            self._chunks = None
            if replaced is not None:
                return replaced
            raise
        except Exception as error:
            answer = self._answer_to(error)
            if answer is None:
                raise
            self._chunks = None
            return answer[0]
        finally:
            current.suspend(self._one)
        replaced = self._hand_on_head()
        if replaced is not None:
            self._chunks = None
            return replaced
        return chunk

    def close(self) -> None:
        """The server is done with the answer."""
        close, self._close, self._chunks = self._close, lambda: None, None
        try:
            close()
        finally:
            work.end(self._one)

    def _take_head(self, status: str, headers: list, exc_info: Any = None) -> Callable[[bytes], object]:
        """`start_response` for the application."""
        if self._started:
            return self._start_response(status, headers, exc_info)
        self._head = (status, headers) if exc_info is None else (status, headers, exc_info)
        return self._write

    def _write(self, data: bytes) -> object:
        """The old way to answer."""
        head, self._head, self._started = self._head, None, True
        if head is not None:
            self._written = self._start_response(*head)
        return self._written(data)

    def _hand_on_head(self) -> Optional[bytes]:
        """Before the first chunk. The body of another answer, where the application's is one of a fault."""
        head, self._head = self._head, None
        if head is None:
            return None
        self._started = True
        status = _number(head[0])
        if status >= 400:
            work.has_failed(self._one)
        answer = http.answer_to_status(self._one, status, self._status)
        if answer is not None:
            return _answer(self._start_response, answer)[0]
        self._start_response(*head)
        return None

    def _answer_to(self, error: BaseException) -> Optional[list[bytes]]:
        """The answer to a fault, where nothing has been answered yet."""
        current.mark(error, self._one)
        work.has_failed(self._one, error)
        answer = http.answer_to_error(self._one, error, self._status)
        if answer is None or self._started:
            return None
        self._started = True
        return _answer(self._start_response, answer)


def _number(status: str) -> int:
    text = status.partition(" ")[0]
    return int(text) if text.isascii() and text.isdigit() else 0
