"""The checks of data at hand say the same of a tensor on `cuda` as of one in host memory."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
import trapline

NAN = float("nan")
BAD = {
    "labels": (lambda t: trapline.check_labels(t, 3), torch.tensor([0, 1, 7])),
    "ids": (lambda t: trapline.check_ids(t, 5), torch.tensor([[0, 1], [9, 3]])),
    "finite": (trapline.check_finite, torch.tensor([0.0, NAN])),
    "finite, bfloat16": (trapline.check_finite, torch.tensor([0.0, NAN], dtype=torch.bfloat16)),
    "probabilities": (trapline.check_probs, torch.tensor([[0.5, 0.5], [-1.0, 2.0]])),
    "loss": (
        lambda t: trapline.check_loss(F.cross_entropy, torch.zeros(3, 4, device=t.device), t),
        torch.tensor([0, 1, 9]),
    ),
}


@pytest.mark.parametrize("what", BAD)
def test_it_says_the_same(what):
    check, tensor = BAD[what]
    said = []
    for device in ("cpu", "cuda"):
        with pytest.raises(trapline.DeviceAssertError) as raised:
            check(tensor.to(device))
        said.append(str(raised.value))
    assert said[0] == said[1] and said[0].startswith("check_")


def test_good_ones_pass():
    assert trapline.check_labels(torch.tensor([0, 1, 2]).cuda(), 3) is None
    assert trapline.check_finite(torch.zeros(3, dtype=torch.bfloat16).cuda()) is None
