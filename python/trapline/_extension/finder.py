"""Finds the extension module that fits this torch and this Python (:class:`.compiler.Product`), at once.

It is looked for by its full name in TRAPLINE_ADAPTER_DIR, in the build tree, among those that Trapline
brings along, and in the user's cache. Where it is in none of them one process of all that ask begins to build
it into the cache, in the background, for the next start (:mod:`.background`); this one goes on without it.
Only where TRAPLINE_BUILD or the caller says so does anybody wait.
"""

from __future__ import annotations

import os
import struct
import time
from typing import TYPE_CHECKING, NamedTuple

from trapline._extension import background, cache, compiler
from trapline._extension.waiting import Waiting
from trapline._library import options, paths
from trapline._library.say import debug, say

if TYPE_CHECKING:
    from types import ModuleType
    from typing import Callable

# Who waits for a build waits so long; the build itself goes on, for the next start.
_MAX_WAIT_S = 900.0
_LOWEST_PRIORITY = 19


class Broken(ImportError):
    """The file is no whole library."""


class _Search(NamedTuple):
    """What is looked for, how it is loaded, what happens without it, and what the user should know."""

    product: compiler.Product
    load: Callable[[str], ModuleType]
    otherwise: str
    notes: list[str]
    waits: bool

    def note(self, why: str) -> None:
        self.notes.append(f"{why}; {self.otherwise}")


def find(
    product: compiler.Product, load: Callable[[str], ModuleType], otherwise: str, waits: bool = False
) -> tuple[ModuleType | None, list[str]]:
    """The product, loaded by ``load``, or None; and notes on why, which say ``otherwise``.

    ``waits``: there is nothing else that could serve, so that a build is worth the time.
    """
    search = _Search(product, load, otherwise, [], waits)
    return _find(search), search.notes


