"""Which adapter a process gets: found, built once, built again when broken, refused, or the pure one."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import types

import pytest

torch = pytest.importorskip("torch")

from conftest import BUILD_DIR, REPO  # noqa: E402
from trapline._extension import compiler, finder  # noqa: E402
from trapline._guard import active, pure  # noqa: E402

fcntl = pytest.importorskip("fcntl")
BAD = (torch.zeros(3), torch.tensor([3]))


@pytest.fixture
def native(library):
    """The compiled adapter of this build."""
    path = BUILD_DIR / "adapters" / compiler.adapter_name()
    if not path.is_file():
        pytest.skip("the build has no compiled adapter for this torch")
    return path


@pytest.fixture
def world(tmp_path, monkeypatch, library):
    """A cache, a temporary folder and a compiler of its own: ``world.build`` is what `_build.build` does."""
    cache, temporary, nothing = tmp_path / "cache", tmp_path / "tmp", tmp_path / "nothing"
    for folder in (cache, temporary, nothing):
        folder.mkdir()
    for name in ("TRAPLINE_ADAPTER", "TRAPLINE_ADAPTER_DIR", "TRAPLINE_REPORT_DIR", "TRAPLINE_BUILD_WAIT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TRAPLINE_LIB", str(library))
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    monkeypatch.setenv("TRAPLINE_BUILD_DIR", str(nothing))
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    state = types.SimpleNamespace(
        cache=cache / "trapline" / "adapters", temporary=temporary, built=[], env=monkeypatch, build=None
    )
    state.path = state.cache / compiler.adapter_name()

    def build(folder, product=compiler.GUARD):
        state.built.append(folder)
        return state.build(folder)

    monkeypatch.setattr(compiler, "build", build)
    yield state
    active.deactivate()


def copy_of(native):
    def build(folder, product=compiler.GUARD):
        return shutil.copy(native, folder)

    return build


def fails(folder):
    raise compiler.BuildError("trapline: guard: no C++ compiler: install one")


def assert_guarded(kind):
    active.activate()
    assert active.kind() == kind, active.notes()
    with pytest.raises(IndexError) as caught:
        BAD[0][BAD[1]]
    assert type(caught.value).__name__ == "DeviceAssertError"


def test_found_in_the_named_folder(world, native):
    world.env.setenv("TRAPLINE_ADAPTER_DIR", str(native.parent))
    assert_guarded("native")
    assert (world.built, active.notes()) == ([], [])


def test_built_into_the_cache_once(world, native, capfd):
    world.build = copy_of(native)
    assert_guarded("native")
    active.deactivate()
    assert_guarded("native")
    assert world.built == [str(world.cache)]
    said = capfd.readouterr().err
    assert said.count("\n") == 1
    assert said.startswith(f"trapline: building the guard for torch {torch.__version__}: once")


@pytest.mark.parametrize("broken", ["text", "truncated", "empty"])
def test_broken_file_in_the_cache_is_built_again(world, native, broken):
    world.cache.mkdir(parents=True)
    whole = native.read_bytes()
    world.path.write_bytes(
        {"text": b"no library" * 20, "truncated": whole[: len(whole) // 2], "empty": b""}[broken]
    )
    world.build = copy_of(native)
    assert_guarded("native")
    assert len(world.built) == 1
    assert world.path.read_bytes() == whole


def test_still_broken_after_a_build_falls_back(world):
    def build(folder, product=compiler.GUARD):
        world.path.write_bytes(b"no library" * 20)

    world.build = build
    assert_guarded("pure")
    assert len(world.built) == 1
    assert "it is not an ELF file" in active.notes()[0]


def test_adapter_for_another_torch_is_refused(world, native):
    world.build = copy_of(native)
    name = world.path.name
    world.env.setattr(compiler, "adapter_name", lambda product: name)
    world.env.setattr(torch, "__version__", "1.0.0")
    assert_guarded("pure")
    assert f"built for torch {native.name.split('torch')[1].split('+')[0]}" in active.notes()[0]
    assert "but torch 1.0.0 is running" in active.notes()[0]


def test_named_folder_with_adapters_for_others_only(world, native, tmp_path, capfd):
    folder = tmp_path / "adapters"
    folder.mkdir()
    (folder / "trapline_guard-torch1.13.1-cpython-38-x86_64-linux-gnu-0.so").write_bytes(native.read_bytes())
    world.env.setenv("TRAPLINE_ADAPTER_DIR", str(folder))
    world.build = copy_of(native)
    assert_guarded("native")
    first = capfd.readouterr().err.splitlines()[0]
    assert first.startswith(f"trapline: guard: {folder} holds trapline_guard-torch1.13.1-")
    assert f"which is not for torch {torch.__version__} on this Python: refused" in first


def test_unwritable_cache_uses_a_private_temporary_folder(world, native, tmp_path):
    (tmp_path / "file").write_text("")
    world.env.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    world.build = copy_of(native)
    assert_guarded("native")
    private = world.temporary / f"trapline-adapters-{os.getuid()}"
    assert world.built == [str(private)]
    assert private.stat().st_mode & 0o777 == 0o700


def test_nowhere_to_write_is_pure(world, tmp_path):
    (tmp_path / "file").write_text("")
    world.env.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    world.env.setattr(tempfile, "tempdir", str(tmp_path / "file"))
    assert_guarded("pure")
    assert active.notes() == [
        "no folder for a compiled guard can be written: set XDG_CACHE_HOME to one that can"
    ]


@pytest.mark.parametrize("trap", ["link", "open"])
def test_temporary_folder_that_others_may_write_is_not_used(world, trap, tmp_path):
    path = world.temporary / f"trapline-adapters-{os.getuid()}"
    if trap == "link":
        path.symlink_to(tmp_path / "nothing")
    else:
        path.mkdir()
        path.chmod(0o777)
    assert finder._private_temporary_dir() is None


def test_no_compiler_is_pure(world):
    world.build = fails
    assert_guarded("pure")
    assert "no C++ compiler: install one" in active.notes()[0]


def test_compiler_that_failed_is_not_asked_again_at_once(world):
    world.cache.mkdir(parents=True)
    log = world.path.with_suffix(".log")
    log.write_text("error")
    assert_guarded("pure")
    assert (world.built, str(log) in active.notes()[0]) == ([], True)
    active.deactivate()
    os.utime(log, (0, 0))
    world.build = fails
    assert_guarded("pure")
    assert len(world.built) == 1


def test_waiting_for_another_process_ends(world, capfd):
    world.cache.mkdir(parents=True)
    world.env.setenv("TRAPLINE_BUILD_WAIT", "0.3")
    with open(f"{world.path}.activating", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert_guarded("pure")
    assert world.built == []
    assert "still building" in active.notes()[0]
    # The line about the fault of a test before this one may come now, a second after it.
    said = [line for line in capfd.readouterr().err.splitlines() if "[TL" not in line]
    assert said == [f"trapline: another process is building the guard: waiting for {world.path.name}"]


def test_pure_on_request(world):
    world.env.setenv("TRAPLINE_ADAPTER", "pure")
    assert_guarded("pure")
    assert (active.adapter, active.notes(), world.built) == (pure, [], [])


def test_old_torch_without_compiler_is_told_what_to_do(world):
    world.build = fails
    world.env.setattr(torch.library.Library, "impl", lambda self, op_name, fn, dispatch_key="": None)
    with pytest.raises(
        RuntimeError, match=r"^trapline: guard: torch .* needs the compiled guard.*install a C\+\+"
    ):
        active.activate()
    assert active.kind() == ""


def test_handler_that_fails_leaves_a_plain_sentence(world, monkeypatch):
    from trapline import DeviceAssertError

    monkeypatch.setattr(active, "_answer", lambda violation: 1 / 0)
    error = active.on_violation(
        {"contract": "take.index", "scan": {"bad": 1, "total": 3, "value": 9, "first": 2}}
    )
    assert type(error) is DeviceAssertError
    assert str(error) == "take: 1 of 3 elements of index is not valid: 9, at position 2"


PROCESS = """\
import os, shutil, sys, time
sys.path.insert(0, {python!r})
from trapline._extension import compiler
def build(folder, product=None):
    with open({log!r}, "a") as log:
        log.write("built\\n")
    time.sleep(0.5)
    shutil.copy({native!r}, folder + "/part")
    os.replace(folder + "/part", folder + "/" + compiler.adapter_name())
