"""A program under `trapline run` gets each signal as often as it would alone, whoever sends it to whom."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import e2e_runner as runner
import pytest
import signal_runs as runs

LONG = os.environ.get("TRAPLINE_LONG") == "1"
ROUNDS = 40 if LONG else 4

# Its second SIGTERM means "at once": the checkpoint is left out.
CHECKPOINT = """
import os, signal, sys, time
folder, asked = sys.argv[1], 0
def on_term(*_):
    global asked
    asked += 1
    if asked > 1:
        os._exit(1)
signal.signal(signal.SIGTERM, on_term)
open(os.path.join(folder, "ready"), "w").close()
while not asked:
    time.sleep(0.01)
time.sleep(0.3)
open(os.path.join(folder, "checkpoint"), "w").close()
"""


@pytest.mark.parametrize("launcher", ["session", "group", "shell"])
@pytest.mark.parametrize("way", list(runs.WAYS))
def test_each_signal_as_often_as_alone(tmp_path: Path, launcher: str, way: str) -> None:
    alone = runs.count(tmp_path / "alone", launcher, way, ROUNDS)
    guarded = runs.count(tmp_path / "guarded", launcher, way, ROUNDS, runs.under_trapline([]))
    assert alone == dict.fromkeys(runs.KINDS, ROUNDS)
    assert guarded == alone


def test_a_sender_that_waits_for_a_processor(tmp_path: Path) -> None:
    """Between the first process of a session and the last it may be put aside for longer than usual."""
    with runs.counted(tmp_path, "session", runs.under_trapline([])) as program:
        for _ in range(ROUNDS):
            for one in [program.pid, *runs.below(program.pid)]:
                os.kill(one, signal.SIGUSR2)
                end = time.monotonic() + 0.06
                while time.monotonic() < end:
                    pass
            time.sleep(0.2)
        assert program.counts() == {"USR2": ROUNDS}


def test_signals_of_a_busy_sender_keep_their_distance(tmp_path: Path) -> None:
    """Handed on at once, two of them would be one to the kernel."""
    with runs.counted(tmp_path, "session", runs.under_trapline([])) as program:
        for _ in range(ROUNDS):
            for _ in range(2):
                os.kill(program.pid, signal.SIGUSR1)
                end = time.monotonic() + 0.12
                while time.monotonic() < end:
                    pass
            time.sleep(0.5)
        assert program.counts() == {"USR1": 2 * ROUNDS}


@pytest.mark.parametrize("way", ["pid", "group"])
def test_below_two_traplines_too(tmp_path: Path, way: str) -> None:
    nested = runs.under_trapline(runs.under_trapline([]))
    assert runs.count(tmp_path, "session", way, ROUNDS, nested) == dict.fromkeys(runs.KINDS, ROUNDS)


@pytest.mark.parametrize("attempt", range(8 if LONG else 3))
def test_the_checkpoint_is_written_under_timeout(tmp_path: Path, attempt: int) -> None:
    script = runner.write_program(tmp_path / "train.py", CHECKPOINT)
    command = runs.under_trapline([runner.PYTHON, "-S", script, tmp_path])
    ended = subprocess.Popen(
        ["timeout", "300", *command], env=runner.environment(), stderr=subprocess.PIPE, start_new_session=True
    )
    runs.wait_for((tmp_path / "ready").exists)
    os.kill(ended.pid, signal.SIGALRM)  # its own clock: the time is over
    _, said = ended.communicate(timeout=60)
    assert (tmp_path / "checkpoint").exists(), said
    assert ended.returncode == 124


def test_a_value_that_comes_with_a_signal(tmp_path: Path) -> None:
    """sigqueue: a queue of values, none of which is lost."""
    script = runner.write_program(
        tmp_path / "values.py",
        "import os, signal, sys\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGRTMIN])\n"
        "open(sys.argv[1], 'w').close()\n"
        "for _ in range(3): print(signal.sigwaitinfo([signal.SIGRTMIN]).si_signo, flush=True)\n",
    )
    process = subprocess.Popen(
        runs.under_trapline([runner.PYTHON, "-S", script, tmp_path / "ready"]),
        env=runner.environment(),
        stdout=subprocess.PIPE,
    )
    runs.wait_for((tmp_path / "ready").exists)
    for _ in range(3):
        os.kill(process.pid, signal.SIGRTMIN)
    out, _ = process.communicate(timeout=30)
    assert (process.returncode, out.split()) == (0, [str(int(signal.SIGRTMIN)).encode()] * 3)


def test_kill_minus_9_leaves_no_program_and_the_next_run_no_folder(tmp_path: Path) -> None:
    with runs.counted(tmp_path, "session", runs.under_trapline([])) as program:
        assert len(list(tmp_path.glob("trapline-*"))) == 1
        os.kill(program.process.pid, signal.SIGKILL)
        runs.wait_for(lambda: runs.is_gone(program.program))
        assert program.process.wait(30) == -signal.SIGKILL
    left = list(tmp_path.glob("trapline-*"))
    assert len(left) == 1
    living = subprocess.Popen(  # whose folder must stay
        runs.under_trapline(["sh", "-c", "touch up; sleep 60"]),
        env=runner.environment(TMPDIR=str(tmp_path)),
        cwd=tmp_path,
        start_new_session=True,
    )
    try:
        runs.wait_for((tmp_path / "up").exists)
        now = list(tmp_path.glob("trapline-*"))
        assert len(now) == 1 and now != left
        env = runner.environment(TMPDIR=str(tmp_path))
        assert runner.trapline([], ["true"], env=env).returncode == 0
        assert list(tmp_path.glob("trapline-*")) == now
    finally:
        os.killpg(living.pid, signal.SIGKILL)
        living.wait()


def test_kill_minus_9_of_the_group(tmp_path: Path) -> None:
    with runs.counted(tmp_path, "session", runs.under_trapline([])) as program:
        os.killpg(program.process.pid, signal.SIGKILL)
        assert program.process.wait(30) == -signal.SIGKILL
        session = program.process.pid
        runs.wait_for(lambda: not runs.processes(lambda stat: int(stat[3]) == session))


def test_a_stop_of_the_pid_stops_the_program(tmp_path: Path) -> None:
    """Whoever pauses a training to have the machine for a while."""
    with runs.counted(tmp_path, "session", runs.under_trapline([])) as program:
        for _ in range(2):
            os.kill(program.process.pid, signal.SIGSTOP)
            runs.wait_for(lambda: runs.stat_of(program.program)[0] == "T")
            os.kill(program.process.pid, signal.SIGCONT)
            runs.wait_for(lambda: runs.stat_of(program.program)[0] != "T")
            time.sleep(0.1)
        assert program.counts() == {"CONT": 2}


def test_a_stop_of_the_program_alone_is_followed_and_ends_with_it(tmp_path: Path) -> None:
    with runs.counted(tmp_path, "session", runs.under_trapline([])) as program:
        tool = program.process.pid
        os.kill(program.program, signal.SIGSTOP)
        runs.wait_for(lambda: runs.stat_of(tool)[0] == "T")
        os.kill(program.program, signal.SIGCONT)
        runs.wait_for(lambda: runs.stat_of(tool)[0] != "T")
        os.kill(program.program, signal.SIGSTOP)
        runs.wait_for(lambda: runs.stat_of(tool)[0] == "T")
        os.kill(program.program, signal.SIGKILL)
        assert program.process.wait(30) == 128 + signal.SIGKILL
