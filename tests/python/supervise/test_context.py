"""The supervisor's question whether the CUDA context lives: each answer, on the device of `--cpu` and by a
driver that only counts what it is asked."""

from __future__ import annotations

import os
import select
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from trapline._supervise import driver

_PATIENCE = 120.0  # the first program may have the device compiled


class Supervisor:
    """The other end of the socket."""

    def __init__(self, folder: Path) -> None:
        self.path = str(folder / "context")
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(self.path)
        self.listener.listen(8)
        self.listener.settimeout(_PATIENCE)
        self.connections: list[socket.socket] = []

    def accept(self) -> tuple[socket.socket, int]:
        """The next process that connects, and its number."""
        connection, _ = self.listener.accept()
        connection.settimeout(_PATIENCE)
        self.connections.append(connection)
        word, _, pid = connection.recv(64).decode().partition(" ")
        assert word == "hello"
        return connection, int(pid)

    def has_caller(self, within: float) -> bool:
        return bool(select.select([self.listener], [], [], within)[0])

    def close(self) -> None:
        for one in (self.listener, *self.connections):
            one.close()


def ask(connection: socket.socket) -> str:
    connection.send(b"context?")
    return connection.recv(1024).decode()


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[Supervisor]:
    one = Supervisor(tmp_path)
    yield one
    one.close()


PROGRAM = (Path(__file__).parent / "cuda_steps.py").read_text()


def tell(process: subprocess.Popen, step: str) -> list[str]:
    process.stdin.write(step + "\n")
    process.stdin.flush()
    said = []
    while not said or said[-1] != "done":
        line = process.stdout.readline().strip()
        assert line, process.stderr.read()
        said.append(line)
    return said[:-1]


def cpu(supervisor: Supervisor, **more: str) -> dict[str, str]:
    return {"TRAPLINE_CPU": "1", "TRAPLINE_CONTEXT_SOCKET": supervisor.path, **more}


@pytest.mark.parametrize("late", ["", "7"])
def test_none_then_alive_then_dead(programs, supervisor, late):
    # The compiled guard: the one in Python looks at host memory only.
    process = programs.start(PROGRAM, env=cpu(supervisor, TRAPLINE_CPU_LATE=late, TRAPLINE_ADAPTER=""))
    connection, pid = supervisor.accept()
    assert pid == process.pid
    assert ask(connection) == "none"
    tell(process, "use")
    assert ask(connection) == "alive"
    assert tell(process, "bad_index") == [
        "embedding: input[0] is 12, but the table has 10 rows: valid ids are [0, 10)"
    ]
    assert ask(connection) == "alive", "the guard has contained it"
    tell(process, "unguarded")
    assert tell(process, "bad_index") == ["CUDA error: device-side assert triggered"]
    assert ask(connection) == "dead CUDA error: device-side assert triggered"
    assert ask(connection) == "dead CUDA error: device-side assert triggered"


def test_a_program_that_never_uses_cuda_has_no_context(programs, supervisor):
    process = programs.start(PROGRAM, env={"TRAPLINE_CONTEXT_SOCKET": supervisor.path})
    connection, _ = supervisor.accept()
    assert ask(connection) == "none"
    process.stdin.close()
    assert process.wait(30) == 0, "the thread does not keep the program"
    assert connection.recv(64) == b""


def test_other_words_are_not_answered(programs, supervisor):
    programs.start(PROGRAM, env={"TRAPLINE_CONTEXT_SOCKET": supervisor.path})
    connection, _ = supervisor.accept()
    connection.send(b"stop")
    assert ask(connection) == "none"


def test_a_forked_child_makes_a_connection_of_its_own_when_it_uses_cuda(programs, supervisor):
    process = programs.start(PROGRAM, env=cpu(supervisor))
    parents, parent = supervisor.accept()
    tell(process, "fork")
    childs, child = supervisor.accept()
    assert child != parent == process.pid
    assert (ask(childs), ask(parents)) == ("alive", "none")
    process.kill()  # the parent's end is in no other process
    assert parents.recv(64) == b""
    assert ask(childs) == "alive"
    os.kill(child, 9)


