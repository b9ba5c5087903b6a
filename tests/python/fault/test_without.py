"""A batch without one of its samples, and without what only that one was long enough for."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
from trapline._fault.data.without import Without  # noqa: E402


class Batch:
    def __init__(self, *parts):
        self._parts = parts

    def tensors(self):
        return self._parts


def rows(*lengths, width):
    out = torch.zeros(len(lengths), width, dtype=torch.long)
    for row, length in enumerate(lengths):
        out[row, :length] = torch.arange(1, length + 1)
    return out


def test_the_row_goes_out_of_all_that_has_one_for_each():
    without = Without.of(Batch(rows(3, 4, 4, width=4)), 3, 1)
    assert without == Without(3, 1)
    assert without.cut(torch.tensor([5, 6, 7])).tolist() == [5, 7]
    assert without.cut(torch.ones(4, 2)).shape == (4, 2)
    assert without.items(["a", "b", "c"]) == ["a", "c"]
    assert without.items(["a"]) == ["a"]


def test_all_are_filled_up_to_the_next_longest_then():
    batch = rows(3, 12, 5, width=12)
    without = Without.of(Batch(batch), 3, 1)
    assert without == Without(3, 1, long=12, short=5)
    assert without.cut(batch).tolist() == rows(3, 5, width=5).tolist()
    assert without.cut(torch.ones(3, 2, 12, 12)).shape == (2, 2, 5, 5)
    assert Without.of(Batch(batch), 3, 0).long == 0


def test_one_that_is_hardly_longer_is_not_why():
    assert Without.of(Batch(rows(8, 12, 9, width=12)), 3, 1).long == 0
