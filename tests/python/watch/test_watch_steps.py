"""`--watch light`: which step it is, where several optimizers have the same weights."""

from __future__ import annotations

import math

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from trapline._watch import light  # noqa: E402

GOOD = torch.ones(3, 2)


@pytest.fixture
def watch():
    light.install()
    yield light
    light.uninstall()


def sgd(module):
    return torch.optim.SGD(module.parameters(), lr=0.1)


def test_an_optimizer_that_takes_over_from_one_that_is_still_there(watch):
    """A search for a rate, and then the training, of the same weights."""
    model = nn.Linear(2, 1)
    search = sgd(model)
    for _ in range(4):
        search.zero_grad()
        model(GOOD).mean().backward()
        search.step()
    training = sgd(model)
    for step in range(3):
        training.zero_grad()
        (model(GOOD).mean() * (math.nan if step == 1 else 1)).backward()
        training.step()
    assert (watch.verdict()["kind"], watch.verdict()["step"], len(search.param_groups)) == ("loss", 6, 1)


def test_an_optimizer_inside_of_another_takes_nothing_over(watch):
    model = nn.Linear(2, 1)
    inner = sgd(model)

    class Sharpness(torch.optim.SGD):
        def step(self, closure=None):
            inner.step()

    outer = Sharpness(model.parameters(), lr=0.1)
    for step in range(6):
        outer.zero_grad()
        (model(GOOD).mean() * (math.nan if step == 4 else 1)).backward()
        outer.step()
    assert (watch.verdict()["kind"], watch.verdict()["step"]) == ("loss", 5)
