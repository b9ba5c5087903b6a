"""A step with a loss or gradients that are not finite is left out as one with a healed fault is.

Each loop ends with the weights of the same loop without that batch, bit for bit.
"""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from test_skip_loops import BAD, OPTIMIZERS, batches, model, same
from torch import nn
from trapline._watch import light

NAN = math.nan


def told() -> list[str]:
    last = light._light.holding._last
    return [] if last is None else [last.finding["code"], last.summary]


def spoilt(which: dict[str, bool], bad_at: int = BAD, count: int = 8):
    """Batches of which one has a NaN in its data."""
    bad, without = which.get("bad", False), which.get("without", False)
    for number, (x, y) in batches(bad=False, count=count):
        if number == bad_at and without:
            continue
        if number == bad_at and bad:
            x[2, 1] = NAN
        yield number, x, y


def plain(make, bad_at=BAD, count=8, spoil=None, **which) -> Any:
    net = model()
    optimizer = make(net.parameters())
    losses = []
    for number, x, y in spoilt(which, bad_at, count):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y)
        losses.append(loss.item())
        loss.backward()
        if spoil is not None and number == bad_at:
            spoil(net)
        optimizer.step()
    return net, optimizer.state_dict(), losses


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_plain_loop(holding, name, capfd):
    net, state, losses = plain(OPTIMIZERS[name], bad=True)
    assert holding.counts() == (8, 1)
    clean, clean_state, _ = plain(OPTIMIZERS[name], without=True)
    assert same(net, clean) and same(state, clean_state)
    assert [math.isnan(loss) for loss in losses].index(True) == BAD
    assert told() == [
        "TL109",
        "the first NaN of this run was in step 4, in what goes into `net` (Sequential)",
    ]
    assert "trapline: skipping this step: the first NaN of this run was in step 4" in capfd.readouterr().err
    assert light.verdict() is None  # no step was taken with it


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_nothing_is_different_without_a_fault(holding, name):
    with_skip = plain(OPTIMIZERS[name], count=40)
    assert holding.counts() == (40, 0)
    light.uninstall(), holding.stop()
    assert same(with_skip, plain(OPTIMIZERS[name], count=40))


def test_steps_that_are_counted_in_c(counted, holding):
    make = OPTIMIZERS["AdamW"]
    net, state, _ = plain(make, bad_at=45, count=60, bad=True)
    assert holding.counts() == (60, 1)
    assert light._light.hot.armed  # again
    clean, clean_state, _ = plain(make, bad_at=45, count=60, without=True)
    assert same(net, clean) and same(state, clean_state)
    assert "in step 46, in what goes into `net` (Sequential)" in told()[1]


@pytest.mark.parametrize("batch", [2, 45], ids=["looked at", "counted in C"])
def test_a_gradient_of_a_finite_loss(counted, holding, batch):
    class Norm(nn.Module):
        def forward(self, x):
            return (x * x).sum(1).sqrt()

    def train(bad: bool, without: bool = False) -> Any:
        torch.manual_seed(1)
        net = nn.Sequential(nn.Linear(4, 4, bias=False), Norm())
        optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
        for number, (x, _) in batches(bad=False, count=60):
            if number == batch and without:
                continue
            if number == batch and bad:
                x[1] = 0  # the derivative of sqrt
            optimizer.zero_grad()
            loss = net(x).mean()
            assert math.isfinite(loss.item())
            loss.backward()
            optimizer.step()
        return net, optimizer.state_dict()

    left = train(bad=True)
    assert holding.counts() == (60, 1)
    assert same(left, train(bad=False, without=True))
    assert f"in step {batch + 1}, in the derivative of `sqrt`, in layer 1 (Norm)" in told()[1]


# What the program sees to itself -------------------------------------------------------------------


class Mends(torch.optim.SGD):
    def step(self, closure=None):
        for parameter in self.param_groups[0]["params"]:
            parameter.grad.nan_to_num_()
        return super().step(closure)


class LeavesOut(torch.optim.SGD):
    def step(self, closure=None):
        if all(p.grad.isfinite().all() for p in self.param_groups[0]["params"]):
            super().step(closure)


def with_hook(parameters):
    optimizer = torch.optim.SGD(parameters, lr=0.1)

    def mend(optimizer, args, kwargs):
        for parameter in optimizer.param_groups[0]["params"]:
            parameter.grad.nan_to_num_()

    optimizer.register_step_pre_hook(mend)
    return optimizer


@pytest.mark.parametrize("make", [lambda p: Mends(p, lr=0.1), lambda p: LeavesOut(p, lr=0.1), with_hook])
def test_an_optimizer_that_sees_to_it_itself(holding, make):
    left = plain(make, bad=True)
    assert holding.counts()[1] == 0 and told() == []
    light.uninstall(), holding.stop()
    right = plain(make, bad=True)
    assert same(left[:2], right[:2])


