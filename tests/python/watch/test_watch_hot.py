"""`--watch light` in steps that are counted in C: nothing is missed there, and nothing else is changed."""

from __future__ import annotations

import gc
import math
import time
import weakref

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.optim import optimizer as optimizers  # noqa: E402
from trapline._watch import hot, light, roots  # noqa: E402

GOOD = torch.ones(3, 2)


def is_armed():
    return light._light.hot.armed


def train(model, optimizer, steps, batch=GOOD, loss=lambda out: out.sum()):
    for _ in range(steps):
        optimizer.zero_grad()
        loss(model(batch)).backward()
        optimizer.step()


class Log(nn.Module):
    def forward(self, x):
        return x.log()


def test_steps_are_counted_and_their_losses_kept(watch):
    model = nn.Linear(2, 1)
    train(model, torch.optim.SGD(model.parameters(), lr=1e-3), 70)
    assert is_armed() and list(optimizers._global_optimizer_pre_hooks.values()) == [hot.idle]
    rows = watch.recent()
    assert [step for step, _, _ in rows] == list(range(21, 71))
    assert all(math.isfinite(loss) and norm is None for _, loss, norm in rows)
    assert not is_armed() and hot.idle not in optimizers._global_optimizer_pre_hooks.values()
    train(model, torch.optim.SGD(model.parameters(), lr=1e-3), 0)
    assert light._light.steps.taken == 70


