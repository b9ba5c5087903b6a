"""`trapline run` in an interactive shell and as the leader of a session: what each key and each end does."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import shutil
import signal
import struct
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Callable

import e2e_runner as runner
import pytest
import signal_runs as runs

COUNTS = """
import os, signal, sys, time
counts = dict(INT=0, TSTP=0, CONT=0, WINCH=0, HUP=0)
def on(name):
    def handler(*_):
        counts[name] += 1
        if name == "TSTP":
            signal.signal(signal.SIGTSTP, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGTSTP)
        if name == "WINCH":
            os.write(1, f"size {counts[name]}\\n".encode())
    return handler
for name in counts:
    signal.signal(getattr(signal, "SIG" + name), on(name))
os.write(1, b"rea" + b"dy\\n")
end = time.monotonic() + 60
while not counts["INT"] and time.monotonic() < end:
    time.sleep(0.01)
print("counted", *(f"{k}{v}" for k, v in counts.items()), flush=True)
"""


class Screen:
    """A terminal with a session of its own, as sshd and docker make one; its leader is `command`."""

    def __init__(self, command: list[str], **env: str) -> None:
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            os.execvpe(command[0], command, runner.environment(TERM="dumb", PS1="$ ", **env))
        self.text = ""

    def type(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    def read(self, seconds: float) -> None:
        if select.select([self.master], [], [], seconds)[0]:
            try:
                self.text += os.read(self.master, 65536).decode(errors="replace")
            except OSError:  # closed
                time.sleep(0.01)

    def wait_for(self, what: str, seconds: float = 30) -> str:
        """What has come up to these words; it is not looked at again."""
        end = time.monotonic() + seconds
        while what not in self.text:
            assert time.monotonic() < end, (what, self.text)
            self.read(0.1)
        before, _, self.text = self.text.partition(what)
        return before

    def wait_for_job(self) -> None:
        """Until a job has the terminal and runs: keys that are typed before go to the shell, and its CONT
        takes back a stop that is pending."""

        def runs_in_front() -> bool:
            group = os.tcgetpgrp(self.master)
            states = [runs.stat_of(one) for one in runs.processes(lambda stat: int(stat[2]) == group)]
            return group != self.pid and bool(states) and all(stat and stat[0] != "T" for stat in states)

        runs.wait_for(runs_in_front)

    def hang_up(self) -> None:
        os.close(self.master)
        self.master = -1

    def ended(self, seconds: float = 30) -> int:
        """Its exit code, negative for a signal."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.pid = 0
                return os.waitstatus_to_exitcode(status)
            if self.master >= 0:
                self.read(0.02)
            else:
                time.sleep(0.02)
        raise AssertionError("it goes on: " + self.text)

    def close(self) -> None:
        if self.pid:
            for one in [*runs.below(self.pid), self.pid]:
                os.kill(one, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        if self.master >= 0:
            os.close(self.master)


@pytest.fixture
def screen() -> Iterator[Callable[..., Screen]]:
    made: list[Screen] = []

    def make(command: list[Any], **env: str) -> Screen:
        made.append(Screen([str(part) for part in command], **env))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def shell(screen: Callable[..., Screen]) -> Screen:
    if shutil.which("bash") is None:
        pytest.skip("needs bash")
    one = screen(["bash", "--norc", "--noprofile", "-i"])
    one.wait_for("$ ")
    one.type("stty -echo\n")
    one.wait_for("$ ")
    return one


def line(guarded: bool, *command: Any) -> str:
    words = runs.under_trapline(command) if guarded else map(str, command)
    return " ".join(words)


both = pytest.mark.parametrize("guarded", [False, True], ids=["alone", "trapline"])


@both
def test_stop_list_background_foreground_interrupt(shell: Screen, tmp_path: Path, guarded: bool) -> None:
    script = runner.write_program(tmp_path / "counts.py", COUNTS)
    shell.type(line(guarded, runner.PYTHON, "-S", script) + "\n")
    shell.wait_for("ready")
    shell.type("\x1a")
    shell.wait_for("Stopped")
    shell.type("jobs\n")
    shell.wait_for("Stopped")
    shell.type("bg; echo it goes on\n")
    shell.wait_for("it goes on")
    shell.type("jobs\n")
    shell.wait_for("Running")
    shell.type("fg\n")
    shell.wait_for_job()
    shell.type("\x03")
    shell.wait_for("counted INT1 TSTP1 CONT1 WINCH0 HUP0")
    shell.wait_for("$ ")
    shell.type("echo code=$?\n")
    shell.wait_for("code=0")


@both
def test_many_stops(shell: Screen, guarded: bool) -> None:
    shell.type(line(guarded, "sh", "-c", "'echo up; exec sleep 60'") + "\n")
    shell.wait_for("up")
    for _ in range(5):
        shell.type("\x1a")
        shell.wait_for("Stopped")
        shell.wait_for("$ ")
        shell.type("fg\n")
        shell.wait_for_job()
    shell.type("\x03")
    shell.wait_for("$ ")
    shell.type("echo code=$?\n")
    shell.wait_for("code=130")


@both
def test_a_background_job_that_reads_the_terminal(shell: Screen, guarded: bool) -> None:
    shell.type(line(guarded, "sh", "-c", "'read word; echo got:$word'") + " &\n")
    shell.wait_for("[1]")  # not the prompt: bash may say "Stopped" before it
    end = time.monotonic() + 20
    while "Stopped" not in shell.text and time.monotonic() < end:
        shell.type("\n")
        shell.read(0.3)
    shell.wait_for("Stopped")
    shell.type("fg\n")
    shell.wait_for_job()
    shell.type("typed\n")
    shell.wait_for("got:typed")
    shell.wait_for("$ ")


@both
@pytest.mark.parametrize("how", ["kill %1", "kill -9 %1", "kill -HUP %1", "kill -9 $(jobs -p)"])
def test_a_stopped_job_is_ended(shell: Screen, guarded: bool, how: str) -> None:
    shell.type(line(guarded, "sh", "-c", "'echo up; exec sleep 60'") + "\n")
    shell.wait_for("up")
    shell.type("\x1a")
    shell.wait_for("Stopped")
    below = runs.below(shell.pid)
    assert below
    shell.type(how + "; wait; echo all gone\n")
    shell.wait_for("all gone")
    runs.wait_for(lambda: not runs.below(shell.pid))


@both
def test_ctrl_c_ends_a_script_with_its_program(shell: Screen, tmp_path: Path, guarded: bool) -> None:
    text = "for i in 1 2 3; do " + line(guarded, "sh", "-c", "'echo turn $0; sleep 60'", "$i") + "; done\n"
    script = runner.write_program(tmp_path / "loop.sh", text)
    shell.type(f"bash {script}\n")
    shell.wait_for("turn 1")
    # A shell loses a Ctrl-C that comes while it starts `sleep`.
    runs.wait_for(lambda: "sleep" in map(runs.name_of, runs.below(shell.pid)))
    shell.type("\x03")
    assert "turn" not in shell.wait_for("$ ")
    shell.type("echo code=$?\n")
    shell.wait_for("code=130")


@both
def test_the_terminal_is_closed_under_the_leader(
    screen: Callable[..., Screen], tmp_path: Path, guarded: bool
) -> None:
    """ssh -t, docker run -it: the program ends, as it would alone."""
    prefix = runs.under_trapline([]) if guarded else []
    one = screen([*prefix, "sh", "-c", "echo up; exec sleep 60"], TMPDIR=str(tmp_path))
    one.wait_for("up")
    session = one.pid
    one.hang_up()
    assert one.ended() in (-signal.SIGHUP, 128 + signal.SIGHUP)
    runs.wait_for(lambda: not runs.processes(lambda stat: int(stat[3]) == session))
    assert list(tmp_path.glob("trapline-*")) == []


@both
def test_a_program_with_a_handler_saves_after_the_hang_up(
    screen: Callable[..., Screen], tmp_path: Path, guarded: bool
) -> None:
    text = (
        f"trap 'echo got >> {tmp_path}/hangups; sleep 0.5; exit 7' HUP; echo up; while :; do sleep 0.05; done"
    )
    one = screen([*(runs.under_trapline([]) if guarded else []), "sh", "-c", text])
    one.wait_for("up")
    one.hang_up()
    assert one.ended() == 7
    assert (tmp_path / "hangups").read_text() == "got\n"


@both
def test_the_terminal_is_closed_under_a_shell(shell: Screen, tmp_path: Path, guarded: bool) -> None:
    text = f"'trap \"echo got >> {tmp_path}/hangups; exit 7\" HUP; echo up; while :; do sleep 0.05; done'"
    shell.type(line(guarded, "sh", "-c", text) + "\n")
    shell.wait_for("up")
    session = shell.pid
    shell.hang_up()
    shell.ended()
    runs.wait_for(lambda: not runs.processes(lambda stat: int(stat[3]) == session))
    runs.wait_for((tmp_path / "hangups").exists)
    assert set((tmp_path / "hangups").read_text().split()) == {"got"}


@both
def test_nohup_goes_on(shell: Screen, tmp_path: Path, guarded: bool) -> None:
    text = f"'touch {tmp_path}/up; while [ ! -e {tmp_path}/gone ]; do sleep 0.1; done; touch {tmp_path}/done'"
    shell.type("nohup " + line(guarded, "sh", "-c", text) + " > /dev/null 2>&1 < /dev/null &\n")
    runs.wait_for((tmp_path / "up").exists)
    shell.hang_up()
    shell.ended()
    (tmp_path / "gone").touch()
    runs.wait_for((tmp_path / "done").exists)


@both
def test_the_window_size_is_told_once(screen: Callable[..., Screen], tmp_path: Path, guarded: bool) -> None:
    script = runner.write_program(tmp_path / "counts.py", COUNTS)
    one = screen([*(runs.under_trapline([]) if guarded else []), runner.PYTHON, "-S", script])
    one.wait_for("ready")
    for turn, rows in enumerate((30, 31, 32), 1):
        fcntl.ioctl(one.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, 99, 0, 0))
        one.wait_for(f"size {turn}")  # one that is not handled yet would be merged with the next
    one.type("\x03")
    one.wait_for("counted INT1 TSTP0 CONT0 WINCH3 HUP0")
    assert one.ended() == 0
