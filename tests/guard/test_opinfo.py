"""PyTorch's own samples of every guarded operation: bit-identical results with the guard on, and no finding.

`TRAPLINE_OPINFO=all` takes every operation that PyTorch describes, guarded or not.
"""

from __future__ import annotations

import os
import warnings

import pytest
import torch
from torch.utils._pytree import tree_flatten, tree_map

pytest.importorskip("expecttest", reason="PyTorch's own test library needs expecttest")
EVERYTHING = os.environ.get("TRAPLINE_OPINFO") == "all"

# Public names that arrive at a guarded operation of another name.
ARRIVE = {
    "__getitem__",
    "masked_select",
    "median",
    "msort",
    "nn.functional.cross_entropy",
    "nn.functional.dropout",
    "nn.functional.gaussian_nll_loss",
    "nn.functional.max_unpool1d",
    "nn.functional.multilabel_soft_margin_loss",
    "nn.functional.nll_loss",
    "sort",
    "take_along_dim",
    "to",
    "unravel_index",
}


def guarded_names(overloads):
    return {name.removeprefix("aten::").partition(".")[0].rstrip("_") for name in overloads} | ARRIVE


def chosen(op_db, overloads):
    names = guarded_names(overloads)
    return [op for op in op_db if EVERYTHING or op.name in names or op.name.rpartition(".")[2] in names]


def copied(value):
    def one(tensor):
        if not isinstance(tensor, torch.Tensor):
            return tensor
        return tensor.detach().clone().requires_grad_(tensor.requires_grad)

    return tree_map(one, value)


def outcome(op, sample):
    """All tensors that a call gives or writes, with their gradients; or the type and text of its error."""
    inputs = copied((sample.input, sample.args, sample.kwargs))
    torch.manual_seed(7)
    try:
        result = op(inputs[0], *inputs[1], **inputs[2])
        results = [t for t in tree_flatten(result)[0] if isinstance(t, torch.Tensor)]
        given = [t for t in tree_flatten(inputs)[0] if isinstance(t, torch.Tensor)]
        real = [t for t in results if t.requires_grad]
        wanted = [t for t in given if t.requires_grad]
        gradients = []
        if real and wanted:
            total = sum(t.abs().sum() if t.is_complex() else t.sum() for t in real)
            gradients = torch.autograd.grad(total, wanted, allow_unused=True)
        return [*results, *given, *(g for g in gradients if g is not None)]
    except Exception as error:  # an operation's own refusal must stay the same too
        return f"{type(error).__name__}: {error}".partition("\n")[0]


def same(left, right):
    if isinstance(left, str) or isinstance(right, str):
        return left == right
    return len(left) == len(right) and all(bits(a, b) for a, b in zip(left, right))


def bits(a, b):
    if a.dtype != b.dtype or a.shape != b.shape or a.layout != b.layout:
        return False
    if a.layout != torch.strided:
        a, b = a.to_dense(), b.to_dense()
    if a.is_nested or a.is_quantized or a.numel() == 0:
        return True
    a, b = (
        t.detach().resolve_conj().resolve_neg().clone(memory_format=torch.contiguous_format) for t in (a, b)
    )
    return torch.equal(a.view(-1).view(torch.uint8), b.view(-1).view(torch.uint8))


def uninitialized(op):
    return "empty" in op.name


def test_samples_are_untouched(guard, capsys):
    from torch.testing._internal.common_methods_invocations import op_db

    warnings.simplefilter("ignore")
    operations = chosen(op_db, guard.module.info()["overloads"])
    samples, refused, unmade, differ, found = 0, 0, [], [], []
    for op in operations:
        if uninitialized(op):
            continue
        for dtype in sorted(op.supported_dtypes("cpu"), key=str):
            gradient = dtype in op.supported_backward_dtypes("cpu")
            torch.manual_seed(3)
            try:
                inputs = list(op.sample_inputs("cpu", dtype, requires_grad=gradient))
            except Exception as error:  # needs a package or a build option that is absent
                unmade.append(f"{op.name} {dtype}: {type(error).__name__}")
                continue
            for sample in inputs:
                guard.violations.clear()
                guard.module.set_enabled(False)
                plain = outcome(op, sample)
                guard.module.set_enabled(True)
                guarded = outcome(op, sample)
                samples += 1
                refused += isinstance(plain, str)
                name = f"{op.name} {op.variant_test_name} {dtype}"
                if guard.violations:
                    found.append(f"{name}: {guard.violations[0]['contract']} {guard.violations[0]['scan']}")
                elif not same(plain, guarded):
                    # An operation that does not repeat its own result says nothing about the guard.
                    guard.module.set_enabled(False)
                    if same(plain, outcome(op, sample)):
                        differ.append(name)
    with capsys.disabled():
        print(f"\nOpInfo: {samples} samples of {len(operations)} operations; torch itself refuses {refused}")
        for line in unmade:
            print(f"OpInfo: no samples: {line}")
    assert samples > 1000
    assert not found
    assert not differ
