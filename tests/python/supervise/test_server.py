"""examples/server under `trapline supervise --cpu`, asked over HTTP as a client asks it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import BUILD, ROOT

pytest.importorskip("uvicorn")
_START = 240.0  # the first start may have the guard and the device compiled


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Server:
    def __init__(self, folder: Path, where: Path, application: str) -> None:
        self.port, self.status = free_port(), free_port()
        self.output = folder / "output"
        inherited = {
            k: v for k, v in os.environ.items() if not k.startswith(("TRAPLINE_", "PYTHON", "LISTEN"))
        }
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(
                [
                    *(str(BUILD / "bin" / "trapline"), "supervise", "--cpu", "--standby"),
                    *("--listen", f"127.0.0.1:{self.port}", "--status", f"127.0.0.1:{self.status}", "--"),
                    *(sys.executable, "-m", "uvicorn", "--fd", "3", "--log-level", "warning", application),
                ],
                cwd=where,
                env={**inherited, "TRAPLINE_BUILD_DIR": str(BUILD), "PYTHONDONTWRITEBYTECODE": "1"},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )

    def ask(self, path: str, content: object = None, port: int = 0, **headers: str) -> tuple[int, dict]:
        """Status and content; 0 where there was no answer."""
        body = None if content is None else json.dumps(content).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        request = urllib.request.Request(f"http://127.0.0.1:{port or self.port}{path}", body, named)
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())
        except OSError:
            return 0, {}

    def state(self) -> dict:
        return self.ask("/status.json", port=self.status)[1]

    def wait_for(self, condition, seconds: float = 30.0) -> None:
        end = time.monotonic() + seconds
        while not condition():
            assert self.process.poll() is None and time.monotonic() < end, self.output.read_text()[-3000:]
            time.sleep(0.05)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    yield from running(Server(tmp_path, ROOT / "examples" / "server", "app:app"))


@pytest.fixture
def poisonable(tmp_path: Path) -> Iterator[Server]:
    yield from running(Server(tmp_path, Path(__file__).parent, "poisonable:app"))


def running(one: Server) -> Iterator[Server]:
    try:
        one.wait_for(lambda: one.ask("/readyz")[0] == 200, _START)
        yield one
    finally:
        one.process.send_signal(signal.SIGTERM)
        assert one.process.wait(30) == 128 + signal.SIGTERM, one.output.read_text()[-3000:]


def test_a_bad_request_is_answered_and_refused_and_the_server_lives(server):
    good = server.ask("/predict", {"text": "this film is good"})
    assert good[0] == 200 and set(good[1]) == {"negative", "neutral", "positive"}
    status, told = server.ask("/predict", {"ids": [3, 99]}, x_request_id="job-1")
    assert (status, told["code"], told["request"], told["refused"]) == (400, "TL103", "job-1", False)
    assert told["detail"] == (
        "embedding: input[1] is 99, but the table `embedding` has 14 rows: valid ids are [0, 14)"
    )
    status, told = server.ask("/predict", {"ids": [3, 99]}, x_request_id="job-2")
    assert (status, told["request"], told["refused"]) == (400, "job-2", True)
    assert server.ask("/predict", {"text": "this film is good"}) == good
    assert server.ask("/healthz") == (200, {"status": "ok"})
    assert server.state()["starts"] == 1


def test_a_standby_takes_over_and_knows_what_was_refused(server):
    server.wait_for(lambda: server.state()["standby"] == "ready", _START)
    assert server.ask("/predict", {"ids": [99]})[1]["refused"] is False
    os.kill(server.state()["pid"], signal.SIGKILL)
    assert server.ask("/predict", {"text": "this film is good"})[0] == 200, "it waited at the socket"
    assert server.ask("/predict", {"ids": [99]})[1]["refused"] is True
    assert server.state()["starts"] == 2


def test_a_request_that_takes_the_context_is_the_only_one_lost_and_not_tried_again(poisonable):
    poisonable.wait_for(lambda: poisonable.state()["standby"] == "ready", _START)
    before = poisonable.state()["pid"]
    good = poisonable.ask("/unguarded", 3)
    assert good[0] == 200
    assert poisonable.ask("/unguarded", 12) == (0, {}), "it takes the context with it"
    assert poisonable.ask("/unguarded", 3) == good, "the standby answers"
    status, told = poisonable.ask("/unguarded", 12)
    assert (status, told["refused"], told["code"]) == (400, True, "TL103")
    state = poisonable.state()
    assert state["starts"] == 2 and state["pid"] != before
    assert [one["action"] for one in state["incidents"] if one["action"] != "contained"] == ["quarantine"]


def test_a_contained_fault_of_the_same_cause_before_does_not_hide_the_one_that_took_the_context(poisonable):
    assert poisonable.ask("/guarded", 12)[1]["refused"] is False, "the guard contains it"
    poisonable.wait_for(lambda: poisonable.state()["standby"] == "ready", _START)
    assert poisonable.ask("/unguarded", 12) == (0, {})
    assert poisonable.ask("/unguarded", 12)[1].get("refused") is True
