"""Weights that an optimizer's step broke with finite gradients, or that the program wrote itself."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

BAD = 4  # the step
ONES = torch.ones(4, 3)


@pytest.fixture
def watch(watch_that_looks):
    return watch_that_looks


LATE = 20  # a step that nobody looks at, and that is counted in C


@pytest.fixture
def unseen(watch, monkeypatch):
    from trapline._watch import budget, watching

    monkeypatch.setattr(watching, "ALWAYS", 4)
    monkeypatch.setattr(budget, "_SHARE", 1e-9)
    return watch


def line_of(seen):
    return seen["origin"]["code"].strip()


class Ratio(torch.optim.Optimizer):
    """Steps by the share of the norm of the weights; `floor` keeps it finite."""

    def __init__(self, params, lr, floor=1e-8):
        super().__init__(params, {"lr": lr, "floor": floor})
        self.taken = 0

    @torch.no_grad()
    def step(self, closure=None):
        self.taken += 1
        for group in self.param_groups:
            for p in group["params"]:
                self._moves(p, group)

    def _moves(self, p, group):
        state = self.state[p]
        state["norm"] = p.grad.norm()
        share = p.norm() / (state["norm"] + group["floor"])
        p.add_(p.grad, alpha=-group["lr"])
        p.mul_(1 + group["lr"] * share)


def train(optimizer, model, turns=BAD + 2):
    for turn in range(1, turns + 1):
        optimizer.zero_grad()
        (model(ONES).square().mean() * (turn != BAD)).backward()
        optimizer.step()


def test_the_line_of_a_step_of_the_programs_own(watch):
    torch.manual_seed(0)
    model = nn.Linear(3, 2)
    train(Ratio(model.parameters(), 0.01, floor=0.0), model)
    seen = watch.verdict()
    assert (seen["kind"], seen["step"], seen["op"]) == ("optimizer", BAD, "div")
    assert line_of(seen) == 'share = p.norm() / (state["norm"] + group["floor"])'


class Curved(torch.optim.Optimizer):
    """Steps by what a library keeps beside each weight."""

    def __init__(self, params, lr):
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self, closure=None):
        for p in self.param_groups[0]["params"]:
            p.add_((p.grad / p.curvature).clamp(-1, 1), alpha=-0.1)


def test_what_a_weight_is_kept_with(watch):
    model = nn.Linear(3, 1)
    optimizer = Curved(model.parameters(), lr=0.1)
    for turn in range(1, BAD + 2):
        for p in model.parameters():
            p.curvature = torch.ones_like(p) * (turn != BAD)
        optimizer.zero_grad()
        (model(ONES).square().mean() * (turn != BAD)).backward()
        optimizer.step()
    seen = watch.verdict()
    assert (seen["step"], seen["kind"], seen["op"]) == (BAD, "optimizer", "div")
    assert line_of(seen).startswith("p.add_((p.grad / p.curvature)")


def test_the_copies_leave_the_program_as_it_was(watch):
    def run():
        torch.manual_seed(0)
        model = nn.Linear(3, 2)
        optimizer = Ratio(model.parameters(), 0.01, floor=0.0)
        train(optimizer, model, BAD)
        held = [s["norm"] for s in optimizer.state.values()]
        return optimizer.taken, [p.isfinite().any().item() for p in model.parameters()], held, torch.rand(2)

    taken, finite, held, drawn = run()
    watch.uninstall()
    plain = run()
    assert (taken, finite) == (BAD, [False, False]) == plain[:2]
    assert held == plain[2]
    assert torch.equal(drawn, plain[3])


class Counts(torch.optim.Optimizer):
    """Counts after each step; a restart forgets that it begins at 1."""

    def __init__(self, params):
        super().__init__(params, {"lr": 0.1, "turn": 1})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                p.sub_(group["lr"] * p.grad / (1 - 0.9 ** group["turn"]))
            group["turn"] += 1


def test_counters_are_what_they_were_in_the_step(watch):
    model = nn.Linear(3, 2)
    optimizer = Counts(model.parameters())
    for turn in range(1, BAD + 1):
        if turn == BAD:
            optimizer.param_groups[0]["turn"] = 0
        optimizer.zero_grad()
        model(ONES).square().mean().backward()
        optimizer.step()
    seen = watch.verdict()
    assert (seen["kind"], seen["step"], seen["op"]) == ("optimizer", BAD, "div")
    assert line_of(seen) == 'p.sub_(group["lr"] * p.grad / (1 - 0.9 ** group["turn"]))'
    assert optimizer.param_groups[0]["turn"] == 1


class Loud(Ratio):
    def _moves(self, p, group):
        print("moves")
        super()._moves(p, group)


def test_a_step_that_does_more_does_not_run_again(watch, capsys):
    model = nn.Linear(3, 2)
    train(Loud(model.parameters(), 0.01, floor=0.0), model, BAD)
    assert capsys.readouterr().out.count("moves") == 2 * BAD
    seen = watch.verdict()
    assert (seen["kind"], seen["step"]) == ("optimizer", BAD)
    assert "op" not in seen


def test_an_eps_that_half_precision_has_not(watch):
    model = nn.Linear(3, 2, dtype=torch.float16)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1, eps=1e-8, foreach=False)
    for turn in range(BAD + 1):
        optimizer.zero_grad()
        (model(ONES.half()).mean() * (0.0 if turn == 0 else 1.0)).backward()
        optimizer.step()
    seen = watch.verdict()
    assert (seen["kind"], seen["setting"]) == ("optimizer", "eps=1e-08, 0 in float16")


def spreads(model, scale):
    with torch.no_grad():
        for p in model.parameters():
            p.add_(p.grad * (0.05 / (p.grad.norm() * scale)))


def test_between_two_losses_of_a_step(watch):
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for turn in range(1, BAD + 2):
        optimizer.zero_grad()
        model(ONES).square().mean().backward()
        spreads(model, float(turn != BAD))
        optimizer.zero_grad()
        model(ONES).square().mean().backward()
        optimizer.step()
    seen = watch.verdict()
    assert (seen["kind"], seen["step"], seen["written"]) == ("weights", BAD, "backward")
    assert line_of(seen) == "p.add_(p.grad * (0.05 / (p.grad.norm() * scale)))"


def averages(model, average, share):
    for p, a in zip(model.parameters(), average):
        p.data = (p.data + a) / share


def test_after_the_optimizers_step(watch):
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    average = [torch.zeros_like(p) for p in model.parameters()]
    for turn in range(1, BAD + 2):
        optimizer.zero_grad()
        model(ONES).square().mean().backward()
        optimizer.step()
        averages(model, average, float(turn != BAD))
    seen = watch.verdict()
    assert (seen["kind"], seen["step"], seen["written"]) == ("weights", BAD + 1, "step")
    assert line_of(seen) == "p.data = (p.data + a) / share"


def test_after_a_step_that_kept_no_state_and_whose_gradients_are_gone(unseen):
    """The one weight that is looked at was finite then."""
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    average = [torch.zeros_like(p) for p in model.parameters()]
    for turn in range(1, LATE + 2):
        loss = model(ONES).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        averages(model, average, float(turn != LATE))
    seen = unseen.verdict()
    assert (seen["kind"], seen["step"], seen["written"]) == ("weights", LATE + 1, "step")
    assert line_of(seen) == "p.data = (p.data + a) / share"


def test_one_weight_of_several_that_a_step_of_the_programs_own_breaks(unseen):
    """It is not the first one."""
    model = nn.ModuleList([nn.Linear(3, 2), nn.Linear(3, 2)])
    optimizer = Ratio(model.parameters(), 0.01, floor=0.0)
    for turn in range(1, LATE + 2):
        optimizer.zero_grad()
        both = model[0](ONES).square().mean() + model[1](ONES).square().mean() * (turn != LATE)
        both.backward()
        optimizer.step()
    seen = unseen.verdict()
    assert (seen["kind"], seen["step"], seen["name"], seen["op"]) == (
        "optimizer",
        LATE,
        "model[1].weight",
        "div",
    )
    assert line_of(seen) == 'share = p.norm() / (state["norm"] + group["floor"])'


def test_at_the_top_of_the_loop(watch):
    model = nn.Linear(3, 2)
    model.weight.data.mul_(0.5)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for turn in range(1, BAD + 2):
        model.weight.data.div_(float(turn != BAD))
        optimizer.zero_grad()
        model(ONES).square().mean().backward()
        optimizer.step()
    seen = watch.verdict()
    assert (seen["kind"], seen["step"], seen["written"]) == ("weights", BAD, "step")
    assert line_of(seen) == "model.weight.data.div_(float(turn != BAD))"


class Normalises(nn.Module):
    """Takes its first values from data."""

    def __init__(self):
        super().__init__()
        self.shift, self.scale = nn.Parameter(torch.zeros(3)), nn.Parameter(torch.ones(3))
        self.register_buffer("begun", torch.tensor(False))

    def forward(self, x):
        if not self.begun:
            self.scale.data = 1 / x.std(0)
            self.begun.fill_(True)
        return (x - self.shift) * self.scale


def test_by_the_forward_pass_itself(watch):
    for x in (torch.randn(4, 3), ONES):
        model = Normalises()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for _ in range(BAD):
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()
    seen = watch.verdict()
    assert (seen["kind"], seen["step"], seen["name"]) == ("weights", BAD + 1, "scale")
    assert seen["written"] == "forward"
    assert line_of(seen) == "self.scale.data = 1 / x.std(0)"


class Averages:
    def on_epoch_end(self, model, share):
        with torch.no_grad():
            for p in model.parameters():
                p.div_(share)


class Trainer:
    """A library's, as far as the frames tell: its loop has no line that writes weights."""

    def __init__(self, model, callbacks):
        self.model, self.callbacks = model, callbacks

    def fit(self, optimizer):
        for turn in range(1, BAD + 2):
            optimizer.zero_grad()
            self.model(ONES).square().mean().backward()
            optimizer.step()
            for callback in self.callbacks:
                getattr(callback, "on_epoch_end")(self.model, float(turn != BAD))


