"""A loop with a bad batch ends with the weights of the same loop without that batch, bit for bit."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from typing import Any, Callable

import pytest
import torch
import torch.nn.functional as F
from trapline import DeviceAssertError
from trapline._skip import ledger, steps

BAD = 3  # the batch that holds the bad label
Batch = tuple[torch.Tensor, torch.Tensor]


def batches(bad: bool, without: bool = False, count: int = 8) -> Iterator[tuple[int, Batch]]:
    generator = torch.Generator().manual_seed(7)
    for number in range(count):
        x = torch.randn(6, 4, generator=generator)
        y = torch.randint(0, 3, (6,), generator=generator)
        if number == BAD and without:
            continue
        if number == BAD and bad:
            y[2] = 9
        yield number, (x, y)


def model() -> torch.nn.Module:
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.Tanh(), torch.nn.Linear(5, 3))


def same(left: Any, right: Any) -> bool:
    """Bit-equal parameters, or nested states."""
    if isinstance(left, torch.nn.Module):
        return same(list(left.parameters()), list(right.parameters()))
    if isinstance(left, torch.Tensor):
        return torch.equal(left, right)
    if isinstance(left, dict):
        return list(left) == list(right) and all(same(left[k], right[k]) for k in left)
    if isinstance(left, (list, tuple)):
        return len(left) == len(right) and all(map(same, left, right))
    return left == right


OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    "AdamW": lambda p: torch.optim.AdamW(p, lr=0.01),
    "fused Adam": lambda p: torch.optim.Adam(p, lr=0.01, fused=True),
    "Rprop": torch.optim.Rprop,
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_plain_loop(skipping, name):
    def train(**which: bool) -> Any:
        net = model()
        optimizer = OPTIMIZERS[name](net.parameters())
        losses = []
        for _, (x, y) in batches(**which):
            optimizer.zero_grad()
            loss = F.cross_entropy(net(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return net, optimizer.state_dict(), losses

    net, state, losses = train(bad=True)
    assert skipping.counts() == (8, 1)
    clean, clean_state, _ = train(bad=False, without=True)
    assert same(net, clean)
    assert same(state, clean_state)
    # A read in the spoilt step raises nothing and gives the healed run's number, not NaN.
    assert all(map(math.isfinite, losses))
    assert not same(net, train(bad=False)[0]), "the batch would have made a difference"


def test_the_gradients_of_the_bad_batch_are_gone(skipping):
    net = model()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    F.cross_entropy(net(torch.randn(2, 4)), torch.tensor([0, 3])).backward()
    assert net[0].weight.grad is not None
    optimizer.step()
    assert net[0].weight.grad is None


def test_gradient_accumulation_drops_all_that_was_accumulated(skipping):
    def train(**which: bool) -> torch.nn.Module:
        net = model()
        optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
        group = which.pop("without_group", False)
        for number, (x, y) in batches(**which):
            if group and number in (2, 3):
                continue
            (F.cross_entropy(net(x), y) / 2).backward()
            if number % 2 == 1:
                optimizer.step()
                optimizer.zero_grad()
        return net

    net = train(bad=True)
    assert skipping.counts() == (4, 1)
    assert same(net, train(bad=False, without_group=True))


@pytest.mark.parametrize("unscale", [False, True], ids=["plain", "unscale and clip"])
@pytest.mark.parametrize("name", ["AdamW", "fused Adam"])
def test_grad_scaler(skipping, unscale, name):
    def train(**which: bool) -> Any:
        net = model()
        optimizer = OPTIMIZERS[name](net.parameters())
        scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=2)
        for _, (x, y) in batches(**which):
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = F.cross_entropy(net(x), y)
            scaler.scale(loss).backward()
            if unscale:
                scaler.unscale_(optimizer)
                torch.nn.utils.clip_grad_norm_(net.parameters(), 0.1)
            scaler.step(optimizer)
            scaler.update()
        return net, optimizer.state_dict(), scaler.state_dict()

    left = train(bad=True)
    assert skipping.counts() == (8, 1)
    right = train(bad=False, without=True)
    assert all(map(same, left, right))
    assert left[2]["scale"] > 1024


def test_grad_scaler_that_found_infinities_in_the_bad_batch(skipping):
    net = model()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    loss = F.cross_entropy(net(torch.full((2, 4), 1e38)), torch.tensor([0, 3])) * 1e38
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    assert scaler.get_scale() == 1024
    assert skipping.counts() == (1, 1)


@pytest.mark.parametrize("make", [torch.optim.SGD, torch.optim.LBFGS])
def test_closure(skipping, make):
    def train(**which: bool) -> Any:
        net = model()
        options = {"max_iter": 4, "line_search_fn": "strong_wolfe"} if make is torch.optim.LBFGS else {}
        optimizer = make(net.parameters(), lr=0.1, **options)
        losses = []
        for _, (x, y) in batches(**which):

            def closure(x=x, y=y):
                optimizer.zero_grad()
                loss = F.cross_entropy(net(x), y)
                loss.backward()
                return loss

            losses.append(optimizer.step(closure).item())
        return net, optimizer.state_dict()["state"], losses

    net, state, losses = train(bad=True)
    assert skipping.counts() == (8, 1)
    assert len(losses) == 8
    clean, clean_state, _ = train(bad=False, without=True)
    assert same(net, clean)
    assert same(state, clean_state)


def test_closure_that_meets_the_bad_batch_late(skipping):
    """LBFGS has moved the parameters by then: they and the optimizer's state go back."""
    net = model()
    optimizer = torch.optim.LBFGS(net.parameters(), lr=0.1, max_iter=4)
    x, labels = torch.randn(6, 4), torch.tensor([0, 1, 2, 0, 1, 2])
    calls = 0
    bad_at = 0

    def closure():
        nonlocal calls
        calls += 1
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), labels + (3 if calls == bad_at else 0))
        loss.backward()
        return loss

    optimizer.step(closure)
    before = [p.detach().clone() for p in net.parameters()]
    steps = optimizer.state_dict()["state"][0]["n_iter"]
    calls, bad_at = 0, 3
    optimizer.step(closure)
    assert calls == 3
    assert same(before, [p.detach() for p in net.parameters()])
    assert optimizer.state_dict()["state"][0]["n_iter"] == steps
    bad_at = 0
    optimizer.step(closure)
    assert not same(before, [p.detach() for p in net.parameters()])


