"""The build that nobody waits for, as real processes: the compiler hands out the adapter that is there."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from conftest import BUILD_DIR  # noqa: E402
from trapline._extension import cache, compiler, owner  # noqa: E402

COMPILER = """\
#!/bin/sh
# Writes down who asks, then does what it is told to.
echo "$PPID" >> {log}/asked
tr '\\0' '\\n' < /proc/$PPID/environ > {log}/environment
ls -l /proc/$PPID/fd > {log}/descriptors
cat /proc/$PPID/stat > {log}/stat
test -e {log}/hold && sleep 600
sleep "${{FAKE_SLEEP:-0.2}}"
test -e {log}/fail && {{ echo "unit.cpp:1: fatal error: nothing works"; exit 1; }}
while [ "$1" != -o ]; do shift; done
case "$2" in *made.so) cp {native} "$2";; *frames.so) cp {frames} "$2";; *) : > "$2";; esac
"""
PROGRAM = """\
import sys, time
begin = time.monotonic()
import torch
guard = sys.modules["trapline._guard.active"]
print(guard.kind(), guard.notes(), flush=True)
"""


class World:
    """Programs under the guard with a cache of their own."""

    def __init__(self, guarded, folder: Path, native: Path) -> None:
        self.guarded, self.log = guarded, folder / "log"
        self.log.mkdir()
        self.native = native
        self.cache = folder / "cache" / "trapline" / "adapters"
        self.path = self.cache / native.name
        fake = folder / "c++"
        self.frames = native.with_name(compiler.adapter_name(compiler.FRAMES))
        fake.write_text(COMPILER.format(log=self.log, native=native, frames=self.frames))
        fake.chmod(0o755)
        self.script = str(guarded.script("program.py", PROGRAM))
        self.env = {
            "TRAPLINE_ADAPTER": "",
            "TRAPLINE_BUILD_DIR": str(folder),
            "XDG_CACHE_HOME": str(folder / "cache"),
            "TMPDIR": str(folder),
            "CXX": str(fake),
        }

    def run(self, **env: str) -> str:
        done = self.guarded.run(self.script, **{**self.env, **env})
        assert done.returncode == 0, done.stderr
        return done.stdout

    def command(self, *words: str, **env: str) -> subprocess.CompletedProcess:
        """One of Trapline's own, over the program."""
        whole = {**self.guarded.env, **self.env, **env}
        for name in ("PYTHONPATH", "TRAPLINE_GUARD", "TRAPLINE_REPORT_DIR"):
            del whole[name]
        command = [str(BUILD_DIR / "bin" / "trapline"), *words, "--", sys.executable, self.script]
        return subprocess.run(command, env=whole, capture_output=True, text=True, timeout=120, check=False)

    def asked(self) -> list[int]:
        """Who asked the compiler, once for each command."""
        file = self.log / "asked"
        return [int(line) for line in file.read_text().splitlines()] if file.exists() else []

    def wait(self, what, seconds: float = 30) -> None:
        end = time.monotonic() + seconds
        while not what():
            assert time.monotonic() < end, sorted(os.listdir(self.cache))
            time.sleep(0.05)

    def is_over(self) -> bool:
        return not cache.is_claimed(str(self.cache))

    def leftovers(self) -> list[str]:
        known = {self.path.name, self.frames.name, ".build.lock", "background.log"}
        return sorted(set(os.listdir(self.cache)) - known)

    def builder(self) -> int:
        """The builder, once it works."""
        self.wait(self.asked)
        return self.asked()[-1]


@pytest.fixture
def world(guarded, tmp_path, library):
    native = BUILD_DIR / "adapters" / compiler.adapter_name()
    if not native.is_file():
        pytest.skip("the build has no compiled adapter for this torch")
    made = World(guarded, tmp_path, native)
    yield made
    for pid in set(made.asked()):
        try:
            if b"background.py" in Path(f"/proc/{pid}/cmdline").read_bytes():
                os.kill(pid, signal.SIGTERM)
        except OSError:
            pass


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def test_program_is_done_before_the_build_and_the_next_has_it(world):
    out = world.run(FAKE_SLEEP="4")  # whose end of both pipes the program's end is
    assert out.startswith("kernel [") and "is being built in the background" in out
    assert not world.path.exists()
    builder = world.builder()
    assert not gone(builder)
    world.wait(world.is_over)
    world.wait(lambda: gone(builder))
    assert world.leftovers() == []
    assert world.run() == "native []\n"
    assert len(set(world.asked())) == 1
    assert (world.cache / "background.log").read_text() == ""


