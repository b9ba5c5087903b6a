"""What a program does with a model that `--watch light` has seen: files, copies, compilation."""

from __future__ import annotations

import copy
import gc
import io
import pickle

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.overrides import TorchFunctionMode  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402
from trapline._watch import compiling, light, roots, thorough  # noqa: E402

GOOD = torch.ones(3, 2)


@pytest.fixture
def model():
    light.install()
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    step(model, model)
    yield model
    light.uninstall()


def step(model, call, times=1.0):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    call(GOOD).sum().mul(times).backward()
    optimizer.step()


def test_file_holds_nothing_of_the_watch(model):
    assert b"trapline" not in pickle.dumps(model)
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    loaded = torch.load(file, weights_only=False)
    assert loaded._compiled_call_impl is None and torch.equal(loaded(GOOD), model(GOOD))


def test_copy_calls_itself(model):
    for other in (copy.deepcopy(model), copy.copy(model)):
        assert other._compiled_call_impl is None
    other = copy.deepcopy(model)
    with torch.no_grad():
        other[1].bias += 1.0
    assert torch.allclose(other(GOOD), model(GOOD) + 1)


def test_class_with_a_state_of_its_own():
    copied = copy.deepcopy({"root": roots.Root(nn.Identity(), None)})
    assert copied == {"root": None}


class PlainRoot(roots.Root):
    __slots__ = ()
    __call__ = roots._called


class OwnState(nn.Linear):
    def __getstate__(self):
        return self.__dict__.copy()


class OwnClone(nn.Linear):
    def __copy__(self):
        other = type(self).__new__(type(self))
        other.__dict__ = self.__dict__.copy()
        return other


class Proxy:
    """As make_fx's, which notes the modules that it goes through."""

    def __init__(self, base):
        seen = []

        def forward(proxy, batch):
            seen.append(type(proxy))
            return kind.forward(proxy, batch)

        kind = type(base)
        self.__class__ = type("Proxied", (kind,), {"forward": forward})
        self.__dict__ = base.__dict__
        type(self).seen = seen


@pytest.mark.parametrize("in_c", [True, False])
@pytest.mark.parametrize("kind", [OwnState, OwnClone])
def test_copied_members_call_their_own_module(kind, in_c, monkeypatch):
    if not in_c:
        monkeypatch.setattr(roots, "Root", PlainRoot)
    light.install()
    try:
        first = kind(2, 2)
        step(first, first)
        assert type(first._compiled_call_impl) is roots.Root
        other = copy.copy(first)
        other._parameters = {"weight": nn.Parameter(torch.zeros(2, 2)), "bias": nn.Parameter(torch.ones(2))}
        assert other(GOOD).eq(1).all() and not first(GOOD).eq(1).all()
        del first
        gc.collect()
        assert other(GOOD).eq(1).all()
    finally:
        light.uninstall()


def test_proxy_that_shares_the_members_is_called_itself(model):
    layer = nn.Linear(2, 2)
    step(layer, layer)
    assert type(layer._compiled_call_impl) is roots.Root
    proxy = Proxy(layer)
    assert torch.equal(proxy(GOOD), layer(GOOD)) and proxy.seen == [type(proxy)]


def test_replica_calls_itself(model):
    replica = model._replicate_for_data_parallel()
    assert replica._compiled_call_impl is None


def test_compiled_whole_after_it_was_seen(model):
    expected = model(GOOD)
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    assert torch.equal(compiled(GOOD), expected)
    step(model, compiled, float("nan"))
    # `step` makes an optimizer each time: this is the second step of the program.
    assert light.verdict()["step"] == 2 and light.verdict()["kind"] == "loss"


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(2, 1)

    def forward(self, x):
        return self.inner(x)


def test_compiled_in_place():
    light.install()
    light.follows_compilation()
    model = Outer()
    model.compile(backend="eager", fullgraph=True)
    step(model, model)
    step(model, model, float("nan"))
    assert light.verdict()["kind"] == "loss"
    light.uninstall()


@pytest.mark.parametrize("seen", [False, True])
def test_a_function_is_compiled_once_around_a_model(seen):
    """Hooks and gates would be in its graph, and gone at its next call."""
    from torch._dynamo import testing, utils

    light.install()
    compiling.install()
    model = Outer()
    if seen:
        step(model, model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)  # its next steps are learnt from
    counter = testing.CompileCounter()
    compiled = torch.compile(lambda x: model(x) * 2, backend=counter, fullgraph=True)
    utils.counters.clear()
    torch._dynamo.reset()
    for _ in range(5):
        compiled(GOOD).sum().backward()
        optimizer.step()
    assert counter.frame_count == 1 and not utils.counters["graph_break"]
    assert not model._forward_pre_hooks and model._compiled_call_impl is None
    light.uninstall()


def frames_of_compiled_steps():
    from torch._dynamo import testing

    torch._dynamo.reset()
    model = Outer()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(GOOD).sum().backward()
    counter = testing.CompileCounter()
    compiled = torch.compile(optimizer.step, backend=counter)
    for _ in range(3):
        compiled()
    return counter.frame_count


def test_a_compiled_optimizer_is_what_it_is_without():
    expected = frames_of_compiled_steps()
    light.install()
    compiling.install()
    assert expected == frames_of_compiled_steps() == 1
    light.uninstall()


def test_scripted_and_exported(model):
    expected = model(GOOD)
    assert torch.equal(torch.export.export(model, (GOOD,)).module()(GOOD), expected)
    assert torch.equal(torch.jit.trace(model, (GOOD,))(GOOD), expected)
    assert torch.equal(torch.jit.script(model)(GOOD), expected)


