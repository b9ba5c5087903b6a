"""Anything that holds numbers in host memory, as the C library reads it: without a copy and without torch.

NumPy and its protocol, torch, Arrow (pyarrow, polars, pandas through the Arrow C data interface), DLPack and
the buffer protocol. Only unsigned integers of 16 and 32 bits, other byte orders and plain lists are copied.
"""

from __future__ import annotations

import ctypes
import sys
from array import array
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


def views(x: Any, column: Optional[str] = None) -> list[View]:
    """The pieces of ``x`` in order.

    Raises:
        TypeError: it holds no numbers in host memory, or no such column.
    """
    found = _views(x, column)
    row = 0
    for view in found:
        view.first_row = row
        row += view.rows
    return found


def _views(x: Any, column: Optional[str]) -> list[View]:
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(x, torch.Tensor):
        return [_of_torch(torch, x)]
    module = type(x).__module__.partition(".")[0]
    if module == "pandas" and column is not None and hasattr(x, "columns"):
        x, column = x[column], None
    if module == "pandas" and type(getattr(x, "dtype", None)).__module__.startswith("numpy"):
        x = x.to_numpy()
    if hasattr(x, "__array_interface__"):
        return [_of_interface(x)]
    if hasattr(x, "__arrow_c_array__") or hasattr(x, "__arrow_c_stream__"):
        from trapline._check import arrow

        return arrow.views(x, column)
    if hasattr(x, "__dlpack__"):
        return [_of_dlpack(x)]
    if isinstance(x, (list, tuple, int, float)):
        return [_of_list(x)]
    try:
        return [_of_buffer(memoryview(x))]
    except TypeError:
        raise TypeError(
            f"trapline: check: a {type(x).__name__} holds no numbers that can be read in place: "
            "pass an array, a tensor, a column, or a list"
        ) from None


def of_code(code: str, address: int, shape: list, strides: Optional[list], keep: Any) -> View:
    """A view of elements of the NumPy type ``code`` ("i8"); strides in bytes, None for dense rows."""
    width = _BYTES.get(code)
    if width is None:
        raise TypeError(f"trapline: check: elements of type {code} are no numbers: cast them first")
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
    return _of_interface(copy)


def _of_interface(x: Any) -> View:
    face = x.__array_interface__
    code = face["typestr"]
    if code[0] == ">" and code[1:] in _BYTES and _BYTES[code[1:]] > 1:
        return _of_interface(x.astype("<" + code[1:]))
    return of_code(code[1:], face["data"][0], list(face["shape"]), face.get("strides"), x)


def _of_torch(torch: Any, x: Any) -> View:
    if x.device.type != "cpu" or x.layout != torch.strided:
        raise TypeError(f"trapline: check: the tensor is on {x.device} or not dense: pass x.cpu().to_dense()")
    code = str(x.dtype).rpartition(".")[2]
    wanted = {name: number for number, name in NAMES.items()}
    if code not in wanted:
        raise TypeError(f"trapline: check: elements of dtype {x.dtype} are not known: cast them first")
    if x.is_conj() or x.is_neg():
        x = x.resolve_conj().resolve_neg()
    return View(x.data_ptr(), wanted[code], list(x.shape), list(x.stride()), x)


class _DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


def _of_dlpack(x: Any) -> View:
    host = (1, 3)  # kDLCPU, kDLCUDAHost
    if x.__dlpack_device__()[0] not in host:
        raise TypeError(
            "trapline: check: the data is on a device: copy it to the host, or pass a torch tensor"
        )
    capsule = x.__dlpack__()
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    tensor = _DLTensor.from_address(get(capsule, b"dltensor"))
    kinds = {0: "i", 1: "u", 2: "f", 4: "bf", 6: "b"}
    code = f"{kinds.get(tensor.code, '?')}{tensor.bits // 8}"
    shape = [tensor.shape[d] for d in range(tensor.ndim)]
    strides = [tensor.strides[d] for d in range(tensor.ndim)] if tensor.strides else None
    address = (tensor.data or 0) + tensor.byte_offset
    if code == "bf2":
        if strides is None:
            strides, step = [], 1
            for size in reversed(shape):
                strides.insert(0, step)
                step *= max(size, 1)
        return View(address, capi.BFLOAT16, shape, strides, (capsule, x))
    if strides is not None:
        strides = [stride * (tensor.bits // 8) for stride in strides]
    return of_code(code, address, shape, strides, (capsule, x))


_BUFFER = {
    **dict.fromkeys("bhilqn", "i"),
    **dict.fromkeys("BHILQN", "u"),
    **dict.fromkeys("efd", "f"),
    "?": "b",
}


def _of_buffer(memory: memoryview) -> View:
    if memory.format not in _BUFFER:
        raise TypeError("no numbers")
    code = f"{_BUFFER[memory.format]}{memory.itemsize}"
    shape, strides = list(memory.shape or []), list(memory.strides or [])
    if memory.nbytes == 0:
        return of_code(code, 0, shape, None, memory)
    if memory.readonly:  # it has no address in pure Python
        memory = memoryview(bytearray(memory.tobytes()))
        strides = None
    holder = (ctypes.c_char * 0).from_buffer(memory)
    return of_code(code, ctypes.addressof(holder), shape, strides, (memory, holder))


def _of_list(x: Any) -> View:
    shape: list[int] = []
    level = x
    while isinstance(level, (list, tuple)):
        shape.append(len(level))
        level = level[0] if level else None
    flat: list[Any] = [x]
    for size in shape:
        if any(not isinstance(part, (list, tuple)) or len(part) != size for part in flat):
            raise TypeError("trapline: check: the lists have unequal lengths: pass them one by one")
        flat = [item for part in flat for item in part]
    try:
        floats = any(isinstance(item, float) for item in flat)
        memory = memoryview(array("d" if floats else "q", flat))
    except (TypeError, OverflowError) as error:
        raise TypeError(f"trapline: check: the list holds something that is no number ({error})") from None
    return _of_buffer(memory.cast("B").cast(memory.format, shape) if shape and flat else memory)
