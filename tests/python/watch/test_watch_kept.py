"""A forward pass that runs again leaves the program's own graph, buffers and weights as they were."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

BAD = 3  # the step


@pytest.fixture
def watch(watch_that_looks):
    return watch_that_looks


class Weighs(nn.Module):
    """Changes a buffer in place, and makes the loss with it: the graph has saved it."""

    def __init__(self):
        super().__init__()
        self.register_buffer("shares", torch.ones(2) / 2)

    def forward(self, losses):
        with torch.no_grad():
            self.shares *= torch.exp(losses.detach().nan_to_num())
            self.shares /= self.shares.sum()
        return (self.shares * losses).sum()


class Clamps(nn.Linear):
    """Changes its weights in its forward pass."""

    def forward(self, x):
        with torch.no_grad():
            self.weight.mul_(0.9)
        return super().forward(x) * self.bias.exp()


def train(model, loss):
    nn.init.ones_(model.weight)
    nn.init.zeros_(model.bias)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for turn in range(1, BAD + 1):
        optimizer.zero_grad()
        out = model(torch.ones(2, 2)).square().mean(0)
        made = loss(out / (0.0 if turn == BAD else 1.0) * (0.0 if turn == BAD else 1.0))
        made.backward()
        optimizer.step()
    return [*model.parameters(), *model.buffers(), *loss.buffers()]


@pytest.mark.parametrize("kind", [nn.Linear, Clamps])
def test_the_program_goes_on_as_without_it(watch, kind):
    watched = train(kind(2, 2), Weighs())
    seen = watch.verdict()
    watch.uninstall()
    plain = train(kind(2, 2), Weighs())
    assert all(torch.equal(one.isnan(), other.isnan()) for one, other in zip(watched, plain))
    assert torch.equal(watched[-1], plain[-1])
    assert (seen["kind"], seen["step"]) == ("loss", BAD)


class Running(nn.Module):
    """Its own NaN stands in its buffer when it runs again."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.ones(2))

    def forward(self, x):
        x, given = x.detach(), x
        self.mean.copy_((self.mean + x.mean(0) / x.abs().sum(0)) / 2)
        return given + self.mean


@pytest.mark.parametrize("parts", [1, 2])
def test_what_the_forward_pass_wrote_into_its_own_buffer(watch, parts):
    """Also in the second part of a step, where the first part's call was given good numbers."""
    model, running = nn.Linear(2, 2), Running()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for turn in range(1, BAD + 1):
        optimizer.zero_grad()
        for part in range(1, parts + 1):
            out = model(torch.ones(2, 2)) * (0.0 if (turn, part) == (BAD, parts) else 1.0)
            running(out).sum().backward()
        optimizer.step()
    seen = watch.verdict() or watch.harmless()
    assert (seen["kind"], seen["op"], seen["step"], seen["type"]) == ("output", "div", BAD, "Running")


def fake_quantised():
    from torch.ao.quantization import FakeQuantize, MovingAverageMinMaxObserver

    return nn.Sequential(nn.Linear(4, 4), FakeQuantize(MovingAverageMinMaxObserver))


MODULES = {
    "BatchNorm1d": lambda: nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.ReLU()),
    "InstanceNorm1d": lambda: nn.InstanceNorm1d(5, affine=True, track_running_stats=True),
    "spectral_norm": lambda: nn.utils.parametrizations.spectral_norm(nn.Linear(4, 4)),
    "spectral_norm by hooks": lambda: nn.utils.spectral_norm(nn.Linear(4, 4)),
    "weight_norm": lambda: nn.utils.parametrizations.weight_norm(nn.Linear(4, 4)),
    "orthogonal": lambda: nn.utils.parametrizations.orthogonal(nn.Linear(4, 4)),
    "Dropout": lambda: nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5)),
    "GRU": lambda: nn.GRU(4, 4),
    "TransformerEncoderLayer": lambda: nn.TransformerEncoderLayer(4, 2, 8),
    "FakeQuantize": fake_quantised,
}


@pytest.mark.parametrize("name", MODULES)
def test_a_module_that_runs_again_before_backward(name):
    """Values, versions, gradients and random numbers are those of a run without it."""
    import weakref

    from trapline._watch.again import Call
    from trapline._watch.forward import followed

    def run(again):
        torch.manual_seed(0)
        module, x = MODULES[name](), torch.randn(5, 4)
        held = [*module.parameters(), *module.buffers()]
        state = torch.get_rng_state()
        out = module(x)
        versions = [one._version for one in held]
        if again:
            followed(Call((weakref.ref(module), (x,), {}, 0, None, state, None)))
        assert [one._version for one in held] == versions
        assert all(mine is one for mine, one in zip([*module.parameters(), *module.buffers()], held))
        (out[0] if isinstance(out, tuple) else out).square().sum().backward()
        return [*held, *(p.grad for p in module.parameters()), torch.rand(2)]

    assert all(torch.equal(one, other) for one, other in zip(run(again=True), run(again=False)))


class Stands(nn.Parameter):
    """A parameter that keeps another one, and refuses what is asked of it: hypll's."""

    def __new__(cls, held):
        return super().__new__(cls)

    def __init__(self, held):
        self.held = held

    def detach(self):
        return Bare()

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func.__class__.__name__ == "method-wrapper":
            return func(*[one.held if isinstance(one, Stands) else one for one in args], **(kwargs or {}))
        raise TypeError(f"{func} is not for this one")


class Bare:
    pass


class Curved(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = Stands(nn.Parameter(torch.ones(2)))
        self.scale = nn.Parameter(torch.tensor(1.0))

    def forward(self, x):
        return (x * self.weight.held * self.scale.sqrt()).sum(1)


def test_a_parameter_that_only_stands_for_another(watch):
    model = Curved()
    optimizer = torch.optim.SGD([model.scale, model.weight.held], lr=0.1)
    for number in range(1, 4):
        if number == 3:
            model.scale.data.fill_(-1.0)
        optimizer.zero_grad()
        model(torch.ones(4, 2)).square().mean().backward()
        optimizer.step()
    seen = watch.verdict()
    assert (seen["kind"], seen["op"], seen["step"]) == ("output", "sqrt", 3)
