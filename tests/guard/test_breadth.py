"""Good programs bit for bit as without the guard; bad ones reported with their element, wherever they run."""

from __future__ import annotations

import warnings

import breadth
import pytest
import torch
import torch.nn.functional as F
from torch.utils._pytree import tree_leaves

NEEDS_TORCH_2 = pytest.mark.skipif(not hasattr(torch, "compile"), reason="torch 2 brought most of it")
pytestmark = NEEDS_TORCH_2

CASES = [pytest.param(*program[1:], id=program[0]) for program in breadth.PROGRAMS]


def result_of(run, indices):
    torch.manual_seed(5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        leaves = tree_leaves(run(indices))
    return [leaf.detach().clone() for leaf in leaves]


def bits(tensors):
    return [(t.dtype, tuple(t.shape), t.contiguous().view(-1).view(torch.uint8).tolist()) for t in tensors]


@pytest.mark.parametrize(("run", "good", "bad", "contract", "first", "value"), CASES)
def test_good_program_is_the_same(guard, run, good, bad, contract, first, value):
    guarded = bits(result_of(run, good))
    assert guard.calls() > 0
    guard.module.uninstall()
    assert guarded == bits(result_of(run, good))
    assert not guard.violations


@pytest.mark.parametrize(("run", "good", "bad", "contract", "first", "value"), CASES)
def test_bad_program_is_reported(guard, run, good, bad, contract, first, value):
    with pytest.raises(Exception, match=contract.replace(".", r"\.")):  # TorchScript wraps the guard's own
        result_of(run, bad)
    scan = guard.violations[0]["scan"]
    assert guard.violations[0]["contract"] == contract
    assert (scan["first"], scan["value"], scan["bad"]) == (first, value, 1)


# Backward of what the contracts cover -------------------------------------------------------------


@pytest.mark.parametrize("op", ["index_add", "index_reduce", "index_copy", "scatter_add", "scatter_reduce"])
def test_backward_passes_through_guarded_operations(guard, op):
    """Their gradients gather and select by the same index, which is looked at again."""
    arguments = {"index_reduce": ("amax",), "scatter_reduce": ("sum",)}.get(op, ())
    index = torch.tensor([0, 2])

    def gradient():
        x = torch.arange(4.0).requires_grad_()
        source = torch.tensor([0.5, 7.0]).requires_grad_()
        getattr(x, op)(0, index, source, *arguments).pow(2).sum().backward()
        return [x.grad, source.grad]

    guarded = gradient()
    names = {call["op"] for call in guard.module.history()}
    assert names & {"aten::index_select", "aten::gather"}
    guard.module.set_enabled(False)
    assert bits(guarded) == bits(gradient())
    assert not guard.violations


def test_changed_index_is_found_in_backward(guard):
    """The index may be overwritten between forward and backward: the gradient then reads elsewhere."""
    index = torch.tensor([0, 2])
    source = torch.ones(2, requires_grad=True)
    result = torch.zeros(4).index_add(0, index, source)
    index.data[1] = 9  # autograd's version counter does not see it
    with pytest.raises(Exception, match=r"index_select\.index"):
        result.sum().backward()
    scan = guard.violations[0]["scan"]
    assert (scan["first"], scan["value"], scan["hi"]) == (1, 9, 4)


def test_bernoulli_of_a_tensor(guard):
    """bernoulli(p) draws by bernoulli_(p=p), its out= by itself; beside a p, self is but a shape."""
    with pytest.raises(IndexError, match=r"bernoulli_\.p"):
        torch.bernoulli(torch.tensor([0.5, 1.5]))
    with pytest.raises(IndexError, match=r"bernoulli\.out\.self"):
        torch.bernoulli(torch.tensor([0.5, 1.5]), out=torch.empty(2))
    guard.violations.clear()
    shape = torch.tensor([7.0, 8.0])
    torch.ops.aten.bernoulli.Tensor_out(shape, torch.tensor([0.5, 1.0]), out=torch.empty(2))
    torch.ops.aten.bernoulli.float_out(shape, 0.5, out=torch.empty(2))
    assert not guard.violations


# What has no value to look at ---------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0)])
def test_nothing_to_index(guard, shape):
    index = torch.zeros(shape, dtype=torch.int64)
    assert F.embedding(index, breadth.TABLE).shape == (*shape, 3)
    assert torch.zeros(0).masked_scatter(torch.zeros(0, dtype=torch.bool), torch.zeros(0)).shape == (0,)
    assert torch.repeat_interleave(torch.zeros(0, dtype=torch.int64)).shape == (0,)
    assert torch.binomial(torch.zeros(0), torch.zeros(0)).shape == (0,)
    assert not guard.violations


def test_meta_and_fake_tensors_are_not_read(guard):
    from torch._subclasses.fake_tensor import FakeTensorMode

    meta = torch.empty(4, dtype=torch.int64, device="meta")
    assert F.embedding(meta, breadth.TABLE.to("meta")).shape == (4, 3)
    assert torch.zeros(3, device="meta").masked_scatter(
        torch.zeros(3, dtype=torch.bool, device="meta"), torch.zeros(0, device="meta")
    ).shape == (3,)
    with FakeTensorMode() as mode:
        fake = mode.from_tensor(breadth.BAD)
        assert F.embedding(fake, mode.from_tensor(breadth.TABLE)).shape == (4, 3)
        pivots = mode.from_tensor(torch.tensor([9, 9], dtype=torch.int32))
        assert torch.lu_unpack(mode.from_tensor(torch.eye(2)), pivots)[0].shape == (2, 2)
    assert not guard.violations
