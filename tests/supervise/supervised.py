"""One `trapline supervise` under test: started, watched, and everything below it found."""

import json
import os
import signal
import subprocess
import time
import uuid
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("TRAPLINE_BUILD_DIR", ROOT / "build"))
TRAPLINE = BUILD / "bin" / "trapline"

ASSERTION = (
    "/pytorch/aten/src/ATen/native/cuda/Indexing.cu:1369: indexSelectLargeIndex: block: [3,0,0], "
    "thread: [0,0,0] Assertion `srcIndex < srcSelectDimSize` failed."
)


def until(condition, seconds=20.0, step=0.01):
    """Wait until ``condition()`` is true, and return what it said; fail after ``seconds``."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(step)
    raise AssertionError(f"not within {seconds} s: {condition}")


class Supervised:
    """Everything that it starts carries a mark in its environment, so that nothing can hide."""

    def __init__(self, folder, *flags, program, stdout=None, stderr=None, env=None, wrap=(), **more):
        self.mark = f"SUPERVISED_TEST={uuid.uuid4()}"
        self.folder = Path(folder)
        self.json = self.folder / "report.json"
        self.out_file = self.folder / "out"
        self.err_file = self.folder / "err"
        name, value = self.mark.split("=")
        environment = dict(os.environ, **{name: value}, **(env or {}))
        command = [
            *wrap,
            str(TRAPLINE),
            "supervise",
            *flags,
            "--format",
            "json",
            "-o",
            str(self.json),
            "--",
            *program,
        ]
        with open(self.out_file, "wb") as out, open(self.err_file, "wb") as err:
            self.process = subprocess.Popen(
                command,
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=stdout if stdout is not None else out,
                stderr=stderr if stderr is not None else err,
                **more,
            )
        self.peak = 0

    @property
    def out(self):
        return self.out_file.read_text(errors="replace")

    @property
    def err(self):
        return self.err_file.read_text(errors="replace")

    @property
    def report(self):
        return json.loads(self.json.read_text())

    @property
    def codes(self):
        return [finding["code"] for finding in self.report["findings"]]

    @property
    def decisions(self):
        """What was decided after each start: ["retry", "stop"]."""
        notes = [note for note in self.report["notes"] if note.startswith("start ")]
        return [note.split(": ")[1] for note in notes]

    def send(self, number):
        os.kill(self.process.pid, number)

    def wait(self, seconds=60.0):
        """The exit code; fails when it does not come."""
        end = time.monotonic() + seconds
        while self.process.poll() is None:
            self._look_at_memory()
            if time.monotonic() > end:
                left = self.left()
                self.clean()
                raise AssertionError(f"still there after {seconds} s, with {left}: {self.err[-2000:]}")
            time.sleep(0.02)
        return self.process.returncode

    def _look_at_memory(self):
        try:
            text = Path(f"/proc/{self.process.pid}/status").read_text()
        except OSError:
            return
        for line in text.splitlines():
            if line.startswith("VmHWM:"):
                self.peak = max(self.peak, int(line.split()[1]))  # KiB

    def left(self):
        """Processes that carry the mark, with their command lines."""
        found = {}
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == os.getpid():
                continue
            try:
                if self.mark.encode() in (entry / "environ").read_bytes().split(b"\0"):
                    found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
        return found

    def gone(self, seconds=15.0):
        """Fails when something is left behind."""
        end = time.monotonic() + seconds
        while self.left() and time.monotonic() < end:
            time.sleep(0.02)
        left = self.left()
        self.clean()
        assert left == {}

    def clean(self):
        for pid in self.left():
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        self.process.poll()
