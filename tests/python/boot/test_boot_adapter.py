"""Which adapter a process gets: found, built once, built again when broken, refused, or the pure one."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import types
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from conftest import BUILD_DIR  # noqa: E402
from trapline._extension import background, cache, compiler, recipe  # noqa: E402
from trapline._guard import active, pure  # noqa: E402
from trapline._library import paths  # noqa: E402

pytest.importorskip("fcntl")
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
    """A cache, a temporary folder and a builder of its own: ``world.build`` is what it does, at once."""
    cache, temporary, nothing = tmp_path / "cache", tmp_path / "tmp", tmp_path / "nothing"
    for folder in (cache, temporary, nothing):
        folder.mkdir()
    for name in ("ADAPTER", "ADAPTER_DIR", "REPORT_DIR", "BUILD_WAIT", "BUILD"):
        monkeypatch.delenv(f"TRAPLINE_{name}", raising=False)
    monkeypatch.setenv("TRAPLINE_LIB", str(library))
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    monkeypatch.setenv("TRAPLINE_BUILD_DIR", str(nothing))
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    state = types.SimpleNamespace(
        cache=cache / "trapline" / "adapters", temporary=temporary, built=[], env=monkeypatch, build=None
    )
    state.path = state.cache / compiler.adapter_name()

    def start(what, claim, niceness):
        folder = os.path.dirname(what.path)
        state.built.append(folder)
        try:
            state.build(folder)
        except compiler.BuildError as error:
            Path(recipe.log_of(what.path)).write_text(str(error))
        claim.release()

    monkeypatch.setattr(background, "start", start)
    yield state
    active.deactivate()


def put(native, folder):
    """The adapter with the module that reads this Python's frames; each comes whole, as from the builder."""
    for path in (native.with_name(compiler.adapter_name(compiler.FRAMES)), native):
        part = shutil.copy(path, Path(folder, path.name + ".part"))
        os.replace(part, Path(folder, path.name))


def copy_of(native):
    return lambda folder: put(native, folder)


def fails(*arguments):
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


def test_found_among_those_that_trapline_brings_along(world, native, tmp_path):
    (tmp_path / "nothing" / "prebuilt").mkdir()
    put(native, tmp_path / "nothing" / "prebuilt")
    assert_guarded("native")
    assert (world.built, active.notes()) == ([], [])


def test_built_for_the_next_start(world, native, capfd):
    world.build = copy_of(native)
    assert_guarded("kernel")
    release = torch.__version__.partition("+")[0]
    assert active.notes() == [
        f"the compiled guard for torch {release} is not there yet: it is being built in the background "
        f"(about 25 s of one core when nothing else runs, in {world.cache}), for the next start; "
        "the guard for any torch runs"
    ]
    active.deactivate()
    assert_guarded("native")
    assert active.notes() == []
    assert world.built == [str(world.cache)]
    assert [line for line in capfd.readouterr().err.splitlines() if "[TL" not in line] == []


def test_who_wants_to_wait_waits(world, native, capfd):
    world.env.setenv("TRAPLINE_BUILD", "wait")
    world.build = copy_of(native)
    assert_guarded("native")
    assert (world.built, active.notes()) == ([str(world.cache)], [])
    said = [line for line in capfd.readouterr().err.splitlines() if "[TL" not in line]
    release = torch.__version__.partition("+")[0]
    assert said == [
        f"trapline: building the guard for torch {release}, once: about 25 s of one core when nothing else "
        f"runs; kept in {world.cache}; waiting for it"
    ]


def test_who_waits_at_a_terminal_sees_the_seconds(world, native):
    """One line that counts, taken back at the end; a file or a pipe gets none (above)."""
    import pty
    import sys
    import threading
    import time

    def build(folder):
        def later():
            time.sleep(2.3)
            put(native, folder)

        threading.Thread(target=later).start()

    world.env.setenv("TRAPLINE_BUILD", "wait")
    world.env.setattr(cache, "is_claimed", lambda folder: True)  # the builder is at work
    world.build = build
    master, slave = pty.openpty()
    with open(slave, "w", encoding="utf-8") as terminal:
        world.env.setattr(sys, "stderr", terminal)
        assert_guarded("native")
        world.env.undo()
    seen = os.read(master, 65536).decode().partition("waiting for it")[2]
    os.close(master)
    shown = [line for line in seen.split("\r") if line.strip()]
    assert shown[:2] == [f"trapline: building the guard: {n} s, of usually 25" for n in (1, 2)]
    assert "\r" + " " * 79 + "\r" in seen


