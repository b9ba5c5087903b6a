"""The Arrow C data interface by ctypes: columns of pyarrow, polars, pandas and others, where they lie."""

from __future__ import annotations

import bisect
import ctypes
from typing import Any, Optional

from trapline._check.view import View, of_code

_FORMATS = {
    "c": "i1", "C": "u1", "s": "i2", "S": "u2", "i": "i4", "I": "u4", "l": "i8", "L": "u8",
    "e": "f2", "f": "f4", "g": "f8",
}  # fmt: skip
_WIDTH = {"i1": 1, "u1": 1, "i2": 2, "u2": 2, "f2": 2, "i4": 4, "u4": 4, "f4": 4, "i8": 8, "u8": 8, "f8": 8}


class _Schema(ctypes.Structure):
    pass


_Schema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_char_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.POINTER(ctypes.POINTER(_Schema))),
    ("dictionary", ctypes.POINTER(_Schema)),
    ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(_Schema))),
    ("private_data", ctypes.c_void_p),
]


class _Array(ctypes.Structure):
    def __del__(self) -> None:
        if getattr(self, "mine", False) and self.release:
            self.release(ctypes.byref(self))


_Array._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(_Array))),
    ("dictionary", ctypes.POINTER(_Array)),
    ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(_Array))),
    ("private_data", ctypes.c_void_p),
]


class _Stream(ctypes.Structure):
    pass


_Stream._fields_ = [
    ("get_schema", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Stream), ctypes.POINTER(_Schema))),
    ("get_next", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Stream), ctypes.POINTER(_Array))),
    ("get_last_error", ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.POINTER(_Stream))),
    ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(_Stream))),
    ("private_data", ctypes.c_void_p),
]


def _pointer(capsule: Any, name: bytes) -> int:
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return get(capsule, name)


def views(x: Any, column: Optional[str]) -> list[View]:
    """The views of an Arrow array, stream or table; of a table, of ``column`` or of the only one."""
    if hasattr(x, "__arrow_c_array__"):
        schema, array = x.__arrow_c_array__()
        kept = (schema, array, x)
        at = _Schema.from_address(_pointer(schema, b"arrow_schema"))
        return _of_array(at, _Array.from_address(_pointer(array, b"arrow_array")), column, kept)
    capsule = x.__arrow_c_stream__()
    stream = _Stream.from_address(_pointer(capsule, b"arrow_array_stream"))
    schema = _Schema()
    if stream.get_schema(ctypes.byref(stream), ctypes.byref(schema)) != 0:
        raise TypeError("trapline: check: the Arrow stream has no schema: pass a table")
    found: list[View] = []
    try:
        while True:
            array = _Array()
            if stream.get_next(ctypes.byref(stream), ctypes.byref(array)) != 0:
                raise TypeError("trapline: check: the Arrow stream ended with an error: pass a table")
            if not array.release:
                return found
            array.mine = True
            found += _of_array(schema, array, column, (array, capsule, x))
    finally:
        if schema.release:
            schema.release(ctypes.byref(schema))


def _of_array(schema: _Schema, array: _Array, column: Optional[str], keep: Any) -> list[View]:
    kind = schema.format.decode()
    if kind == "+s":
        names = [schema.children[i].contents.name.decode() for i in range(schema.n_children)]
        if column is None and len(names) != 1:
            raise TypeError(f"trapline: check: which column is meant: name one of {', '.join(names)}")
        if column is not None and column not in names:
            raise TypeError(f"trapline: check: no column '{column}': there are {', '.join(names)}")
        at = 0 if column is None else names.index(column)
        child = array.children[at].contents
        return _of_column(schema.children[at].contents, child, array.offset, array.length, keep)
    return _of_column(schema, array, 0, array.length, keep)


def _of_column(schema: _Schema, array: _Array, start: int, length: int, keep: Any) -> list[View]:
    kind = schema.format.decode()
    if schema.dictionary:
        raise TypeError("trapline: check: the column is dictionary-encoded: pass its codes or decode it")
    start += array.offset
    if kind in ("+l", "+L"):
        return [_of_lists(schema, array, start, length, 4 if kind == "+l" else 8, keep)]
    if kind.startswith("+w:"):
        size = int(kind[3:])
        values = _numbers(
            schema.children[0].contents, array.children[0].contents, start * size, length * size, keep
        )
        view = View(values.tensor.data or 0, values.dtype, [length, size], [size, 1], values)
        view.missing = values.missing
        return [view]
    view = _numbers(schema, array, start - array.offset, length, keep)
    return [view]


def _numbers(schema: _Schema, array: _Array, start: int, length: int, keep: Any) -> View:
    kind = schema.format.decode()
    if kind not in _FORMATS:
        raise TypeError(f"trapline: check: Arrow type '{kind}' holds no numbers: cast the column first")
    code = _FORMATS[kind]
    begin = start + array.offset
    address = (array.buffers[1] or 0) + begin * _WIDTH[code]
    view = of_code(code, address, [length], None, keep)
    if array.null_count != 0 and array.buffers[0]:
        view.missing = _nulls(array.buffers[0], begin, length)
    return view


def _nulls(bitmap: int, begin: int, length: int) -> tuple[int, int]:
    """How many of the bits [begin, begin + length) are 0, and which is the first."""
    data = ctypes.string_at(bitmap + begin // 8, (begin % 8 + length + 7) // 8)
    bits = int.from_bytes(data, "little") >> (begin % 8)
    gaps = ~bits & ((1 << length) - 1)
    count = bin(gaps).count("1")
    return count, (gaps & -gaps).bit_length() - 1 if count else -1


def _of_lists(schema: _Schema, array: _Array, start: int, length: int, width: int, keep: Any) -> View:
    kind = ctypes.c_int32 if width == 4 else ctypes.c_int64
    offsets = (kind * (length + 1)).from_address(array.buffers[1] + start * width)
    first, end = offsets[0], offsets[length]
    view = _numbers(schema.children[0].contents, array.children[0].contents, first, end - first, keep)

    def place(flat: int) -> list:
        row = bisect.bisect_right(offsets, flat + first) - 1
        return [row, flat + first - offsets[row]]

    view.rows = length
    view.place = place
    view.lengths = lambda: [offsets[i + 1] - offsets[i] for i in range(length)]
    return view
