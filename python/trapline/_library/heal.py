"""The bad elements of an argument, and a harmless copy of it (``--on-fault skip``), by libtrapline.

What a bad element is and what takes its place is said in ``include/trapline/capi.h``. What comes of such a
copy is no result: it only keeps the program going until the optimizer's step, which is left out.
"""

from __future__ import annotations

import ctypes
from typing import Any, Optional

from trapline._library import capi, paths, scans


def bad_elements(
    tensor: Any, scan: dict[str, Any], predicate: Optional[int], kind: int = capi.OFFENDERS_HEALED
) -> Any:
    """Boolean tensor of the shape of ``tensor``: what is wrong with it; None where that is not known."""
    import torch

    content = _host(tensor)
    mask = torch.empty(content.shape, dtype=torch.bool, device="cpu")
    if not _ask("trapline_offenders", content, scan, predicate, kind, mask.data_ptr()):
        return None
    return mask.to(tensor.device)


def heal(tensor: Any, scan: dict[str, Any], predicate: Optional[int]) -> Any:
    """The harmless copy; None where there is none: an index into a dimension of size 0, counts."""
    import torch

    content = _host(tensor)
    healed = torch.empty(content.shape, dtype=content.dtype, device="cpu")
    if not _ask("trapline_heal_copy", content, scan, predicate, healed.data_ptr()):
        return None
    return healed.to(tensor.device)


def bad_values(tensor: Any, scan: dict[str, Any], predicate: Optional[int]) -> list[tuple[Any, int]]:
    """Distinct bad values with their counts, most frequent first; empty where they cannot be told."""
    from trapline._library import tensors

    described = tensors.tensor_of(_host(tensor))
    struct = scans.as_struct(scan)
    found = (capi.Value * capi.MAX_VALUES)()
    count = paths.library().trapline_bad_values(
        -1 if predicate is None else predicate,
        ctypes.byref(struct),
        None if described is None else ctypes.byref(described),
        found,
        capi.MAX_VALUES,
    )
    return [(one.fvalue if struct.is_float else one.ivalue, one.count) for one in found[:count]]


def _host(tensor: Any) -> Any:
    """The tensor without its history, in host memory."""
    tensor = tensor.detach()
    return tensor if tensor.device.type == "cpu" else tensor.cpu()


def _ask(function: str, tensor: Any, scan: dict[str, Any], predicate: Optional[int], *more: Any) -> bool:
    from trapline._library import tensors

    described = None if predicate is None else tensors.tensor_of(tensor)
    if described is None:
        return False
    struct = scans.as_struct(scan)
    call = getattr(paths.library(), function)
    return call(predicate, ctypes.byref(struct), ctypes.byref(described), *more) == capi.OK
