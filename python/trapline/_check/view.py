"""One strided piece of somebody's numbers, as the C library reads it."""

from __future__ import annotations

import ctypes
from typing import Any, Callable, Optional

from trapline._library import capi

_CODES = {
    "b1": capi.BOOL, "u1": capi.UINT8, "i1": capi.INT8, "i2": capi.INT16, "i4": capi.INT32,
    "i8": capi.INT64, "u8": capi.INT64, "f2": capi.FLOAT16, "f4": capi.FLOAT32, "f8": capi.FLOAT64,
}  # fmt: skip
NAMES = {
    capi.BOOL: "bool", capi.UINT8: "uint8", capi.INT8: "int8", capi.INT16: "int16",
    capi.INT32: "int32", capi.INT64: "int64", capi.FLOAT16: "float16", capi.BFLOAT16: "bfloat16",
    capi.FLOAT32: "float32", capi.FLOAT64: "float64",
}  # fmt: skip
_BYTES = {
    "b1": 1,
    "u1": 1,
    "i1": 1,
    "u2": 2,
    "i2": 2,
    "f2": 2,
    "u4": 4,
    "i4": 4,
    "f4": 4,
    "u8": 8,
    "i8": 8,
    "f8": 8,
}


class View:
    """One strided piece of the data. ``missing``: how many elements are null, and where the first is."""

    def __init__(self, address: int, dtype: int, shape: list, strides: list, keep: Any) -> None:
        dims = len(shape)
        self.shape = [int(size) for size in shape]
        self.dtype = dtype
        self.keep = keep
        self.sizes = (ctypes.c_int64 * max(dims, 1))(*self.shape)
        self.strides = (ctypes.c_int64 * max(dims, 1))(*[int(stride) for stride in strides])
        self.tensor = capi.Tensor(address or None, self.sizes, self.strides, dims, dtype)
        self.first_row = 0
        self.rows = self.shape[0] if self.shape else 1
        self.missing: tuple[int, int] = (0, -1)
        # Of lists: [row, place in the row] of an element, and the length of every row.
        self.place: Optional[Callable[[int], list]] = None
        self.lengths: Optional[Callable[[], list]] = None


def of_code(code: str, address: int, shape: list, strides: Optional[list], keep: Any) -> View:
    """A view of elements of the NumPy type ``code`` ("i8"); strides in bytes, None for dense rows."""
    width = _BYTES.get(code)
    if width is None:
        raise TypeError(f"trapline: check: elements of type {code} are not numbers: cast them first")
    if strides is None:
        strides, step = [], width
        for size in reversed(shape):
            strides.insert(0, step)
            step *= max(int(size), 1)
    if code in ("u2", "u4") or any(stride % width for stride in strides):
        return _copied(code, address, shape, strides, keep)
    return View(address, _CODES[code], shape, [stride // width for stride in strides], keep)


def _copied(code: str, address: int, shape: list, strides: list, keep: Any) -> View:
    import numpy

    class Holder:
        __array_interface__ = {
            "data": (address, True), "shape": tuple(shape), "strides": tuple(strides),
            "typestr": "<" + code, "version": 3,
        }  # fmt: skip

    copy = numpy.array(numpy.asarray(Holder()), dtype="<f8" if code[0] == "f" else "<i8")
    return of_interface(copy)


def of_interface(x: Any) -> View:
    face = x.__array_interface__
    code = face["typestr"]
    if code[0] == ">" and code[1:] in _BYTES and _BYTES[code[1:]] > 1:
        return of_interface(x.astype("<" + code[1:]))
    return of_code(code[1:], face["data"][0], list(face["shape"]), face.get("strides"), x)
