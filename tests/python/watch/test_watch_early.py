"""A loss that overflows some steps before a weight does is where a training began to blow up."""

from __future__ import annotations

import math

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

X = torch.ones(4, 1)


def explode(losses_between=0, lr=1e3):
    model = nn.Linear(1, 1, bias=False)
    nn.init.constant_(model.weight, 1.0)
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    first = None
    for step in range(1, 40):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(X), X * 0)
        if losses_between and step % losses_between == 0:
            loss = model(X).clamp(-1, 1).mean()
        if first is None and not math.isfinite(loss.item()):
            first = step
        loss.backward()
        optimizer.step()
    return first


def test_the_first_of_the_losses_that_overflowed(watch):
    first = explode()
    seen = watch.verdict()
    assert (seen["step"], seen["kind"], seen["what"]) == (first, "loss", "inf")
    assert seen["last_steps"][-1]["step"] > first  # weights overflowed later


def test_not_one_before_a_finite_loss(watch):
    first = explode(losses_between=3)
    seen = watch.verdict()
    assert (first, seen["kind"], seen["step"]) == (10, "optimizer", 18)


def test_a_mean_over_nothing_is_said_and_is_no_fault(watch):
    model = nn.Linear(1, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(1, 4):
        labels = torch.full((4,), -100 if step == 2 else 1)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(X), labels).backward()
        optimizer.step()
    assert watch.verdict() is None
    said = watch.harmless()
    assert (said["step"], said["kind"], said["op"]) == (2, "loss", "nll_loss")