@pytest.mark.parametrize("scaled", [False, True], ids=["step", "GradScaler"])
def test_scheduler(skipping, scaled):
    """The scheduler goes on, as it does when a GradScaler leaves a step out; it must not warn."""

    def train(bad: bool) -> Any:
        net = model()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
        scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.5, total_steps=8)
        scaler = torch.amp.GradScaler("cpu", enabled=scaled)
        for number in range(8):
            x, y = torch.full((2, 4), number / 4.0), torch.tensor([0, number % 3])
            if number == 0:
                if not bad:
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        scheduler.step()
                    continue
                y[1] = 3
            optimizer.zero_grad()
            scaler.scale(F.cross_entropy(net(x), y)).backward()
            scaler.step(optimizer)
            scaler.update()
            scheduler.step()
        return net, scheduler.get_last_lr()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        net, rate = train(bad=True)
    assert skipping.counts() == (8, 1)
    clean, clean_rate = train(bad=False)
    assert same(net, clean)
    assert rate == clean_rate


def test_every_optimizer_leaves_its_next_step_out(skipping):
    left, right = model(), model()
    optimizers = [torch.optim.SGD(net.parameters(), lr=0.1) for net in (left, right)]
    before = model()
    F.cross_entropy(left(torch.ones(1, 4)) + right(torch.ones(1, 4)), torch.tensor([5])).backward()
    for optimizer in optimizers:
        optimizer.step()
    assert same(left, before)
    assert same(right, before)
    assert skipping.counts() == (2, 2)


def test_an_optimizer_that_wraps_another_is_asked_once(skipping):
    class Outer(torch.optim.SGD):
        def step(self, closure=None):
            return super().step(closure)

    net = model()
    optimizer = Outer(net.parameters(), lr=0.1)
    for label in (9, 1):
        optimizer.zero_grad()
        F.cross_entropy(net(torch.ones(1, 4)), torch.tensor([label])).backward()
        optimizer.step()
    assert skipping.counts() == (2, 1)
    assert not same(net, model())


def test_no_optimizer_no_skip(skipping, monkeypatch):
    """A program that trains nothing has no step to leave out; healed results must not pass for good."""
    monkeypatch.setattr(steps, "_exists", False)  # other tests of this process have made some
    with pytest.raises(DeviceAssertError, match="target"):
        F.cross_entropy(torch.randn(2, 3), torch.tensor([0, 3]))


def test_an_argument_that_cannot_be_healed_raises(skipping):
    torch.optim.SGD(model().parameters(), lr=0.1)
    with pytest.raises(DeviceAssertError):
        torch.index_select(torch.zeros(0, 3), 0, torch.tensor([0]))


def test_share_above_the_limit_raises_with_the_finding(skipping):
    skipping.stop()
    skipping.start(limit=2.0)
    net = model()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def step(label: int) -> None:
        optimizer.zero_grad()
        F.cross_entropy(net(torch.ones(1, 4)), torch.tensor([label])).backward()
        optimizer.step()

    for label in (1, 7, 1, 8, 1):  # two of five, but of the first hundred two are 2 %
        step(label)
    with pytest.raises(
        DeviceAssertError, match="3 of 6 optimizer steps had to be skipped: more than 2 %"
    ) as it:
        step(11)
    assert it.value.finding["code"] == "TL101"
    assert it.value.finding["element"]["value"] == 11
    assert ledger.mode() == "raise"
    with pytest.raises(DeviceAssertError):  # from now on at the operation itself
        F.cross_entropy(net(torch.ones(1, 4)), torch.tensor([12]))


def test_uninstall_puts_everything_back(skipping):
    torch.optim.SGD(model().parameters(), lr=0.1)
    scaler_step = torch.amp.GradScaler.step
    skipping.stop()
    assert torch.amp.GradScaler.step is not scaler_step
    assert getattr(torch.optim.SGD.step, "_trapline", None) is None
    assert torch.optim.SGD.step.hooked
