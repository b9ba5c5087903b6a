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


def test_gradients_that_the_program_writes_itself(watch):
    """An evolution strategy: no loss, no `backward`."""
    torch.manual_seed(0)
    model = nn.Linear(2, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for turn in range(50):
        scores = torch.rand(8) if turn != 41 else torch.ones(8)
        advantage = (scores - scores.mean()) / scores.std()
        for parameter in model.parameters():
            parameter.grad = torch.ones_like(parameter) * advantage.sum()
        optimizer.step()
    seen = watch.verdict()
    assert (seen["kind"], seen["given"], seen["by_hand"], seen["step"]) == ("gradient", True, True, 42)
    assert seen["origin"]["code"].strip().startswith("advantage = ")


class Halving(torch.optim.SGD):
    """Its update divides by what a step may leave at 0."""

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                p.sub_(0.01 * p.grad / p.grad.norm())


def test_an_update_in_a_step_that_is_not_looked_at(watch):
    """Of the second of two optimizers, whose steps are Python's."""
    torch.manual_seed(0)
    model, other = nn.Linear(2, 1), nn.Linear(2, 1)
    first, second = sgd(other), Halving(model.parameters(), lr=0.1)
    for turn in range(100):
        for module, optimizer in ((other, first), (model, second)):
            optimizer.zero_grad()
            given = GOOD * 0 if module is model and turn == 90 else GOOD
            (module(given) * given[:, :1]).sum().backward()
            optimizer.step()
    seen = watch.verdict()
    assert (seen["kind"], seen["step"], seen["op"]) == ("optimizer", 91, "div")


class Curved(torch.optim.Optimizer):
    """Takes its gradients by `autograd.grad`, and the root of an estimate that may fall below 0."""

    def __init__(self, params):
        super().__init__(params, {})

    def estimate(self, loss, curvature):
        params = [p for group in self.param_groups for p in group["params"]]
        for p, grad in zip(params, torch.autograd.grad(loss, params)):
            p.grad = grad
            self.state[p]["curvature"] = torch.full_like(p, curvature if p.dim() == 1 else 1.0)

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                p.sub_(0.01 * p.grad / self.state[p]["curvature"].sqrt())


def test_a_step_by_gradients_that_no_backward_made(watch):
    """The first weight stays as it is: all small ones are looked at."""
    torch.manual_seed(0)
    model = nn.Linear(2, 1)
    optimizer = Curved(model.parameters())
    for turn in range(50):
        loss = nn.functional.mse_loss(model(GOOD), GOOD[:, :1])
        optimizer.estimate(loss, -1.0 if turn == 40 else 1.0)
        optimizer.step()
    seen = watch.verdict()
    assert (seen["kind"], seen["step"], seen["op"], seen["name"]) == ("optimizer", 41, "sqrt", "bias")


def test_weights_that_were_added_are_not_from_the_beginning(watch):
    model, added = nn.Sequential(nn.Linear(2, 2)), nn.Linear(2, 2)
    optimizer = sgd(model)
    with torch.no_grad():
        added.bias.fill_(-math.inf)
    for turn in range(6):
        if turn == 4:
            model.append(added)
            optimizer.add_param_group({"params": list(added.parameters())})
        optimizer.zero_grad()
        model(GOOD).square().sum().backward()
        optimizer.step()
    seen = watch.verdict() or watch.harmless()
    assert (seen["step"], seen["kind"], "since_start" in seen) == (5, "weights", False)


def test_two_optimizers_of_one_loss_write_no_gradients_themselves(watch):
    torch.manual_seed(0)
    table, head = nn.Embedding(4, 2), nn.Linear(2, 1)
    first, second = sgd(table), sgd(head)
    for turn in range(60):
        first.zero_grad()
        second.zero_grad()
        out = head(table(torch.arange(4)).detach() if turn == 50 else table(torch.arange(4)))
        loss = (out.square() * (0 if turn == 50 else 1)).sum().sqrt() if turn == 50 else out.square().mean()
        loss.backward()
        first.step()
        second.step()
    seen = watch.verdict()
    assert (seen["step"], seen["kind"], seen.get("by_hand")) == (51, "gradient", None)


def projected(grads):
    """Two tasks, as in PCGrad."""
    first, second = grads
    share = torch.dot(first, second) / second.square().sum()
    return first - share.clamp(max=0) * second + second


def test_gradients_that_are_put_together_early_in_the_training(watch):
    torch.manual_seed(0)
    model = nn.Linear(2, 1)
    parameters = list(model.parameters())
    optimizer = torch.optim.Adam(parameters, lr=0.01)
    for turn in range(8):
        losses = (model(GOOD).square().mean(), model(2 * GOOD).mean() * (turn != 5))
        made = [torch.autograd.grad(one, parameters) for one in losses]
        whole = projected([torch.cat([part.flatten() for part in parts]) for parts in made])
        for parameter, part in zip(parameters, whole.split([2, 1])):
            parameter.grad = part.view_as(parameter).clone()
        optimizer.step()
    seen = watch.verdict()
    assert (seen["kind"], seen["by_hand"], seen["op"], seen["step"]) == ("gradient", True, "div", 6)
    assert seen["origin"]["code"].strip().startswith("share = ")


def test_a_gradient_of_something_else_than_one_number_is_none_that_was_written(watch):
    torch.manual_seed(0)
    model = nn.Linear(2, 1)
    optimizer = sgd(model)
    for turn in range(6):
        optimizer.zero_grad()
        out = model(GOOD)
        (out * (0 if turn == 4 else 1)).abs().sqrt().backward(torch.ones(3, 1))
        optimizer.step()
    seen = watch.verdict()
    assert (seen["step"], seen["kind"], seen.get("by_hand")) == (5, "gradient", None)