def test_builder_is_alone_and_small(world):
    world.run(SOME_SETTING="kept")
    builder = world.builder()
    world.wait(world.is_over)
    environment = (world.log / "environment").read_text().splitlines()
    assert "SOME_SETTING=kept" in environment
    assert not [line for line in environment if line.startswith(("TRAPLINE_", "PYTHON", "LD_PRELOAD"))]
    stat = (world.log / "stat").read_text().rpartition(")")[2].split()
    parent, session, terminal, nice = int(stat[1]), int(stat[3]), int(stat[4]), int(stat[16])
    assert (terminal, nice) == (0, 19)
    assert session not in (builder, os.getsid(0))  # its own, and it cannot get a terminal
    assert parent != os.getpid()
    targets = [line.split(" -> ")[1] for line in (world.log / "descriptors").read_text().splitlines()[1:]]
    own = {"/dev/null", str(world.cache / "background.log"), str(world.cache / ".build.lock")}
    assert {one for one in targets if not one.startswith(("pipe:", "/proc/"))} == own
    assert sum(one.startswith("pipe:") for one in targets) <= 2  # the compiler's words


@pytest.mark.parametrize("count", [8] if os.environ.get("TRAPLINE_LONG") != "1" else [8, 64])
def test_processes_that_start_together_build_once(world, count):
    ranks = [world.guarded.start(world.script, **world.env, FAKE_SLEEP="1") for _ in range(count)]
    answers = [rank.communicate(timeout=500) for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0] * count
    kinds = {out.partition(" ")[0] for out, _ in answers}
    assert kinds <= {"kernel", "native"}, answers
    notes = {out for out, _ in answers if out.startswith("kernel")}
    assert len(notes) == 1  # the report says it once
    world.wait(world.is_over)
    assert len(set(world.asked())) == 1
    assert world.leftovers() == []
    assert world.run() == "native []\n"


def test_ranks_that_want_to_wait_all_get_it(world):
    ranks = [world.guarded.start(world.script, **world.env, TRAPLINE_BUILD="wait") for _ in range(4)]
    answers = [rank.communicate(timeout=200) for rank in ranks]
    assert [out for out, _ in answers] == ["native []\n"] * 4, answers
    assert len(set(world.asked())) == 1
    markers = [json.loads(path.read_text()) for path in world.guarded.reports.glob("guard-*.json")]
    assert [(marker["adapter"], marker["notes"]) for marker in markers] == [("native", [])] * 4


def test_builder_that_is_killed_leaves_the_way_free(world):
    (world.log / "hold").touch()
    world.run()
    builder = world.builder()
    group = os.getpgid(builder)
    os.kill(builder, signal.SIGKILL)
    world.wait(lambda: gone(builder))
    assert any(name.startswith(".building-") for name in world.leftovers())
    (world.log / "hold").unlink()
    assert world.run().startswith("kernel [")
    world.wait(world.path.exists)
    world.wait(world.is_over)
    assert world.leftovers() == []
    assert world.run() == "native []\n"
    os.killpg(group, signal.SIGKILL)  # the compiler, which nobody told


def test_builder_that_is_asked_to_end_takes_the_compiler_along(world):
    (world.log / "hold").touch()
    world.run()
    builder = world.builder()
    world.wait((world.log / "stat").exists)
    group = os.getpgid(builder)
    os.kill(builder, signal.SIGTERM)
    world.wait(lambda: gone(builder))

    def is_empty() -> bool:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        return False

    world.wait(is_empty)
    assert world.leftovers() == []


def test_compiler_that_fails_is_remembered(world):
    (world.log / "fail").touch()
    world.run()
    world.builder()
    world.wait(world.is_over)
    asked = len(world.asked())
    log = world.path.with_suffix(".log")
    assert "nothing works" in log.read_text()
    out = world.run()
    assert f"the guard could not be compiled lately (see {log}); the guard for any torch runs" in out
    assert len(world.asked()) == asked
    assert world.leftovers() == [log.name]


def test_no_home_and_a_cache_that_is_no_folder(world, tmp_path):
    (tmp_path / "file").touch()
    world.env["XDG_CACHE_HOME"] = str(tmp_path / "file")
    world.env["HOME"] = "/nowhere"
    assert world.run(TRAPLINE_BUILD="wait") == "native []\n"
    assert sorted(path.name for path in tmp_path.glob("trapline-adapters-*/*.so")) == [
        world.frames.name,
        world.path.name,
    ]


