"""A standby waits at the right place, goes on when told, and ends when nobody needs it."""

from __future__ import annotations

import os
import select
import socket
import subprocess
from collections.abc import Iterator

import pytest

_PATIENCE = 60.0


class Standby:
    """A program that is started as a standby, and the supervisor's end of its descriptor."""

    def __init__(self, programs, text: str, listener: socket.socket | None = None, **env: str) -> None:
        self.end, theirs = socket.socketpair()
        self.end.settimeout(_PATIENCE)
        given = {"TRAPLINE_STANDBY_FD": str(theirs.fileno()), **env}
        passed = [theirs.fileno()]
        before = None
        if listener is not None:
            handed, number = listener.fileno(), theirs.fileno()
            assert number > 3
            given |= {"LISTEN_FDS": "1"}

            def before() -> None:
                os.dup2(handed, 3)

            passed.append(3)
        self.process = programs.start(text, env=given, pass_fds=passed, preexec_fn=before)
        theirs.close()

    def ready(self) -> bool:
        return self.end.recv(64) == b"ready\n"

    def is_silent(self, seconds: float = 0.3) -> bool:
        return not select.select([self.end, self.process.stdout], [], [], seconds)[0]

    def go(self) -> str:
        """What the program says after its turn has come."""
        self.end.send(b"g")
        return self.process.communicate(timeout=_PATIENCE)[0]


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as one:
        yield one


def test_it_waits_where_the_program_says(programs):
    one = Standby(
        programs, "import trapline; print('before', flush=True); trapline.standby(); print('after')"
    )
    assert one.process.stdout.readline() == "before\n"
    assert one.ready() and one.is_silent()
    assert one.go() == "after\n"
    assert one.process.returncode == 0


def test_it_waits_at_the_end_of_import_torch(programs):
    one = Standby(
        programs,
        """
        import torch, trapline
        print(trapline.is_active(), hasattr(torch, "nn"), flush=True)
        trapline.standby()
        """,
    )
    assert one.ready() and one.is_silent()
    assert one.go() == "True True\n"


@pytest.mark.parametrize(
    "make",
    [
        "socket.fromfd(3, socket.AF_INET, socket.SOCK_STREAM)",
        "socket.socket(fileno=3)",
        "socket.socket(socket.AF_INET, socket.SOCK_STREAM, 0, 3)",
    ],
)
def test_it_waits_at_the_socket_that_was_handed_on(programs, listener, make):
    one = Standby(
        programs,
        f"""
        import socket, torch
        socket.socketpair()
        print("loaded", flush=True)
        one = {make}
        print(one.getsockname()[1], socket.socket.__init__.__module__, socket.fromfd.__module__)
        """,
        listener,
    )
    assert one.process.stdout.readline() == "loaded\n"
    assert one.ready() and one.is_silent()
    assert one.go() == f"{listener.getsockname()[1]} socket socket\n"


def test_it_waits_once(programs, listener):
    one = Standby(
        programs,
        """
        import socket, trapline
        trapline.standby()
        socket.socket(fileno=3)
        trapline.standby()
        import torch
        print("through")
        """,
        listener,
    )
    assert one.ready()
    assert one.go() == "through\n"
    assert one.end.recv(64) == b""


def test_threads_wait_together(programs):
    one = Standby(
        programs,
        """
        import threading, trapline
        def work(number):
            trapline.standby()
            print(number, flush=True)
        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        """,
    )
    assert one.ready() and one.is_silent()
    assert sorted(one.go().split()) == ["0", "1", "2", "3"]


def test_it_ends_with_0_when_the_supervisor_is_gone(programs):
    one = Standby(
        programs, "import atexit, trapline; atexit.register(print, 'x'); trapline.standby(); print('y')"
    )
    assert one.ready()
    one.end.close()
    out, err = one.process.communicate(timeout=_PATIENCE)
    assert (one.process.returncode, out, err) == (0, "", "")


def test_a_supervisor_that_is_gone_before_it_is_ready_ends_it_too(programs):
    one = Standby(programs, "import sys, trapline; sys.stdin.readline(); trapline.standby(); print('y')")
    one.end.close()
    out, err = one.process.communicate("\n", timeout=_PATIENCE)
    assert (one.process.returncode, out, err) == (0, "", "")


def test_what_a_standby_starts_is_none(programs):
    one = Standby(
        programs,
        """
        import os, subprocess, sys, trapline
        assert "TRAPLINE_STANDBY_FD" not in os.environ
        code = "import trapline; trapline.standby(); print('child')"
        print(subprocess.check_output([sys.executable, "-c", code], text=True, close_fds=False), flush=True)
        child = os.fork()
        if child == 0:
            trapline.standby()
            print("forked", flush=True)
            os._exit(0)
        os.waitpid(child, 0)
        print("started", flush=True)
        trapline.standby()
        """,
    )
    said = [one.process.stdout.readline().strip() for _ in range(4)]
    assert said == ["child", "", "forked", "started"]
    assert one.ready()
    assert one.go() == ""
    assert one.end.recv(64) == b"", "nobody else has the descriptor"


def test_a_program_without_torch_and_sockets_is_never_ready(programs):
    one = Standby(programs, "import json; print('done')")
    assert one.process.communicate(timeout=_PATIENCE)[0] == "done\n"
    assert one.end.recv(64) == b""


@pytest.mark.parametrize("value", ["", "-1", "x", "99999"])
def test_a_descriptor_that_is_none_makes_no_standby(programs, value):
    done = programs.run("import torch, trapline; trapline.standby(); print('on')", TRAPLINE_STANDBY_FD=value)
    assert (done.returncode, done.stdout, done.stderr) == (0, "on\n", "")


def test_without_the_variable_nothing_is_watched(programs, listener):
    done = programs.run(
        "import sys, socket; print('trapline._supervise' in sys.modules, socket.fromfd.__module__)"
    )
    assert done.stdout == "False socket\n"
    assert subprocess.list2cmdline(done.args)  # it ran
