"""Samples of a batch that cannot be stacked: which field, its two shapes, and who has the other one.

Asked where the fault is, with the samples at hand: asking the data set again may make others.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from types import FrameType
from typing import Any, Optional

from trapline._fault.program import scope

Facts = dict[str, Any]
_FETCH = "torch/utils/data/_utils/fetch.py"
_COLLATE = "torch/utils/data/_utils/collate.py"
_SIZES = re.compile(
    r"stack expects each tensor to be equal size, but got \[([\d, ]*)\] at entry (\d+) and \[([\d, ]*)\]"
)
_SHARED = "Trying to resize storage that is not resizable"
_DEPTH = 4
_MAX_SAMPLES = 4096
_MAX_FIELDS = 64
_MOST = 3  # samples, of which one may be the odd one


def facts_of(frames: list[FrameType], message: str) -> Optional[Facts]:
    """`usual` and `odd`, two shapes; `entry`, the first that has the odd one; `of`, how many samples;
    `field`. `entries`: all that have it, where most of the batch has the usual one."""
    sizes = _SIZES.search(message)
    if sizes is None and _SHARED not in message:
        return None
    stacked = None if sizes else _stacked(frames)
    samples = _samples(frames)
    for name, shapes in _fields(samples):
        if len(set(shapes)) < 2 or (stacked is not None and shapes != stacked):
            continue
        if sizes is not None and not _says(sizes, shapes):
            continue
        return _told(name, shapes)
    return None if stacked is None or len(set(stacked)) < 2 else _told("", stacked)


def _told(name: str, shapes: list[tuple[int, ...]]) -> Facts:
    usual, times = Counter(shapes).most_common(1)[0]
    most = len(shapes) >= _MOST and times * 2 > len(shapes)
    first = shapes[0] if not most else usual
    entries = [at for at, shape in enumerate(shapes) if shape != first]
    facts: Facts = {
        "usual": list(first),
        "odd": list(shapes[entries[0]]),
        "entry": entries[0],
        "of": len(shapes),
    }
    if most:
        facts["entries"] = entries
    if name:
        facts["field"] = name
    return facts


def _says(sizes: re.Match[str], shapes: list[tuple[int, ...]]) -> bool:
    """Whether the message speaks of this field: the first shape, and the first that differs from it."""
    first, at, other = (tuple(map(int, re.findall(r"\d+", part))) for part in sizes.groups())
    differs = next((shape for shape in shapes if shape != shapes[0]), None)
    return at == (0,) and shapes[0] == first and differs == other


def _stacked(frames: list[FrameType]) -> Optional[list[tuple[int, ...]]]:
    """The shapes of what PyTorch's own collate function was stacking."""
    for frame in frames:
        if frame.f_code.co_filename.replace("\\", "/").endswith(_COLLATE):
            batch = frame.f_locals.get("batch")
            if type(batch) in (list, tuple) and batch and all(scope.is_tensor(item) for item in batch):
                return [tuple(item.shape) for item in batch]
    return None


def _samples(frames: list[FrameType]) -> list[Any]:
    """What the data set gave to the collate function."""
    for frame in frames:
        if frame.f_code.co_filename.replace("\\", "/").endswith(_FETCH):
            data = frame.f_locals.get("data")
            return data if type(data) is list and 1 < len(data) <= _MAX_SAMPLES else []
    return []


def _fields(samples: list[Any]) -> Iterator[tuple[str, list[tuple[int, ...]]]]:
    """The fields of samples that are arrays in each of them."""
    each = [dict(_shapes(sample, "", _DEPTH)) for sample in samples]
    for name in list(each[0])[:_MAX_FIELDS] if each else ():
        if all(name in one for one in each):
            yield name, [one[name] for one in each]


def _shapes(value: Any, name: str, depth: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    if scope.is_tensor(value) or type(value).__module__ == "numpy":
        shape = getattr(value, "shape", None)
        if isinstance(shape, tuple):
            yield name, tuple(map(int, shape))
    elif depth and type(value) is dict:
        for key, item in list(value.items())[:_MAX_FIELDS]:
            if isinstance(key, str):
                yield from _shapes(item, f"{name}[{key!r}]" if name else key, depth - 1)
    elif depth and isinstance(value, (list, tuple)):
        for at, item in enumerate(list(value)[:_MAX_FIELDS]):
            yield from _shapes(item, f"{name}[{at}]", depth - 1)