@pytest.mark.parametrize("how", ["continue", "nan_to_num"])
def test_a_program_that_sees_to_it_itself(holding, how):
    def train() -> Any:
        net = model()
        optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
        for _, x, y in spoilt({"bad": True}):
            optimizer.zero_grad()
            loss = F.cross_entropy(net(x), y)
            loss.backward()
            if how == "continue" and not loss.isfinite():
                continue
            for parameter in net.parameters():
                parameter.grad.nan_to_num_()
            optimizer.step()
        return net, optimizer.state_dict()

    left = train()
    assert holding.counts() == (7 if how == "continue" else 8, 0) and told() == []
    light.uninstall(), holding.stop()
    assert same(left, train())


def test_a_scaler_leaves_its_steps_out_itself(holding):
    def train() -> Any:
        net = model()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
        for _, x, y in spoilt({"bad": True}):
            optimizer.zero_grad()
            scaler.scale(F.cross_entropy(net(x), y)).backward()
            scaler.step(optimizer)
            scaler.update()
        return net, scaler.state_dict()

    left = train()
    assert holding.counts() == (8, 0) and told() == []
    light.uninstall(), holding.stop()
    right = train()
    assert same(left, right) and right[1]["scale"] == 512


def test_weights_that_are_not_finite_are_not_asked_for(holding):
    """A loss that is NaN without a gradient (a mean over no label) is no fault."""
    net = model()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    labels = torch.full((2,), -100)
    F.cross_entropy(net(torch.ones(2, 4)), labels, reduction="sum").div(0).mul(0).detach()
    loss = F.cross_entropy(net(torch.ones(2, 4)), torch.tensor([0, 1])) * 0 + torch.tensor(NAN)
    loss.backward()
    optimizer.step()
    assert holding.counts() == (1, 0)


# Optimizers of others ------------------------------------------------------------------------------


class Foreign(torch.optim.Optimizer):
    """Its own kind of update: `sign` hides a NaN from the weights, not from its state."""

    def __init__(self, parameters, sign):
        super().__init__(parameters, {"lr": 0.1, "k": 0})
        self.sign = sign

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            group["k"] += 1
            for parameter in group["params"]:
                state = self.state[parameter]
                mean = state.setdefault("mean", torch.zeros_like(parameter))
                mean.mul_(0.9).add_(parameter.grad)
                parameter.sub_((mean.sign() if self.sign else mean) * group["lr"] / group["k"])


@pytest.mark.parametrize("sign", [False, True], ids=["sum", "sign"])
@pytest.mark.parametrize("bad_at", [0, BAD])
def test_an_optimizer_of_another_library(holding, sign, bad_at):
    def make(parameters):
        return Foreign(parameters, sign)

    net, state, _ = plain(make, bad_at=bad_at, bad=True)
    assert holding.counts() == (8, 1)
    clean, clean_state, _ = plain(make, bad_at=bad_at, without=True)
    assert same(net, clean) and same(state, clean_state)
    assert f"in step {bad_at + 1}, in what goes into `net` (Sequential)" in told()[1]
    assert light.verdict() is None


class Around(torch.optim.Optimizer):
    """Hands its step to the one that it holds, which has the state."""

    def __init__(self, parameters):
        parameters = list(parameters)
        super().__init__(parameters, {})
        self.inner = torch.optim.AdamW(parameters, lr=0.01)

    def step(self, closure=None):
        self.inner.step(closure)


def test_an_optimizer_around_another(holding):
    def train(**which: bool) -> Any:
        made = []

        def make(parameters):
            made.append(Around(parameters))
            return made[0]

        return plain(make, **which)[0], made[0].inner.state_dict()

    left = train(bad=True)
    assert holding.counts() == (8, 1)
    assert same(left, train(without=True))


# Other loops ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [torch.optim.SGD, torch.optim.LBFGS])
def test_closure(holding, make):
    def train(**which: bool) -> Any:
        net = model()
        options = {"max_iter": 4, "line_search_fn": "strong_wolfe"} if make is torch.optim.LBFGS else {}
        optimizer = make(net.parameters(), lr=0.1, **options)
        losses = []
        for _, x, y in spoilt(which):

            def closure(x=x, y=y):
                optimizer.zero_grad()
                loss = F.cross_entropy(net(x), y)
                loss.backward()
                return loss

            losses.append(optimizer.step(closure).item())
        return net, optimizer.state_dict()["state"], losses

    net, state, losses = train(bad=True)
    assert holding.counts() == (8, 1)
    assert math.isnan(losses[BAD])
    clean, clean_state, _ = train(without=True)
    assert same(net, clean) and same(state, clean_state)
    assert "in step 4, in what goes into `net` (Sequential)" in told()[1]


