"""torch's tensors as the C interface takes them. Imported where torch is."""

from __future__ import annotations

import ctypes
from typing import Any

import torch

from trapline._library import capi

_INT64 = ctypes.c_int64

DTYPES = {
    torch.bool: capi.BOOL,
    torch.uint8: capi.UINT8,
    torch.int8: capi.INT8,
    torch.int16: capi.INT16,
    torch.int32: capi.INT32,
    torch.int64: capi.INT64,
    torch.float16: capi.FLOAT16,
    torch.bfloat16: capi.BFLOAT16,
    torch.float32: capi.FLOAT32,
    torch.float64: capi.FLOAT64,
}


def tensor_of(tensor: torch.Tensor, on_device: bool = False) -> capi.Tensor | None:
    """``tensor`` as the C interface takes it; None when it has no strides to speak of.

    Its address is that of host memory, or, with ``on_device``, of the device's.
    """
    if tensor.layout is not torch.strided:
        return None
    dim = tensor.dim()
    array = _INT64 * dim
    out = capi.Tensor()
    out.sizes = array(*tensor.shape)
    out.strides = array(*tensor.stride())
    out.dim = dim
    out.dtype = DTYPES.get(tensor.dtype, capi.OTHER_DTYPE)
    out.data = tensor.data_ptr() if (tensor.device.type == "cpu") != on_device else None
    return out


def arg_of(value: Any, on_device: bool = False) -> capi.Arg | None:
    """Any argument as the C interface takes it; None when no row can apply to it."""
    arg = capi.Arg()
    if isinstance(value, torch.Tensor):
        described = tensor_of(value, on_device)
        if described is None:
            return None
        arg.kind, arg.tensor = capi.ARG_TENSOR, described
    elif isinstance(value, int):
        arg.kind, arg.integer = capi.ARG_INT, int(value)
    elif isinstance(value, (list, tuple)):
        if all(type(item) is int for item in value):
            arg.kind = capi.ARG_SIZES
            arg.tensor.sizes, arg.tensor.dim = (_INT64 * len(value))(*value), len(value)
            return arg
        items = (capi.Tensor * len(value))()
        for at, item in enumerate(value):
            described = None if item is None else tensor_of(item, on_device)
            if item is None:
                items[at].dim = -1
            elif described is None:
                return None
            else:
                items[at] = described
        arg.kind, arg.list, arg.list_size = capi.ARG_LIST, items, len(value)
    return arg
