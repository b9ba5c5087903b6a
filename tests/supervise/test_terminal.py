"""A terminal is passed through: the program has it, is interrupted once, stops and goes on with it."""

import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time

import pytest
from supervised import TRAPLINE, until


class Terminal:
    """`trapline supervise` in the foreground of a session of its own, as a shell starts it."""

    def __init__(self, script):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            # What a shell started in the background ignores is inherited, and /bin/sh cannot trap it then.
            for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTSTP):
                signal.signal(number, signal.SIG_DFL)
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 77, 0, 0))
            os.execv(TRAPLINE, ["trapline", "supervise", "--delay", "0.05", "--", "/bin/sh", "-c", script])
        self.text = ""
        self.status = None

    def read(self):
        while select.select([self.fd], [], [], 0)[0]:
            try:
                block = os.read(self.fd, 4096)
            except OSError:
                break
            if not block:
                break
            self.text += block.decode(errors="replace")
        return self.text

    def type(self, text):
        os.write(self.fd, text.encode())

    def wait(self):
        def ended():
            self.read()
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
                self.read()  # what came between the two
            return pid

        until(ended)
        return self.status


@pytest.fixture
def terminal():
    started = []

    def start(script):
        started.append(Terminal(script))
        return started[-1]

    yield start
    for one in started:
        if one.status is None:
            os.kill(one.pid, signal.SIGKILL)
            os.waitpid(one.pid, 0)
        os.close(one.fd)


def test_the_program_has_the_terminal(terminal):
    one = terminal("[ -t 0 ] && [ -t 1 ] && [ -t 2 ] && stty size; read line; echo got $line; exit 3")
    until(lambda: "33 77" in one.read())
    one.type("hello\n")
    until(lambda: "got hello" in one.read())


def test_ctrl_c_reaches_the_program_once_and_is_no_fault(terminal):
    one = terminal(
        "trap 'n=$((n+1)); echo int $n' INT; echo up;"
        ' until [ -n "$n" ]; do sleep 0.1; done; sleep 0.5; exit 130'
    )
    until(lambda: "up" in one.read())
    time.sleep(0.1)
    one.type("\x03")
    assert one.wait() == 130
    assert one.text.count("int 1") == 1 and "int 2" not in one.text
    assert "retry" not in one.text


def test_ctrl_z_stops_both_and_both_go_on(terminal):
    one = terminal("echo up; read line; echo got $line; exit 0")
    until(lambda: "up" in one.read())
    one.type("\x1a")

    def is_stopped():
        return open(f"/proc/{one.pid}/stat").read().rsplit(")", 1)[1].split()[0] == "T"

    until(is_stopped)
    os.kill(one.pid, signal.SIGCONT)  # as a shell's fg
    until(lambda: not is_stopped())
    time.sleep(0.1)
    one.type("again\n")
    assert one.wait() == 0
    assert "got again" in one.text


def test_it_ends_when_the_terminal_goes(terminal):
    one = terminal("echo up $$; sleep 60")
    until(lambda: "up" in one.read())
    program = int(one.text.split("up ")[1].split()[0])
    os.close(one.fd)
    one.fd = os.open("/dev/null", os.O_RDWR)
    until(lambda: os.waitpid(one.pid, os.WNOHANG)[0])
    one.status = 0
    assert not os.path.exists(f"/proc/{program}")