compiler.build = build
import torch
print(sys.modules["trapline._guard.active"].kind())
"""


def test_processes_that_start_together_build_once(guarded, native, tmp_path):
    log = tmp_path / "log"
    text = PROCESS.format(python=str(REPO / "python"), log=str(log), native=str(native))
    script = str(guarded.script("rank.py", text))
    nothing = {
        "TRAPLINE_ADAPTER": "",
        "TRAPLINE_BUILD_DIR": str(tmp_path),
        "XDG_CACHE_HOME": str(tmp_path / "c"),
    }
    ranks = [guarded.start(script, **nothing) for _ in range(4)]
    answers = [rank.communicate(timeout=200) for rank in ranks]
    assert [out for out, _ in answers] == ["native\n"] * 4, answers
    assert log.read_text() == "built\n"
    assert sum("building the guard for torch" in err for _, err in answers) == 1
    markers = [json.loads(path.read_text()) for path in guarded.reports.glob("guard-*.json")]
    assert [(marker["adapter"], marker["notes"]) for marker in markers] == [("native", [])] * 4


def test_free_threaded_python_is_refused_by_both_adapters(world, monkeypatch):
    known = compiler.sysconfig.get_config_var
    monkeypatch.setattr(
        compiler.sysconfig, "get_config_var", lambda name: 1 if name == "Py_GIL_DISABLED" else known(name)
    )
    for kind in ("", "pure"):
        monkeypatch.setenv("TRAPLINE_ADAPTER", kind)
        with pytest.raises(compiler.BuildError) as refused:
            active.activate()
        assert str(refused.value) == (
            "trapline: guard: this Python is a free-threaded build, which is not supported: "
            "use a build of Python with the GIL"
        )
        assert active.kind() == ""
    assert not world.built
