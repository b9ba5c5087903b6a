"""The guard under everything that sits above or beside the dispatcher's CPU kernels (requirement B5)."""

from __future__ import annotations

import threading
import warnings

import pytest
import torch
import torch.nn.functional as F
from conftest import Fault

WEIGHT = torch.arange(30.0).view(10, 3)
GOOD = torch.tensor([1, 2])
BAD = torch.tensor([1, 12])

TORCH_2 = pytest.mark.skipif(not hasattr(torch, "compile"), reason="torch 2 brought it")


def embed(indices, weight=WEIGHT):
    return F.embedding(indices, weight) * 2


def expect_fault(guard, call, contract="embedding.indices"):
    with pytest.raises(Fault, match=contract):
        call()
    assert [v["contract"] for v in guard.violations] == [contract]
    return guard.violations[0]


# Modes and contexts -------------------------------------------------------------------------------


def test_inference_mode(guard):
    with torch.inference_mode():
        expect_fault(guard, lambda: embed(BAD))


def test_inference_mode_composite(guard):
    with torch.inference_mode():
        expect_fault(guard, lambda: F.one_hot(BAD, 3), "one_hot.self")


def test_no_grad(guard):
    with torch.no_grad():
        expect_fault(guard, lambda: embed(BAD))


def test_autocast(guard):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        expect_fault(
            guard,
            lambda: F.cross_entropy(torch.zeros(2, 3) @ torch.zeros(3, 3), BAD),
            "nll_loss_forward.target",
        )


def test_deterministic_mode(guard):
    torch.use_deterministic_algorithms(True)
    try:
        zeros = torch.zeros(4).scatter_add_(0, torch.tensor([0, 0, 1]), torch.ones(3))
        assert zeros.tolist() == [2, 1, 0, 0]
        expect_fault(guard, lambda: WEIGHT.clone().index_put_((BAD,), torch.ones(())), "index_put_.indices")
    finally:
        torch.use_deterministic_algorithms(False)


