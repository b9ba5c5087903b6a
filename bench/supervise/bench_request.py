#!/usr/bin/env python3
"""What the name of a request costs: the middleware around an application that does nothing, in CPU time.

Each figure is the difference to the application alone, both in this process and in turns: medians of rounds.
The peer is the whole of a request without any of it: uvicorn, h11 and such an application, on loopback.

    python bench/supervise/bench_request.py
"""

import argparse
import asyncio
import io
import os
import statistics
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path
from typing import Callable

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

import trapline  # noqa: E402
import trapline.asgi  # noqa: E402
import trapline.wsgi  # noqa: E402

BODIES = {"200 bytes": 200, "64 KiB": 1 << 16, "1 MiB": 1 << 20}


async def bare_asgi(scope, receive, send):
    await receive()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"ok"})


def bare_wsgi(environ, start_response):
    environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))
    start_response("200 OK", [])
    return [b"ok"]


def asgi_calls(app, body: bytes) -> Callable[[int], None]:
    headers = [(b"host", b"x"), (b"x-request-id", b"7f3a"), (b"content-length", b"%d" % len(body))]
    path = {"path": "/predict", "raw_path": b"/predict", "query_string": b""}
    scope = {"type": "http", "method": "POST", **path, "headers": headers}

    async def receive():
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message):
        pass

    async def many(count: int) -> None:
        for _ in range(count):
            await app(scope, receive, send)

    return lambda count: asyncio.run(many(count))


def wsgi_calls(app, body: bytes) -> Callable[[int], None]:
    fixed = {
        "REQUEST_METHOD": "POST",
        "PATH_INFO": "/predict",
        "QUERY_STRING": "",
        "HTTP_X_REQUEST_ID": "7f3a",
    }

    def many(count: int) -> None:
        for _ in range(count):
            environ = {**fixed, "CONTENT_LENGTH": str(len(body)), "wsgi.input": io.BytesIO(body)}
            result = app(environ, lambda *_: None)
            for _ in result:
                pass
            if hasattr(result, "close"):
                result.close()

    return many


def block_calls(marked: bool) -> Callable[[int], None]:
    def many(count: int) -> None:
        for number in range(count):
            if marked:
                with trapline.request(number):
                    pass

    return many


def micros(calls: Callable[[int], None], count: int) -> float:
    start = time.process_time()
    calls(count)
    return (time.process_time() - start) / count * 1e6


def added(bare: Callable[[int], None], marked: Callable[[int], None], count: int, rounds: int) -> float:
    """Microseconds that a request costs more."""
    bare(count // 10), marked(count // 10)
    return statistics.median(micros(marked, count) - micros(bare, count) for _ in range(rounds))


def whole_request(count: int) -> float:
    """Microseconds of this process for a request through uvicorn, its client not counted."""
    import uvicorn

    config = uvicorn.Config(bare_asgi, port=0, log_level="error", access_log=False)
    server = uvicorn.Server(config)
    used: list[float] = []

    def serve() -> None:
        asyncio.run(server.serve())
        used.append(time.thread_time())

    thread = threading.Thread(target=serve)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    for _ in range(count):
        urllib.request.urlopen(f"http://127.0.0.1:{port}/predict", data=b"x" * 200).read()
    server.should_exit = True
    thread.join()
    return used[0] / count * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=9)
    given = parser.parse_args()
    print(
        "| a request costs more, microseconds of CPU time | alone | under trapline supervise |\n|---|---|---|"
    )
    rows: list[tuple[str, Callable, Callable, int]] = []
    for name, size in BODIES.items():
        body, count = os.urandom(size), max(200, given.count * 200 // (size + 200))
        for kind, calls, app in (("asgi", asgi_calls, bare_asgi), ("wsgi", wsgi_calls, bare_wsgi)):
            wrapped = getattr(trapline, kind).RequestMiddleware(app)
            rows.append((f"{kind}.RequestMiddleware, {name}", calls(app, body), calls(wrapped, body), count))
    rows.append(("with trapline.request(name)", block_calls(False), block_calls(True), given.count))
    with tempfile.TemporaryDirectory() as folder:
        for name, bare, marked, count in rows:
            os.environ.pop("TRAPLINE_SUPERVISE_DIR", None)
            alone = added(bare, marked, count, given.rounds)
            os.environ["TRAPLINE_SUPERVISE_DIR"] = folder
            (Path(folder) / "refused.jsonl").touch()
            supervised = added(bare, marked, count, given.rounds)
            print(f"| {name} | {alone:.1f} | {supervised:.1f} |")
    print(f"\na whole request of 200 bytes through uvicorn and h11: {whole_request(2000):.0f} microseconds")


if __name__ == "__main__":
    main()
