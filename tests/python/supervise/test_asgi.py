"""`trapline.asgi.RequestMiddleware`, spoken to as a server speaks."""

from __future__ import annotations

import asyncio
import json
import tracemalloc
from typing import Any

import pytest
import trapline
import trapline.asgi
from trapline._library import current
from word_table import look_up, words

MIB = 1 << 20


class Client:
    """One request and what came back. `pieces`: the body, as the server hands it on."""

    def __init__(self, method: str = "POST", target: str = "/predict", **headers: str) -> None:
        path, _, query = target.partition("?")
        self.scope: dict[str, Any] = {
            "type": "http",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()],
        }
        self.sent: list[dict] = []
        self.received = 0

    async def ask(self, app: Any, *pieces: bytes) -> Client:
        messages = [
            {"type": "http.request", "body": piece, "more_body": at < len(pieces)}
            for at, piece in enumerate(pieces or (b"",), 1)
        ]
        messages[-1]["more_body"] = False
        self.received = 0

        async def receive() -> dict:
            self.received += 1
            return messages.pop(0) if messages else {"type": "http.disconnect"}

        async def send(message: dict) -> None:
            self.sent.append(message)

        await app(self.scope, receive, send)
        return self

    @property
    def status(self) -> int:
        return self.sent[0]["status"]

    @property
    def headers(self) -> dict[bytes, bytes]:
        return dict(self.sent[0]["headers"])

    @property
    def body(self) -> bytes:
        assert [message["type"] for message in self.sent[1:]] == ["http.response.body"] * (len(self.sent) - 1)
        return b"".join(message.get("body", b"") for message in self.sent[1:])

    @property
    def problem(self) -> dict:
        assert self.headers[b"content-type"] == b"application/problem+json"
        assert self.headers[b"content-length"] == str(len(self.body)).encode()
        return json.loads(self.body)


def ask(app: Any, *pieces: bytes, **given: str) -> Client:
    return asyncio.run(Client(**given).ask(app, *pieces))


async def read(receive: Any) -> bytes:
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    return body


async def answer(send: Any, body: bytes, status: int = 200) -> None:
    await send({"type": "http.response.start", "status": status, "headers": [(b"x-app", b"1")]})
    await send({"type": "http.response.body", "body": body})


class Words:
    """Looks up the number that it is sent, in a thread or in the event loop."""

    def __init__(self, in_thread: bool = False) -> None:
        self.calls = 0
        self.in_thread = in_thread

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.calls += 1
        word = int(await read(receive))
        await (asyncio.to_thread(look_up, word) if self.in_thread else asyncio.sleep(0, look_up(word)))
        await answer(send, b"ok")


@pytest.mark.parametrize("in_thread", [False, True])
def test_a_fault_is_answered_with_its_cause_and_the_same_request_not_tried_again(in_thread):
    inner = Words(in_thread)
    app = trapline.asgi.RequestMiddleware(inner)
    first = ask(app, b"12", x_request_id="job-1")
    assert first.status == 400
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
    second = ask(app, b"12", x_request_id="job-2")
    assert second.status == 400
    assert second.problem["refused"] is True
    assert second.problem["request"] == "job-2"
    assert second.problem["detail"] == f"not tried again, since it caused a fault before: {words(12)}"
    assert inner.calls == 1
    assert ask(app, b"2").body == b"ok"
    assert ask(app, b"13").problem["refused"] is False
    assert not current.is_any()


def test_the_finding_names_the_request_and_not_the_middleware(monkeypatch):
    found: list[dict] = []
    monkeypatch.setattr(current, "told", lambda finding, *_: found.append(finding))
    with pytest.raises(trapline.DeviceAssertError):
        ask(trapline.asgi.RequestMiddleware(Words()), b"12", x_request_id="job-1")
    assert found[0]["sample"] == {"request": "job-1"}
    assert found[0]["origin"]["file"].endswith("word_table.py")


def test_requests_at_once_know_their_own_fault():
    app = trapline.asgi.RequestMiddleware(Words(in_thread=True))

    async def all_at_once() -> list[Client]:
        return await asyncio.gather(*(Client(x_request_id=f"r{n}").ask(app, b"%d" % n) for n in range(5, 15)))

    answers = asyncio.run(all_at_once())
    assert [one.status for one in answers] == [200] * 5 + [400] * 5
    told = [(one.problem["request"], one.problem["detail"]) for one in answers[5:]]
    assert told == [(f"r{n}", words(n)) for n in range(10, 15)]


def test_other_exceptions_pass_untouched():
    problem = KeyError("x")

    async def inner(scope: Any, receive: Any, send: Any) -> None:
        raise problem

    for _ in range(2):
        with pytest.raises(KeyError) as caught:
            ask(trapline.asgi.RequestMiddleware(inner), b"1")
        assert caught.value is problem
    assert not current.is_any()


