"""How a program under `trapline run` dies of what launchers do to it, and that nothing of it is left."""

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
KINDS = ["TERM", "INT", "HUP", "QUIT", "USR1", "USR2", "ALRM", "ABRT", "PIPE"]
KINDS += ["XCPU", "VTALRM", "PROF", "SEGV", "SYS", "IO", "BUS", "TRAP"]
ORDERS = [
    "STOP TERM CONT",
    "STOP CONT TERM",
    "TSTP TERM CONT",
    "TSTP CONT CONT TERM",
    "STOP KILL",
    "TSTP KILL",
    "STOP STOP CONT CONT INT",
    "CONT TERM",
    "WINCH TERM",
    "CHLD TERM",
]
PROGRAM = "touch {}/up; exec sleep 60"


def die(folder: Path, way: str, order: str, prefix: list[str]) -> int:
    """The exit code, as a shell tells it, of a program that got these signals 50 ms apart."""
    folder.mkdir()
    process = subprocess.Popen(
        [*prefix, "sh", "-c", PROGRAM.format(folder)],
        env=runner.environment(TMPDIR=str(folder)),
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        runs.wait_for((folder / "up").exists)
        for name in order.split():
            runs.WAYS[way](process.pid, getattr(signal, "SIG" + name))
            time.sleep(0.3 if name in ("STOP", "TSTP") and way == "pid" else 0.05)
        code = process.wait(30)
        session = process.pid
        runs.wait_for(lambda: not runs.processes(lambda stat: int(stat[3]) == session))
        if "KILL" not in order:
            assert list(folder.glob("trapline-*")) == []
        return 128 - code if code < 0 else code
    finally:
        for one in runs.processes(lambda stat: int(stat[3]) == process.pid):
            os.kill(one, signal.SIGKILL)
        process.wait()


@pytest.mark.parametrize("way", ["pid", "group"])
@pytest.mark.parametrize("order", [*KINDS, *ORDERS] if LONG else ["TERM", "ABRT", "STOP TERM CONT"])
def test_the_same_end_as_alone(tmp_path: Path, way: str, order: str) -> None:
    alone = die(tmp_path / "alone", way, order, [])
    assert die(tmp_path / "guarded", way, order, runs.under_trapline([])) == alone


LAUNCHERS = {
    "timeout": "timeout 0.7 {} sleep 60",
    "timeout kill": "timeout -s KILL 0.7 {} sleep 60",
    "timeout foreground": "timeout --foreground 0.7 {} sleep 60",
    "timeout then kill": "timeout -k 0.3 3 {} sh -c 'trap \"\" TERM; while :; do sleep 0.05; done'",
    "timeout inside": "{} timeout 0.7 sleep 60",
    "setsid": "setsid -w timeout 0.7 {} sleep 60",
    "nice": "nice {} sh -c 'exit 3'",
    "env": "env A=1 {} sh -c 'exit 4'",
    "xargs": "printf '1\\n2\\n' | xargs -P2 -I% {} sh -c 'exit %'",
    "make": "printf 'all: a b\\na b:\\n\\t{} sh -c \"exit 3\"\\n' | make -s -j2 -f -",
    "pipe": "{} sh -c 'yes | head -n 100000' | head -n 1",
    "cpu limit": "ulimit -t 1; {} sh -c 'while :; do :; done'",
    "file limit": "ulimit -f 1; {} sh -c 'head -c 100000 /dev/zero > big'",
    "killed by itself": "{} sh -c 'kill -KILL $$'",
    "stopped by itself": "{} sh -c '(sleep 0.4; kill -CONT $$) & kill -STOP $$; exit 6'",
    "fork storm": "{} sh -c 'for i in $(seq 300); do true & done; wait; exit 7'",
    "pid 1": "unshare -pf --kill-child {} sh -c 'exit 8'",
    "user namespace": "unshare -Ur {} sh -c 'exit 9'",
    "ignored": "trap '' TERM; timeout -k 30 0.5 {} sh -c 'sleep 0.8; exit 5'",
    "alarm": "{} python3 -c 'import signal, time; signal.alarm(1); time.sleep(60)'",
    "alarm of the launcher": "python3 -c 'import os, signal, sys; signal.alarm(1);"
    " os.execvp(sys.argv[1], sys.argv[1:])' {} sleep 60",
    "background": "{} sh -c 'sleep 0.3; exit 11' & wait $!",
    "closed streams": "{} sh -c 'exit 12' <&- >&- 2>&-",
}


@pytest.mark.parametrize("name", LAUNCHERS if LONG else ["timeout", "timeout kill", "pid 1"])
def test_the_same_end_below_a_launcher(tmp_path: Path, name: str) -> None:
    codes = []
    for prefix in ("env", " ".join(runs.under_trapline([]))):
        ended = subprocess.run(
            ["bash", "-c", LAUNCHERS[name].replace("{}", prefix)],
            cwd=tmp_path,
            env=runner.environment(TMPDIR=str(tmp_path)),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=60,
            start_new_session=True,
            check=False,
        )
        if b"Operation not permitted" in ended.stderr:
            pytest.skip("not allowed here")
        codes.append(128 - ended.returncode if ended.returncode < 0 else ended.returncode)
    assert codes[1] == codes[0], ended.stderr
