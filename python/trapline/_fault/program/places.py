"""Which files are the user's own code and which belong to a library."""

from __future__ import annotations

import os
import sys
import sysconfig
import tempfile
from functools import lru_cache
from types import CodeType, ModuleType

from trapline._library import paths

_OWN = paths.PACKAGE_DIR + os.sep
_PACKAGES = ("site-packages", "dist-packages")
# Folders for code that is fetched together with a model or a data set.
_REMOTE = ("transformers_modules", "diffusers_modules", "datasets_modules", "evaluate_modules")
# What somebody typed: a prompt, a doctest, a notebook cell of Databricks.
_TYPED = ("<stdin>", "<string>", "<console>", "<input>", "<pyshell#", "<doctest ", "<command-")
_RANDOM = 8  # characters that tempfile makes up for a name
_MAX_RECORD = 8 << 20
# More than a big program has modules, which are gone through for every fault: a smaller cache has always just
# dropped what is asked for next.
_FILES = 1 << 15


@lru_cache(maxsize=1)
def _library_roots() -> tuple[str, ...]:
    roots = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib")}
    roots.add(os.path.dirname(os.__file__))
    roots.add(os.path.join(sys.prefix, "bin"))  # console scripts such as torchrun
    torch = sys.modules.get("torch")
    if torch is not None and getattr(torch, "__file__", None):
        roots.add(os.path.dirname(torch.__file__))
    both = {path for root in roots if root for path in (root, os.path.realpath(root))}
    return tuple(sorted(path.rstrip(os.sep) + os.sep for path in both))


@lru_cache(maxsize=_FILES)
def is_own(filename: str) -> bool:
    """True for Trapline's own files, which never appear in a report."""
    return filename.startswith(_OWN) or os.path.realpath(filename).startswith(os.path.realpath(_OWN) + os.sep)


@lru_cache(maxsize=_FILES)
def is_library_file(filename: str) -> bool:
    """True for the standard library, installed packages, torch and code that a library generated or fetched.

    What is left is the user's: the script, what stands beside it, an editable install, a folder on the path.
    """
    from trapline._fault.program import source

    if source.is_notebook(filename):
        return False
    if filename.startswith("<"):
        return not filename.startswith(_TYPED)
    compiled = os.environ.get("TORCHINDUCTOR_CACHE_DIR")  # Inductor sets it when the user does not
    if "torchinductor_" in filename or (compiled and filename.startswith(compiled.rstrip(os.sep) + os.sep)):
        return True
    parts = filename.replace("\\", "/").split("/")
    if any(part in _PACKAGES for part in parts):
        return True
    path = os.path.abspath(filename)
    if path.startswith(_library_roots()) or os.path.realpath(path).startswith(_library_roots()):
        return True
    return _fetched(parts) or _in_unpacked_package(path) or _of_library_module(path)


def _fetched(parts: list[str]) -> bool:
    """Code of a model that came with its weights: nobody edits it in the cache. Hugging Face's
    ``trust_remote_code`` (transformers_modules and the like) and ``torch.hub.load``."""
    if any(part in _REMOTE for part in parts[:-1]):
        return True
    hub = os.environ.get("TORCH_HOME")
    if hub and "/".join(parts).startswith(hub.rstrip("/") + "/hub/"):
        return True
    return any(parts[at : at + 3] == [".cache", "torch", "hub"] for at in range(len(parts) - 3))


def _in_unpacked_package(path: str) -> bool:
    """A package outside site-packages: ``pip install --target``, a pex, a layer. Its record is beside it."""
    for root in sorted({os.path.abspath(entry) for entry in sys.path if entry}, key=len, reverse=True):
        if path.startswith(root.rstrip(os.sep) + os.sep):
            return _recorded(root, os.path.relpath(path, root).split(os.sep)[0])
    return False


@lru_cache(maxsize=256)
def _recorded(root: str, top: str) -> bool:
    """True when a package that is installed in the folder `root` brought the folder or file `top` of it.

    Only ``.dist-info`` counts: an ``.egg-info`` lies in the source folder of what the user builds himself.
    """
    wanted = os.fsencode(top)
    try:
        records = [name for name in os.listdir(root) if name.endswith(".dist-info")]
        for name in records:
            with open(os.path.join(root, name, "RECORD"), "rb") as file:
                text = b"\n" + file.read(_MAX_RECORD)
            if b"\n" + wanted + b"/" in text or b"\n" + wanted + b"," in text:
                return True
    except OSError:
        pass
    return False


def _of_library_module(path: str) -> bool:
    """Code that a library wrote into a file and imported: its module is one of the library's package, or has
    the file's name without the characters that made the name a temporary one (PyTorch Geometric)."""
    name = _module_of(path)
    if name is None or name == "__main__":
        return False
    top = name.partition(".")[0]
    package = _file_of(sys.modules.get(top)) if top != name else None
    if package and package != path and is_library_file(package):
        return True
    stem = os.path.splitext(os.path.basename(path))[0]
    made = stem[:-_RANDOM] if len(stem) > _RANDOM else stem
    temporary = os.path.realpath(os.path.dirname(path)) == os.path.realpath(tempfile.gettempdir())
    return temporary and made.rstrip("_") == name.rstrip("_")


def _module_of(path: str) -> str | None:
    """The name under which a file was imported."""
    return _names(len(sys.modules)).get(path)


@lru_cache(maxsize=1)
def _names(_count: int) -> dict[str, str]:
    """The first name of each file that is a module's, for so many modules."""
    names: dict[str, str] = {}
    for name, module in list(sys.modules.items()):
        file = _file_of(module)
        if file:
            names.setdefault(file, name)
    return names


def _file_of(module: object) -> str | None:
    """``__file__`` of a module. A module that loads itself at the first question is not asked."""
    if not isinstance(module, ModuleType):
        return None
    try:
        held = object.__getattribute__(module, "__dict__")
    except AttributeError:  # cffi's are modules without one
        return None
    file = held.get("__file__")
    return file if isinstance(file, str) else None


def is_user(code: CodeType) -> bool:
    """True when the code object is the user's own: a program's file, a notebook cell, or `python -c`."""
    if code.co_filename == "<string>":
        # exec() in libraries makes code of the same file name: namedtuple, dataclasses, torch's wrappers.
        return sys.argv[:1] == ["-c"] and code.co_name not in ("__new__", "__init__", "__eq__")
    return not is_library_file(code.co_filename)
