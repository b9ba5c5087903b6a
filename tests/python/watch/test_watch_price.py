"""Steps that are unlike those of the step benches: what the watch leaves after the first ones."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

X = torch.ones(3, 2)


def test_backward_of_what_is_no_loss_and_no_optimizer(watch):
    net = nn.Linear(2, 2)
    for _ in range(6):
        net(X).backward(torch.ones(3, 2))
    light = watch._light
    assert (light.looks, len(light.calls), light.roots.learning) == (False, 0, [])


def test_an_optimizer_for_each_step(watch):
    net = nn.Linear(2, 2)
    for _ in range(20):
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        net(X).pow(2).mean().backward()
        optimizer.step()
        del optimizer
    light = watch._light
    assert (light.looks, light.roots.learning) == (False, [])
