"""Which files are the user's own code and which belong to a library."""

from __future__ import annotations

import os
import sys
import sysconfig
from functools import lru_cache
from types import CodeType

_OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_PACKAGES = ("site-packages", "dist-packages")


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


def is_own(filename: str) -> bool:
    """True for Trapline's own files, which never appear in a report."""
    return filename.startswith(_OWN) or os.path.realpath(filename).startswith(os.path.realpath(_OWN) + os.sep)


@lru_cache(maxsize=1024)
def is_library_file(filename: str) -> bool:
    """True for the standard library, installed packages, torch and code that a library generated."""
    from . import source

    if source.is_notebook(filename):
        return False
    if filename.startswith("<"):
        return filename not in ("<stdin>", "<string>")
    compiled = os.environ.get("TORCHINDUCTOR_CACHE_DIR")  # Inductor sets it when the user does not
    if "torchinductor_" in filename or (compiled and filename.startswith(compiled.rstrip(os.sep) + os.sep)):
        return True
    if any(part in _PACKAGES for part in filename.replace("\\", "/").split("/")):
        return True
    path = os.path.abspath(filename)
    return path.startswith(_library_roots()) or os.path.realpath(path).startswith(_library_roots())


def is_user(code: CodeType) -> bool:
    """True when the code object is the user's own: a program's file, a notebook cell, or `python -c`."""
    if code.co_filename == "<string>":
        # exec() in libraries makes code of the same file name: namedtuple, dataclasses, torch's wrappers.
        return sys.argv[:1] == ["-c"] and code.co_name not in ("__new__", "__init__", "__eq__")
    return not is_library_file(code.co_filename)
