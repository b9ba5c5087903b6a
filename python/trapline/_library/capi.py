"""``include/trapline/capi.h`` for ctypes: structures, constants, loading, and the JSON calls."""

from __future__ import annotations

import ctypes
import json
import math
from typing import Any

BOOL, UINT8, INT8, INT16, INT32, INT64, FLOAT16, BFLOAT16, FLOAT32, FLOAT64 = range(10)
OTHER_DTYPE = 255
ARG_NONE, ARG_TENSOR, ARG_INT, ARG_LIST, ARG_SIZES = range(5)
OK, VIOLATED, NOT_APPLICABLE = range(3)


class Tensor(ctypes.Structure):
    """trapline_tensor: a borrowed strided tensor; strides count elements."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("sizes", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("dim", ctypes.c_int32),
        ("dtype", ctypes.c_int32),
    ]


class Arg(ctypes.Structure):
    """trapline_arg: one argument of a call."""

    _fields_ = [
        ("kind", ctypes.c_int32),
        ("list_size", ctypes.c_int32),
        ("integer", ctypes.c_int64),
        ("tensor", Tensor),
        ("list", ctypes.POINTER(Tensor)),
    ]


class Contract(ctypes.Structure):
    """trapline_contract: one row of the table."""

    _fields_ = [
        ("id", ctypes.c_char_p),
        ("op", ctypes.c_char_p),
        ("argument", ctypes.c_char_p),
        ("bound_arg", ctypes.c_char_p),
        ("dim_arg", ctypes.c_char_p),
        ("also_arg", ctypes.c_char_p),
        ("public_op", ctypes.c_char_p),
        ("public_argument", ctypes.c_char_p),
        ("predicate", ctypes.c_int32),
        ("bound", ctypes.c_int32),
        ("composite", ctypes.c_int32),
        ("remember", ctypes.c_int32),
        ("on_cpu", ctypes.c_int32),
        ("reads_also", ctypes.c_int32),
    ]


class Scan(ctypes.Structure):
    """trapline_scan: what a check saw."""

    _fields_ = [
        ("bad", ctypes.c_int64),
        ("total", ctypes.c_int64),
        ("first", ctypes.c_int64),
        ("is_float", ctypes.c_int32),
        ("list_position", ctypes.c_int32),
        ("ivalue", ctypes.c_int64),
        ("imin", ctypes.c_int64),
        ("imax", ctypes.c_int64),
        ("fvalue", ctypes.c_double),
        ("fmin", ctypes.c_double),
        ("fmax", ctypes.c_double),
        ("lo", ctypes.c_int64),
        ("hi", ctypes.c_int64),
        ("has_also", ctypes.c_int32),
        ("reason", ctypes.c_int32),
        ("also", ctypes.c_int64),
    ]


def load(path: str, capi_version: int) -> ctypes.CDLL:
    """Load libtrapline.so at ``path`` and set the types of its functions.

    Raises:
        ImportError: it cannot be loaded, or its capi.h is not version ``capi_version``.
    """
    try:
        lib = ctypes.CDLL(path)
        version = lib.trapline_capi_version
    except (OSError, AttributeError) as error:
        raise ImportError(
            f"trapline: library: cannot load {path} ({error}): build it again for this machine"
        ) from None
    version.restype, version.argtypes = ctypes.c_int, []
    if version() != capi_version:
        raise ImportError(
            f"trapline: library: {path} speaks version {version()} of capi.h, this package "
            f"version {capi_version}: build or install both from the same sources"
        )
    lib.trapline_version.restype = ctypes.c_char_p
    lib.trapline_version.argtypes = []
    lib.trapline_contracts.restype = ctypes.POINTER(Contract)
    lib.trapline_contracts.argtypes = [ctypes.POINTER(ctypes.c_size_t)]
    arg = ctypes.POINTER(Arg)
    lib.trapline_check.restype = ctypes.c_int
    lib.trapline_check.argtypes = [ctypes.POINTER(Contract), arg, arg, arg, arg, ctypes.POINTER(Scan)]
    lib.trapline_diagnose.restype = ctypes.c_void_p  # not c_char_p: the pointer is needed to release it
    lib.trapline_diagnose.argtypes = [ctypes.c_char_p]
    lib.trapline_render.restype = ctypes.c_void_p
    lib.trapline_render.argtypes = [ctypes.c_char_p, ctypes.c_int]
    lib.trapline_free.restype = None
    lib.trapline_free.argtypes = [ctypes.c_void_p]
    return lib


def diagnose(lib: ctypes.CDLL, facts: dict[str, Any]) -> dict[str, Any]:
    """trapline_diagnose() on ``facts``; never raises for what the library answers."""
    try:
        text = json.dumps(facts, ensure_ascii=False, allow_nan=False, default=str)
    except (TypeError, ValueError):  # NaN, or keys of other types: rare, and slower
        text = json.dumps(_plain(facts), ensure_ascii=False, allow_nan=False, default=str)
    pointer = lib.trapline_diagnose(text.encode("utf-8", "replace"))  # a lone surrogate becomes '?'
    if not pointer:
        return {"error": "trapline: diagnose: out of memory: free some and run again"}
    try:
        return json.loads(ctypes.string_at(pointer).decode("utf-8", "replace"))
    finally:
        lib.trapline_free(pointer)


def render(lib: ctypes.CDLL, report: dict[str, Any], descriptor: int = 2) -> str:
    """trapline_render(): a report as text, as wide and as coloured as the descriptor takes it."""
    text = json.dumps(_plain(report), ensure_ascii=False, allow_nan=False, default=str)
    pointer = lib.trapline_render(text.encode("utf-8", "replace"), descriptor)
    if not pointer:
        return ""
    try:
        return ctypes.string_at(pointer).decode("utf-8", "replace")
    finally:
        lib.trapline_free(pointer)


def _plain(value: Any) -> Any:
    """``value`` as strict JSON can say it: NaN and infinities become strings, keys become strings."""
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf")
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value