def test_a_fault_that_is_nobodys_passes_untouched():
    async def inner(scope: Any, receive: Any, send: Any) -> None:
        raise trapline.DeviceAssertError("of another process")

    with pytest.raises(trapline.DeviceAssertError):
        ask(trapline.asgi.RequestMiddleware(inner), b"1")


def test_an_exception_that_was_raised_from_a_fault_is_the_fault():
    async def inner(scope: Any, receive: Any, send: Any) -> None:
        try:
            look_up(12)
        except trapline.DeviceAssertError as error:
            raise ValueError("prediction failed") from error

    app = trapline.asgi.RequestMiddleware(inner)
    assert ask(app, b"1").problem["detail"] == words(12)
    assert ask(app, b"1").problem["refused"] is True


def test_an_application_may_answer_a_fault_by_itself():
    async def inner(scope: Any, receive: Any, send: Any) -> None:
        try:
            look_up(12)
        except trapline.DeviceAssertError:
            await answer(send, b"no such word", 422)

    app = trapline.asgi.RequestMiddleware(inner)
    for _ in range(2):
        one = ask(app, b"1")
        assert (one.status, one.body, one.headers) == (422, b"no such word", {b"x-app": b"1"})


def test_a_framework_that_answers_500_of_a_fault_is_not_the_last_word():
    async def inner(scope: Any, receive: Any, send: Any) -> None:  # as Starlette does
        try:
            look_up(12)
        except Exception:
            await answer(send, b"Internal Server Error", 500)
            raise

    app = trapline.asgi.RequestMiddleware(inner)
    with pytest.raises(trapline.DeviceAssertError):  # it has been answered: the server logs it
        client = Client()
        asyncio.run(client.ask(app, b"1"))
    assert (client.status, client.problem["detail"]) == (400, words(12))
    assert ask(app, b"1").problem["refused"] is True


def test_an_ordinary_500_is_handed_on_as_it_is():
    async def inner(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 503, "headers": [(b"x-app", b"1")]})
        await send({"type": "http.response.body", "body": b"a", "more_body": True})
        await send({"type": "http.response.body", "body": b"b"})

    one = ask(trapline.asgi.RequestMiddleware(inner), b"1")
    assert (one.status, one.headers, one.body) == (503, {b"x-app": b"1"}, b"ab")


def test_what_was_begun_is_not_answered_twice():
    async def inner(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"begun", "more_body": True})
        look_up(12)

    app = trapline.asgi.RequestMiddleware(inner)
    client = Client()
    with pytest.raises(trapline.DeviceAssertError):
        asyncio.run(client.ask(app, b"1"))
    assert (client.status, client.body) == (200, b"begun")
    assert ask(app, b"1").problem["refused"] is True


def test_websockets_lifespan_and_health_pass_by():
    seen: list[tuple] = []

    async def inner(scope: Any, receive: Any, send: Any) -> None:
        seen.append((scope, receive, send, current.working_on()))

    app = trapline.asgi.RequestMiddleware(inner)
    scopes = [
        {"type": "websocket", "path": "/ws"},
        {"type": "lifespan"},
        {"type": "http", "method": "GET", "path": "/healthz"},
    ]
    for scope in scopes:
        receive, send = object(), object()
        asyncio.run(app(scope, receive, send))
        assert seen.pop() == (scope, receive, send, None)


@pytest.mark.parametrize(
    "pieces",
    [(), (b"one",), (b"a", b"b", b"c"), (b"", b"x", b""), (b"x" * MIB,), (b"x" * 700_000,) * 15],
)
def test_the_application_gets_the_body_as_it_came(pieces):
    messages: list[dict] = []

    async def inner(scope: Any, receive: Any, send: Any) -> None:
        message = {"more_body": True}
        while message.get("more_body"):
            message = await receive()
            messages.append(message)
        messages.append(await receive())
        await answer(send, b"ok")

    assert ask(trapline.asgi.RequestMiddleware(inner), *pieces).body == b"ok"
    assert [message.get("body") for message in messages[:-1]] == list(pieces or (b"",))
    assert messages[-1] == {"type": "http.disconnect"}


