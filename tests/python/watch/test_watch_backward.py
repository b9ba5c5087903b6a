"""`--watch light`: a gradient that turns bad behind a finite forward pass is followed to its operation."""

from __future__ import annotations

import math

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from trapline._watch import light  # noqa: E402

GOOD = torch.ones(3, 2)


class Divides(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return gradient / ctx.saved_tensors[0]


class Ends(nn.Module):
    """A layer whose output is 0, and an operation behind it."""

    def __init__(self, function):
        super().__init__()
        self.fc = nn.Linear(2, 2, bias=False)
        nn.init.zeros_(self.fc.weight)
        self.ends = Calls(function)

    def forward(self, x):
        return self.ends(self.fc(x))


class Calls(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


@pytest.fixture
def watch():
    light.install()
    yield light
    light.uninstall()


def train(model, loss, steps=3, **options):
    optimizer = torch.optim.SGD(model.parameters(), **{"lr": 0.1, **options})
    for _ in range(steps):
        optimizer.zero_grad()
        loss(model(GOOD)).backward()
        optimizer.step()


@pytest.mark.parametrize(
    ("function", "op"),
    [
        (lambda x: x.sqrt(), "sqrt"),
        (lambda x: (x + 1).acos(), "acos"),
        (lambda x: torch.where(x > 0, 1 / x, x), "reciprocal"),
        (Divides.apply, "Divides.backward"),
    ],
)
def test_operation_of_a_module(watch, function, op):
    train(Ends(function), lambda out: out.sum())
    seen = watch.verdict()
    assert (seen["kind"], seen["step"], seen["op"]) == ("gradient", 1, op)
    assert seen["backward"] == {"name": "ends", "type": "Calls"}
    assert seen["origin"]["code"].strip() in (
        "return self.function(x)",
        f'(lambda x: x.{op}(), "{op}"),',
    ) or ("lambda x" in seen["origin"]["code"])


@pytest.mark.parametrize(
    ("function", "op"),
    [
        (lambda out: out.square().sum().sqrt(), "sqrt"),
        (lambda out: Divides.apply(out).sum(), "Divides.backward"),
    ],
)
def test_operation_of_the_loss(watch, function, op):
    train(Ends(lambda x: x), function)
    seen = watch.verdict()
    assert (seen["kind"], seen["step"], seen["op"], seen["backward"]) == ("gradient", 1, op, {})


def test_hooks_of_the_program_are_called_once(watch):
    called = []
    model = Ends(lambda x: x.sqrt())
    model.fc.weight.register_hook(lambda gradient: called.append(1))
    train(model, lambda out: out.sum(), steps=1)
    seen = watch.verdict()
    assert called == [1] and seen["op"] == "sqrt" and "backward" not in seen


def test_graph_is_not_kept(watch):
    import weakref

    kept = []
    model = Ends(lambda x: x)
    train(model, lambda out: kept.append(weakref.ref(out)) or out.sum(), steps=2)
    assert [one() for one in kept] == [None, None]


def test_results_are_bit_identical():
    def run():
        torch.manual_seed(0)
        model = nn.Sequential(
            nn.Linear(2, 4), nn.Dropout(), nn.Linear(4, 2), Calls(lambda x: x.relu().sqrt())
        )
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(4):
            optimizer.zero_grad()
            model(torch.randn(3, 2)).sum().backward()
            for parameter in model.parameters():
                parameter.grad.nan_to_num_(0.0, 0.0, 0.0)
            optimizer.step()
        return torch.cat([*(p.detach().flatten() for p in model.parameters()), torch.rand(3)])

    plain = run()
    light.install()
    try:
        assert torch.equal(run(), plain) and light.verdict() is None
    finally:
        light.uninstall()


def test_update_by_zero_gradients(watch):
    model = Ends(lambda x: x)
    optimizer = torch.optim.Adam(model.parameters(), eps=0.0)
    (model(GOOD) * 0).sum().backward()
    optimizer.step()
    seen = watch.verdict()
    assert (seen["kind"], seen["step"], seen["name"]) == ("optimizer", 1, "fc.weight")
    assert seen["gradients_finite"] and seen["setting"] == "eps=0"


def test_rate_that_is_infinite(watch):
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(1, 4):
        optimizer.param_groups[0]["lr"] = math.inf if step == 2 else 0.1
        optimizer.zero_grad()
        model(GOOD).sum().backward()
        optimizer.step()
    assert (watch.verdict()["kind"], watch.verdict()["step"]) == ("optimizer", 2)
    assert watch.verdict()["setting"] == "lr=inf"


def test_of_weights_that_break_at_once_one_that_holds_nan_is_named(watch):
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=math.inf)
    (model(GOOD) - model.bias).sum().backward()  # 0 for the bias, and 0 times infinity
    optimizer.step()
    seen = watch.verdict()
    assert (seen["what"], seen["name"], seen["others"]) == ("nan", "bias", 1)


def by_hand(bad_in=None, steps=5, mends=False):
    model = nn.Linear(2, 1)
    for step in range(1, steps + 1):
        loss = model(GOOD).sum() * (math.nan if step == bad_in else 1.0)
        loss.backward()
        for parameter in model.parameters():
            if not (mends and not loss.isfinite()):
                parameter.data -= 0.1 * parameter.grad
            parameter.grad = None


def test_program_without_an_optimizer(watch):
    by_hand(bad_in=3)
    seen = watch.verdict()
    assert (seen["kind"], seen["step"], seen["unit"]) == ("loss", 3, "backward pass")


def test_losses_that_grow_without_an_optimizer(watch):
    """Also behind the first steps, which alone are looked at."""
    model = nn.Linear(2, 1)
    for step in range(80):
        (model(GOOD) ** 2).sum().backward()
        for parameter in model.parameters():
            parameter.data -= (5.0 if step > 40 else 0.0) * parameter.grad
            parameter.grad = None
    seen = watch.verdict()
    assert seen["growth"]["of"] == "loss"
    steps = [row["step"] for row in seen["last_steps"]][:-1]
    assert steps == list(range(steps[0], steps[0] + len(steps)))


def test_program_without_an_optimizer_that_leaves_it_out(watch):
    by_hand(bad_in=3, mends=True)
    assert watch.verdict() is None
    by_hand()
    assert watch.verdict() is None


def test_update_by_hand(watch):
    model = nn.Linear(2, 1)
    for step in range(1, 5):
        model(GOOD).sum().backward()
        for parameter in model.parameters():
            parameter.data -= (math.inf if step == 2 else 0.1) * parameter.grad
            parameter.grad = None
    seen = watch.verdict()
    assert (seen["kind"], seen["step"], seen["unit"]) == ("optimizer", 2, "backward pass")


def test_operation_of_a_program_without_an_optimizer(watch):
    model = Ends(lambda x: (x + 0.0).log() * 0.0)
    for _ in range(2):
        model(GOOD).sum().backward()
        for parameter in model.parameters():
            parameter.data -= parameter.grad
            parameter.grad = None
    seen = watch.verdict()
    assert (seen["op"], seen["inf_before"]["op"], seen["inf_before"]["step"]) == ("mul", "log", 1)


def test_rate_too_high_without_an_optimizer(watch):
    torch.manual_seed(0)
    model, batch = nn.Linear(3, 1), torch.randn(8, 3)
    for _ in range(15):
        (model(batch) - 1).square().mean().backward()
        for parameter in model.parameters():
            parameter.data -= 1e4 * parameter.grad
            parameter.grad = None
    seen = watch.verdict()
    assert seen["unit"] == "backward pass" and seen["growth"]["of"] == "loss"


def test_number_that_is_infinite_is_said(watch):
    train(Ends(lambda x: (x + 1) * math.inf), lambda out: out.sum(), steps=1)
    seen = watch.verdict() or watch.facts()
    assert seen is None or not seen.get("finite_before")


def test_mean_over_no_label_is_told_as_that(watch):
    model = nn.Linear(2, 3)

    def loss(out):
        none = nn.functional.cross_entropy(out, torch.full((3,), -100))
        return none + model.weight.square().sum()

    train(model, loss, steps=1)
    assert (watch.verdict()["kind"], watch.verdict()["op"]) == ("loss", "nll_loss")


def scaled(losses):
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu")
    for factor in losses:
        optimizer.zero_grad()
        scaler.scale(model(GOOD).sum() * factor).backward()
        scaler.step(optimizer)
        scaler.update()


def test_scaler_that_leaves_out_all_that_follows(watch):
    scaled([1.0, math.nan, 1.0, *[math.nan] * 8])
    assert (watch.verdict()["kind"], watch.verdict()["step"]) == ("loss", 4)


def test_scaler_that_recovers(watch):
    scaled([1.0, *[math.nan] * 8, 1.0])
    assert watch.verdict() is None


def test_last_steps_are_told(watch):
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(1, 61):
        optimizer.zero_grad()
        (model(GOOD).sum() * (math.nan if step == 60 else 1.0)).backward()
        optimizer.step()
    rows = watch.verdict()["last_steps"]
    assert [row["step"] for row in rows] == list(range(11, 61))
    assert rows[-1] == {"step": 60, "loss": "nan"} and math.isfinite(rows[0]["gradient_norm"])


def test_batched_gradients_are_the_programs_own(watch):
    """What the watch has put into the graph meets what `vmap` makes of gradients, and leaves it alone."""
    torch.manual_seed(0)
    model, x = nn.Sequential(nn.Linear(2, 3), nn.Tanh()), torch.randn(4, 2, requires_grad=True)
    directions = torch.eye(12).reshape(12, 4, 3)
    (batched,) = torch.autograd.grad(model(x), x, directions, is_grads_batched=True)
    for one, direction in zip(batched, directions):
        assert torch.allclose(one, torch.autograd.grad(model(x), x, direction)[0])
    loss = model(x).square().sum()
    loss.backward(retain_graph=True)  # its operations are followed, too
    (twice,) = torch.autograd.grad(loss, x, torch.tensor([1.0, 2.0]), is_grads_batched=True)
    assert torch.allclose(twice[1], 2 * x.grad)


def test_gradients_that_are_nested(watch):
    model = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    before = model.weight.detach().clone()
    for _ in range(2):
        optimizer.zero_grad()
        out = model(torch.nested.nested_tensor([torch.ones(3, 2), torch.ones(1, 2)]))
        (out * 2).to_padded_tensor(0.0).sum().backward()
        optimizer.step()
    assert torch.allclose(model.weight, before - 2 * 0.1 * 8) and watch.verdict() is None


def test_gradients_on_another_device_are_not_waited_for(watch):
    """Reading one would raise on `meta`."""

    class There(torch.autograd.Function):
        @staticmethod
        def forward(_, x):
            return torch.empty_like(x, device="meta")

        @staticmethod
        def backward(_, gradient):
            return torch.ones(gradient.shape)

    class Back(torch.autograd.Function):
        @staticmethod
        def forward(_, x):
            return torch.zeros(x.shape)

        @staticmethod
        def backward(_, gradient):
            return torch.empty_like(gradient, device="meta")

    model = nn.Linear(2, 1)
    Back.apply(There.apply(model(GOOD)) * 2).sum().backward()
    assert torch.equal(model.weight.grad, torch.full((1, 2), 3.0))


class Rooted(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.sign() * x.abs() ** (1 / 3)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        return grad / (3 * y * y)


class Gained(nn.Module):
    def __init__(self):
        super().__init__()
        self.log_gain, self.mixer = nn.Parameter(torch.zeros(2)), nn.Linear(2, 1)

    def forward(self, power):
        return self.mixer(Rooted.apply(power * self.log_gain.exp()))


def test_a_derivative_in_the_closure_of_a_step(watch):
    """As Lightning does it, with all gradients clipped by their norm there."""
    torch.manual_seed(0)
    model = Gained()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for turn in range(50):
        power = torch.rand(3, 2) + 0.1
        power[2, 1] *= turn != 42

        def closure(power=power):
            optimizer.zero_grad()
            loss = (model(power) - 1).square().mean()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            return loss

        optimizer.step(closure)
    seen = watch.verdict()
    assert (seen["kind"], seen["step"], seen["op"]) == ("gradient", 43, "Rooted.backward")
    assert "Rooted.apply" in seen["origin"]["code"]


class Damped:
    """An optimizer that is none of PyTorch's."""

    def __init__(self, params):
        self.params = list(params)
        self.kept = [torch.zeros_like(p) for p in self.params]

    @torch.no_grad()
    def step(self, noise):
        for p, kept in zip(self.params, self.kept):
            signal = p.grad**2
            kept.mul_(0.5).add_(signal / (signal + noise) * p.grad)
            p.sub_(0.1 * kept)


def test_what_a_class_of_the_program_makes_of_finite_gradients(watch):
    torch.manual_seed(0)
    model = nn.Linear(2, 1)
    optimizer = Damped(model.parameters())
    for turn in range(25):
        for parameter in model.parameters():
            parameter.grad = None
        given = torch.zeros_like(GOOD) if turn == 20 else GOOD
        loss = model(given).square().sum()
        loss.backward()
        optimizer.step(float(turn < 20))
    seen = watch.verdict()
    assert (seen["kind"], seen["step"], seen["unit"]) == ("optimizer", 21, "backward pass")
    assert seen["gradients_finite"] is True
    assert seen["origin"]["code"].strip() == "p.sub_(0.1 * kept)"


class Polyak(torch.optim.Optimizer):
    def __init__(self, params):
        super().__init__(params, {})

    @torch.no_grad()
    def step(self, closure):
        with torch.enable_grad():
            loss = closure()
        params = [p for group in self.param_groups for p in group["params"]]
        size = (loss.detach() / sum(p.grad.square().sum() for p in params)).clamp(max=1e-3)
        for p in params:
            p.sub_(size * p.grad)
        return loss


def test_the_update_of_a_step_that_calls_its_closure(watch):
    torch.manual_seed(0)
    model = nn.Linear(2, 1)
    optimizer = Polyak(model.parameters())
    for turn in range(50):

        def closure(given=GOOD * (turn != 42)):
            optimizer.zero_grad()
            loss = (model(given) * given[:, :1]).square().sum()
            loss.backward()
            return loss

        optimizer.step(closure)
    seen = watch.verdict()
    assert (seen["kind"], seen["step"], seen["op"]) == ("optimizer", 43, "div")
    assert seen["gradients_finite"] and seen["origin"]["code"].strip().startswith("size = ")
