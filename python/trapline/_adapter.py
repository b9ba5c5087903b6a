"""Finds, builds or replaces the guard's adapter for the torch of this process, and switches it on.

The compiled adapter (``src/guard``) fits exactly one torch and one Python. It is looked for by its full name
in TRAPLINE_ADAPTER_DIR, in the build tree and in the user's cache; if it is in none of them it is built into
the cache, by one process while the others wait a bounded time; where that cannot be, the pure-Python adapter
(:mod:`trapline._pure`) takes its place. Both have the same functions and hand over the same dictionaries.
"""

from __future__ import annotations

import json
import os
import struct
import sys
import tempfile
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from trapline import _paths

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

try:
    import fcntl
except ImportError:  # not on this platform: then every process builds for itself
    fcntl = None  # type: ignore[assignment]

# A build takes a quarter of a minute on an idle machine; eight ranks may share two cores.
_LONGEST_WAIT_S = 180.0
# A compiler that failed is not asked again for every process of a job.
_RETRY_S = 3600.0

adapter: ModuleType | None = None
_kind = ""
_enabled = False
_notes: list[str] = []


def activate() -> None:
    """Put the guard into torch. torch must be imported. Calling it again changes nothing.

    Raises:
        ImportError: libtrapline.so is missing or of another version.
        RuntimeError: no adapter can serve this torch; the message says what to do.
        BuildError: this Python is a free-threaded build.
    """
    global adapter, _kind, _enabled
    if adapter is not None:
        return
    from trapline import _build

    _build.refuse_free_threading()
    _paths.library()  # first: the compiled adapter then links with this very library
    _notes.clear()
    found = None if os.environ.get("TRAPLINE_ADAPTER") == "pure" else _native()
    _kind = "native" if found is not None else "pure"
    adapter = found if found is not None else _pure()
    _enabled = True
    _follow_device(adapter)
    _write_marker()


def deactivate() -> None:
    """Take the guard out of torch again, while no operation runs in another thread."""
    global adapter, _enabled
    if adapter is not None:
        from trapline import _device

        _device.uninstall()
        adapter.uninstall()
    adapter, _enabled = None, False


def _follow_device(module: ModuleType) -> None:
    """Without it the guard still looks at operations; a fault is then learnt of later."""
    try:
        from trapline import _device

        _device.install(module)
    except Exception as error:
        _debug(f"waits for the device are not followed: {error!r}")


def set_enabled(on: bool) -> bool:
    """Switch the checks on or off; returns the state before."""
    global _enabled
    before = _enabled
    if adapter is not None:
        adapter.set_enabled(on)
        _enabled = on
    return before


def is_enabled() -> bool:
    """True when there is a guard and its checks are switched on."""
    return _enabled


def kind() -> str:
    """``native``, ``pure``, or ``""`` while there is no guard."""
    return _kind if adapter is not None else ""


def notes() -> list[str]:
    """What the user should know about the choice of the adapter."""
    return list(_notes)


def history() -> list[dict[str, Any]]:
    """The last guarded calls, oldest first."""
    return [] if adapter is None else adapter.history()


def remembered() -> list[dict[str, Any]]:
    """Casts of NaN and the like, newest first: possible origins of a later fault."""
    compiled = sys.modules.get("trapline._compile.op")
    casts = [] if compiled is None else compiled.remembered()
    found = [] if adapter is None else adapter.remembered()
    return casts + [compiled.complete_cast(cast) if compiled and "site" in cast else cast for cast in found]


def info() -> dict[str, Any]:
    """What the adapter was built for; ``{}`` while there is none."""
    return {} if adapter is None else adapter.info()


def on_violation(violation: dict[str, Any]) -> Any:
    """The adapters' handler: the exception to raise, or the bad tensor healed (``--on-fault skip``).

    It never fails: a plain sentence is the last resort.
    """
    try:
        if "site" in (violation.get("args") or ()):  # of a compiled graph, found on the device
            sys.modules["trapline._compile.op"].complete(violation)
        from trapline import _skip

        answer = _skip.answer(violation)
        if answer is not None:
            return answer
    except Exception as problem:
        _debug(f"the finding could not be made: {problem!r}")
    from trapline import DeviceAssertError

    scan = violation.get("scan", {})
    return DeviceAssertError(
        f"{violation.get('contract')}: {scan.get('bad')} of {scan.get('total')} elements are not valid, "
        f"the first is {scan.get('value')}"
    )


