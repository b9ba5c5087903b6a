"""Anything that holds numbers in host memory, as the C library reads it: without a copy and without torch.

NumPy and its protocol, torch, Arrow (pyarrow, polars, pandas through the Arrow C data interface), DLPack and
the buffer protocol. Only unsigned integers of 16 and 32 bits, other byte orders and plain lists are copied.
"""

from __future__ import annotations

import ctypes
import sys
from array import array
from bisect import bisect_right
from itertools import accumulate
from typing import Any, Optional

from trapline._check.view import NAMES, View, of_code, of_interface
from trapline._library import capi


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
    if module == "numpy" and type(x).__name__ == "MaskedArray":
        x = x.compressed()  # what the mask hides is no data
    if module == "pandas" and column is not None and hasattr(x, "columns"):
        x, column = x[column], None
    if module == "pandas" and type(getattr(x, "dtype", None)).__module__.startswith("numpy"):
        x = x.to_numpy()
    if hasattr(x, "__array_interface__"):
        return [of_interface(x)]
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


def _of_torch(torch: Any, x: Any) -> View:
    if x.device.type != "cpu" or x.layout != torch.strided:
        raise TypeError(f"trapline: check: the tensor is on {x.device} or not dense: pass x.cpu().to_dense()")
    code = str(x.dtype).rpartition(".")[2]
    if code.startswith("float8"):
        x = x.float()  # every value of 8 bits fits, NaN and Inf included
        code = "float32"
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


def _is_ragged(x: Any) -> bool:
    """Rows of numbers, of unequal lengths."""
    if not all(isinstance(row, (list, tuple)) for row in x):
        return False
    if any(isinstance(item, (list, tuple)) for row in x for item in row):
        return False
    return len({len(row) for row in x}) > 1


def _of_rows(rows: Any) -> View:
    view = _of_list([item for row in rows for item in row])
    lengths = [len(row) for row in rows]
    starts = [0, *accumulate(lengths)]

    def place(item: int) -> list:
        row = bisect_right(starts, item) - 1
        return [row, item - starts[row]]

    view.place, view.lengths, view.rows = place, lambda: lengths, len(rows)
    return view


def _of_list(x: Any) -> View:
    if isinstance(x, (list, tuple)) and _is_ragged(x):
        return _of_rows(x)
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
        raise TypeError(f"trapline: check: the list holds something that is not a number ({error})") from None
    return _of_buffer(memory.cast("B").cast(memory.format, shape) if shape and flat else memory)
