"""PyTorch's own samples of its operations, without and with the guard: what test_opinfo.py runs on the
CPU and tests/gpu/proof_opinfo.py on a GPU.

`guard` has `module`, the adapter, and `violations`, what its handler was given.
"""

from __future__ import annotations

import itertools
import re
import warnings

import torch
from torch.utils._pytree import tree_flatten, tree_map

REPETITIONS = 500  # of a call whose result differed under the guard, without it

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


class Tally:
    """What a pass over operations found, and how much it looked at."""

    def __init__(self):
        self.operations = self.samples = self.refused = 0
        self.unmade, self.differ, self.found = [], [], []
        self.unsteady = set()  # operations that do not repeat their own results

    def text(self):
        seen = f"OpInfo: {self.samples} samples of {self.operations} operations; torch refuses {self.refused}"
        lines = [f"OpInfo: no samples: {line}" for line in self.unmade]
        lines += [f"OpInfo: {name} does not repeat its own results" for name in sorted(self.unsteady)]
        return "\n".join(["", seen, *lines])


def dtypes_of(op, every, device):
    """All dtypes of the operation; or float32 where it has that, else the first by name."""
    supported = sorted(op.supported_dtypes(device), key=str)
    if every:
        return supported
    return [dtype for dtype in supported if dtype is torch.float32] or supported[:1]


def samples_of(op, dtype, tally, most, device):
    torch.manual_seed(3)
    gradient = dtype in op.supported_backward_dtypes(device)
    try:
        return list(itertools.islice(op.sample_inputs(device, dtype, requires_grad=gradient), most))
    except Exception as error:  # needs a package or a build option that is absent
        tally.unmade.append(f"{op.name} {dtype}: {type(error).__name__}")
        return []


def compare(guard, op, dtype, sample, tally):
    """Runs one sample without and with the guard."""
    guard.violations.clear()
    guard.module.set_enabled(False)
    plain = outcome(op, sample)
    guard.module.set_enabled(True)
    guarded = outcome(op, sample)
    tally.samples += 1
    tally.refused += isinstance(plain, str)
    name = f"{op.name} {op.variant_test_name} {dtype}"
    if guard.violations:
        tally.found.append(f"{name}: {guard.violations[0]['contract']} {guard.violations[0]['scan']}")
    elif not same(plain, guarded):
        # An operation that does not repeat its own result says nothing about the guard. linalg.lstsq differs
        # from itself in one call of 40, so that one repetition does not tell.
        guard.module.set_enabled(False)
        if all(same(plain, outcome(op, sample)) for _ in range(REPETITIONS)):
            tally.differ.append(name)
        else:
            tally.unsteady.add(op.name)


def sweep(guard, operations, every, most, device="cpu"):
    tally = Tally()
    warnings.simplefilter("ignore")
    for op in operations:
        if uninitialized(op):
            continue
        tally.operations += 1
        for dtype in dtypes_of(op, every, device):
            for sample in samples_of(op, dtype, tally, most, device):
                compare(guard, op, dtype, sample, tally)
    return tally


def all_operations():
    from torch.testing._internal.common_methods_invocations import op_db

    return op_db


def is_guarded(op, names):
    return op.name in names or op.name.rpartition(".")[2] in names


class Errors:
    """What came of the inputs that PyTorch's own tests expect an error for."""

    def __init__(self):
        self.ours = self.theirs = 0
        self.silent, self.words_differ, self.lost = [], [], []


def synchronize(device):
    if torch.device(device).type == "cuda":
        torch.cuda.synchronize()


def errors(guard, operations, fault, device="cpu"):
    """Trapline's, with torch's words, or torch's own; `fault` is what the guard's handler makes."""
    seen = Errors()
    warnings.simplefilter("ignore")
    for op in operations:
        if op.error_inputs_func is None:
            continue
        for case in op.error_inputs(device):
            guard.violations.clear()
            sample = case.sample_input
            try:
                op(sample.input, *sample.args, **sample.kwargs)
                synchronize(device)
            except fault:
                seen.ours += 1
                words = guard.violations[0].get("torch_says", "")
                if not re.search(case.error_regex, words):
                    seen.words_differ.append(f"{op.name}: {case.error_regex!r} is not in {words!r}")
            except Exception as error:
                seen.theirs += 1
                if guard.violations:
                    seen.lost.append(op.name)
                if not isinstance(error, case.error_type) or not re.search(case.error_regex, str(error)):
                    seen.words_differ.append(f"{op.name}: {case.error_regex!r} is not in {error!r}")
            else:
                seen.silent.append(f"{op.name}: {case.error_type.__name__} {case.error_regex!r}")
    return seen