SLOW = """\
import builtins, os, time
seen = []
def slow(module, name):
    real = getattr(module, name)
    def call(path=".", *rest, **named):
        if isinstance(path, str) and path.startswith({folder!r}):
            seen.append(name)
            time.sleep(0.1)
        return real(path, *rest, **named)
    setattr(module, name, call)
for name in ("open", "stat", "listdir", "makedirs", "access", "statvfs", "utime", "unlink", "replace"):
    slow(os, name)
slow(builtins, "open")
"""


def test_cache_on_a_slow_file_system(world):
    """A tenth of a second for each access: a start makes few of them, whatever it finds."""
    slow = SLOW.format(folder=str(world.cache.parent.parent))
    program = Path(world.script)
    program.write_text(slow + PROGRAM + "print(len(seen))\n")
    first, second = (world.run(FAKE_SLEEP="10").splitlines() for _ in range(2))
    assert first[0].startswith("kernel [") and second[0].startswith("kernel [")
    assert int(first[1]) <= 20 and int(second[1]) <= 12, (first, second)
    world.wait(world.is_over)
    assert len(set(world.asked())) == 1
    third = world.run().splitlines()
    assert third[0] == "native []" and int(third[1]) <= 8


def test_adapter_without_its_frames_has_them_built(world, tmp_path):
    """As one that was brought along, under a Python that is newer than it."""
    (tmp_path / "prebuilt").mkdir()
    shutil.copy(world.native, tmp_path / "prebuilt")
    Path(world.script).write_text(PROGRAM + "print(guard.info()['frames'])\n")
    assert world.run().splitlines() == ["native []", "public API"]
    world.wait((world.cache / world.frames.name).exists)
    assert world.run().splitlines() == ["native []", "without GIL"]
    assert not world.path.exists()  # nothing else was built


def test_run_does_not_wait_for_it_nor_end_it(world):
    done = world.command("run", FAKE_SLEEP="4")
    assert done.returncode == 0 and done.stdout.startswith("kernel ["), done.stderr
    assert not world.path.exists()
    world.wait(world.path.exists)


def test_supervise_ends_it_with_what_a_program_leaves_behind(world):
    (world.log / "hold").touch()
    done = world.command("supervise")
    assert done.returncode == 0 and done.stdout.startswith("kernel ["), done.stderr
    assert all(gone(pid) for pid in world.asked())
    assert world.is_over()
    assert world.leftovers() == []


# The claim ----------------------------------------------------------------------------------------


def test_another_node_that_works_is_left_alone(tmp_path):
    """Its lock holds on its node only, so its name has to do."""
    name = tmp_path / ".build.owner"
    name.write_text("0badf00d-1-1")
    assert cache.claim(str(tmp_path)) is None
    os.utime(name, (time.time() - 3600,) * 2)
    claim = cache.claim(str(tmp_path))
    assert claim is not None
    assert name.read_text() == owner.this_process()
    assert cache.claim(str(tmp_path)) is None
    claim.release()
    assert sorted(os.listdir(tmp_path)) == [".build.lock"]


def test_without_locks_the_name_decides(tmp_path, monkeypatch):
    def unsupported(*arguments):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(cache.fcntl, "flock", unsupported)
    claim = cache.claim(str(tmp_path))
    assert claim is not None
    assert cache.claim(str(tmp_path)) is None
    name, pid, _ = owner.this_process().split("-")
    Path(claim.owner).write_text(f"{name}-{pid}-1")  # the same number, but another process
    second = cache.claim(str(tmp_path))
    assert second is not None
    second.release()


def test_leftovers_of_the_dead_only_are_removed(tmp_path):
    node, pid, start = owner.this_process().split("-")
    dead, mine = f".building-{node}-{pid}-1-x", f".building-{node}-{pid}-{start}-x"
    elsewhere, old = ".building-0badf00d-1-1-x", ".building-0badf00d-2-2-x"
    for name in (dead, mine, elsewhere, old):
        (tmp_path / name).mkdir()
        (tmp_path / name / "unit.o").touch()
    os.utime(tmp_path / old, (0, 0))
    cache.claim(str(tmp_path)).release()
    assert sorted(os.listdir(tmp_path)) == sorted([".build.lock", mine, elsewhere])
    shutil.rmtree(tmp_path / mine)


def test_without_proc_a_process_is_told_by_its_number(monkeypatch):
    me = owner.this_process()
    monkeypatch.setattr(owner, "_start", lambda pid: 0)
    monkeypatch.setattr(owner.os.path, "isdir", lambda path: False)
    assert owner.lives(me)
    assert not owner.lives(f"{me.split('-')[0]}-4194304-0")
