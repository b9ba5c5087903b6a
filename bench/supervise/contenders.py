"""Who keeps the server running: each starts the same application, on a port of its own."""

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
UNGUARDED = [sys.executable, str(HERE / "unguarded.py"), "--host", "127.0.0.1", "--log-level", "warning"]
_START = 120.0  # the first start may compile the device


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def get(port: int, path: str) -> bytes:
    """The answer's body; b"" where there is no good one."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=2) as answer:
            return answer.read()
    except (urllib.error.URLError, OSError):
        return b""


class Contender:
    """`ready`: where its surroundings ask whether the server is to get requests."""

    name = ""
    decision = "none"

    def __init__(self, folder: Path, build: Path) -> None:
        self.folder = folder
        self.build = build
        self.port = free_port()
        self.ready = (self.port, "/healthz")
        self.process: subprocess.Popen | None = None
        folder.mkdir(parents=True)

    def command(self) -> list[str]:
        raise NotImplementedError

    def plain(self) -> list[str]:
        return [*UNGUARDED, "--port", str(self.port), "served:plain"]

    def start(self) -> None:
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("TRAPLINE_")}
        own = {
            "BENCH_ACCEPTED": str(self.folder / "accepted"),
            "TRAPLINE_BUILD_DIR": str(self.build),
            "PYTHONPATH": os.pathsep.join([str(HERE), str(ROOT / "python")]),
        }
        with (self.folder / "log").open("wb") as log:
            self.process = subprocess.Popen(
                self.command(), env={**inherited, **own}, stdout=log, stderr=log, start_new_session=True
            )
        deadline = time.monotonic() + _START
        while not self.is_up():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{self.name} did not start: see {self.folder / 'log'}")
            time.sleep(0.1)

    def is_up(self) -> bool:
        return bool(get(self.port, "/readyz"))

    def stop(self) -> None:
        """Ends it and all that it has started."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            pass
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()

    def accepted(self) -> set[int]:
        """The ports of the clients whose connections a process of the server has accepted."""
        return set(map(int, (self.folder / "accepted").read_text().split()))

    def told(self) -> str:
        """What it has decided, as it says it."""
        return self.decision


class Nobody(Contender):
    name = "no supervisor"

    def command(self) -> list[str]:
        return self.plain()


class Loop(Contender):
    name = "blind restart loop"
    decision = "restart when it exits"

    def command(self) -> list[str]:
        return ["bash", "-c", f"while true; do {shlex.join(self.plain())}; done"]


class Supervisord(Contender):
    name = "supervisord"
    decision = "restart when it exits"

    def command(self) -> list[str]:
        file = self.folder / "supervisord.conf"
        environment = ",".join(f'{name}="%(ENV_{name})s"' for name in ("BENCH_ACCEPTED", "PYTHONPATH"))
        file.write_text(
            f"[supervisord]\nnodaemon=true\nlogfile={self.folder}/supervisord.log\npidfile={self.folder}/pid\n"
            f"[program:server]\ncommand={shlex.join(self.plain())}\nautorestart=true\n"
            f"environment={environment}\nstopasgroup=true\nkillasgroup=true\n"
        )
        return [sys.executable, "-m", "supervisor.supervisord", "-c", str(file)]


class Systemd(Contender):
    name = "systemd: Restart=on-failure"
    decision = "restart when it fails"

    def command(self) -> list[str]:
        return [sys.executable, str(HERE / "keep.py"), "--restart", "on-failure", "--", *self.plain()]


class Kubernetes(Contender):
    name = "Kubernetes: liveness on /healthz"
    decision = "restart after 3 failed probes"
    path = "/healthz"

    def command(self) -> list[str]:
        self.ready = (self.port, self.path)
        url = f"http://127.0.0.1:{self.port}{self.path}"
        return [sys.executable, str(HERE / "keep.py"), "--liveness", url, "--", *self.plain()]


class KubernetesDeep(Kubernetes):
    name = "Kubernetes: liveness on /readyz, which runs the model"
    path = "/readyz"


class Trapline(Contender):
    name = "Trapline"
    flags: tuple[str, ...] = ()
    application = "served:guarded"

    def command(self) -> list[str]:
        self.status = free_port()
        self.ready = (self.status, "/readyz")
        return [
            *(str(self.build / "bin" / "trapline"), "supervise", "--cpu", *self.flags),
            *("--listen", f"127.0.0.1:{self.port}", "--status", f"127.0.0.1:{self.status}", "--"),
            *(sys.executable, "-m", "uvicorn", "--fd", "3", "--log-level", "warning", self.application),
        ]

    def seen(self) -> dict:
        return json.loads(get(self.status, "/status.json") or b"{}")

    def told(self) -> str:
        return ", then ".join(one["action"] for one in self.seen().get("incidents", [])) or "none"


class TraplineStandby(Trapline):
    name = "Trapline --standby"
    flags = ("--standby",)

    def is_up(self) -> bool:
        return super().is_up() and self.seen().get("standby") == "ready"


ALL: tuple[type[Contender], ...] = (
    Nobody,
    Loop,
    Supervisord,
    Systemd,
    Kubernetes,
    KubernetesDeep,
    Trapline,
    TraplineStandby,
)
