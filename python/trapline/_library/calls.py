"""libtrapline loaded, and its functions that take and give text, as Python calls them."""

from __future__ import annotations

import ctypes
import math
from typing import Any, Optional

from trapline._library import capi, text


def load(path: str) -> ctypes.CDLL:
    """Load libtrapline.so at ``path`` and set the types of its functions.

    Raises:
        ImportError: it cannot be loaded, or its C face is of another version than this
            package.
    """
    try:
        lib = ctypes.CDLL(path)
        version = lib.trapline_capi_version
    except (OSError, AttributeError) as error:
        raise ImportError(
            f"trapline: library: cannot load {path} ({error}): build it again for this machine"
        ) from None
    version.restype, version.argtypes = ctypes.c_int, []
    if version() != capi.CAPI_VERSION:
        raise ImportError(
            f"trapline: library: {path} speaks version {version()} of capi.h, this package "
            f"version {capi.CAPI_VERSION}: build or install both from the same sources"
        )
    capi.declare(lib)
    return lib


def taken(lib: ctypes.CDLL, pointer: Optional[int]) -> Optional[str]:
    """The text that a function gave, released; None where it gave none."""
    if not pointer:
        return None
    try:
        return ctypes.string_at(pointer).decode("utf-8", "replace")
    finally:
        lib.trapline_free(pointer)


def as_json(value: Any) -> bytes:
    """``value`` as the library reads it; a lone surrogate becomes '?'."""
    try:
        said = text.strict(value)
    except (TypeError, ValueError):  # NaN, or keys of other types: rare, and slower
        said = text.strict(_plain(value))
    return said.encode("utf-8", "replace")


def diagnose(lib: ctypes.CDLL, facts: dict[str, Any]) -> dict[str, Any]:
    """trapline_diagnose() on ``facts``; never raises for what the library answers."""
    answer = taken(lib, lib.trapline_diagnose(as_json(facts)))
    if answer is None:
        return {"error": "trapline: diagnose: out of memory: free some and run again"}
    return text.read(answer)


def _plain(value: Any) -> Any:
    """``value`` as strict JSON can say it: NaN and infinities become strings, keys become strings."""
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf")
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value
