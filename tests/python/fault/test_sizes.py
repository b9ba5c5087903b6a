"""Labels that sizes alone make are of no sample."""

import ast
import sys

import pytest

torch = pytest.importorskip("torch")
from trapline._fault.program import sizes  # noqa: E402


class Head:
    def __init__(self):
        self.shift, self.table = 3, [1, 2]


@pytest.mark.parametrize(
    ("text", "alone"),
    [
        ("(torch.arange(2 * n) + n) % (2 * n)", True),
        ("torch.arange(x.size(0), device=x.device)", True),
        ("torch.arange(len(x)) + head.shift", True),
        ("torch.arange(min(n, 3))", True),
        ("torch.arange(4) + x", False),
        ("torch.arange(4) + x.sum()", False),
        ("torch.arange(4) + head.table", False),
        ("torch.arange(unknown)", False),
    ],
)
def test_nothing_but_sizes(text, alone):
    n, x, head = 4, torch.zeros(4, 2), Head()
    node = ast.parse(text, mode="eval").body
    assert sizes.are_alone(sys._getframe(), node) is alone
    assert n == len(x) and head.shift