def test_a_gradient_in_a_closure_between_looks(counted, holding):
    weight = nn.Parameter(torch.ones(3))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    before = None
    for step in range(20):

        def closure(step=step):
            optimizer.zero_grad()
            loss = (weight * (0.0 if step == 12 else 1.0)).pow(2).sum().sqrt()
            loss.backward()
            return loss

        before = weight.detach().clone() if step == 12 else before
        optimizer.step(closure)
        if step == 12:
            assert torch.equal(weight, before)
    assert holding.counts() == (20, 1)


def test_trial_points_of_a_line_search_are_none(holding):
    def train() -> Any:
        weight = nn.Parameter(torch.zeros(1))
        optimizer = torch.optim.LBFGS([weight], lr=1.0, max_iter=8, line_search_fn="strong_wolfe")
        trials = []

        def closure():
            optimizer.zero_grad()
            loss = (-(1 - weight).log() - 3 * weight).sum()  # Inf at 1, NaN beyond
            loss.backward()
            trials.append(loss.item())
            return loss

        for _ in range(3):
            optimizer.step(closure)
        return weight.detach().clone(), trials

    left = train()
    assert not all(map(math.isfinite, left[1])), "no trial point was bad"
    assert holding.counts() == (3, 0)
    light.uninstall(), holding.stop()
    right = train()
    assert torch.equal(left[0], right[0])


def test_gradient_accumulation(holding):
    def train(**which: bool) -> nn.Module:
        group = which.pop("without_group", False)
        net = model()
        optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
        for number, x, y in spoilt(which, bad_at=2):
            if group and number in (2, 3):
                continue
            (F.cross_entropy(net(x), y) / 2).backward()
            if number % 2 == 1:
                optimizer.step()
                optimizer.zero_grad()
        return net

    net = train(bad=True)
    assert holding.counts() == (4, 1)
    assert same(net, train(without_group=True))


@pytest.mark.parametrize("bad", ["d", "both"])
def test_two_optimizers(holding, bad):
    """A batch that is not there is there for neither of them."""

    def train(bad_in: str = "", without: bool = False) -> Any:
        torch.manual_seed(0)
        g, d = nn.Sequential(nn.Linear(2, 2)), nn.Sequential(nn.Linear(2, 1))
        of_g, of_d = (torch.optim.AdamW(part.parameters(), lr=0.1) for part in (g, d))
        for step in range(6):
            if step == 3 and without:
                continue
            nan = {"d": bad_in in ("d", "both"), "g": bad_in == "both"} if step == 3 else {}
            fake = g(torch.full((3, 2), step + 1.0))
            of_d.zero_grad()
            ((d(torch.ones(3, 2)) - d(fake.detach())).mean() * (NAN if nan.get("d") else 1.0)).backward()
            of_d.step()
            of_g.zero_grad()
            (d(fake).mean() * (NAN if nan.get("g") else 1.0)).backward()
            of_g.step()
        return g, d, of_g.state_dict(), of_d.state_dict()

    left = train(bad)
    assert holding.counts() == (12, 2)
    assert same(left, train(without=True))
    assert light._light.holding.told == 1


def test_a_loss_of_two_optimizers(holding):
    one, two = nn.Linear(2, 1), nn.Linear(2, 1)
    optimizers = [torch.optim.SGD(part.parameters(), lr=0.1) for part in (one, two)]
    before = [p.detach().clone() for part in (one, two) for p in part.parameters()]
    ((one(torch.ones(3, 2)) + two(torch.ones(3, 2))).mean() * NAN).backward()
    for optimizer in optimizers:
        optimizer.step()
    assert holding.counts() == (2, 2)
    assert same(before, [p.detach() for part in (one, two) for p in part.parameters()])
    assert light._light.holding.told == 1


@pytest.mark.parametrize("bad_at", [0, BAD])
@pytest.mark.parametrize("foreign", [False, True])
def test_running_statistics_go_back(holding, bad_at, foreign):
    def train(**which: bool) -> Any:
        torch.manual_seed(1)
        net = nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.Linear(5, 3))
        optimizer = Foreign(net.parameters(), False) if foreign else torch.optim.SGD(net.parameters(), lr=0.1)
        for _, x, y in spoilt(which, bad_at):
            optimizer.zero_grad()
            F.cross_entropy(net(x), y).backward()
            optimizer.step()
        return net

    net, clean = train(bad=True), train(without=True)
    assert holding.counts()[1] == 1
    assert same(net, clean)
    assert torch.equal(net[1].running_mean, clean[1].running_mean)
    assert torch.equal(net[1].running_var, clean[1].running_var)


def test_running_statistics_are_those_of_the_last_look(counted, holding):
    net = nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.Linear(5, 3))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    seen = []
    for number, x, y in spoilt({"bad": True}, bad_at=20, count=24):
        optimizer.zero_grad()
        F.cross_entropy(net(x), y).backward()
        optimizer.step()
        seen.append(net[1].running_mean.clone())
        assert seen[-1].isfinite().all(), number
    assert any(torch.equal(seen[20], before) for before in seen[:5])
