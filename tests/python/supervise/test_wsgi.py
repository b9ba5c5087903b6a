"""`trapline.wsgi.RequestMiddleware`, under wsgiref's validator on both sides."""

from __future__ import annotations

import io
import json
import threading
import wsgiref.util
import wsgiref.validate
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import trapline
import trapline.wsgi
from trapline._library import current
from word_table import look_up, words

MIB = 1 << 20


class Answer:
    def __init__(self) -> None:
        self.status = ""
        self.headers: dict[str, str] = {}
        self.body = b""
        self.starts = 0

    @property
    def problem(self) -> dict:
        assert self.headers["content-type"] == "application/problem+json"
        assert self.headers["content-length"] == str(len(self.body))
        return json.loads(self.body)


def ask(app: Any, body: bytes = b"", path: str = "/predict", query: str = "", **more: Any) -> Answer:
    """One request, as a server makes it."""
    environ: dict[str, Any] = {
        "REQUEST_METHOD": "POST",
        "SCRIPT_NAME": "",
        "PATH_INFO": path,
        "QUERY_STRING": query,
        "CONTENT_LENGTH": str(len(body)),
        "CONTENT_TYPE": "text/plain",
        "wsgi.input": io.BytesIO(body),
        **more,
    }
    wsgiref.util.setup_testing_defaults(environ)
    answer = Answer()

    def start_response(status: str, headers: list, exc_info: Any = None) -> Any:
        answer.starts += 1
        answer.status, answer.headers = status, dict(headers)
        return lambda data: setattr(answer, "body", answer.body + data)

    result = app(environ, start_response)
    try:
        for chunk in result:
            answer.body += chunk
    finally:
        close = getattr(result, "close", None)
        if close:
            close()
    return answer


def wrapped(inner: Any, **given: Any) -> Any:
    """The middleware between two validators: as a server and as an application it keeps PEP 3333."""
    middleware = trapline.wsgi.RequestMiddleware(wsgiref.validate.validator(inner), **given)
    return wsgiref.validate.validator(middleware)


class Words:
    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, environ: Any, start_response: Any) -> list[bytes]:
        self.calls += 1
        look_up(int(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))))
        start_response("200 OK", [("content-type", "text/plain")])
        return [b"ok"]


def test_a_fault_is_answered_with_its_cause_and_the_same_request_not_tried_again():
    inner = Words()
    app = wrapped(inner)
    first = ask(app, b"12", HTTP_X_REQUEST_ID="job-1")
    assert first.status == "400 Bad Request"
    assert first.problem == {
        "type": "urn:trapline:TL103",
        "title": "This request causes a fault",
        "status": 400,
        "detail": words(12),
        "code": "TL103",
        "request": "job-1",
        "refused": False,
        "see": "trapline why TL103",
    }
    second = ask(app, b"12", HTTP_X_REQUEST_ID="job-2")
    assert (second.problem["refused"], second.problem["request"]) == (True, "job-2")
    assert inner.calls == 1
    assert ask(app, b"2").body == b"ok"
    assert not current.is_any()


def test_threads_know_their_own_fault():
    together = threading.Barrier(4)

    def inner(environ: Any, start_response: Any) -> list[bytes]:
        together.wait(30)
        return Words()(environ, start_response)

    app = wrapped(inner)
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda n: ask(app, b"%d" % n, HTTP_X_REQUEST_ID=f"r{n}"), (8, 9, 10, 11)))
    assert [one.status[:3] for one in answers] == ["200", "200", "400", "400"]
    told = [(one.problem["request"], one.problem["detail"]) for one in answers[2:]]
    assert told == [("r10", words(10)), ("r11", words(11))]


def test_a_fault_in_the_answer_s_first_piece_is_answered_too():
    def inner(environ: Any, start_response: Any) -> Iterator[bytes]:
        start_response("200 OK", [("content-type", "text/plain")])
        look_up(12)
        yield b"never"

    app = wrapped(inner)
    one = ask(app, b"x")
    assert (one.starts, one.problem["detail"]) == (1, words(12))
    assert ask(app, b"x").problem["refused"] is True


def test_what_was_begun_is_not_answered_twice():
    def inner(environ: Any, start_response: Any) -> Iterator[bytes]:
        start_response("200 OK", [("content-type", "text/plain")])
        yield b"begun"
        look_up(12)

    app = wrapped(inner)
    with pytest.raises(trapline.DeviceAssertError):
        ask(app, b"x")
    assert ask(app, b"x").problem["refused"] is True
    assert not current.is_any()


def test_each_piece_of_an_answer_knows_its_request():
    def inner(environ: Any, start_response: Any) -> Iterator[bytes]:
        start_response("200 OK", [("content-type", "text/plain")])
        for _ in range(3):
            yield current.working_on().identifier.encode() + b" "

    app = wrapped(inner)
    one = ask(app, b"x", HTTP_X_REQUEST_ID="a")
    assert one.body == b"a a a "
    assert current.working_on() is None and not current.is_any()


def test_a_framework_that_makes_500_of_a_fault_is_not_the_last_word():
    def inner(environ: Any, start_response: Any) -> list[bytes]:  # as Flask and Django do
        try:
            look_up(12)
        except Exception:
            start_response("500 INTERNAL SERVER ERROR", [("content-type", "text/html")])
        return [b"<h1>Internal ", b"Server Error</h1>"]

    app = wrapped(inner)
    one = ask(app, b"x")
    assert (one.status, one.starts, one.problem["detail"]) == ("400 Bad Request", 1, words(12))
    assert ask(app, b"x").problem["refused"] is True


