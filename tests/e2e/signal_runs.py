"""Programs that count the signals they get, and the ways in which people and launchers send them."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Callable, Optional

import e2e_runner as runner

COUNTING = """
import json, os, signal, sys, time
folder = sys.argv[1]
KINDS = signal.valid_signals() - {9, 19, 17, 4, 5, 7, 8, 11}
counts = {}
ears, mouth = os.pipe()
os.set_blocking(mouth, False)
os.set_blocking(ears, False)
signal.set_wakeup_fd(mouth, warn_on_full_buffer=False)  # one byte each; handlers may be merged
for kind in KINDS:
    signal.signal(kind, lambda *_: None)
def write(name, text):
    with open(os.path.join(folder, name + ".tmp"), "w") as file:
        file.write(text)
    os.rename(os.path.join(folder, name + ".tmp"), os.path.join(folder, name))
write("ready", str(os.getpid()))
while True:
    over = os.path.exists(os.path.join(folder, "over"))
    try:
        for number in os.read(ears, 4096):
            counts[number] = counts.get(number, 0) + 1
    except BlockingIOError:
        if over:
            break
    time.sleep(0.002)
write("counts", json.dumps(counts))
"""

# A shell that stays and leads the session. The program is in its group, as in a script, or leads one of its
# own, as a job does.
SHELL = """
import os, signal, subprocess, sys
for kind in signal.valid_signals() - {9, 19, 17, 4, 5, 7, 8, 11}:
    signal.signal(kind, lambda *_: None)
own_group = os.setpgrp if sys.argv[1] == "group" else None
sys.exit(subprocess.call(sys.argv[2:], preexec_fn=own_group))
"""

KINDS = ("TSTP", "TERM", "INT", "HUP", "QUIT", "USR1", "USR2", "WINCH", "ALRM", "CONT", "IO", "ABRT", "PIPE")


def stat_of(pid: int) -> Optional[list[str]]:
    """State, parent, group, session ... of a process: what follows its name in /proc/PID/stat."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return None


def name_of(pid: int) -> str:
    """Its program's name; "" when it is gone."""
    try:
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def processes(accept: Callable[[list[str]], bool]) -> list[int]:
    """The living processes whose stat is accepted, by pid."""
    found = []
    for name in os.listdir("/proc"):
        stat = stat_of(int(name)) if name.isdigit() else None
        if stat is not None and stat[0] not in "ZX" and accept(stat):
            found.append(int(name))
    return sorted(found)


def below(pid: int) -> list[int]:
    """All processes below this one."""
    children = processes(lambda stat: int(stat[1]) == pid)
    return [one for child in children for one in (child, *below(child))]


def to_pid(pid: int, number: int) -> None:
    os.kill(pid, number)


def to_group(pid: int, number: int) -> None:
    group = os.getpgid(pid)
    assert group != os.getpgrp(), "the test itself"
    os.killpg(group, number)


def to_each_of_the_session(pid: int, number: int) -> None:
    """What `pkill -s` and a Slurm step do."""
    session = os.getsid(pid)
    assert session != os.getsid(0), "the test itself"
    for one in processes(lambda stat: int(stat[3]) == session):
        with contextlib.suppress(ProcessLookupError):
            os.kill(one, number)


def to_each_of_the_tree(pid: int, number: int) -> None:
    """What psutil's children(recursive=True) is used for."""
    for one in [*below(pid), pid]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(one, number)


def as_timeout_does(pid: int, number: int) -> None:
    """First the pid, then its group: the second one comes while the first is pending."""
    group = os.getpgid(pid)
    assert group != os.getpgrp(), "the test itself"
    os.kill(pid, number)
    os.killpg(group, number)


WAYS = {
    "pid": to_pid,
    "group": to_group,
    "session": to_each_of_the_session,
    "tree": to_each_of_the_tree,
}


def settle(*pids: int) -> None:
    """Waits until none of these has a signal pending: on a busy machine one not handled yet is merged
    with the next of its kind, and a stop takes back a SIGCONT."""

    def nothing_waits(pid: int) -> bool:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
        return all(int(line.split()[1], 16) == 0 for line in lines if line.startswith(("SigPnd", "ShdPnd")))

    for _ in range(2):  # what Trapline has taken reaches the program a little later
        time.sleep(0.06)
        wait_for(lambda: all(map(nothing_waits, pids)))


def is_gone(pid: int) -> bool:
    """It has ended, whether or not its parent has looked."""
    stat = stat_of(pid)
    return stat is None or stat[0] in "ZX"


def wait_for(what: Callable[[], Any], seconds: float = 30) -> Any:
    """The first true answer; fails when there is none."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        answer = what()
        if answer:
            return answer
        time.sleep(0.01)
    raise AssertionError(f"nothing after {seconds} s: {what}")


def under_trapline(command: Sequence[Any], *flags: str) -> list[str]:
    return [str(runner.TRAPLINE), "run", *flags, "--", *map(str, command)]


class Counted:
    """A program that counts, started as a launcher does; `pid` is what the launcher signals."""

    def __init__(self, folder: Path, launcher: str, prefix: Sequence[str] = ()) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        script = runner.write_program(folder / "count.py", COUNTING)
        command = [*prefix, runner.PYTHON, "-S", str(script), str(folder)]
        if launcher != "session":
            command = [runner.PYTHON, "-S", "-c", SHELL, launcher, *command]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=runner.environment(TMPDIR=str(folder)),
            start_new_session=True,
        )
        self.program = int(wait_for(lambda: (folder / "ready").exists() and (folder / "ready").read_text()))
        self.pid = self.process.pid
        if launcher != "session":
            self.pid = below(self.pid)[0]

    def counts(self) -> dict[str, int]:
        """Ends the program; what it got, by name."""
        time.sleep(0.2)  # what is on its way arrives
        (self.folder / "over").touch()
        _, said = self.process.communicate(timeout=60)
        assert self.process.returncode == 0, (self.process.returncode, said)
        counts = json.loads((self.folder / "counts").read_text(encoding="utf-8"))
        return {signal.Signals(int(number)).name[3:]: count for number, count in counts.items()}

    def kill(self) -> None:
        """Leaves nothing behind."""
        for one in [*below(self.process.pid), self.process.pid]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(one, signal.SIGKILL)
        self.process.wait()


@contextlib.contextmanager
def counted(folder: Path, launcher: str, prefix: Sequence[str] = ()) -> Iterator[Counted]:
    """A counting program that is gone afterwards, whatever happened."""
    program = Counted(folder, launcher, prefix)
    try:
        yield program
    finally:
        program.kill()


def count(folder: Path, launcher: str, way: str, rounds: int, prefix: Sequence[str] = ()) -> dict[str, int]:
    """Each kind of signal `rounds` times, each when the one before was handled; what the program got."""
    with counted(folder, launcher, prefix) as program:
        for _ in range(rounds):
            for kind in KINDS[1:]:
                WAYS[way](program.pid, getattr(signal, "SIG" + kind))
            settle(program.pid, program.program)
            # By itself: it takes back a SIGCONT that is not handled yet, and the other way round.
            WAYS[way](program.pid, getattr(signal, "SIG" + KINDS[0]))
            settle(program.pid, program.program)
        return program.counts()