def test_dispatch_mode_sees_the_same_operations(guard):
    from torch.utils._python_dispatch import TorchDispatchMode

    class Log(TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.seen = []

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.seen.append(str(func))
            return func(*args, **(kwargs or {}))

    def run():
        with Log() as log:
            F.one_hot(GOOD, 4)
            embed(GOOD)
        return log.seen

    guarded = run()
    guard.module.uninstall()
    assert guarded == run()


# Autograd -----------------------------------------------------------------------------------------


def test_violation_in_backward(guard):
    class Indexes(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.sum()

        @staticmethod
        def backward(ctx, grad):
            return WEIGHT[BAD][:, 0].repeat(2) * grad

    x = torch.randn(4, requires_grad=True)
    violation = expect_fault(guard, lambda: Indexes.apply(x).backward(), "index.indices")
    assert any(code.co_name == "backward" for code, _ in violation["frames"])


def test_gradients_are_the_same(guard):
    def gradient():
        weight = WEIGHT.clone().requires_grad_()
        loss = F.cross_entropy(F.embedding(GOOD, weight), torch.tensor([0, 2]))
        loss.backward()
        return weight.grad

    guarded = gradient()
    guard.module.set_enabled(False)
    assert torch.equal(guarded, gradient())


# Transforms and tracing ---------------------------------------------------------------------------


@TORCH_2
def test_vmap(guard):
    batch = torch.tensor([[1, 2], [3, 4]])
    assert torch.equal(torch.func.vmap(embed)(batch), embed(batch))
    violation = expect_fault(guard, lambda: torch.func.vmap(embed)(torch.tensor([[1, 2], [3, 14]])))
    assert violation["scan"]["first"] == 3


@TORCH_2
def test_func_grad(guard):
    expect_fault(
        guard,
        lambda: torch.func.grad(lambda x: F.cross_entropy(x, BAD))(torch.randn(2, 3)),
        "nll_loss_forward.target",
    )


@TORCH_2
def test_functionalize(guard):
    expect_fault(guard, lambda: torch.func.functionalize(embed)(BAD))


@TORCH_2
@pytest.mark.parametrize(
    "options",
    [{}, {"tracing_mode": "symbolic"}, {"pre_dispatch": True}],
    ids=["real", "symbolic", "pre_dispatch"],
)
def test_make_fx_graph_is_the_same(guard, options):
    from torch.fx.experimental.proxy_tensor import make_fx

    def program(x, y, table):
        return F.cross_entropy(x, y) + table[y].sum() + F.embedding(y, table).sum()

    def graph():
        traced = make_fx(program, **options)(torch.ones(2, 3), GOOD, WEIGHT)
        return [str(node.target) for node in traced.graph.nodes]

    guarded = graph()
    guard.module.uninstall()
    assert guarded == graph()
    assert len(guarded) > 4


@TORCH_2
def test_make_fx_pre_dispatch_is_guarded(guard):
    from torch.fx.experimental.proxy_tensor import make_fx

    expect_fault(guard, lambda: make_fx(lambda y: F.embedding(y, WEIGHT), pre_dispatch=True)(BAD))


@TORCH_2
def test_composite_decomposes_the_same_under_tracing(guard):
    """one_hot has a hook above the backends: what a tracer sees of it must not change."""
    from torch.fx.experimental.proxy_tensor import make_fx

    def outcome(**options):
        try:
            graph = make_fx(lambda y: F.one_hot(y, 4), **options)(GOOD).graph
            return [str(node.target) for node in graph.nodes]
        except RuntimeError as error:  # torch itself reads values while it decomposes
            return str(error)

    modes = ({}, {"tracing_mode": "symbolic"}, {"pre_dispatch": True})
    guarded = [outcome(**options) for options in modes]
    guard.module.uninstall()
    assert guarded == [outcome(**options) for options in modes]


@TORCH_2
def test_export(guard):
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.table = torch.nn.Embedding(10, 3)

        def forward(self, indices):
            return self.table(indices)[indices % 2]

    program = torch.export.export(Model(), (GOOD,))
    assert not guard.violations
    expect_fault(guard, lambda: program.module()(BAD))


@TORCH_2
def test_compile_aot_eager(guard):
    compiled = torch.compile(embed, backend="aot_eager")
    assert torch.equal(compiled(GOOD), embed(GOOD))
    expect_fault(guard, lambda: compiled(BAD))


def test_jit_trace(guard):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        traced = torch.jit.trace(embed, (GOOD,))
        assert torch.equal(traced(GOOD), embed(GOOD))
        with pytest.raises(RuntimeError, match=r"embedding\.indices"):  # the interpreter wraps what it meets
            traced(BAD)
    assert guard.violations[0]["contract"] == "embedding.indices"


# What is not a dense CPU tensor -------------------------------------------------------------------


def test_meta_tensors(guard):
    assert F.embedding(BAD.to("meta"), WEIGHT.to("meta")).shape == (2, 3)
    assert not guard.violations and guard.calls() == guard.calls()


def test_fake_tensors(guard):
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode() as mode:
        fake, table = mode.from_tensor(BAD), mode.from_tensor(WEIGHT)
        assert F.embedding(fake, table).shape == (2, 3)
        assert F.one_hot(fake, 3).shape == (2, 3)
        assert table[torch.empty(5, dtype=torch.long)].shape == (5, 3)
    assert not guard.violations


def test_sparse_tensors(guard):
    good = torch.eye(4).to_sparse().index_select(0, torch.tensor([0, 3]))
    assert good.to_dense().tolist() == [[1, 0, 0, 0], [0, 0, 0, 1]]
    with pytest.raises(IndexError):
        torch.eye(4).to_sparse().index_select(0, torch.tensor([0, 9]))


def test_quantized_tensors(guard):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        quantized = torch.quantize_per_tensor(torch.ones(4), 0.1, 0, torch.quint8)
    assert quantized.index_select(0, torch.tensor([0, 3])).dequantize().tolist() == [1.0, 1.0]


def test_nested_tensors(guard):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        nested = torch.nested.nested_tensor([GOOD, BAD])
    expect_fault(guard, lambda: F.embedding(nested, WEIGHT))


@TORCH_2
def test_jagged_tensors(guard):
    nested = torch.nested.nested_tensor([GOOD, BAD], layout=torch.jagged)
    expect_fault(guard, lambda: F.embedding(nested, WEIGHT))


def test_zero_size(guard):
    none = torch.empty(0, dtype=torch.long)
    assert WEIGHT[none].shape == (0, 3)
    assert torch.empty(0, 3)[none].shape == (0, 3)
    assert F.embedding(none, WEIGHT).shape == (0, 3)
    assert F.cross_entropy(torch.zeros(0, 3), none, reduction="sum").item() == 0
    assert not guard.violations


def test_complex_and_conjugate(guard):
    table = torch.view_as_complex(torch.ones(3, 2))
    assert table.conj()[torch.tensor([0, 2])].shape == (2,)
    assert not guard.violations


def test_out_argument(guard):
    out = torch.empty(2, 3)
    torch.index_select(WEIGHT, 0, GOOD, out=out)
    assert torch.equal(out, WEIGHT[1:3])
    expect_fault(guard, lambda: torch.index_select(WEIGHT, 0, BAD, out=out), "index_select.index")
    assert guard.violations[0]["overload"] == "out"


def test_function_subclass(guard):
    class Sub(torch.Tensor):
        pass

    expect_fault(guard, lambda: F.embedding(BAD.as_subclass(Sub), WEIGHT))
    assert type(guard.violations[0]["tensor"]) is Sub


@TORCH_2
def test_dispatch_subclass(guard):
    from torch.testing._internal.two_tensor import TwoTensor

    table, bad = TwoTensor(WEIGHT, WEIGHT.clone()), TwoTensor(BAD, BAD.clone())
    expect_fault(guard, lambda: table[bad], "index.indices")


def test_masks_and_none_in_index_lists(guard):
    mask = torch.tensor([True] * 3 + [False] * 7)
    assert WEIGHT[mask].shape == (3, 3)
    assert WEIGHT[:, None, GOOD].shape == (10, 1, 2)
    violation = expect_fault(guard, lambda: WEIGHT[mask, torch.tensor([0, 1, 3])], "index.indices")
    assert violation["scan"]["list_position"] == 1 and violation["scan"]["value"] == 3
    assert [None if t is None else t.dtype for t in violation["args"]["indices"]] == [torch.bool, torch.int64]


# Threads and processes ----------------------------------------------------------------------------


def test_python_threads(guard):
    caught = []

    def work():
        try:
            embed(BAD)
        except Fault as error:
            caught.append(str(error))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert caught == ["embedding.indices"] * 8
    assert len({v["thread"] for v in guard.violations}) == 8


class BadRows(torch.utils.data.Dataset):
    def __len__(self):
        return 2

    def __getitem__(self, row):
        return F.embedding(BAD, WEIGHT)


def test_data_loader_worker(guard):
    loader = torch.utils.data.DataLoader(BadRows(), num_workers=1, multiprocessing_context="fork")
    with pytest.raises(IndexError, match=r"embedding\.indices"):  # of the worker: carried by text
        list(loader)


# The operation's own errors -----------------------------------------------------------------------


def test_other_errors_pass_through(guard):
    with pytest.raises(RuntimeError) as raised:
        torch.gather(WEIGHT, 1, torch.zeros(2, 2, 2, dtype=torch.long))
    assert not isinstance(raised.value, Fault)
    with pytest.raises(RuntimeError):
        F.embedding(torch.tensor([0.5]), WEIGHT)
    with pytest.raises(IndexError):
        torch.index_select(WEIGHT, 5, GOOD)
    assert not guard.violations
    expect_fault(guard, lambda: embed(BAD))  # the guard's depth survived those errors


def test_no_warning_at_install(adapter, capfd):
    adapter.uninstall()
    adapter.install(lambda violation: Fault())
    adapter.uninstall()
    captured = capfd.readouterr()
    assert captured.err == "" and captured.out == ""