def test_answers_and_exceptions_of_the_application_pass_untouched():
    def unwell(environ: Any, start_response: Any) -> list[bytes]:
        start_response("503 Busy", [("content-type", "text/plain"), ("x-app", "1")])
        return [b"later"]

    def handled(environ: Any, start_response: Any) -> list[bytes]:
        with pytest.raises(trapline.DeviceAssertError):
            look_up(12)
        start_response("422 No", [("content-type", "text/plain")])
        return [b"no such word"]

    def failing(environ: Any, start_response: Any) -> list[bytes]:
        raise KeyError("x")

    def empty(environ: Any, start_response: Any) -> list[bytes]:
        start_response("204 No Content", [])
        return []

    for _ in range(2):
        one = ask(wrapped(unwell), b"x")
        assert (one.status, one.headers["x-app"], one.body) == ("503 Busy", "1", b"later")
        assert ask(wrapped(handled), b"x").body == b"no such word"
        assert ask(wrapped(empty), b"x").status == "204 No Content"
        with pytest.raises(KeyError):
            ask(wrapped(failing), b"x")


def test_the_old_write_function_still_writes():
    def inner(environ: Any, start_response: Any) -> list[bytes]:
        write = start_response("200 OK", [("content-type", "text/plain")])
        write(b"one ")
        write(b"two ")
        return [b"three"]

    one = ask(trapline.wsgi.RequestMiddleware(inner), b"x")
    assert (one.starts, one.body) == (1, b"one two three")


def test_health_passes_by():
    seen: list[Any] = []

    def inner(environ: Any, start_response: Any) -> list[bytes]:
        seen.append(current.working_on())
        start_response("200 OK", [("content-type", "text/plain")])
        return [b"well"]

    assert ask(wrapped(inner), path="/healthz", REQUEST_METHOD="GET").body == b"well"
    assert seen == [None]


@pytest.mark.parametrize("size", [0, 1, MIB - 1, MIB, MIB + 1, 10 * MIB])
@pytest.mark.parametrize("way", ["read", "pieces", "lines"])
def test_the_application_gets_the_body_as_it_came(size, way):
    body = (b"\0\r\n\xff" + bytes(range(256))) * (size // 260 + 1)
    body = body[:size]
    got: list[bytes] = []

    def inner(environ: Any, start_response: Any) -> list[bytes]:
        given = environ["wsgi.input"]
        if way == "read":
            got.append(given.read(size))
        elif way == "pieces":
            got.extend(iter(lambda: given.read(70_001), b""))
        else:
            got.extend(given)
        start_response("200 OK", [("content-type", "text/plain")])
        return [b"ok"]

    class Endless(io.BytesIO):
        """A socket that is kept open: a read beyond the body's end would never return."""

        def read(self, wanted: int = -1) -> bytes:
            assert 0 <= wanted <= len(body) - self.tell(), "read beyond the end"
            return super().read(wanted)

    app = trapline.wsgi.RequestMiddleware(inner)
    assert ask(app, body, **{"wsgi.input": Endless(body)}).body == b"ok"
    assert b"".join(got) == body


def test_a_chunked_body_is_looked_at_where_the_server_marks_its_end():
    def inner(environ: Any, start_response: Any) -> list[bytes]:
        look_up(int(environ["wsgi.input"].read()))
        return []

    app = trapline.wsgi.RequestMiddleware(inner)
    chunked = {"CONTENT_LENGTH": "", "wsgi.input_terminated": True}
    assert ask(app, **chunked, **{"wsgi.input": io.BytesIO(b"12")}).problem["refused"] is False
    assert ask(app, **chunked, **{"wsgi.input": io.BytesIO(b"12")}).problem["refused"] is True
    assert ask(app, **chunked, **{"wsgi.input": io.BytesIO(b"13")}).problem["refused"] is False


def test_a_file_goes_to_the_server_as_the_server_s_own():
    def inner(environ: Any, start_response: Any) -> Any:
        start_response("200 OK", [("content-type", "text/plain")])
        return environ["wsgi.file_wrapper"](io.BytesIO(b"a file"))

    environ = {
        "wsgi.file_wrapper": wsgiref.util.FileWrapper,
        "wsgi.input": io.BytesIO(),
        "CONTENT_LENGTH": "0",
    }
    wsgiref.util.setup_testing_defaults(environ)
    started: list[str] = []
    result = trapline.wsgi.RequestMiddleware(inner)(environ, lambda status, headers: started.append(status))
    assert isinstance(result, wsgiref.util.FileWrapper) and started == ["200 OK"]
    assert not current.is_any()


@pytest.mark.parametrize("name", ["a\r\nb", "\0", "\xff\xfe", "x" * 10_000_000, "gr\xc3\xb6\xc3\x9fe"])
def test_hostile_names(name):
    told = ask(trapline.wsgi.RequestMiddleware(Words()), b"12", HTTP_X_REQUEST_ID=name).problem["request"]
    assert told.isprintable() and 0 < len(told) <= 128
    if name.startswith("gr"):
        assert told == "größe"


@pytest.mark.parametrize("length", ["9" * 60_000, "-1", "x", ""])
def test_a_length_that_makes_no_sense_reads_nothing_ahead(length):
    def inner(environ: Any, start_response: Any) -> list[bytes]:
        start_response("200 OK", [])
        return [environ["wsgi.input"].read()]

    assert ask(trapline.wsgi.RequestMiddleware(inner), b"body", CONTENT_LENGTH=length).body == b"body"


def test_path_and_query_make_the_request():
    app = wrapped(Words())
    assert ask(app, b"12").problem["refused"] is False
    assert ask(app, b"12").problem["refused"] is True
    assert ask(app, b"12", path="/other").problem["refused"] is False
    assert ask(app, b"12", query="n=1").problem["refused"] is False
    assert ask(wrapped(Words(), status=422), b"12").status.startswith("422 ")
