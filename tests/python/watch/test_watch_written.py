"""Weights that the program writes itself: between trainings, by `load_state_dict`, without an optimizer."""

from __future__ import annotations

import sys

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

BAD = 4  # the step
ONES = torch.ones(4, 3)


@pytest.fixture
def watch(watch_that_looks):
    return watch_that_looks


def line_of(seen):
    return seen["origin"]["code"].strip()


def test_weights_that_a_server_sends_between_two_steps(watch):
    """An average of the clients' models divides by 0, and `load_state_dict` puts it in place: by that is gone
    what it was made of."""
    model = nn.Linear(2, 1)
    for turn in range(1, 5):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        average = {
            name: value / (0.0 if turn == 3 else 1.0) * 1.0 for name, value in model.state_dict().items()
        }
        model.load_state_dict(average)
        optimizer.zero_grad()
        model(torch.ones(4, 2)).square().mean().backward()
        optimizer.step()
    seen = watch.verdict()
    assert (seen["kind"], seen["written"], seen["step"]) == ("weights", "loaded", 3)
    assert "model.load_state_dict(average)" in seen["origin"]["code"]


def average_of(states, counts):
    share = torch.tensor(counts) / sum(counts)
    return {name: sum(state[name] * part for state, part in zip(states, share)) for name in states[0]}


@pytest.mark.parametrize("bad", [3, 21])
def test_an_average_of_models_of_nobody(watch, bad):
    """Each client has a model and an optimizer of its own."""
    server = nn.Linear(2, 1)
    for turn in range(1, bad + 2):
        client = nn.Linear(2, 1)
        client.load_state_dict(server.state_dict())
        run_on(client, torch.optim.SGD(client.parameters(), lr=0.01))
        counts = [0.0, 0.0] if turn == bad else [1.0, 2.0]
        server.load_state_dict(average_of([client.state_dict(), client.state_dict()], counts))
    seen = watch.verdict()
    assert (seen["kind"], seen["written"], seen["step"], seen["op"]) == ("weights", "loaded", bad + 1, "div")
    assert line_of(seen) == "share = torch.tensor(counts) / sum(counts)"


def run_on(model, optimizer):
    optimizer.zero_grad()
    model(torch.ones(4, 2)).square().mean().backward()
    optimizer.step()


def test_weights_of_a_checkpoint_that_is_loaded_between_two_steps(watch):
    """No statement of the program's made it."""
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    stored = [{name: torch.full_like(value, float("nan")) for name, value in model.state_dict().items()}]
    for turn in range(1, 4):
        if turn == 3:
            model.load_state_dict(stored.pop())
        optimizer.zero_grad()
        model(torch.ones(4, 2)).square().mean().backward()
        optimizer.step()
    seen = watch.verdict()
    assert (seen["kind"], seen["written"], seen["step"]) == ("weights", "loaded", 3)
    assert "op" not in seen and line_of(seen) == "model.load_state_dict(stored.pop())"


class Members:
    """Draws weights for models that no optimizer has yet."""

    def __init__(self, model):
        self.mean = nn.utils.parameters_to_vector(model.parameters()).detach()

    @torch.no_grad()
    def draw(self, model, variance):
        drawn = self.mean + torch.tensor(variance).sqrt()
        nn.utils.vector_to_parameters(drawn, model.parameters())


def run(model, optimizer, turns):
    for _ in range(turns):
        optimizer.zero_grad()
        model(ONES).square().mean().backward()
        optimizer.step()


def test_weights_that_are_written_before_an_optimizer_has_them(watch):
    model = nn.Linear(3, 2)
    run(model, torch.optim.SGD(model.parameters(), lr=0.01), BAD - 1)
    member = nn.Linear(3, 2)
    members = Members(model)
    members.draw(member, -1.0)
    run(member, torch.optim.SGD(member.parameters(), lr=0.01), 2)
    seen = watch.verdict()
    assert (seen["kind"], seen["step"]) == ("weights", BAD)
    assert line_of(seen) == "nn.utils.vector_to_parameters(drawn, model.parameters())"


class Scanner(nn.Module):
    def __init__(self):
        super().__init__()
        self.scan, self.body = nn.Linear(3, 2), nn.Linear(2, 1)

    def forward(self, x):
        return self.body(self.scan(x))


def seed(model, zeros):
    with torch.no_grad():
        for row in range(2):
            model.scan.weight[row].copy_(torch.log(torch.ones(3) - zeros))


