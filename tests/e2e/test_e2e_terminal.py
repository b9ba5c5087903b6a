"""The program's terminal is its own: size, colour, Ctrl-C; the report takes colour from the terminal."""

from __future__ import annotations

import errno
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from pathlib import Path
from typing import Optional

import e2e_runner as runner

COLOUR = re.compile(r"\x1b\[[0-9;]*m")

TERMINAL = """
import os, sys
print([os.isatty(fd) for fd in (0, 1, 2)], os.get_terminal_size(1), flush=True)
"""

FAULT = """
import torch
import torch.nn.functional as F
print("\\rprogress 50%", end="", flush=True)
F.cross_entropy(torch.zeros(2, 3), torch.tensor([0, 7]))  # <- here
"""

INTERRUPTED = """
import time
try:
    print("ready", flush=True)
    time.sleep(60)
except KeyboardInterrupt:
    print("cleaned up", flush=True)
    raise
"""


def on_terminal(
    command: list[str], env: dict[str, str], typed: Optional[tuple[str, bytes]] = None
) -> tuple[int, str]:
    """Runs a command on its own terminal (33 x 101); types `typed[1]` once `typed[0]` is on the screen."""
    pid, master = pty.fork()
    if pid == 0:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # a shell's background job ignores it, and so would we
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 101, 0, 0))
        os.execve(command[0], command, env)
    screen, deadline = b"", time.monotonic() + runner.TIME_LIMIT
    while time.monotonic() < deadline:
        if not select.select([master], [], [], 1.0)[0]:
            continue
        try:
            read = os.read(master, 65536)
        except OSError as error:
            assert error.errno == errno.EIO  # the last one on the terminal has gone
            break
        if not read:
            break
        screen += read
        if typed is not None and typed[0].encode() in screen:
            os.write(master, typed[1])
            typed = None
    else:
        os.kill(pid, 9)
    status = os.waitpid(pid, 0)[1]
    os.close(master)
    return os.waitstatus_to_exitcode(status), screen.decode("utf-8", "replace")


def _run(script: Path, env: dict[str, str], typed: Optional[tuple[str, bytes]] = None) -> tuple[int, str]:
    return on_terminal([str(runner.TRAPLINE), "run", "--", runner.PYTHON, str(script)], env, typed)


def test_program_sees_the_users_terminal(tmp_path: Path) -> None:
    script = runner.write_program(tmp_path / "tty.py", TERMINAL)
    code, screen = _run(script, runner.environment(TERM="xterm"))
    assert code == 0
    assert "[True, True, True] os.terminal_size(columns=101, lines=33)" in screen
    assert "trapline" not in screen


def test_report_has_colour_on_a_terminal_and_comes_after_the_programs_output(tmp_path: Path) -> None:
    script = runner.write_program(tmp_path / "fault.py", FAULT)
    code, screen = _run(script, runner.environment(TERM="xterm-256color"))
    assert code == 1
    assert "progress 50%" in screen
    assert screen.index("Traceback") < screen.index("TL101")
    report = screen[screen.index("DeviceAssertError") :]
    assert COLOUR.search(report), repr(report)
    uncoloured = COLOUR.sub("", report)
    assert f"fault.py:{runner.marked_line(script)}" in uncoloured
    assert "target[1]" in uncoloured


def test_no_color_is_honoured_on_a_terminal(tmp_path: Path) -> None:
    script = runner.write_program(tmp_path / "fault.py", FAULT)
    code, screen = _run(script, runner.environment(TERM="xterm-256color", NO_COLOR="1"))
    assert code == 1
    assert "TL101" in screen
    assert not COLOUR.search(screen[screen.index("DeviceAssertError") :]), repr(screen)


def test_ctrl_c_reaches_the_program_once(tmp_path: Path) -> None:
    script = runner.write_program(tmp_path / "wait.py", INTERRUPTED)
    code, screen = _run(script, runner.environment(TERM="xterm"), typed=("ready", b"\x03"))
    assert code == -signal.SIGINT  # a script ends with it, and its $? is 130
    assert screen.count("cleaned up") == 1
    assert "TL" not in screen
