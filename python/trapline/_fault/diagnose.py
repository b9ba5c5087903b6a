"""Facts to finding by libtrapline: all words of a report are made there."""

from __future__ import annotations

import ctypes
import json
import os
from functools import lru_cache
from typing import Any, Dict, Optional


class _Contract(ctypes.Structure):
    """trapline_contract of include/trapline/capi.h."""

    _fields_ = [
        (name, ctypes.c_char_p)
        for name in ("id", "op", "argument", "bound_arg", "dim_arg", "also_arg", "public_op", "public_argument")
    ] + [(name, ctypes.c_int32) for name in ("predicate", "bound", "composite", "remember")]


@lru_cache(maxsize=1)
def _library() -> ctypes.CDLL:
    path: Any = os.environ.get("TRAPLINE_LIB")
    if not path:
        from .. import _paths

        path = _paths.library()
    library = path if isinstance(path, ctypes.CDLL) else ctypes.CDLL(os.fspath(path))
    library.trapline_diagnose.argtypes = [ctypes.c_char_p]
    library.trapline_diagnose.restype = ctypes.c_void_p  # kept as a pointer: it has to be freed
    library.trapline_free.argtypes = [ctypes.c_void_p]
    library.trapline_free.restype = None
    library.trapline_version.restype = ctypes.c_char_p
    library.trapline_contracts.argtypes = [ctypes.POINTER(ctypes.c_size_t)]
    library.trapline_contracts.restype = ctypes.POINTER(_Contract)
    return library


def version() -> str:
    """The library's version; "0" when it cannot be loaded."""
    try:
        return _library().trapline_version().decode()
    except (OSError, AttributeError, ImportError):
        return "0"


@lru_cache(maxsize=1)
def _contracts() -> "Dict[str, Dict[str, Any]]":
    count = ctypes.c_size_t()
    rows = _library().trapline_contracts(ctypes.byref(count))
    table: Dict[str, Dict[str, Any]] = {}
    for position in range(count.value):
        row = rows[position]
        fields = {name: getattr(row, name) for name, _ in _Contract._fields_}
        table[row.id.decode()] = {k: v.decode() if isinstance(v, bytes) else v for k, v in fields.items()}
    return table


def contract(identifier: str) -> "Dict[str, Any]":
    """One row of the contracts table; empty when the library or the row is missing."""
    try:
        return _contracts().get(identifier, {})
    except (OSError, AttributeError, ImportError):
        return {}


def diagnose(facts: "Dict[str, Any]") -> "Optional[Dict[str, Any]]":
    """The finding for some facts; None when the library is silent about them. Raises OSError without a library."""
    text = json.dumps(facts, ensure_ascii=True, allow_nan=False).encode("ascii")
    library = _library()
    pointer = library.trapline_diagnose(text)
    if not pointer:
        raise MemoryError("trapline_diagnose")
    try:
        answer = json.loads(ctypes.string_at(pointer).decode("utf-8", "replace"))
    finally:
        library.trapline_free(pointer)
    if answer.get("error"):
        raise ValueError(answer["error"])
    return answer.get("finding")