def test_by_what_a_trainer_calls_back(watch):
    model = nn.Linear(3, 2)
    Trainer(model, [Averages()]).fit(torch.optim.SGD(model.parameters(), lr=0.01))
    seen = watch.verdict()
    assert (seen["kind"], seen["step"], seen["written"]) == ("weights", BAD + 1, "step")
    assert line_of(seen) == "p.div_(share)"
    assert seen["others"] == 1


def test_where_nobody_looked_the_state_of_adam_tells(watch, monkeypatch):
    from trapline._watch import updates

    monkeypatch.setattr(updates.Updates, "sees", lambda *_: None)
    model = nn.Linear(3, 2)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for turn in range(1, BAD + 2):
        optimizer.zero_grad()
        model(ONES).square().mean().backward()
        optimizer.step()
        model.weight.data.div_(float(turn != BAD))
    seen = watch.verdict()
    assert (seen["kind"], seen["name"], seen["written"]) == ("weights", "weight", "loss")
    assert line_of(seen) == "model.weight.data.div_(float(turn != BAD))"


def test_one_optimizer_has_broken_it_not_the_program(watch):
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for turn in range(1, BAD + 2):
        optimizer.param_groups[0]["lr"] = 0.01 if turn != BAD else float("inf")
        optimizer.zero_grad()
        model(ONES).square().mean().backward()
        optimizer.step()
    seen = watch.verdict()
    assert (seen["kind"], seen["step"], seen["setting"]) == ("optimizer", BAD, "lr=inf")


def run(model, optimizer, turns):
    for _ in range(turns):
        optimizer.zero_grad()
        model(ONES).square().mean().backward()
        optimizer.step()


def test_a_centered_step_may_break_a_weight_itself(watch):
    """The root of a mean of squares less a square, which rounding takes below 0."""
    model = nn.Linear(3, 2)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=0.01, centered=True)
    run(model, optimizer, 2)
    with torch.no_grad():
        model.weight.fill_(float("nan"))  # as its step would
    loss = model(ONES).square().mean()
    loss.backward()
    optimizer.step()
    seen = watch.verdict()
    assert seen is not None and seen.get("written") != "loss"