def test_the_program_goes_on_when_the_supervisor_is_gone_or_was_never_there(programs, supervisor):
    process = programs.start(PROGRAM, env={"TRAPLINE_CONTEXT_SOCKET": supervisor.path})
    connection, _ = supervisor.accept()
    connection.close()
    process.stdin.close()
    assert process.wait(30) == 0
    assert process.stderr.read() == ""
    gone = programs.run("import torch; print('well')", TRAPLINE_CONTEXT_SOCKET="/nowhere/context")
    assert (gone.stdout, gone.stderr) == ("well\n", "")


def test_nothing_is_opened_without_a_supervisor(programs):
    done = programs.run(
        """
        import sys, threading, torch
        ours = [name for name in sys.modules if name.startswith("trapline._supervise")]
        print(ours, threading.active_count())
        """
    )
    assert done.stdout == "[] 1\n", done.stderr


# A driver that has two devices, of which the second has a context, and that says what it was asked.
_DRIVER = """
    #include <stddef.h>
    #include <stdio.h>
    #include <stdlib.h>
    static int error(void) { const char* e = getenv("ANSWER"); return e ? atoi(e) : 0; }
    #define SAY(...) (fprintf(stderr, __VA_ARGS__), fprintf(stderr, " "), 0)
    int cuDeviceGetCount(int* n) { *n = 2; return 0; }
    int cuCtxGetCurrent(void** c) { *c = (void*)5; return 0; }
    int cuDevicePrimaryCtxGetState(int d, unsigned* f, int* a) { *f = 0; *a = d == 1; return 0; }
    int cuDevicePrimaryCtxRetain(void** c, int d) { *c = (void*)8; return SAY("retain:%d", d); }
    int cuDevicePrimaryCtxRelease_v2(int d) { return SAY("release:%d", d); }
    int cuCtxSetCurrent(void* c) { return SAY("current:%d", (int)(size_t)c); }
    int cuThreadExchangeStreamCaptureMode(int* m) { SAY("mode:%d", *m); *m = 1; return 0; }
    int cuStreamQuery(void* s) { SAY("query:%d", (int)(size_t)s); return error(); }
    int cuGetErrorString(int e, const char** t) {
      *t = e == 710 ? "device-side assert triggered" : NULL;
      return *t == NULL;
    }
"""


@pytest.fixture(scope="module")
def driver_path(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("driver")
    (folder / "driver.c").write_text(_DRIVER)
    path = folder / "libcounting.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", path, folder / "driver.c"], check=True)
    return str(path)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        ("0", ""),
        ("600", ""),  # work is under way
        ("900", ""),  # somebody captures
        ("1", ""),  # the caller's mistake
        ("710", "cuda:1: device-side assert triggered"),
        ("700", "cuda:1: error 700"),
    ],
)
def test_the_driver_is_asked_where_there_is_a_context_and_nowhere_else(
    driver_path, monkeypatch, capfd, error, said
):
    monkeypatch.setenv("TRAPLINE_CUDA_DRIVER", driver_path)
    monkeypatch.setenv("ANSWER", error)
    asked = driver.Driver()
    assert asked.lost() == said
    calls = capfd.readouterr().err.split()
    assert " ".join(calls) == "mode:2 retain:1 current:8 query:2 release:1 mode:1 current:5"


def test_a_driver_that_is_too_old_is_not_asked(tmp_path, monkeypatch):
    (tmp_path / "old.c").write_text("int cuDeviceGetCount(int* n) { *n = 1; return 0; }")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / "old.so", tmp_path / "old.c"], check=True)
    monkeypatch.setenv("TRAPLINE_CUDA_DRIVER", str(tmp_path / "old.so"))
    with pytest.raises(AttributeError):
        driver.Driver()
