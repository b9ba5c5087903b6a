"""What the offending tensor holds: description, place of the first bad element, distinct bad values."""

from __future__ import annotations

import math
from typing import Any, Optional

from trapline._library import capi, heal

# Looking at more elements than this would make a report slow; beyond it only what the scan said is used.
MAX_ELEMENTS = 16 << 20
_EXACT = 1 << 53  # integers beyond it do not survive a JSON reader that stores doubles


def number(value: Any) -> Any:
    """A number as the facts carry it: strings for nan, inf and integers beyond 2^53."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return value if -_EXACT <= value <= _EXACT else str(value)
    value = float(value)
    if math.isfinite(value):
        return value
    return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"


def scan_facts(scan: dict[str, Any], repeats: int = 1) -> dict[str, Any]:
    """The scan with its numbers in JSON form; elements that are one in memory count once."""
    facts = {key: number(value) for key, value in scan.items()}
    for name in ("bad", "total"):
        if repeats > 1 and type(facts.get(name)) is int and facts[name] % repeats == 0:
            facts[name] //= repeats
    return facts


def repeats(tensor: Any) -> int:
    """How often each element in memory stands in the tensor: `index.expand(...)` makes no copy."""
    times = 1
    if tensor is not None and is_tensor(tensor) and _is_strided(tensor):
        for size, stride in zip(tensor.shape, tensor.stride()):
            times *= int(size) if stride == 0 and size > 1 else 1
    return times


def _is_strided(tensor: Any) -> bool:
    import torch

    return tensor.layout is torch.strided


def is_tensor(value: Any) -> bool:
    """True for a torch.Tensor or a subclass of it."""
    import torch

    return isinstance(value, torch.Tensor)


def describe(tensor: Any) -> dict[str, Any]:
    """Shape, dtype and device of a tensor."""
    return {
        "shape": [int(size) for size in tensor.shape],
        "dtype": str(tensor.dtype).replace("torch.", ""),
        "device": str(tensor.device),
    }


def describe_args(args: dict[str, Any]) -> dict[str, Any]:
    """All arguments of the call, tensors described, lists element by element, other values as they are."""
    described: dict[str, Any] = {}
    for name, value in args.items():
        if is_tensor(value):
            described[name] = describe(value)
        elif isinstance(value, (list, tuple)):
            described[name] = [describe(v) if is_tensor(v) else number(v) for v in value if _plain(v)]
        elif _plain(value):
            described[name] = number(value)
    return described


def _plain(value: Any) -> bool:
    return value is None or isinstance(value, (bool, int, float, str)) or is_tensor(value)


def unravel(position: int, shape: Any) -> list[int]:
    """The index of a row-major position."""
    index: list[int] = []
    for size in reversed([int(s) for s in shape]):
        position, remainder = divmod(position, size) if size else (0, 0)
        index.append(remainder)
    return index[::-1]


def first_place(bad: Any) -> list[int]:
    """The index of the first True of a boolean tensor that has one."""
    return unravel(int(bad.reshape(-1).int().argmax()), bad.shape)


def element(name: str, tensor: Any, place: list[int]) -> dict[str, Any]:
    """The fact `element`: one number by the name that the program has for its tensor."""
    value = number(tensor.detach()[tuple(place)].item())
    return {"element": {"name": name, "index": place, "value": value}}


def ravel(index: Any, shape: Any) -> int:
    """The row-major position of an index."""
    position = 0
    for place, size in zip(index, shape):
        position = position * int(size) + int(place)
    return position


def bad_mask(tensor: Any, scan: dict[str, Any], predicate: Optional[int]) -> Any:
    """Boolean tensor of the offending elements, or None where badness is no property of single elements."""
    if predicate is None:  # a row of another library: its range is what is known
        predicate = capi.PREDICATE_INDEX
        if tensor.dtype.is_floating_point:
            unit = scan.get("hi") == 1
            predicate = capi.PREDICATE_UNIT_INTERVAL if unit else capi.PREDICATE_NON_NEGATIVE
    if not tensor.dtype.is_floating_point and (scan.get("lo") is None or scan.get("hi") is None):
        return None
    return heal.bad_elements(tensor, scan, predicate, capi.OFFENDERS_ELEMENTS)


def is_newest(tensor: Any, scan: dict[str, Any], predicate: Optional[int]) -> bool:
    """Only the last of its row is bad, of several: what a model that is used has chosen itself."""
    if tensor.dim() != 2 or tensor.shape[1] < 2 or tensor.is_floating_point():
        return False
    bad = bad_mask(tensor.detach().reshape(-1), scan, predicate)
    return bad is not None and not bool(bad.reshape(tensor.shape)[:, :-1].any())


def in_column(tensor: Any, scan: dict[str, Any], predicate: Optional[int]) -> Optional[int]:
    """The one place of the last dimension that all bad integers are in, several of many rows: a field."""
    columns = int(tensor.shape[-1]) if tensor.dim() > 1 else 0
    if tensor.dtype.is_floating_point or not 2 <= columns <= _MAX_COLUMNS or scan.get("bad", 0) < _MIN_BAD:
        return None
    if tensor.numel() > MAX_ELEMENTS or tensor.numel() // columns < _MIN_ROWS:
        return None
    bad = bad_mask(tensor.detach().reshape(-1), scan, predicate)
    places = None if bad is None else bad.reshape(-1, columns).any(0).nonzero().reshape(-1).tolist()
    return places[0] if places and len(places) == 1 else None


_MAX_COLUMNS = 64
_MIN_BAD = 3
_MIN_ROWS = 8


def bad_values(
    tensor: Any, scan: dict[str, Any], predicate: Optional[int], repeats: int = 1
) -> list[tuple[Any, int]]:
    """Distinct offending values with their counts, most frequent first; empty when they cannot be told."""
    found = heal.bad_values(tensor, scan, predicate)
    times = repeats if all(count % repeats == 0 for _, count in found) else 1
    return [(number(value), count // times) for value, count in found]


def kinds(content: Any) -> dict[str, bool]:
    """What sort of numbers a floating tensor holds: whole ones only, a 0 and a 1 among them."""
    plain = content.detach()
    whole = bool((plain == plain.floor()).all())
    return {"whole": whole, "zero": bool((plain == 0).any()), "one": bool((plain == 1).any())}


def is_of_two_colours(labels: Any) -> bool:
    """Each row of a batch of masks that has labels of 255 has no others but 0, and another one has 1."""
    if labels.dim() < 3 or labels.shape[0] < 2 or labels.numel() > MAX_ELEMENTS:
        return False
    rows = labels.detach().reshape(labels.shape[0], -1)
    white = (rows == 255).any(1)
    plain = ((rows == 255) | (rows == 0)).all(1)
    return bool(white.any()) and bool((plain | ~white).all()) and bool((rows[~white] == 1).any())


def sum_to_one(weights: Any) -> bool:
    """Each of several rows does, also where some of its numbers are below 0."""
    if weights.dim() != 2 or weights.shape[0] < _TELLING or weights.numel() > MAX_ELEMENTS:
        return False
    return bool(((weights.detach().double().sum(1) - 1).abs() < _NEAR_ONE).all())


_TELLING = 4
_NEAR_ONE = 1e-3
