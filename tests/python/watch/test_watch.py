"""The watch names the first step and the first place of NaN and Inf, and leaves everything else as it was."""

from __future__ import annotations

import math
import threading

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from trapline._watch import thorough as _watch  # noqa: E402


@pytest.fixture
def watch():
    _watch.install()
    yield _watch
    _watch.uninstall()


class Log(nn.Module):
    def forward(self, x):
        return x.log()


def train(model, batches, loss=lambda out: out.sum(), rate=0.1):
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    for batch in batches:
        optimizer.zero_grad()
        loss(model(batch)).backward()
        optimizer.step()


def test_first_module_and_step_are_named(watch):
    model = nn.Sequential(nn.Identity(), Log(), nn.Linear(2, 1))
    good, bad = torch.ones(3, 2), torch.tensor([[1.0, -1.0]])
    train(model, [good, good, bad, bad], rate=0.0)
    assert watch.facts() == {
        "what": "nan",
        "kind": "output",
        "step": 3,
        "unit": "step",
        "type": "Log",
        "name": "1",
    }


def test_loss_is_named_when_no_module_made_it(watch):
    train(nn.Linear(2, 1), [torch.ones(1, 2)] * 2, loss=lambda out: (out - out).sum() / 0.0)
    assert watch.facts() == {"what": "nan", "kind": "loss", "step": 1, "unit": "step"}


def test_gradient_of_a_finite_loss_is_named(watch):
    model = nn.Sequential(nn.Linear(2, 1, bias=False))
    nn.init.zeros_(model[0].weight)
    # sqrt(0) is 0, its derivative is infinite, and 0 * Inf is NaN in the weight's gradient.
    train(model, [torch.tensor([[0.0, 1.0]])], loss=lambda out: out.sqrt().sum())
    seen = watch.facts()
    assert (seen["what"], seen["kind"], seen["name"], seen["step"]) == ("nan", "gradient", "0.weight", 1)
    assert seen["inf_before"]["kind"] == "gradient" if "inf_before" in seen else True


def test_infinity_before_the_nan_is_told(watch):
    model = nn.Sequential(nn.Linear(1, 1, bias=False), Log(), nn.Linear(1, 1))
    nn.init.zeros_(model[0].weight)
    train(model, [torch.ones(1, 1)] * 2, loss=lambda out: out.sum())
    seen = watch.facts()
    assert seen["what"] == "nan" and seen["step"] == 2 and seen["inf_before"]["name"] == "1"


def test_inference_counts_forward_calls(watch):
    model = nn.Sequential(Log())
    with torch.no_grad():
        model(torch.ones(1))
        model(torch.tensor([-1.0]))
    seen = watch.facts()
    assert (seen["step"], seen["unit"], seen["name"]) == (2, "forward call", "0")


def test_infinite_output_alone_is_no_fault(watch):
    class Mask(nn.Module):
        def forward(self, x):
            return x.masked_fill(x > 0, -math.inf)

    with torch.no_grad():
        Mask()(torch.ones(2))
    assert watch.facts()["what"] == "inf"
    assert not watch._watch.is_a_fault()


def test_training_is_bit_identical_and_hooks_go_after_the_first_nan():
    def run():
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(), nn.ReLU(), nn.Linear(8, 2))
        train(model, [torch.randn(5, 4) for _ in range(4)])
        return torch.cat([p.flatten() for p in model.parameters()])

    plain = run()
    _watch.install()
    try:
        assert torch.equal(run(), plain)
        assert _watch.facts() is None
        with torch.no_grad():
            Log()(torch.tensor([-1.0]))
        assert _watch.facts()["what"] == "nan"
        assert _watch._watch._handles == []
        assert not hasattr(torch.autograd.backward, "__wrapped__")
    finally:
        _watch.uninstall()


def test_nothing_is_left_behind():
    before = torch.autograd.backward
    _watch.install()
    assert torch.autograd.backward is not before
    _watch.uninstall()
    assert torch.autograd.backward is before
    assert not nn.modules.module._global_forward_hooks
    assert _watch.facts() is None


def test_odd_outputs_are_left_alone(watch):
    class Odd(nn.Module):
        def forward(self, x):
            return {
                "none": None,
                "empty": x[:0],
                "int": x.long(),
                "sparse": x.to_sparse(),
                "meta": x.to("meta"),
                "half": x.half(),
                "complex": torch.complex(x, x),
                "deep": [[[[x / 0]]]],
            }

    Odd()(torch.zeros(2))
    assert watch.facts() is None


def test_functorch_tracing_and_compilation_pass_through(watch):
    model = nn.Linear(2, 2)
    x = torch.randn(3, 2)
    assert torch.equal(torch.func.vmap(model)(x), model(x))
    traced = torch.jit.trace(model, x)
    assert torch.equal(traced(x), model(x))
    counted = []
    compiled = torch.compile(
        model, backend=lambda graph, _: counted.append(graph) or graph.forward, fullgraph=True
    )
    assert torch.equal(compiled(x), model(x))
    assert len(counted) == 1
    assert watch.facts() is None


def test_a_forward_that_raises_does_not_confuse_the_next(watch):
    class Raises(nn.Module):
        def forward(self, x):
            raise ValueError

    model = nn.Sequential(nn.Identity(), Raises())
    for _ in range(3):
        with pytest.raises(ValueError):
            model(torch.ones(1))
    with torch.no_grad():
        nn.Sequential(nn.Identity(), Log())(torch.tensor([-1.0]))
    assert watch.facts()["name"] == "1"


def test_threads_keep_their_own_stacks(watch):
    def work():
        for _ in range(50):
            with torch.no_grad():
                nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))(torch.ones(1, 2))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert watch.facts() is None
    assert watch._watch._pending == []


def test_other_hooks_of_the_step_that_finds_it_are_called(watch):
    """PyTorch goes through all hooks of a step while one finds the NaN; `--steps` and skip have their own."""
    from torch.optim.optimizer import register_optimizer_step_post_hook

    called = []
    handle = register_optimizer_step_post_hook(lambda *_: called.append(watch.facts() is not None))
    try:
        train(nn.Linear(2, 1), [torch.ones(1, 2), torch.full((1, 2), math.nan), torch.ones(1, 2)])
    finally:
        handle.remove()
    assert called == [False, True, True]
    assert watch.facts()["step"] == 2
