"""A `//` that rounds down below 0."""

import ast

import pytest
from trapline._fault.program import floored


@pytest.fixture
def only(monkeypatch):
    def of(text):
        monkeypatch.setattr(floored.texts, "user_trees", lambda: iter([("roll.py", ast.parse(text))]))
        return floored.only_division()

    return of


def test_the_only_one(only):
    assert only("a = 1\nframe['bucket'] = (frame['dpd'] // 30).clip(upper=5)") == {
        "text": "frame['dpd'] // 30",
        "file": "roll.py",
        "line": 2,
    }
    assert only("def bucket(days):\n    return days // 30\n")["line"] == 2


@pytest.mark.parametrize(
    "text",
    [
        "def __init__(self, size):\n    self.rows = (2 * size + 1) // self.quant",
        "half = len(x) // 2",
        "side = x.shape[1] // 2",
        "size = 100 // parts",
        "b = (days // 30).clip(0, 5)",
        "b = (days // 30).clip(lower=0)",
        "b = max(days // 30, 0)",
        "b = days // 30 % 12",
        "for i in range(n // 2): pass",
        "a = days // 30\nb = hours // 24",  # which of them?
        "a = days / 30",
    ],
)
def test_what_stays_at_0_or_above_or_is_one_of_several(only, text):
    assert only(text) is None
