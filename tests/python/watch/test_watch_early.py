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
    assert (first, seen["kind"], seen["step"]) == (
        10,
        "loss",
        16,
    )  # a weight breaks in step 17, 15 was finite


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


def test_steps_that_a_scaler_leaves_out_again_and_again_are_said(watch):
    """Each epoch the same sample: the loss itself is NaN, which no scale makes."""
    model = nn.Linear(1, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0)
    for step in range(1, 13):
        optimizer.zero_grad()
        out = model(X)
        loss = (out / (0.0 if step % 4 == 0 else 1.0) * 0.0).mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    assert watch.verdict() is None
    said = watch.harmless()
    assert (said["step"], said["what"], said["withheld"]) == (4, "nan", True)
    assert said["why"] == "GradScaler left out 3 such steps: nothing was learnt from their data"


def test_a_training_without_an_optimizer_of_pytorchs(watch):
    model = nn.Linear(1, 2)
    for turn in range(1, 31):
        loss = (model(X) * (torch.tensor(0.0) / float(turn != 25))).mean() + model(X).mean()
        loss.backward()
        for p in model.parameters():
            p.data.sub_(p.grad.nan_to_num(0.0), alpha=0.01)
            p.grad = None
    assert watch.verdict() is None
    said = watch.harmless()
    assert (said["step"], said["unit"], said["what"]) == (25, "backward pass", "nan")


class Clamps(torch.optim.Optimizer):
    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                p.add_(p.grad.nan_to_num_(0.0), alpha=-group["lr"])


def test_gradients_that_the_optimizer_itself_mends_are_said(watch):
    model = nn.Linear(1, 2)
    optimizer = Clamps(model.parameters(), {"lr": 0.1})
    for step in range(1, 4):
        optimizer.zero_grad()
        (model(X) / (0.0 if step == 2 else 1.0) * 0.0).mean().backward()
        optimizer.step()
    assert watch.verdict() is None
    said = watch.harmless()
    assert (said["step"], said["op"], said["why"]) == (2, "div", "no weight was broken by its step")


def test_a_loss_before_the_state_that_its_step_made(watch):
    """The square of 1e22 overflows in the loss; its gradient is finite, that one's square is not."""
    model = nn.Linear(1, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(1, 4):
        target = torch.full((4, 1), 1e22 if step == 3 else 1.0)
        optimizer.zero_grad()
        nn.functional.mse_loss(model(X), target).backward()
        optimizer.step()
    seen = watch.verdict()
    assert (seen["kind"], seen["what"], seen["step"]) == ("loss", "inf", 3)


def given(divisor):
    """Steps of plain SGD with a gradient that the program computes by itself."""
    model = nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for step in range(1, 4):
        optimizer.zero_grad()
        out = model(X)
        out.backward((out.detach() - 1.0) / (divisor if step == 3 else 1.0))
        optimizer.step()


def test_a_gradient_that_backward_is_given(watch):
    given(0.0)
    seen = watch.verdict()
    assert (seen["kind"], seen["given"], seen["what"], seen["step"]) == ("gradient", True, "inf", 3)


def test_a_finite_one_is_nothing(watch):
    given(2.0)
    assert watch.verdict() is None


def test_the_first_loss_after_another_optimizer_was_made(watch):
    """Tasks one after the other, each with its own optimizer: the second smooths over masked classes."""
    torch.manual_seed(0)
    model, x, y = nn.Linear(3, 4), torch.randn(8, 3), torch.randint(0, 2, (8,))
    hidden = torch.tensor([False, False, True, True])
    for smoothing in (0.0, 0.1):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        loss_of = nn.CrossEntropyLoss(label_smoothing=smoothing)
        for _ in range(17):
            loss = loss_of(model(x).masked_fill(hidden, float("-inf")), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    seen = watch.harmless()
    assert (seen["step"], seen["op"], seen["smoothed"]) == (18, "masked_fill", True)