# Searching and building ---------------------------------------------------------------------------


def _native() -> ModuleType | None:
    """The compiled adapter, installed; None when there is none and none can be built."""
    from trapline import _build

    try:
        name = _build.adapter_name()
    except Exception as error:  # no sources to build from
        _notes.append(f"{_one_line(error)}; the pure-Python guard runs")
        return None
    named = os.environ.get("TRAPLINE_ADAPTER_DIR")
    build = _paths.build_dir()
    for folder in filter(None, (named, build and os.path.join(build, "adapters"))):
        module = _try(os.path.join(folder, name))
        if module is not None:
            return module
    if named and not os.path.isfile(os.path.join(named, name)):
        _say_what_is_refused(named, name)
    for folder in (_paths.cache_dir(), _private_temporary_dir()):
        if folder is not None and _usable(folder):
            return _from_cache(folder, name)
    _notes.append("no folder for a compiled guard can be written: set XDG_CACHE_HOME to one that can")
    return None


def _try(path: str, say: bool = True) -> ModuleType | None:
    """Load and install the adapter at ``path``; None, with a note, when it does not serve."""
    if not os.path.isfile(path):
        return None
    try:
        return _load_and_install(path)
    except Exception as error:  # broken, built for another torch, or for another libtrapline
        if say:
            _notes.append(f"{path} is not used: {_one_line(error)}")
        _debug(f"{path} is not used: {_one_line(error)}")
        return None


