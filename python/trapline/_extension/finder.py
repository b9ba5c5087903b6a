"""Finds or builds an extension module that fits exactly one torch and one Python (:class:`_build.Product`).

It is looked for by its full name in TRAPLINE_ADAPTER_DIR, in the build tree and in the user's cache; if it is
in none of them it is built into the cache, by one process while the others wait a bounded time.
"""

from __future__ import annotations

import os
import struct
import tempfile
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from trapline._extension import compiler
from trapline._library import options, paths
from trapline._library.say import debug, say

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType
    from typing import Callable

try:
    import fcntl
except ImportError:  # not on this platform: then every process builds for itself
    fcntl = None  # type: ignore[assignment]

# A build takes a quarter of a minute on an idle machine; eight ranks may share two cores.
_MAX_WAIT_S = 180.0
# A compiler that failed is not asked again for every process of a job.
_RETRY_S = 3600.0


class _Search(NamedTuple):
    """What is looked for, how it is loaded, what happens without it, and what the user should know."""

    product: compiler.Product
    load: Callable[[str], ModuleType]
    otherwise: str
    notes: list[str]


def find(
    product: compiler.Product, load: Callable[[str], ModuleType], otherwise: str
) -> tuple[ModuleType | None, list[str]]:
    """The product, loaded by ``load``, or None; and notes on why, each of which says ``otherwise``."""
    search = _Search(product, load, otherwise, [])
    return _find(search), search.notes


def load(path: str, product: compiler.Product) -> ModuleType:
    """The extension module at ``path``."""
    from importlib.machinery import ExtensionFileLoader
    from importlib.util import module_from_spec, spec_from_loader

    _refuse_truncated(path)
    loader = ExtensionFileLoader(product.module, path)
    spec = spec_from_loader(product.module, loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


def _find(search: _Search) -> ModuleType | None:
    product, notes = search.product, search.notes
    try:
        name = compiler.adapter_name(product)
    except Exception as error:  # no sources to build from
        notes.append(f"{_one_line(error)}; {search.otherwise}")
        return None
    named = options.adapter_dir()
    build = paths.build_dir()
    for folder in filter(None, (named, build and os.path.join(build, "adapters"))):
        module = _try(search, os.path.join(folder, name))
        if module is not None:
            return module
    if named and not os.path.isfile(os.path.join(named, name)):
        _say_what_is_refused(product, named, name)
    for folder in (paths.cache_dir(), _private_temporary_dir()):
        if folder is not None and _usable(folder):
            return _from_cache(search, folder, name)
    notes.append(
        f"no folder for a compiled {product.says} can be written: set XDG_CACHE_HOME to one that can"
    )
    return None


def _try(search: _Search, path: str, say: bool = True) -> ModuleType | None:
    """Load what is at ``path``; None, with a note, when it does not serve."""
    if not os.path.isfile(path):
        return None
    try:
        return search.load(path)
    except Exception as error:  # broken, built for another torch, or for another libtrapline
        if say:
            search.notes.append(f"{path} is not used: {_one_line(error)}")
        debug(f"{path} is not used: {_one_line(error)}")
        return None


def _refuse_truncated(path: str) -> None:
    """The dynamic loader dies of SIGBUS on an ELF file that lost its end (a full disk, a broken copy)."""
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        head = file.read(64)
    if len(head) < 64 or head[:4] != b"\x7fELF":
        raise ImportError("it is not an ELF file")
    if head[4:6] == b"\x02\x01":  # 64 bits, little-endian: the section headers are its last part
        (sections,) = struct.unpack_from("<Q", head, 40)
        entry, count = struct.unpack_from("<HH", head, 58)
        if sections + entry * count > size:
            raise ImportError("it is cut off")


def _from_cache(search: _Search, folder: str, name: str) -> ModuleType | None:
    """Load ``name`` from ``folder``; build it first, or again when it is broken; one process at a time."""
    path = os.path.join(folder, name)
    broken = _identity(path)
    module = _try(search, path, say=False)
    if module is not None:
        return module
    with _lock(search.product, path + ".activating", path) as mine:
        if mine is None:
            search.notes.append(
                f"another process is still building the {search.product.says} after {_longest_wait():.0f} s; "
                f"in this one {search.otherwise}"
            )
            return None
        if _identity(path) != broken:  # somebody built it while this process waited
            module = _try(search, path)
            if module is not None:
                return module
        return _build_and_load(search, folder, path)


def _build_and_load(search: _Search, folder: str, path: str) -> ModuleType | None:
    import torch

    says = search.product.says
    log = path[: -len(".so")] + ".log"  # _build writes it when the compiler fails
    if os.path.isfile(log) and time.time() - os.path.getmtime(log) < _RETRY_S:
        search.notes.append(f"the {says} could not be compiled lately (see {log}); {search.otherwise}")
        return None
    if os.path.exists(path):
        os.unlink(path)  # it was tried and is broken
    say(f"building the {says} for torch {torch.__version__}: once, about a minute; kept in {folder}")
    try:
        compiler.build(folder, search.product)
    except Exception as error:
        search.notes.append(f"the {says} could not be compiled ({_one_line(error)}); {search.otherwise}")
        return None
    return _try(search, path)


@contextmanager
def _lock(product: compiler.Product, path: str, goal: str) -> Iterator[bool | None]:
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
        yield _wait_for(product, file, goal)
    finally:
        os.close(file)  # releases the lock; the file stays, since unlinking it would let two processes in


def _wait_for(product: compiler.Product, file: int, goal: str) -> bool | None:
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
            say(f"another process is building the {product.says}: waiting for {os.path.basename(goal)}")
            said = True
        time.sleep(0.1)


def _longest_wait() -> float:
    return options.build_wait(_MAX_WAIT_S)


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


def _say_what_is_refused(product: compiler.Product, folder: str, name: str) -> None:
    import torch

    try:
        others = sorted(
            e for e in os.listdir(folder) if e.startswith(product.module + "-") and e.endswith(".so")
        )
    except OSError:
        others = []
    if others:
        say(
            f"{product.says}: {folder} holds {others[0]}, which is not for torch {torch.__version__} on this "
            f"Python: refused; put {name} there or unset TRAPLINE_ADAPTER_DIR"
        )


def _one_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].removeprefix("trapline: ") if hasattr(str, "removeprefix") else lines[0]