def test_no_more_than_a_mebibyte_is_read_ahead():
    at_start: list[int] = []
    client = Client(content_length=str(10 * MIB))

    async def inner(scope: Any, receive: Any, send: Any) -> None:
        at_start.append(client.received)
        if len(at_start) == 1:
            look_up(12)

    pieces = [b"%d" % (n % 10) * (MIB // 4) for n in range(40)]
    app = trapline.asgi.RequestMiddleware(inner)
    assert asyncio.run(client.ask(app, *pieces)).status == 400
    assert at_start == [4]
    client.sent.clear()
    assert asyncio.run(client.ask(app, *pieces)).problem["refused"] is True
    assert client.received == 4
    other = Client(content_length=str(10 * MIB + 1))
    asyncio.run(other.ask(app, *pieces))
    assert len(at_start) == 2, "of another length: another request"


@pytest.mark.parametrize("length", ["9" * 60_000, "-1", "\u0661", "1e3", " 5", ""])
def test_a_length_that_makes_no_sense_is_none(length):
    app = trapline.asgi.RequestMiddleware(Words())
    assert ask(app, b"12", content_length=length).problem["refused"] is False
    assert ask(app, b"12").problem["refused"] is True


def test_a_body_in_single_bytes_is_kept_small():
    body = b"7" * 300_000
    sizes: list[int] = []

    async def inner(scope: Any, receive: Any, send: Any) -> None:
        assert await read(receive) == body
        await answer(send, b"ok")

    async def receive() -> dict:
        sizes.append(1)
        return {"type": "http.request", "body": b"7", "more_body": len(sizes) < len(body)}

    client = Client()

    async def send(message: dict) -> None:
        client.sent.append(message)

    tracemalloc.start()
    asyncio.run(trapline.asgi.RequestMiddleware(inner)(client.scope, receive, send))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert client.body == b"ok"
    assert peak < 24 * len(body)  # pointers, of the list of this test too


def test_a_client_that_hangs_up_is_told_to_the_application():
    seen: list[dict] = []

    async def inner(scope: Any, receive: Any, send: Any) -> None:
        seen.extend([await receive(), await receive()])

    messages = [{"type": "http.request", "body": b"a", "more_body": True}, {"type": "http.disconnect"}]

    async def receive() -> dict:
        return messages.pop(0)

    asyncio.run(trapline.asgi.RequestMiddleware(inner)(Client().scope, receive, None))
    assert [message["type"] for message in seen] == ["http.request", "http.disconnect"]


@pytest.mark.parametrize(
    "header",
    [b"a\r\nx-evil: 1", b"\0\0", b"\xff\xfe\xfd", b"x" * 10_000_000, b"\xe2\x80\xae"],
)
def test_hostile_names_and_bodies(header):
    async def inner(scope: Any, receive: Any, send: Any) -> None:
        await read(receive)
        look_up(12)

    client = Client()
    client.scope["headers"] = [(b"x-request-id", header)]
    body = b"\0\r\n\xff" * (MIB // 2) + b"x" * (8 * MIB)
    asyncio.run(client.ask(trapline.asgi.RequestMiddleware(inner), *([body[:65536]] * 200)))
    name = client.problem["request"]
    assert name.isprintable() and 0 < len(name) <= 128
    assert b"\n" not in client.body


def test_without_a_name_the_request_gets_a_number():
    names = [ask(trapline.asgi.RequestMiddleware(Words()), b"%d" % n).problem["request"] for n in (20, 21)]
    assert all(name.split("-")[0].isdigit() for name in names) and names[0] != names[1]


@pytest.mark.parametrize(
    "change",
    [
        {"method": "PUT"},
        {"path": "/other", "raw_path": b"/other"},
        {"query_string": b"n=1"},
    ],
)
def test_method_path_query_and_body_make_the_request_and_headers_do_not(change):
    app = trapline.asgi.RequestMiddleware(Words())
    assert ask(app, b"12", x_request_id="a", accept="x").problem["refused"] is False
    assert ask(app, b"1", b"2", x_request_id="b", accept="y").problem["refused"] is True
    other = Client()
    other.scope.update(change)
    assert asyncio.run(other.ask(app, b"12")).problem["refused"] is False


def test_another_status_may_be_chosen_but_no_success():
    app = trapline.asgi.RequestMiddleware(Words(), status=422)
    assert ask(app, b"12").status == 422
    assert ask(app, b"12").problem["status"] == 422
    for status in (200, 302, 500):
        with pytest.raises(ValueError, match=r"status=.* is none from 400 to 499"):
            trapline.asgi.RequestMiddleware(Words(), status=status)


def test_a_request_that_another_process_refused_is_refused_here(folder):
    inner = Words()
    app = trapline.asgi.RequestMiddleware(inner)
    ask(app, b"12")
    record = json.loads((folder / "refused.jsonl").read_text())
    assert (record["code"], record["summary"]) == ("TL103", words(12))
    from trapline._supervise import refused

    refused._known = refused._Known()  # as in the process that comes next
    assert ask(app, b"12").problem["refused"] is True
    assert inner.calls == 1