def load(path: str) -> ModuleType:
    """The compiled adapter at ``path``, not yet installed."""
    from importlib.machinery import ExtensionFileLoader
    from importlib.util import module_from_spec, spec_from_loader

    _refuse_truncated(path)
    loader = ExtensionFileLoader("trapline_guard", path)
    spec = spec_from_loader("trapline_guard", loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


def _load_and_install(path: str) -> ModuleType:
    module = load(path)
    if module.install(on_violation) == 0:
        module.uninstall()
        raise ImportError("it knows no operation of this torch")
    sys.modules["trapline_guard"] = module
    return module


def _refuse_truncated(path: str) -> None:
    """The dynamic loader dies of SIGBUS on an ELF file that lost its end (a full disk, a broken copy)."""
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        head = file.read(64)
    if len(head) < 64 or head[:4] != b"\x7fELF":
        raise ImportError("it is no ELF file")
    if head[4:6] == b"\x02\x01":  # 64 bits, little-endian: the section headers are its last part
        (sections,) = struct.unpack_from("<Q", head, 40)
        entry, count = struct.unpack_from("<HH", head, 58)
        if sections + entry * count > size:
            raise ImportError("it is cut off")


def _from_cache(folder: str, name: str) -> ModuleType | None:
    """Load ``name`` from ``folder``; build it first, or again when it is broken; one process at a time."""
    path = os.path.join(folder, name)
    broken = _identity(path)
    module = _try(path, say=False)
    if module is not None:
        return module
    with _lock(path + ".activating", path) as mine:
        if mine is None:
            _notes.append(
                f"another process is still building the guard after {_longest_wait():.0f} s; "
                "this one runs the slower pure-Python guard"
            )
            return None
        if _identity(path) != broken:  # somebody built it while this process waited
            module = _try(path)
            if module is not None:
                return module
        return _build_and_load(folder, path)


def _build_and_load(folder: str, path: str) -> ModuleType | None:
    import torch

    from trapline import _build

    log = path[: -len(".so")] + ".log"  # _build writes it when the compiler fails
    if os.path.isfile(log) and time.time() - os.path.getmtime(log) < _RETRY_S:
        _notes.append(f"the guard could not be compiled lately (see {log}); the pure-Python guard runs")
        return None
    if os.path.exists(path):
        os.unlink(path)  # it was tried and is broken
    _say(f"building the guard for torch {torch.__version__}: once, about half a minute: kept in {folder}")
    try:
        _build.build(folder)
    except Exception as error:
        _notes.append(f"the guard could not be compiled ({_one_line(error)}); the pure-Python guard runs")
        return None
    return _try(path)


@contextmanager
def _lock(path: str, product: str) -> Iterator[bool | None]:
    """Hold the lock file ``path``. Yields None when it could not be had in time, False when nothing locks."""
    if fcntl is None:
        yield False
        return
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
    except OSError:
        yield False
        return
    try:
        yield _wait_for(file, product)
    finally:
        os.close(file)  # releases the lock; the file stays, since unlinking it would let two processes in


def _wait_for(file: int, product: str) -> bool | None:
    deadline = time.monotonic() + _longest_wait()
    said = False
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            pass
        except OSError:  # a file system without locks: the build's atomic rename has to do
            return False
        if time.monotonic() >= deadline:
            return None
        if not said:
            _say(f"another process is building the guard: waiting for {os.path.basename(product)}")
            said = True
        time.sleep(0.1)


def _longest_wait() -> float:
    try:
        return float(os.environ["TRAPLINE_BUILD_WAIT"])
    except (KeyError, ValueError):
        return _LONGEST_WAIT_S


def _identity(path: str) -> tuple[int, int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


def _usable(folder: str) -> bool:
    """True when ``folder`` exists, or can be made, and can be written."""
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK | os.X_OK)


def _private_temporary_dir() -> str | None:
    """A folder in the temporary directory that is this user's alone: code is going to be loaded from it."""
    if not hasattr(os, "getuid"):
        return None
    path = os.path.join(tempfile.gettempdir(), f"trapline-adapters-{os.getuid()}")
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
        status = os.lstat(path)
    except OSError:
        return None
    is_ours = status.st_uid == os.getuid() and (status.st_mode & 0o170077) == 0o040000
    return path if is_ours else None


def _say_what_is_refused(folder: str, name: str) -> None:
    import torch

    try:
        others = sorted(
            e for e in os.listdir(folder) if e.startswith("trapline_guard-") and e.endswith(".so")
        )
    except OSError:
        others = []
    if others:
        _say(
            f"guard: {folder} holds {others[0]}, which is not for torch {torch.__version__} on this Python: "
            f"refused; put {name} there or unset TRAPLINE_ADAPTER_DIR"
        )


def _pure() -> ModuleType:
    from trapline import _pure

    _pure.install(on_violation)
    if os.environ.get("TRAPLINE_ADAPTER") != "pure" and not _notes:
        _notes.append("the pure-Python guard runs: tens of microseconds per guarded call")
    return _pure


# What is said -------------------------------------------------------------------------------------


def _write_marker() -> None:
    """Tell ``trapline run`` that this process is guarded, and how. Children made by fork need no marker."""
    folder = _paths.report_dir()
    if folder is None:
        return
    import platform
    import socket

    import torch

    host = "".join(c if c.isalnum() or c in "-_." else "_" for c in socket.gethostname()) or "localhost"
    path = os.path.join(folder, f"guard-{host}-{os.getpid()}.json")
    marker = {
        "torch": str(torch.__version__),
        "python": platform.python_version(),
        "adapter": _kind,
        "notes": _notes,
    }
    try:
        with open(path + ".tmp", "w", encoding="utf-8", errors="replace") as file:
            json.dump(marker, file)
        os.replace(path + ".tmp", path)
    except OSError as error:
        _debug(f"the report folder cannot be written: {error}")


def _one_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].removeprefix("trapline: ") if hasattr(str, "removeprefix") else lines[0]


def _say(text: str) -> None:
    print(f"trapline: {text}", file=sys.stderr, flush=True)


def _debug(text: str) -> None:
    if os.environ.get("TRAPLINE_DEBUG") == "1":
        _say(text)
