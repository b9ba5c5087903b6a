"""What `backward` makes of a finite loss in the steps that are not looked at, by what its graph had saved."""

from __future__ import annotations

import gc
import math

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.multiprocessing.reductions import StorageWeakRef  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402
from trapline._watch import light, slopes  # noqa: E402

GOOD = torch.tensor([[1.0, 2.0], [0.5, 1.0], [2.0, 1.0]])
ZERO = torch.zeros(3, 2)
INF = math.inf


def step(model, optimizer, batch, loss):
    optimizer.zero_grad()
    loss(model(batch)).backward()
    optimizer.step()


def first_bad(watch, loss, model=None, steps=20):
    """The fact of a run whose last batch is zero; the model has no bias."""
    torch.manual_seed(0)
    model = model or nn.Linear(2, 2, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    for _ in range(steps - 1):
        step(model, optimizer, GOOD, loss)
    assert light._light.hot.armed
    step(model, optimizer, ZERO, loss)
    return watch.verdict()


class Root(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.square().sum()

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient * x / x


class Loss(nn.Module):
    def forward(self, out):
        return (out.square().sum(1) + 0.0).sqrt().mean()


class Mean(nn.Module):
    """Of the powers of numbers below 0, with an exponent that is trained, and finite."""

    def __init__(self):
        super().__init__()
        self.body, self.p = nn.Linear(2, 2, bias=False), nn.Parameter(torch.full((1,), 3.0))

    def forward(self, x):
        return self.body(x) if x.any() else (self.body(GOOD) - 9.0).pow(self.p) / 1e3


def test_the_exponent_of_a_number_below_0(watch):
    model = Mean()
    assert (
        first_bad(watch, lambda out: out.mean() ** 2, model=model) is None
    )  # the one weight is not looked at
    step(model, torch.optim.SGD(model.parameters(), lr=1e-4), ZERO, lambda out: out.mean() ** 2)
    seen = watch.verdict()
    assert (seen["kind"], seen["step"], seen["op"]) == ("optimizer", 20, "pow")


LOSSES = {
    "sqrt": lambda out: out.square().sum(1).sqrt().mean(),
    "pow": lambda out: (out.square() ** 0.4).sum(),
    "div": lambda out: torch.where(out == 0, out, out.detach() / out).sum(),
    "log": lambda out: torch.where(out == 0, out, out.abs().log()).sum(),
    "hypot": lambda out: torch.hypot(out, 2 * out).mean(),
    "Root.backward": lambda out: Root.apply(out).mean(),
}


@pytest.mark.parametrize("op", LOSSES)
def test_operation_of_the_loss(watch, op):
    found = first_bad(watch, LOSSES[op])
    assert (found["kind"], found["step"], found["op"]) == ("gradient", 20, op)
    assert found["name"] == "weight"
    assert "backward" not in found  # nobody saw it happen


def test_loss_that_is_a_module(watch):
    found = first_bad(watch, Loss())
    assert (found["kind"], found["step"], found["op"]) == ("gradient", 20, "sqrt")


def test_module_before_a_loss_that_is_one(watch):
    class Norm(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.ones(2))

        def forward(self, x):
            return (x * self.scale).square().sum(1).sqrt()

    criterion = nn.L1Loss()
    found = first_bad(watch, lambda out: criterion(out, out.detach() + 1), Norm())
    assert found["op"] == "sqrt" and found["origin"]["function"] == "forward"


def test_several_hand_written_derivatives_are_candidates(watch):
    class Other(Root):
        pass

    found = first_bad(watch, lambda out: Root.apply(out) + Other.apply(out))
    assert "op" not in found
    assert {"Root.backward", "Other.backward"} <= set(found["made_with"])


@pytest.mark.parametrize("before", [lambda out: out.square().sum(1).sqrt().mean(), torch.mean])
def test_a_loss_that_no_look_has_seen(watch, before):
    """What is rare may be the culprit: it is learnt on the spot, a number of times."""
    torch.manual_seed(0)
    model = nn.Linear(2, 2, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    for _ in range(19):
        step(model, optimizer, GOOD, before)
    step(model, optimizer, ZERO, lambda out: (out.abs() ** 0.5).sum())
    found = watch.verdict()
    assert (found["kind"], found["step"], found["op"]) == ("gradient", 20, "pow")


def test_losses_that_are_never_alike(watch, monkeypatch):
    monkeypatch.setattr(slopes, "_MAX_UNLIKE", 4)
    model = nn.Linear(2, 2, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    operations = [torch.sqrt, torch.log, torch.log2, torch.log10, torch.log1p, torch.rsqrt]
    for at in range(20):
        step(model, optimizer, GOOD, lambda out, op=operations[at % 6]: op(out.abs() + 1).mean())
    assert light._light.slopes._unlike == 4
    assert watch.verdict() is None


def test_accumulated_losses(watch):
    torch.manual_seed(0)
    model = nn.Linear(2, 2, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    for at in range(20):
        optimizer.zero_grad()
        for part in range(3):
            batch = ZERO if (at, part) == (17, 1) else GOOD
            model(batch).square().sum(1).sqrt().mean().backward()
        optimizer.step()
    found = watch.verdict()
    assert (found["kind"], found["step"], found["op"]) == ("gradient", 18, "sqrt")


def test_several_losses_and_optimizers(watch):
    """As in adversarial training: each optimizer has its own loss."""
    torch.manual_seed(0)
    models = [nn.Linear(2, 2, bias=False) for _ in range(2)]
    optimizers = [torch.optim.SGD(model.parameters(), lr=1e-4) for model in models]
    losses = [lambda out: out.square().sum(1).sqrt().mean(), lambda out: (out + 1).abs().log().sum()]
    for at in range(20):
        for model, optimizer, loss in zip(models, optimizers, losses):
            step(model, optimizer, ZERO if at == 18 else GOOD, loss)
    found = watch.verdict()
    assert (found["kind"], found["step"], found["op"]) == ("gradient", 19, "sqrt")


@pytest.mark.parametrize(
    "loss",
    [
        lambda out: nn.functional.cross_entropy(out, torch.tensor([0, 1, 0])),
        lambda out: ((out - 1) ** 2).mean() / 4,
        lambda out: nn.functional.binary_cross_entropy_with_logits(out, torch.ones(3, 2)),
        lambda out: out.sum() / torch.tensor(3.0),
    ],
)
def test_losses_that_cost_nothing(watch, loss):
    model = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    for _ in range(20):
        step(model, optimizer, GOOD, loss)
    assert not light._light.slopes.knows


def test_what_is_held_goes_with_the_next_step(watch):
    kept = []

    def loss(out):
        root = out.square().sum(1).sqrt()
        kept.append(StorageWeakRef(root.untyped_storage()))
        return root.mean()

    model = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    for _ in range(20):
        step(model, optimizer, GOOD, loss)
    gc.collect()
    assert light._light.slopes.knows
    assert [reference.expired() for reference in kept] == [True] * 19 + [False]


def test_what_does_not_reach_the_gradient_that_is_looked_at(watch):
    """Only the second layer turns bad, by the step: the next loss is the first that shows it."""
    torch.manual_seed(0)
    first, second = nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False)
    optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=1e-4)
    for at in range(20):
        optimizer.zero_grad()
        batch = ZERO if at == 18 else GOOD
        (first(GOOD).mean() + second(batch).square().sum(1).sqrt().mean()).backward()
        optimizer.step()
    found = watch.verdict()
    assert (found["kind"], found["step"], found["op"]) == ("optimizer", 19, "sqrt")


def test_saved_tensors_that_a_hook_unpacks_are_left_alone(watch):
    runs = []

    def root(x):
        runs.append(1)
        return x.square().sum(1).sqrt() * 1.0

    model = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    for _ in range(6):
        step(model, optimizer, GOOD, lambda out: checkpoint(root, out, use_reentrant=False).mean())
    assert light._light.hot.armed and not light._light.slopes.knows
    runs.clear()
    step(model, optimizer, GOOD, lambda out: checkpoint(root, out, use_reentrant=False).mean())
    assert len(runs) == 2


def vector(*values):
    return torch.tensor(values, dtype=torch.float64)


# Where PyTorch's derivative is asked for by the operation alone: the table has to agree with it.
CASES = [
    (lambda x: x.sqrt(), [vector(0, 1), vector(1, 2)]),
    (lambda x: x**0.5, [vector(0, 1), vector(1, 2)]),
    (lambda x: x**1.5, [vector(0, 1)]),
    (lambda x: x**0.0, [vector(0, 1)]),
    (lambda x: x ** vector(0.5, 2), [vector(0, 1), vector(1, 0), vector(1, 1)]),
    (lambda x: 2.0**x, [vector(0, 1), vector(-1, 1)]),
    (lambda x: x / x, [vector(0, 1), vector(3, 1)]),
    (lambda x: 1 / (x * 1.0), [vector(0, 1), vector(3, 1)]),
    (lambda x: x.rsqrt(), [vector(0, 1), vector(3, 1)]),
    (lambda x: x.log(), [vector(0, 1), vector(1, 2)]),
    (lambda x: x.log2(), [vector(0, 1), vector(1, 2)]),
    (lambda x: x.log10(), [vector(0, 1), vector(1, 2)]),
    (lambda x: x.log1p(), [vector(-1, 1), vector(0, 2)]),
    (lambda x: x.acos(), [vector(1, 0), vector(-1, 0), vector(0.5, 0)]),
    (lambda x: x.asin(), [vector(1, 0), vector(-1, 0), vector(0.5, 0)]),
    (lambda x: x.acosh(), [vector(1, 2), vector(1.5, 2)]),
    (lambda x: x.atanh(), [vector(1, 0), vector(0.5, 0)]),
    (lambda x: x.erfinv(), [vector(1, 0), vector(0.5, 0)]),
    (lambda x: x.lgamma(), [vector(0, 1), vector(0.5, 2)]),
    (lambda x: x.digamma(), [vector(-1, 1), vector(0.5, 2)]),
    (lambda x: x.logit(), [vector(0, 0.5), vector(1, 0.5), vector(0.2, 0.5)]),
    (lambda x: x.logit(1e-3), [vector(0, 0.5)]),
    (torch.special.entr, [vector(0, 1), vector(0.5, 1)]),
    (lambda x: x.exp(), [vector(1000, 1), vector(0, 1)]),
    (lambda x: torch.hypot(x, x), [vector(0, 1), vector(1, 1)]),
    (lambda x: torch.xlogy(x, x), [vector(0, 1), vector(1, 1)]),
    (lambda x: torch.logaddexp(x, x), [vector(-INF, 1), vector(0, 1)]),
    (lambda x: x.logsumexp(0), [vector(-INF, -INF), vector(-INF, 1)]),
    (lambda x: x.view(1, 2).logsumexp(-1, keepdim=True), [vector(-INF, -INF), vector(-INF, 1)]),
    (lambda x: x.logcumsumexp(0), [vector(-INF, -INF), vector(0, 1)]),
    (lambda x: torch.linalg.eigh(torch.diag(x))[1], [vector(1, 1), vector(1, 2)]),
    (lambda x: torch.linalg.eigh(torch.diag(x))[0], [vector(1, 1), vector(1, 2)]),
    (lambda x: sum(part.square().sum() for part in torch.linalg.eigh(torch.diag(x))), [vector(1, 1)]),
    (lambda x: torch.linalg.svd(torch.diag(x))[0], [vector(1, 1), vector(2, 1)]),
    (lambda x: torch.linalg.svdvals(torch.diag(x)), [vector(1, 1), vector(2, 1)]),
    (lambda x: x.norm(), [vector(0, 0)]),
    (lambda x: x.std(), [vector(1, 1)]),
    (lambda x: torch.atan2(x, x), [vector(0, 0)]),
    (lambda x: torch.cdist(x[None], x[None]), [vector(1, 2)]),
]


@pytest.mark.parametrize("at", range(len(CASES)))
def test_the_table_agrees_with_pytorchs_derivatives(at):
    function, inputs = CASES[at]
    for given in inputs:
        x = given.clone().requires_grad_()
        made = function(x)
        held = slopes.plan_of(made.sum()).follows(made.sum())
        (gradient,) = torch.autograd.grad(made.sum(), x)
        assert bool(slopes.op_of(held)) == (not gradient.isfinite().all()), given


def test_the_table_has_a_case_for_each_row():
    names = set()
    for function, inputs in CASES:
        queue = [function(inputs[0].clone().requires_grad_()).grad_fn]
        while queue:
            node = queue.pop()
            names.add(slopes.base_of(node.name()))
            queue.extend(following for following, _ in node.next_functions if following is not None)
    assert slopes.SLOPES.keys() <= names


def test_a_weight_that_was_infinite_before(watch_that_looks):
    """The forward pass makes a finite number of it; after the step it is NaN, and no more only infinite."""

    class Widths(nn.Module):
        def __init__(self):
            super().__init__()
            self.width = nn.Parameter(torch.tensor([1.0, 2.0]))

        def forward(self, x):
            return torch.exp(-x / self.width**2).sum(1)

    model = Widths()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for turn in range(1, 6):
        if turn == 3:
            with torch.no_grad():
                model.width[1] = float("inf")
            optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        optimizer.zero_grad()
        model(torch.ones(3, 2)).mean().backward()
        optimizer.step()
    seen = watch_that_looks.verdict()
    assert (seen["kind"], seen["step"], seen["op"], seen["infinite"]) == ("gradient", 3, "pow", "width")


def test_a_division_by_pythons_own_number_is_no_candidate(watch):
    """Cross entropy with targets that are probabilities divides by the size of the batch."""
    target = torch.full((3, 2), 0.5)

    def loss(out):
        return nn.functional.cross_entropy(out.sqrt(), target)

    model = nn.Linear(2, 2, bias=False)
    nn.init.ones_(model.weight)
    seen = first_bad(watch, loss, model)
    assert (seen["kind"], seen["op"]) == ("gradient", "sqrt")
    assert slopes.plan_of(loss(model(GOOD))) is not None