def load(path: str, product: compiler.Product) -> ModuleType:
    """The extension module at ``path``."""
    from importlib.machinery import ExtensionFileLoader
    from importlib.util import module_from_spec, spec_from_loader

    _refuse_broken(path)
    if product.uses_library:
        paths.library()  # loaded first: the module asks for it by its name only
    loader = ExtensionFileLoader(product.module, path)
    spec = spec_from_loader(product.module, loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    if product is compiler.GUARD:
        _attach_frames(module, os.path.dirname(path))
    return module


def _attach_frames(guard: ModuleType, folder: str) -> None:
    """Without them the guard reads frames by Python's public API: at a fault, not at each call before it."""
    product = compiler.FRAMES
    beside = os.path.join(folder, compiler.adapter_name(product))
    try:
        frames = load(beside, product) if os.path.isfile(beside) else None
    except Exception as error:
        debug(f"{beside} is not used: {_one_line(error)}")
        frames = None
    if frames is None:
        frames, notes = find(product, lambda path: load(path, product), "earlier calls have no lines")
        for note in notes:
            debug(note)
    if frames is not None:
        guard.use_frames(frames.walk)


def prebuilt_dir() -> str:
    """The libraries that Trapline brings along: in the package, or in a source tree's build folder."""
    build = paths.build_dir()
    return os.path.join(paths.PACKAGE_DIR, "_adapters") if build is None else os.path.join(build, "prebuilt")


def _find(search: _Search) -> ModuleType | None:
    product = search.product
    try:
        name = compiler.adapter_name(product)
    except Exception as error:  # no sources to build from
        search.note(_one_line(error))
        return None
    named = options.adapter_dir()
    build = paths.build_dir()
    for folder in filter(None, (named, build and os.path.join(build, "adapters"), prebuilt_dir())):
        module = _try(search, os.path.join(folder, name))
        if module is not None:
            return module
    if named and not os.path.isfile(os.path.join(named, name)):
        _say_what_is_refused(product, named, name)
    for folder in cache.folders():
        path = os.path.join(folder, name)
        if cache.is_noexec(folder) or not os.path.isfile(path):
            continue
        module = _try(search, path, _remove_broken)
        if module is not None:
            return module
        if os.path.isfile(path):  # it is whole: the next build would make the same
            search.note(search.notes.pop() + ": delete it to have it built again")
            return None
    return _build(search, name)


def _try(search: _Search, path: str, mend: Callable[[str], None] = lambda path: None) -> ModuleType | None:
    """Load what is at ``path``; None, with a note, when it does not serve."""
    if not os.path.isfile(path):
        return None
    try:
        return search.load(path)
    except Broken as error:
        debug(f"{path} is not used: {_one_line(error)}")
        mend(path)
        if os.path.isfile(path):
            search.notes.append(f"{path} is not used: {_one_line(error)}")
    except Exception as error:  # built for another torch, for another libtrapline, on a noexec mount
        search.notes.append(f"{path} is not used: {_one_line(error)}")
        debug(search.notes[-1])
    return None


def _refuse_broken(path: str) -> None:
    """The dynamic loader dies of SIGBUS on an ELF file that lost its end (a full disk, a broken copy)."""
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        head = file.read(64)
    if len(head) < 64 or head[:4] != b"\x7fELF":
        raise Broken("it is not an ELF file")
    if head[4:6] == b"\x02\x01":  # 64 bits, little-endian: the section headers are its last part
        (sections,) = struct.unpack_from("<Q", head, 40)
        entry, count = struct.unpack_from("<HH", head, 58)
        if sections + entry * count > size:
            raise Broken("it is cut off")


def _remove_broken(path: str) -> None:
    try:
        os.unlink(path)
    except OSError as error:
        debug(f"{path} is broken and cannot be removed: {error}")


# Where there is none --------------------------------------------------------------------------------


def _build(search: _Search, name: str) -> ModuleType | None:
    """Have it built. None at once, but for those who wait."""
    says, when = search.product.says, options.build(search.waits)
    if when == "never":
        search.note(f"there is no compiled {says} for this torch, and TRAPLINE_BUILD says never to build one")
        return None
    folder, why = cache.folder_to_build_in(says)
    if folder is None:
        search.note(why)
        return None
    path = os.path.join(folder, name)
    why = cache.failed_lately(path) or ""
    if why:
        search.note(f"the {says} {why}")
        return None
    try:
        why = _start(search, folder, when == "wait")
    except Exception as error:
        why = f"the {says} could not be compiled ({_one_line(error)})"
    if why:
        search.note(why)
        return None
    if when == "wait":
        return _wait_and_load(search, path)
    search.note(
        f"the compiled {says} for torch {compiler.torch_build()} is not there yet: it is being built in the "
        f"background ({_how_long(search.product)}, in {folder}), for the next start"
    )
    return None


def _start(search: _Search, folder: str, waits: bool) -> str:
    """Begin to build in ``folder``, unless another process does; why it could not be begun, or nothing."""
    what = compiler.recipe_for(folder, search.product)  # says what is missing
    if not waits and not background.has_memory():
        return f"the {search.product.says} is not compiled: there is too little memory for a compiler"
    claim = cache.claim(folder)
    if claim is None:
        return ""
    if os.path.isfile(what.path):  # somebody built it just now
        claim.release()
        return ""
    return background.start(what, claim, 0 if waits else _LOWEST_PRIORITY) or ""


def _wait_and_load(search: _Search, path: str) -> ModuleType | None:
    says, folder = search.product.says, os.path.dirname(path)
    longest = options.build_wait(_MAX_WAIT_S)
    deadline = time.monotonic() + longest
    say(
        f"building the {says} for torch {compiler.torch_build()}, once: {_how_long(search.product)}; kept in "
        f"{folder}; waiting for it"
    )
    waiting = Waiting(f"building the {says}", search.product.seconds)
    try:
        while not os.path.isfile(path):
            if time.monotonic() >= deadline:
                search.note(f"the {says} is still being built after {longest:.0f} s: the next start has it")
                return None
            why = cache.failed_lately(path)
            if why:
                search.note(f"the {says} {why}")
                return None
            time.sleep(0.1)
            waiting.tick()
            if not os.path.isfile(path) and not cache.is_claimed(folder):  # of another name, or killed
                _start(search, folder, waits=True)
    finally:
        waiting.end()
    return _try(search, path)


def _how_long(product: compiler.Product) -> str:
    return f"about {product.seconds} s of one core when nothing else runs"


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
