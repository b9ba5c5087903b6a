"""A poisoned server is replaced; who comes meanwhile waits, and only what was in flight is lost."""

import http.client
import json
import sys
import threading
import time
import urllib.request

import pytest
from faults import free_port
from supervised import ASSERTION, Supervised, until

# A server of the standard library on the socket that it is handed. After /poison it answers 500 for ever, as
# a process does whose CUDA context is lost, and its health check stays green.
SERVER = f"""
import http.server, os, socket, sys, time
time.sleep({{imports}})
assert os.environ["LISTEN_FDS"] == "1" and int(os.environ["LISTEN_PID"]) == os.getpid()
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        global poisoned
        if self.path == "/poison":
            poisoned = True
            print({ASSERTION!r}, file=sys.stderr)
            print("RuntimeError: CUDA error: device-side assert triggered", file=sys.stderr, flush=True)
        self.send_response(500 if poisoned and self.path != "/healthz" else 200)
        self.send_header("Content-Length", "0")
        self.end_headers()
    def log_message(self, *_): pass
poisoned = False
server = http.server.ThreadingHTTPServer(("", 0), Handler, bind_and_activate=False)
server.socket.close()
server.socket = socket.socket(fileno=3)
server.server_name = server.server_port = ""
server.serve_forever()
"""


class Client(threading.Thread):
    """Asks again and again, each time over a connection of its own."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.port = port
        self.answers = []  # (when it was sent, status or the error's name)
        self.over = threading.Event()

    def ask(self, path):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request("GET", path)
            return connection.getresponse().status
        except OSError as error:
            return type(error).__name__
        except http.client.HTTPException as error:
            return type(error).__name__
        finally:
            connection.close()

    def run(self):
        while not self.over.is_set():
            sent = time.monotonic()
            self.answers.append((sent, self.ask("/work")))
            time.sleep(0.002)


@pytest.mark.parametrize("standby", [False, True], ids=["restart", "standby"])
def test_nothing_is_lost_that_was_not_in_flight(tmp_path, standby):
    port, status = free_port(), free_port()
    (tmp_path / "server.py").write_text(SERVER.replace("{imports}", "0.5"))
    flags = ["--standby"] if standby else []
    run = Supervised(
        tmp_path, "--listen", str(port), "--status", str(status), "--probe", f"http://127.0.0.1:{port}/healthz",
        *flags, program=[sys.executable, "server.py"],
    )  # fmt: skip

    def now():
        with urllib.request.urlopen(f"http://127.0.0.1:{status}/status.json", timeout=5) as answer:
            return json.load(answer)

    def is_up():
        try:
            return now()["state"] == "ready" and (not standby or now()["standby"] == "ready")
        except OSError:
            return False

    until(is_up)
    client = Client(port)
    client.start()
    until(lambda: len(client.answers) > 50)
    client.ask("/poison")
    until(lambda: now()["starts"] == 2 and now()["state"] == "ready")
    asked = len(client.answers)
    until(lambda: len(client.answers) > asked + 50)
    client.over.set()
    client.join()
    until(lambda: now()["incidents"][0].get("seconds_to_ready"))
    figures = now()
    run.process.terminate()
    run.wait()
    run.gone()
    answers = [answer for _, answer in client.answers]
    assert set(answers[:50]) == {200} and set(answers[-50:]) == {200}
    # One client has one request in flight at the death; everybody else waited.
    assert sum(isinstance(answer, str) for answer in answers) <= 1, answers
    assert figures["incidents"][0]["code"] == "TL103"
    assert figures["incidents"][0]["action"] == "retry"
    print(f"to ready: {figures['seconds_to_ready']:.3f} s, wrong answers: {answers.count(500)}")
    if standby:
        assert figures["seconds_to_ready"] < 5  # measured in bench/supervise; the imports alone take 0.5


def test_a_standby_that_dies_is_replaced_and_given_up(tmp_path):
    """The program goes on, whatever becomes of its standby."""
    script = (
        "import os,sys,time\n"
        "if 'TRAPLINE_STANDBY_FD' in os.environ or os.path.exists('up'): sys.exit(1)\n"
        "open('up','w').close(); time.sleep(3)\n"
    )
    run = Supervised(tmp_path, "--standby", "--delay", "0.05", program=[sys.executable, "-I", "-c", script])
    assert run.wait() == 0
    run.gone()
    assert run.err.count("the standby ended while it waited; another one is started") == 2
    assert run.err.count("the standby ended while it waited; there will be none any more") == 1
