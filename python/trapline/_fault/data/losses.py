"""The losses that a program has kept, in a list or an array: since which step they are not finite."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any, Optional

from trapline._fault.program import holders, scope

_LOSS = re.compile(r"loss", re.IGNORECASE)
_MAX_LOSSES = 1 << 16
_MAX_VARIABLES = 256


def first_bad() -> Optional[dict[str, Any]]:
    """`name` of the nearest list of losses that was finite and then was not, `index` of the first bad one and
    `count` of all."""
    for name, value in _held():
        numbers = _numbers(value)
        bad = next((at for at, number in enumerate(numbers) if not math.isfinite(number)), 0)
        if bad:  # the first one is no turn
            return {"name": name, "index": bad, "count": len(numbers), "value": _word(numbers[bad])}
    return None


def _held() -> Iterator[tuple[str, Any]]:
    for frame in holders.user_frames():
        for name, value in list(scope.variables(frame))[:_MAX_VARIABLES]:
            if name.startswith("__"):
                continue
            if _LOSS.search(name):
                yield name, value
            inside = type(value) is dict or name == "self"
            for path, item in holders.items(name, value) if inside else ():
                if _LOSS.search(path[len(name) :]):
                    yield path, item


def _numbers(value: Any) -> list[float]:
    if type(value) is list and 1 < len(value) <= _MAX_LOSSES:
        found = [_number(item) for item in value]
        return [] if any(number is None for number in found) else found  # type: ignore[return-value]
    array = type(value).__name__ == "ndarray" or scope.is_tensor(value)
    held = holders.as_tensor(value, _MAX_LOSSES) if array else None
    series = held is not None and held.dim() == 1 and held.dtype.is_floating_point and len(held) > 1
    return held.tolist() if series else []


def _number(value: Any) -> Optional[float]:
    if type(value) in (float, int):
        return float(value)
    if scope.is_tensor(value) and value.numel() == 1 and scope.is_at_hand(value):
        return float(value.detach())
    return float(value) if type(value).__name__ in ("float32", "float64") else None


def _word(number: float) -> str:
    return "nan" if math.isnan(number) else "inf" if number > 0 else "-inf"