def test_functional_and_hooks(model):
    called = []
    handle = model.register_forward_hook(lambda *_: called.append(1))
    twice = {name: value * 2 for name, value in model.named_parameters()}
    assert not torch.equal(torch.func.functional_call(model, twice, (GOOD,)), model(GOOD))
    handle.remove()
    assert called == [1, 1]


def test_mode_of_the_program_is_shown_only_its_operations(model):
    def operations(on):
        if not on:
            light.uninstall()
        fresh = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
        optimizer = torch.optim.SGD(fresh.parameters(), lr=0.1)
        with Noted() as noted:
            fresh(GOOD).sum().mul(2.0).backward()
            optimizer.step()
        return noted.names

    assert operations(on=True) == operations(on=False) != []


class Noted(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(str(func))
        return func(*args, **(kwargs or {}))


def test_a_compiled_module_does_not_warn_of_hooks(recwarn):
    torch._dynamo.reset()
    light.install()
    compiling.install()
    model = Outer()
    compiled = torch.compile(model, backend="eager")
    step(model, compiled)
    step(model, compiled, float("nan"))
    assert not [warning for warning in recwarn if "global hooks" in str(warning.message)]
    assert light.verdict()["kind"] == "loss"
    light.uninstall()


def test_frozen_module_of_torchscript():
    """It has no `training`, which is asked for while outermost modules are found."""
    light.install()
    try:
        frozen = torch.jit.freeze(torch.jit.script(nn.Linear(2, 1)).eval())
        assert frozen(GOOD).shape == (3, 1)
    finally:
        light.uninstall()


@pytest.mark.parametrize("mode", ["light", "nan"])
def test_torchscript_knows_backward(mode):
    def calls(x: torch.Tensor):
        torch.autograd.backward([x.relu().sum()])

    chosen = {"light": light, "nan": thorough}[mode]
    chosen.install()
    try:
        assert "torch.autograd.backward" in torch.jit.script(calls).code
    finally:
        chosen.uninstall()
    assert "torch.autograd.backward" in torch.jit.script(calls).code


@pytest.mark.skipif(
    not hasattr(torch.overrides, "redispatch_function"), reason="what it asks for came with torch 2.13"
)
def test_backward_of_a_class_that_hands_calls_on():
    """By skipping one level: what the watch does with the tensor before would use that up, without end."""
    seen = []

    class Sees(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            seen.append(function.__name__)
            return torch.overrides.redispatch_function(function, types, args, kwargs or {})

    light.install()
    try:
        x = torch.ones((), requires_grad=True).as_subclass(Sees)
        torch.autograd.backward(x)
    finally:
        light.uninstall()
    assert seen.count("backward") == 1


def test_failure_in_a_hook_is_not_the_programs(monkeypatch):
    def fails(*_):
        raise ZeroDivisionError

    monkeypatch.setattr(roots.Roots, "_knows", fails)
    light.install()
    try:
        model = nn.Sequential(nn.Linear(2, 1))
        step(model, model)
        assert model(GOOD).shape == (3, 1)
    finally:
        light.uninstall()


def test_mode_of_functions_is_shown_nothing():
    class Sees(TorchFunctionMode):
        def __init__(self):
            self.seen = []

        def __torch_function__(self, function, types, args=(), kwargs=None):
            self.seen.append(getattr(function, "__name__", ""))
            return function(*args, **(kwargs or {}))

    def run():
        model = nn.Linear(2, 1)
        with Sees() as mode:
            step(model, model)
        return mode.seen

    plain = run()
    light.install()
    try:
        assert run() == plain and "backward" in plain
    finally:
        light.uninstall()


def test_default_device_is_no_mode_that_is_shown_anything():
    light.install()
    torch.set_default_device("cpu")
    try:
        model = nn.Linear(2, 1)
        step(model, model, times=float("nan"))
        assert light.verdict()["kind"] == "loss"
    finally:
        torch.set_default_device(None)
        light.uninstall()


def test_module_without_training(model):
    del model.training
    assert type(vars(model)["_compiled_call_impl"]) is roots.Root and model(GOOD).shape == (3, 1)


def test_compiled_autograd_takes_the_backward_pass_whole(model):
    """What the watch has put into the graph before is nothing there."""
    from torch._dynamo import compiled_autograd

    x = torch.ones(3, 2, requires_grad=True)
    (expected,) = torch.autograd.grad(model(x).sum(), x)
    loss = model(x).sum()
    torch._dynamo.reset()
    with compiled_autograd._enable(lambda graph: torch.compile(graph, backend="eager", fullgraph=True)):
        loss.backward()
    assert torch.equal(x.grad, expected)


@pytest.mark.parametrize("mode", ["light", "nan"])
def test_strict_export(mode):
    """Nobody is told that Dynamo begins, and it refuses modules with hooks."""
    import torch._dynamo.convert_frame

    chosen = {"light": light, "nan": thorough}[mode]
    chosen.install()
    compiling.install()
    try:
        model = nn.Linear(2, 1)
        exported = torch.export.export(model, (GOOD,), strict=True)
        assert torch.equal(exported.module()(GOOD), model(GOOD))
        step(model, model)
        step(model, model, times=float("nan"))
        facts = thorough.facts() if mode == "nan" else light.verdict()
        assert facts["kind"] == "loss"
    finally:
        chosen.uninstall()