def test_place_and_step_are_right_in_a_step_that_was_counted(watch):
    model = nn.Sequential(nn.Identity(), Log(), nn.Linear(2, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    train(model, optimizer, 30)
    assert is_armed()
    train(model, optimizer, 1, torch.tensor([[1.0, -1.0]]))
    seen = watch.verdict()
    assert (seen["kind"], seen["step"], seen["name"], seen["op"]) == ("output", 31, "1", "log")
    assert [row["step"] for row in seen["last_steps"]] == list(range(1, 32))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_gradient_in_a_step_that_was_not_looked_at(watch, dtype):
    class Root(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = nn.Linear(2, 3), nn.Linear(3, 1)

        def forward(self, x, scale):
            return self.last((self.first(x) * scale).square().sqrt())

    model = Root().to(dtype)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    for step in range(30):
        optimizer.zero_grad()
        model(GOOD.to(dtype), 0.0 if step == 24 else 1.0).sum().backward()
        if step == 24:
            assert not is_armed()
        optimizer.step()
    seen = watch.verdict()
    assert (seen["kind"], seen["step"], seen["name"]) == ("gradient", 25, "first.bias")
    assert seen["op"] == "sqrt" and "backward" not in seen  # not by the gradient that arrived: likely
    assert seen["origin"]["code"].strip().startswith("return self.last(")


def test_bad_gradients_that_are_mended_are_none(watch):
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    train(model, optimizer, 20)
    for _ in range(2):
        optimizer.zero_grad()
        model(GOOD).square().sum().backward()
        for parameter in model.parameters():
            parameter.grad[...] = 0.5
        optimizer.step()
    model.register_full_backward_hook(lambda *_: None)
    handle = model.bias.register_hook(lambda gradient: gradient * math.nan)
    optimizer.zero_grad()
    model(GOOD).sum().backward()
    model.bias.grad.zero_()
    optimizer.step()
    handle.remove()
    train(model, optimizer, 10)
    assert watch.verdict() is None


def test_a_loss_more_in_a_step_is_pythons(watch):
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    train(model, optimizer, 20)
    optimizer.zero_grad()
    model(GOOD).sum().backward()
    assert is_armed()
    model(GOOD).sum().backward()
    assert not is_armed()
    optimizer.step()
    assert light._light.steps.taken == 21


def test_a_second_optimizer_ends_it(watch):
    one, two = nn.Linear(2, 1), nn.Linear(2, 1)
    first = torch.optim.SGD(one.parameters(), lr=1e-4)
    train(one, first, 20)
    second = torch.optim.SGD(two.parameters(), lr=1e-4)
    assert not is_armed()
    train(two, second, 3)
    train(one, first, 1)
    assert light._light.steps.taken == 21 and not is_armed()


def test_closures_are_never_counted_in_c(watch):
    model = nn.Linear(2, 1)
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=2)

    def closure():
        optimizer.zero_grad()
        loss = (model(GOOD) - 1).square().sum()
        loss.backward()
        return loss

    for _ in range(8):
        optimizer.step(closure)
    assert not is_armed()


def test_calls_are_kept_only_until_the_step(watch):
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    train(model, optimizer, 20)
    batch = torch.ones(3, 2)
    known = weakref.ref(batch)
    train(model, optimizer, 1, batch)
    assert is_armed()
    del batch
    gc.collect()
    assert known() is None


def test_at_most_sixteen_calls_are_kept(watch):
    model = nn.Linear(2, 1)
    train(model, torch.optim.SGD(model.parameters(), lr=1e-4), 20)
    for at in range(20):
        model(torch.full((1, 2), float(at)), **{})
    light._light.catches_up()
    assert [call.args[0][0, 0].item() for call in light._light.calls] == list(range(4, 20))


def test_no_gradient_no_call(watch):
    model = nn.Linear(2, 1)
    train(model, torch.optim.SGD(model.parameters(), lr=1e-4), 20)
    with torch.no_grad():
        model(GOOD)
    model.eval()
    model(GOOD)
    light._light.catches_up()
    assert len(light._light.calls) == 0


def test_clock_is_the_one_of_python():
    module = hot.Hot()
    optimizer = torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=0.1)
    loss = torch.ones(())
    module.arm(optimizer, time.perf_counter() + 1000)
    assert all(module.passes(loss) and module.stepped(optimizer) for _ in range(16))
    module.arm(optimizer, time.perf_counter() - 1)
    assert [module.passes(loss) and module.stepped(optimizer) for _ in range(8)] == [True] * 7 + [False]
    steps, losses, last, calls, _ = module.drain()
    assert (steps, losses, last, calls) == (7, [1.0] * 7, 1.0, [])


@pytest.mark.parametrize(
    "loss",
    [
        torch.tensor(math.nan),
        torch.tensor(math.inf, dtype=torch.float64),
        torch.ones(2),
        torch.tensor(math.inf, dtype=torch.float16),
        torch.tensor(math.nan, dtype=torch.bfloat16),
        torch.ones((), dtype=torch.complex64),
        torch.ones((), device="meta"),
        [torch.ones(())],
        nn.Parameter(torch.ones(())),
        None,
    ],
)
def test_what_does_not_pass(loss):
    module = hot.Hot()
    optimizer = torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=0.1)
    module.arm(optimizer, time.perf_counter() + 1000)
    assert not module.passes(loss)
    assert module.passes(torch.ones((1, 1), dtype=torch.float64))
    assert module.drain()[2] == 1.0


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_numbers_of_16_bits_are_read(dtype):
    module = hot.Hot()
    optimizer = torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=0.1)
    for value in (0.0, -0.375, 1.0, 1.5e-7, 3e-41, 60000.0):  # a subnormal one of each
        one = torch.tensor(value, dtype=dtype)
        module.arm(optimizer, time.perf_counter() + 1000)
        assert module.passes(one)
        assert module.drain()[2] == one.item()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_every_number_of_the_gradient_is_looked_at(dtype):
    module, largest = hot.Hot(), torch.finfo(dtype).max
    for count in (1, 3, 4, 7, 8, 15, 16, 17, 33):
        parameter = nn.Parameter(torch.ones(count, dtype=dtype))
        optimizer = torch.optim.SGD([parameter], lr=0.1)
        parameter.grad = torch.full((count,), -largest, dtype=dtype)
        parameter.grad[count // 2] = largest
        module.arm(optimizer, time.perf_counter() + 1000)
        assert module.arrived()
        for at in range(count):
            for bad in (math.nan, math.inf, -math.inf):
                parameter.grad.fill_(largest)
                parameter.grad[at] = bad
                assert not module.arrived()
        optimizer.param_groups[0]["params"] = []  # gone: there is nothing to look at
        assert module.arrived()
        module.drain()


def test_python_goes_through_c_and_compilation_through_python():
    assert roots.Root.__mro__[1].__name__ == "Gate"
    assert roots.Root.__dict__["__call__"] is roots._called
    called = []

    class Counts(nn.Linear):
        def forward(self, x):
            called.append(1)
            return super().forward(x)

    module = Counts(2, 1)
    root = roots.Root(module, type("Light", (), {"notes": False}))
    assert root(GOOD).shape == (3, 1) and called == [1]


def test_inference_leaves_no_hook_and_no_gate(watch):
    model = nn.Sequential(nn.Linear(2, 2))
    from torch.nn.modules import module as modules

    with torch.no_grad():
        model(GOOD)
    assert not modules._global_forward_pre_hooks and "_compiled_call_impl" not in model.__dict__
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    assert modules._global_forward_pre_hooks
    train(model, optimizer, 4, loss=lambda out: out.sum() * math.nan)
    assert watch.verdict()["step"] == 1


def test_a_program_that_only_forgot_no_grad(watch):
    model = nn.Linear(2, 2)
    batches = [torch.ones(1, 2) for _ in range(12)]
    known = [weakref.ref(batch) for batch in batches]
    for batch in batches:
        model(batch)
    del batch, batches
    gc.collect()
    assert [reference() for reference in known] == [None] * 12
    assert "_compiled_call_impl" not in model.__dict__


@pytest.mark.parametrize("autocast", [False, True])
def test_results_are_the_same_bit_for_bit(watch, autocast):
    def run():
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(2, 8), nn.Dropout(), nn.BatchNorm1d(8), nn.Linear(8, 1))
        optimizer = torch.optim.Adam(model.parameters())
        for _ in range(40):
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
                loss = model(torch.randn(4, 2)).float().square().mean()
            loss.backward()
            optimizer.step()
        return [*model.state_dict().values(), torch.rand(1)]

    watched = run()
    assert is_armed()
    light.uninstall()
    assert all(map(torch.equal, watched, run()))


class Point(nn.Parameter):
    """As geoopt's: with something beside the numbers, and no operation of its own."""


class Own(torch.optim.Optimizer):
    def __init__(self, parameters, lr):
        super().__init__(parameters, {"lr": lr})

    @torch.no_grad()
    def step(self, closure=None):
        for one in self.param_groups[0]["params"]:
            one.add_(one.grad, alpha=-self.param_groups[0]["lr"])


@pytest.mark.parametrize("kind", [torch.optim.SGD, Own])
def test_a_parameter_of_a_class_of_its_own(watch, kind):
    model = Rows()
    optimizer = kind(model.parameters(), lr=1e-3)
    train(model, optimizer, 30, torch.tensor([0.5, 0.2]))
    assert is_armed()
    train(model, optimizer, 1, torch.tensor([0.5, 1.0]))
    seen = watch.verdict()
    assert (seen["kind"], seen["step"], seen["op"]) == ("gradient", 31, "acos")
    assert hot.classes_of(optimizer) in ((Point, nn.Parameter), (nn.Parameter, Point))


class Rows(nn.Module):
    """The other weight's gradient stays finite."""

    def __init__(self):
        super().__init__()
        self.points = Point(torch.ones(2))
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, x):
        return self.scale * torch.acos((self.points.detach() * 0 + self.points) * x / self.points.detach())
