"""Did this sample of a data set make that row of a batch? Asked where a user's own collate function ran."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from trapline._fault.program import scope

_MAX_STARTS = 64
_MAX_LENGTH = 1 << 20
_MAX_BOXES = 1 << 12  # numbers


def sample_produced_row(sample: Any, row: Any, value: Any) -> bool:
    """True when the row (or, for one label, the value) is in the sample; padding at either end is allowed."""
    wanted: list[Any] = row.reshape(-1).tolist() if row.numel() <= _MAX_LENGTH else []
    for sequence in _sequences(sample, isinstance(value, int)):
        if row.dim() == 0:
            if value in sequence or (math.isnan(value) and any(map(math.isnan, sequence))):
                return True
        elif _within(sequence, wanted):
            return True
    return False


def _within(sequence: list[Any], row: list[Any]) -> bool:
    """True when the sequence is a run of the row, or the row is the beginning of a longer sequence."""
    length = min(len(sequence), len(row))
    if length < 2 and len(sequence) != len(row):
        return False
    starts = range(min(len(row) - length, _MAX_STARTS) + 1)
    return bool(length) and any(
        row[start : start + length] == sequence[:length] for start in [*starts, len(row) - length]
    )


def _sequences(sample: Any, integral: bool, depth: int = 4) -> Iterator[list[Any]]:
    """Every run of numbers in a sample, those of the wrong kind (features beside labels) left out."""
    if sample is None or isinstance(sample, (str, bytes)):
        return
    if isinstance(sample, (int, float)):
        if isinstance(sample, int) or not integral:
            yield [sample]
    elif scope.is_tensor(sample) or hasattr(sample, "__array__"):
        numbers = _numbers(sample)
        if numbers and (not integral or not isinstance(numbers[0], float)):
            yield numbers
    elif depth and callable(getattr(sample, "values", None)) and hasattr(sample, "keys"):
        for item in list(sample.values()):
            yield from _sequences(item, integral, depth - 1)
    elif isinstance(sample, (list, tuple)):
        if sample and all(type(item) in (int, float) for item in sample) and isinstance(sample, list):
            if not integral or all(type(item) is int for item in sample):
                yield list(sample)
        elif depth:
            for item in sample:
                yield from _sequences(item, integral, depth - 1)


def _numbers(array: Any) -> list[Any]:
    try:
        size = array.numel() if scope.is_tensor(array) else array.size
        return array.reshape(-1).tolist() if size <= _MAX_LENGTH else []
    except (TypeError, ValueError, RuntimeError, AttributeError):
        return []


def integers(sample: Any) -> list[list[int]]:
    """All its runs of integers."""
    return list(_sequences(sample, True))


def holds(sample: Any, run: list[Any]) -> bool:
    """True when these numbers stand side by side somewhere in the sample: one box of an image's."""
    for sequence in _sequences(sample, bool(run) and isinstance(run[0], int)):
        if len(sequence) > _MAX_BOXES:  # a picture
            continue
        for start in range(len(sequence) - len(run) + 1):
            if all(_near(a, b) for a, b in zip(sequence[start:], run)):
                return True
    return False


def same(one: Any, other: Any) -> bool:
    """Equal records of plain values; arrays are not compared."""
    if one is other:
        return True
    try:
        return type(one) is type(other) and bool(one == other)
    except Exception:
        return False


def _near(one: Any, other: Any) -> bool:
    """Equal as numbers, or as float32 would have them."""
    return one == other or (
        isinstance(one, float) and isinstance(other, float) and abs(one - other) <= 1e-6 * abs(other)
    )
