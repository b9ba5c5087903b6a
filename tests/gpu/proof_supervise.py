"""A server on the device under `trapline supervise`: what the guard contains restarts nothing, and a context
that is lost is seen, replaced, and its request not tried again.

The server is the standard library's, on the socket that the supervisor hands on. With ``--device cpu`` it
runs on the device of ``--cpu``.
"""

from __future__ import annotations

import http.client
import json
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import proof
from proof import DEVICE, ROOT, case

sys.path.insert(0, str(ROOT / "tests" / "supervise"))

from faults import free_port
from supervised import Supervised, until

SERVER = """
import http.server, os, socket, sys, time, traceback
import torch, trapline

table = torch.nn.Embedding(14, 8).cuda()

def work(path):
    what, _, number = path.strip("/").partition("/")
    if what == "assert":  # the program's own: no guard stands before it
        torch._assert_async(table.weight.abs().sum() < 0)
        torch.cuda.synchronize()
    if what == "cost":
        start = time.perf_counter()
        for n in range(500):
            with trapline.request(f"{number}-{n}"):
                pass
        return (time.perf_counter() - start) / 500 * 1e6
    return table(torch.tensor([int(number)], device="cuda")).sum().item()

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        status, body = 200, ""
        try:
            if self.path != "/healthz":
                with trapline.request(self.path, content=self.path):
                    body = work(self.path)
        except trapline.RequestRefused:
            status = 400
        except Exception:
            traceback.print_exc()
            status = 500
        body = f"{os.getpid()} {body}".encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_): pass

work("/row/0")
server = http.server.ThreadingHTTPServer(("", 0), Handler, bind_and_activate=False)
server.socket.close()
server.socket = socket.socket(fileno=3)
server.server_name = server.server_port = ""
server.serve_forever()
"""


class Server:
    def __init__(self, run: Supervised, port: int, status: int) -> None:
        self.run, self.port, self.status = run, port, status

    def ask(self, path: str) -> tuple[int, str, str]:
        """Status, the process that answered, what it said; (0, "", error) where nobody did."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            pid, _, text = answer.read().decode().partition(" ")
            return answer.status, pid, text
        except (OSError, http.client.HTTPException) as error:
            return 0, "", type(error).__name__
        finally:
            connection.close()

    def state(self) -> dict:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.status}/status.json", timeout=5) as answer:
                return json.load(answer)
        except OSError:
            return {}


@contextmanager
def served(*flags: str) -> Iterator[Server]:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "server.py").write_text(SERVER, encoding="utf-8")
        port, status = free_port(), free_port()
        own = [] if DEVICE.type == "cuda" else ["--cpu"]
        run = Supervised(
            folder, *own, "--listen", str(port), "--status", str(status), "--probe",
            f"http://127.0.0.1:{port}/healthz", *flags, program=[sys.executable, "server.py"],
        )  # fmt: skip
        server = Server(run, port, status)
        try:
            until(lambda: run.process.poll() is not None or server.state().get("state") == "ready", 90)
            assert run.process.poll() is None, run.err[-2000:]
            yield server
            run.process.terminate()
            run.wait()
        finally:
            run.clean()


@case
def a_contained_fault_restarts_nothing() -> str:
    with served() as server:
        good, pid, _ = server.ask("/row/3")
        assert good == 200
        assert server.ask("/row/99")[:2] == (500, pid)
        assert server.ask("/row/3")[:2] == (200, pid), "the process that contained it serves on"
        assert server.ask("/row/99")[:2] == (400, pid), "the same request is refused"
        assert server.state()["starts"] == 1
    return "500, then 200 by the same process; the same request again is refused"


def replaced(*flags: str) -> str:
    with served(*flags) as server:
        if flags:
            until(lambda: server.state().get("standby") == "ready", 90)
        good, pid, _ = server.ask("/row/3")
        assert good == 200, server.run.err[-2000:]
        begun = time.monotonic()
        assert server.ask("/assert")[0] != 200
        asked: list[int] = []
        while time.monotonic() < begun + 90:
            status, other, _ = server.ask("/row/5")
            if status == 200:
                break
            asked.append(status)
        seconds = time.monotonic() - begun
        assert status == 200 and other != pid, (status, other, server.run.err[-2000:])
        assert 500 not in asked, "an answer of the process whose context is lost"
        assert server.ask("/assert")[0] == 400, "the request that lost the context is refused"
        incident = until(lambda: (server.state().get("incidents") or [None])[0])
        assert server.state()["starts"] == 2, server.state()
        return f"{incident['code']}, {incident['action']}: the next good answer after {seconds:.2f} s"


@case
def a_lost_context_is_replaced() -> str:
    return replaced()


@case
def a_lost_context_is_replaced_by_the_standby() -> str:
    return replaced("--standby")


@case
def what_a_request_costs() -> str:
    with served() as server:
        server.ask("/cost/warm")
        status, _, text = server.ask("/cost/1")
        assert status == 200, server.run.err[-2000:]
    return f"{float(text):.1f} us for `with trapline.request(name)`, where CUDA is in use"


if __name__ == "__main__":
    raise SystemExit(proof.main())
