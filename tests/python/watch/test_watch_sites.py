"""A loss of a probabilistic program, as Pyro makes it: its sites tell more than its graph."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
from torch import distributions, nn  # noqa: E402

BAD = 3  # the step

# What Pyro's trace is to the watch.
Trace = type("Trace", (), {"__module__": "pyro.poutine.trace_struct"})


def sample(name, distribution, obs):
    return {
        name: {"type": "sample", "fn": distribution, "value": obs, "log_prob": distribution.log_prob(obs)}
    }


def hotel(width, guests):
    return sample("guests", distributions.Normal(torch.zeros(4), width, validate_args=False), obs=guests)


class Elbo:
    """Its statements do not run again: they ask an iterator."""

    def traces(self, model, width, guests):
        trace = Trace()
        trace.nodes = model(width, guests)
        yield trace

    def loss_and_grads(self, model, width, guests):
        model_trace = next(self.traces(model, width, guests))
        loss = -sum(node["log_prob"].sum() for node in model_trace.nodes.values())
        loss.backward()


@pytest.fixture
def watch(watch_that_looks):
    return watch_that_looks


def train(model, width_of, guests_of):
    width = nn.Parameter(torch.ones(4))
    optimizer = torch.optim.SGD([width], lr=0.0)
    for turn in range(1, BAD + 2):
        optimizer.zero_grad()
        Elbo().loss_and_grads(model, width_of(turn, width), guests_of(turn))
        optimizer.step()


def line_of(seen):
    return seen["origin"]["code"].strip()


def test_the_site_and_the_parameter_that_it_does_not_allow(watch):
    train(hotel, lambda turn, width: width if turn != BAD else width - 1.5, lambda _: torch.ones(4))
    seen = watch.verdict()
    assert (seen["kind"], seen["step"], seen["op"]) == ("loss", BAD, "log")
    assert seen["site"] == {"name": "guests", "type": "Normal", "parameter": "scale", "value": -0.5}
    assert line_of(seen).startswith('return sample("guests"')


def test_the_only_such_operation_of_the_model(watch):
    def row(turn):
        return torch.ones(4) * (turn == BAD)

    def overflows(width, guests):
        return sample("arrivals", distributions.Poisson((width * 1e4).exp(), validate_args=False), obs=guests)

    train(overflows, lambda turn, width: width if turn == BAD else width * 0, row)
    seen = watch.verdict()
    assert (seen["kind"], seen["op"], seen["step"]) == ("loss", "exp", BAD)
    assert seen["site"]["name"] == "arrivals"
    assert "exp()" in line_of(seen)