@pytest.mark.parametrize("zeros", [1.0, 0.5])
def test_weights_that_are_written_between_two_trainings(watch, zeros):
    model = Scanner()
    run(model, torch.optim.Adam(model.parameters(), lr=0.01), 6)
    seed(model, zeros)
    run(model, torch.optim.Adam(model.parameters(), lr=0.01), 2)
    seen = watch.verdict()
    if zeros < 1:
        assert seen is None
        return
    assert (seen["kind"], seen["step"], seen["written"]) == ("weights", 7, "first")
    assert line_of(seen) == "model.scan.weight[row].copy_(torch.log(torch.ones(3) - zeros))"
    assert seen["name"] == "scan.weight"


def test_a_weight_that_each_step_writes_more_often_is_not_written_by_the_program(watch):
    """In a group with decay a step writes twice."""
    model = Scanner()
    groups = [
        {"params": [*model.scan.parameters(), model.body.weight], "weight_decay": 0.1},
        {"params": [model.body.bias]},
    ]
    run(model, torch.optim.AdamW(groups, lr=0.01, weight_decay=0.0, foreach=False), 6)
    versions = watch._light.began.versions
    every = [*model.parameters()]
    assert not any(versions.is_written(parameter, every, 6) for parameter in every)
    with torch.no_grad():
        model.scan.weight[0] = 2.0
    assert versions.is_written(model.scan.weight, every, 6)
    assert not versions.is_written(model.scan.bias, every, 6)


def natural_step(policy, gradient, kept):
    parameters = list(policy.parameters())
    written = nn.utils.parameters_to_vector(parameters).detach() + gradient / kept
    nn.utils.vector_to_parameters(written, parameters)


def test_weights_that_no_optimizer_has_at_a_fault(watch):
    """Another model of the program's has one; the fault comes before the next loss of this one."""
    value, policy = Scanner(), nn.Linear(3, 2)
    optimizer = torch.optim.Adam(value.parameters(), lr=0.01)
    facts = []
    for turn in range(1, 6):
        facts.append(watch.facts())
        loss = policy(ONES).square().mean()
        loss.backward()
        run(value, optimizer, 1)
        natural_step(policy, torch.zeros(8), float(turn != 5))
    facts.append(watch.facts())
    assert facts[:5] == [None] * 5
    seen = facts[5]
    assert (seen["kind"], seen["written"], seen["name"]) == ("weights", "first", "weight")
    assert line_of(seen) == "nn.utils.vector_to_parameters(written, parameters)"
    assert watch.facts() is seen


class Sharpness:
    """A perturbation of the weights by their gradients, as long as these are not all 0."""

    def __init__(self, model, optimizer):
        self.params, self.optimizer = list(model.parameters()), optimizer

    def ascend(self):
        norm = torch.stack([p.grad.norm() for p in self.params]).norm()
        with torch.no_grad():
            for p in self.params:
                p.add_(p.grad * (0.05 / norm))

    def descend(self):
        self.optimizer.step()
        self.optimizer.zero_grad()


def test_weights_that_are_broken_between_two_losses_that_hide_it(watch):
    """The hinge of NaN is 0, and so is its gradient: the step itself has broken nothing."""
    model = nn.Linear(3, 2)
    sharpness = Sharpness(model, torch.optim.SGD(model.parameters(), lr=5.0))
    targets = torch.zeros(len(ONES), dtype=torch.long)
    for _ in range(3):
        nn.functional.multi_margin_loss(model(ONES), targets).backward()
        sharpness.ascend()
        nn.functional.multi_margin_loss(model(ONES), targets).backward()
        sharpness.descend()
    seen = watch.verdict()
    assert (seen["kind"], seen["step"], seen["written"]) == ("weights", 2, "first")
    assert line_of(seen) == "p.add_(p.grad * (0.05 / norm))"


class Margins(nn.Module):
    """A loss of a library's, which computes a buffer of what it is given."""

    def __init__(self, counts):
        super().__init__()
        self.register_buffer("margins", torch.tensor(counts) / torch.tensor(counts))

    def forward(self, out, y):
        return nn.functional.cross_entropy(out - self.margins * 0.1, y)


def test_a_buffer_that_a_loss_has_computed_when_it_was_made(watch_that_looks, monkeypatch):
    from trapline._watch import weights

    monkeypatch.setattr(weights.written, "by_module", lambda *_: {})  # as of a class of a library's
    model = nn.Linear(2, 3)
    line = sys._getframe().f_lineno + 1
    criterion = Margins([4.0, 0.0, 3.0])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        criterion(model(torch.ones(4, 2)), torch.tensor([0, 1, 2, 0])).backward()
        optimizer.step()
    seen = watch_that_looks.verdict()
    assert (seen["kind"], seen["name"], seen["type"]) == ("weights", "criterion.margins", "Margins")
    assert (seen["buffer"], seen["origin"]["line"]) == (True, line)
