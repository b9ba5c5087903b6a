"""Which operand an exception is about: what stands in the brackets, and what a distribution refuses."""

from __future__ import annotations

from typing import Any

SETUP = "import torch\nfrom trapline._exceptions import hooks\nhooks.install()\n"
SUBSCRIPT = """
import torch

labels = torch.tensor([0.0, 2.0, 1.0], dtype=torch.float64)

def mark(values, classes):
    mask = torch.zeros(len(values), classes)
    mask[torch.arange(len(values)), values] = 1
    return mask

mark(labels, 3)
"""
SAMPLER = """
import torch
from torch.distributions import Normal

centre, spread = torch.zeros(3), torch.tensor([0.1, -0.02, 0.3])
Normal(centre, spread)
"""


def test_the_index_is_what_stands_in_the_brackets(run: Any) -> None:
    finding = run(SUBSCRIPT, SETUP).finding
    assert finding["code"] == "TL203"
    assert finding["summary"] == (
        "x[index]: values (float64) cannot be used as an index; it must be int64, int32 or bool"
    )
    assert finding["fix"] == ["use `values.long()` for positions, `.bool()` for a mask"]


def test_the_parameter_is_the_one_that_was_refused(run: Any) -> None:
    finding = run(SAMPLER, SETUP).finding
    assert finding["code"] == "TL107"
    assert finding["summary"] == "Normal: scale=spread[1] is -0.02, but must be > 0"
    assert finding["element"]["index"] == [1]
    assert (finding["element"]["bad"], finding["element"]["total"]) == (1, 3)
    assert "F.softplus(spread)" in finding["fix"][0]
