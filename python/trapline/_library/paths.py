"""Where Trapline's own things are, and the C library behind ``include/trapline/capi.h`` as Python calls it.

Three layouts: the source tree (``<repo>/python/trapline`` next to ``<repo>/build/lib``), an installation
(``<prefix>/share/trapline/python/trapline`` next to ``<prefix>/lib``), and a wheel, which has everything
inside the package (``trapline/_bin``, ``_lib``, ``_include``, ``_src``): every installer keeps that together.
"""

from __future__ import annotations

import os

from trapline._library import options

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ctypes
    from typing import Any

PACKAGE_DIR = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PYTHON_DIR = os.path.dirname(PACKAGE_DIR)
STARTUP_DIR = os.path.join(PACKAGE_DIR, "startup")

_REPO = os.path.dirname(PYTHON_DIR)
_IN_WHEEL = os.path.isfile(os.path.join(PACKAGE_DIR, "_include", "trapline", "capi.h"))
_IN_SOURCE_TREE = not _IN_WHEEL and os.path.isfile(os.path.join(_REPO, "include", "trapline", "capi.h"))
_PREFIX = os.path.dirname(os.path.dirname(_REPO))  # <prefix>/share/trapline/python

_library: ctypes.CDLL | None = None


def build_dir() -> str | None:
    """The CMake build tree of a source checkout; None when Trapline is installed."""
    if not _IN_SOURCE_TREE:
        return None
    return os.path.abspath(options.build_dir() or os.path.join(_REPO, "build"))


def source_dir(room: str) -> str:
    """The sources of a room that is built against the user's own torch: guard, libtorch, cpu_cuda."""
    if _IN_SOURCE_TREE:
        return os.path.join(_REPO, "src", room)
    if _IN_WHEEL:
        return os.path.join(PACKAGE_DIR, "_src", room)
    return os.path.join(_PREFIX, "share", "trapline", room)


def include_dir() -> str:
    """The directory that holds ``trapline/capi.h``."""
    if _IN_WHEEL:
        return os.path.join(PACKAGE_DIR, "_include")
    return os.path.join(_REPO if _IN_SOURCE_TREE else _PREFIX, "include")


def program_path() -> str:
    """Path of the program ``trapline`` (may not exist)."""
    if _IN_WHEEL:
        return os.path.join(PACKAGE_DIR, "_bin", "trapline")
    return os.path.join(build_dir() or _PREFIX, "bin", "trapline")


def library_path() -> str:
    """Path of libtrapline.so.

    Raises:
        ImportError: there is none.
    """
    named = options.library()
    if named:
        if os.path.isfile(named):
            return named
        raise ImportError(
            f"trapline: library: TRAPLINE_LIB names {named}, which is not a file: "
            "unset it or point it at libtrapline.so"
        )
    if _IN_SOURCE_TREE:
        places = [os.path.join(str(build_dir()), "lib")]
        remedy = "run `make build` in the source tree"
    elif _IN_WHEEL:
        places = [os.path.join(PACKAGE_DIR, "_lib")]
        remedy = "install the wheel again, for this machine's processor"
    else:
        multiarch = [os.path.join("lib", f"{machine}-linux-gnu") for machine in ("x86_64", "aarch64")]
        places = [os.path.join(_PREFIX, lib) for lib in ("lib", "lib64", *multiarch)]
        remedy = "run `make install` again, or set TRAPLINE_LIB"
    for place in places:
        path = os.path.join(place, "libtrapline.so")
        if os.path.isfile(path):
            return path
    raise ImportError(f"trapline: library: no libtrapline.so in {', '.join(places)}: {remedy}")


def library() -> ctypes.CDLL:
    """libtrapline.so, loaded once, with the types of its functions set (see :mod:`trapline._library.calls`).

    Raises:
        ImportError: it is missing, cannot be loaded, or speaks another version of capi.h.
    """
    global _library
    if _library is None:
        from trapline._library import calls

        _library = calls.load(library_path())
    return _library


def call_diagnose(facts: dict[str, Any]) -> dict[str, Any]:
    """Turn facts (docs/facts.md) into ``{"finding": {...} or None}`` or ``{"error": text}``."""
    from trapline._library import calls

    return calls.diagnose(library(), facts)


def cache_dir() -> str:
    """Where adapters built on this machine are kept (may not exist yet)."""
    base = os.environ.get("XDG_CACHE_HOME") or ""
    if not os.path.isabs(base):  # the XDG specification: relative paths are to be ignored
        base = os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "trapline", "adapters")