def test_who_wants_no_build_gets_none(world):
    world.env.setenv("TRAPLINE_BUILD", "never")
    assert_guarded("kernel")
    assert (world.built, active.notes()) == (
        [],
        [
            "there is no compiled guard for this torch, and TRAPLINE_BUILD says never to build one; "
            "the guard for any torch runs"
        ],
    )


@pytest.mark.parametrize("broken", ["text", "truncated", "empty"])
def test_broken_file_in_the_cache_is_built_again(world, native, broken):
    world.cache.mkdir(parents=True)
    whole = native.read_bytes()
    world.path.write_bytes(
        {"text": b"no library" * 20, "truncated": whole[: len(whole) // 2], "empty": b""}[broken]
    )
    world.build = copy_of(native)
    assert_guarded("kernel")
    active.deactivate()
    assert_guarded("native")
    assert len(world.built) == 1
    assert world.path.read_bytes() == whole


def test_still_broken_after_a_build_falls_back(world):
    world.env.setenv("TRAPLINE_BUILD", "wait")
    world.build = lambda folder: world.path.write_bytes(b"no library" * 20)
    assert_guarded("kernel")
    assert len(world.built) == 1
    assert "it is not an ELF file" in active.notes()[0]


def test_whole_file_that_cannot_be_loaded_is_not_built_again(world, native):
    import _bisect

    if not getattr(_bisect, "__file__", None):
        pytest.skip("this Python has its modules inside")
    world.cache.mkdir(parents=True)
    shutil.copy(_bisect.__file__, world.path)
    for _ in range(2):
        assert_guarded("kernel")
        assert world.built == []
        (note,) = active.notes()
        assert note.startswith(f"{world.path} is not used: ")
        assert note.endswith(": delete it to have it built again; the guard for any torch runs")
        active.deactivate()


def test_folder_mounted_noexec_is_not_built_in(world, native):
    world.build = copy_of(native)
    world.env.setattr(cache, "is_noexec", lambda folder: str(folder) == str(world.cache))
    world.cache.mkdir(parents=True)
    put(native, world.cache)  # there, but of no use
    assert_guarded("kernel")
    active.deactivate()
    assert_guarded("native")
    assert world.built == [str(world.temporary / f"trapline-adapters-{os.getuid()}")]


def test_only_folders_mounted_noexec(world):
    world.env.setattr(cache, "is_noexec", lambda folder: True)
    assert_guarded("kernel")
    assert world.built == []
    assert active.notes() == [
        f"no compiled guard can be loaded from {world.cache}, which is mounted noexec: set XDG_CACHE_HOME to "
        "one that can; the guard for any torch runs"
    ]


def test_read_only_cache_is_read(world, native):
    world.cache.mkdir(parents=True)
    put(native, world.cache)
    world.cache.chmod(0o500)
    assert_guarded("native")
    assert (world.built, active.notes()) == ([], [])


def test_too_little_memory_for_a_compiler(world):
    world.env.setattr(background, "_free_bytes", lambda: 2 << 30)
    assert_guarded("kernel")
    assert world.built == []
    assert active.notes() == [
        "the guard is not compiled: there is too little memory for a compiler; the guard for any torch runs"
    ]


def test_build_that_was_killed_again_and_again_waits_an_hour(world, native):
    world.cache.mkdir(parents=True)
    for count in (1, 2, 3):
        assert cache.failed_lately(str(world.path)) is None
        cache.note_begun(str(world.path))
    assert_guarded("kernel")
    assert (world.built, "its build was killed 3 times" in active.notes()[0]) == ([], True)
    active.deactivate()
    os.utime(f"{world.path}.begun", (0, 0))
    world.build = copy_of(native)
    assert_guarded("kernel")
    assert len(world.built) == 1


def test_adapter_for_another_torch_is_refused(world, native):
    world.env.setenv("TRAPLINE_BUILD", "wait")
    world.build = copy_of(native)
    names = {product: compiler.adapter_name(product) for product in (compiler.GUARD, compiler.FRAMES)}
    world.env.setattr(compiler, "adapter_name", lambda product, target=None: names[product])
    world.env.setattr(torch, "__version__", "1.0.0")
    assert_guarded("kernel")
    assert f"built for torch {native.name.split('torch')[1].split('-')[0]}" in active.notes()[0]
    assert "but torch 1.0.0 is running" in active.notes()[0]


def test_named_folder_with_adapters_for_others_only(world, native, tmp_path, capfd):
    folder = tmp_path / "adapters"
    folder.mkdir()
    (folder / "trapline_guard-torch1.13.1-cpython-38-x86_64-linux-gnu-0.so").write_bytes(native.read_bytes())
    world.env.setenv("TRAPLINE_ADAPTER_DIR", str(folder))
    world.env.setenv("TRAPLINE_BUILD", "wait")
    world.build = copy_of(native)
    assert_guarded("native")
    first = capfd.readouterr().err.splitlines()[0]
    assert first.startswith(f"trapline: guard: {folder} holds trapline_guard-torch1.13.1-")
    assert f"which is not for torch {torch.__version__} on this Python: refused" in first


def test_unwritable_cache_uses_a_private_temporary_folder(world, native, tmp_path):
    (tmp_path / "file").write_text("")
    world.env.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    world.env.setenv("TRAPLINE_BUILD", "wait")
    world.build = copy_of(native)
    assert_guarded("native")
    private = world.temporary / f"trapline-adapters-{os.getuid()}"
    assert world.built == [str(private)]
    assert private.stat().st_mode & 0o777 == 0o700


def test_nowhere_to_write_is_pure(world, tmp_path):
    (tmp_path / "file").write_text("")
    world.env.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    world.env.setattr(tempfile, "tempdir", str(tmp_path / "file"))
    assert_guarded("kernel")
    assert active.notes() == [
        "no folder for a compiled guard can be written: set XDG_CACHE_HOME to one that can; "
        "the guard for any torch runs"
    ]


@pytest.mark.parametrize("trap", ["link", "open"])
def test_temporary_folder_that_others_may_write_is_not_used(world, trap, tmp_path):
    path = world.temporary / f"trapline-adapters-{os.getuid()}"
    if trap == "link":
        path.symlink_to(tmp_path / "nothing")
    else:
        path.mkdir()
        path.chmod(0o777)
    assert cache.private_temporary_dir(create=True) is None


def test_looking_for_a_library_leaves_no_folder(world):
    before = sorted(os.listdir(world.temporary))
    assert list(cache.folders()) == [paths.cache_dir()]
    assert sorted(os.listdir(world.temporary)) == before
    assert list(cache.folders(create=True)) == [
        paths.cache_dir(),
        str(world.temporary / f"trapline-adapters-{os.getuid()}"),
    ]


def test_no_compiler_is_pure(world, capfd):
    world.env.setattr(compiler, "recipe_for", fails)
    assert_guarded("kernel")
    assert active.notes() == [
        "the guard could not be compiled (guard: no C++ compiler: install one); the guard for any torch runs"
    ]
    assert "building" not in capfd.readouterr().err


def test_compiler_that_failed_is_not_asked_again_at_once(world):
    world.cache.mkdir(parents=True)
    log = world.path.with_suffix(".log")
    log.write_text("error")
    assert_guarded("kernel")
    assert (world.built, str(log) in active.notes()[0]) == ([], True)
    active.deactivate()
    os.utime(log, (0, 0))
    world.build = fails
    assert_guarded("kernel")
    assert len(world.built) == 1


def test_waiting_for_another_process_ends(world):
    world.cache.mkdir(parents=True)
    world.env.setenv("TRAPLINE_BUILD", "wait")
    world.env.setenv("TRAPLINE_BUILD_WAIT", "0.3")
    claim = cache.claim(str(world.cache))
    assert_guarded("kernel")
    claim.release()
    assert world.built == []
    assert active.notes() == [
        "the guard is still being built after 0 s: the next start has it; the guard for any torch runs"
    ]


def test_pure_on_request(world):
    world.env.setenv("TRAPLINE_ADAPTER", "pure")
    assert_guarded("pure")
    assert (active.adapter, active.notes(), world.built) == (pure, [], [])


def test_old_torch_without_compiler_is_told_what_to_do(world):
    world.env.setattr(compiler, "recipe_for", fails)
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


def test_what_a_failing_handler_saw_is_kept_or_said(world, monkeypatch, tmp_path, capsys):
    violation = {"contract": "take.index", "scan": {"bad": 1, "total": 3, "value": 9, "first": 2}}
    monkeypatch.setattr(active, "_answer", lambda violation: 1 / 0)
    monkeypatch.setenv("TRAPLINE_REPORT_DIR", str(tmp_path))
    active.on_violation(violation)
    (file,) = tmp_path.glob("finding-*.json")
    (finding,) = json.loads(file.read_text())["findings"]
    assert (finding["code"], finding["op"]) == ("TL901", "take")
    assert "ZeroDivisionError: division by zero" in finding["fix"][0]
    monkeypatch.setenv("TRAPLINE_REPORT_DIR", str(tmp_path / "missing"))
    active.on_violation(violation)
    assert capsys.readouterr().err == (
        "trapline: [TL901] take: 1 of 3 elements of index is not valid: 9, at position 2\n"
    )


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
