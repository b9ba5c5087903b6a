"""PyTorch's own samples of its operations on ``cuda``, against the same on ``cpu``: equal bits, or refused.

``python sweep.py [--samples N] [--all-dtypes] [NAME...]`` prints each difference and the shares. With
TRAPLINE_CPU_LATE it compares late work.
"""

from __future__ import annotations

import argparse
import collections
import itertools
import os
import sys
import warnings

if __name__ == "__main__":
    import conftest  # noqa: F401  puts the device there before torch is imported

import torch
from torch.utils._pytree import tree_flatten, tree_map

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "guard"))
from opinfo import bits
from trapline._cpu import backend


def moved(value, device):
    def one(tensor):
        if not isinstance(tensor, torch.Tensor):
            return tensor
        return tensor.detach().clone().to(device).requires_grad_(tensor.requires_grad)

    def any_(leaf):
        return torch.device(device) if isinstance(leaf, torch.device) else one(leaf)

    return tree_map(any_, value)


def outcome(op, sample, device):
    """All tensors that a call gives or writes, with their gradients; or the type and text of its error."""
    try:
        inputs = moved((sample.input, sample.args, sample.kwargs), device)
        if "device" in inputs[2]:
            inputs[2]["device"] = device
        torch.manual_seed(7)
        result = op(inputs[0], *inputs[1], **inputs[2])
        results = [t for t in tree_flatten(result)[0] if isinstance(t, torch.Tensor)]
        given = [t for t in tree_flatten(inputs)[0] if isinstance(t, torch.Tensor)]
        real = [t for t in results if t.requires_grad]
        wanted = [t for t in given if t.requires_grad]
        gradients = []
        if real and wanted:
            total = sum(t.abs().sum() if t.is_complex() else t.sum() for t in real)
            gradients = torch.autograd.grad(total, wanted, allow_unused=True)
        tensors = [*results, *given, *(g for g in gradients if g is not None)]
        if any(t.device.type not in (device, "cpu") for t in tensors):
            return f"results on {[str(t.device) for t in tensors]}"
        return [t.cpu() for t in tensors]
    except Exception as error:
        return f"{type(error).__name__}: {error}".partition("\n")[0]


def same(left, right):
    if isinstance(left, str) or isinstance(right, str):
        return isinstance(left, str) and isinstance(right, str)
    return len(left) == len(right) and all(bits(a, b) for a, b in zip(left, right))


def refused(text):
    return isinstance(text, str) and ("trapline: --cpu" in text or "Could not run" in text)


class Tally:
    def __init__(self):
        self.samples = self.equal = self.fail_alike = self.refused = 0
        self.differ = []
        self.names_refused = collections.Counter()

    def take(self, name, host, device):
        self.samples += 1
        if refused(device) and not isinstance(host, str):
            self.refused += 1
            self.names_refused[(name, device[:150])] += 1
        elif same(host, device):
            self.equal += 1
            self.fail_alike += isinstance(host, str)
        else:
            self.differ.append(
                (name, host if isinstance(host, str) else "-", device if isinstance(device, str) else "-")
            )

    def text(self):
        lines = [
            f"refused: {name}: {count}: {why}" for (name, why), count in sorted(self.names_refused.items())
        ]
        lines += [
            f"differs: {name}: cpu {host[:120]} / cuda {device[:200]}" for name, host, device in self.differ
        ]
        share = 100.0 * self.refused / max(self.samples, 1)
        lines.append(
            f"{self.samples} samples: {self.equal} equal ({self.fail_alike} fail on both), {self.refused} "
            f"refused by name ({share:.2f} %), {len(self.differ)} differ"
        )
        return "\n".join(lines)


# What PyTorch wants on the CPU whatever the device of the data is.
ON_THE_CPU = {"tensor_split"}
# PyTorch's own Python code that computes otherwise where it is given tensors of CUDA.
ASKS = {"nn.functional.linear_cross_entropy"}


def dtypes_of(op, every):
    """Those that CUDA has, too: what it lacks is not for this device to have."""
    supported = sorted(op.supported_dtypes("cpu") & op.supported_dtypes("cuda"), key=str)
    if every:
        return supported
    return [dtype for dtype in supported if dtype is torch.float32] or supported[:1]


def sweep(names=(), samples=5, every=False, progress=False):
    from torch.testing._internal.common_methods_invocations import op_db

    tally = Tally()
    for op in op_db:
        if (names and op.name not in names) or "empty" in op.name or op.name in ON_THE_CPU | ASKS:
            continue
        for dtype in dtypes_of(op, every):
            torch.manual_seed(3)
            gradient = dtype in op.supported_backward_dtypes("cpu")
            try:
                given = list(
                    itertools.islice(op.sample_inputs("cpu", dtype, requires_grad=gradient), samples)
                )
            except Exception as error:
                if progress:
                    print(f"no samples: {op.name} {dtype}: {error}", file=sys.stderr)
                continue
            for sample in given:
                name = f"{op.name}{'.' + op.variant_test_name if op.variant_test_name else ''} {dtype}"
                if progress:
                    print(name, file=sys.stderr, flush=True)
                tally.take(name, outcome(op, sample, "cpu"), outcome(op, sample, "cuda"))
                if backend.device.context_lost():
                    backend.device.restore_context()
    return tally


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--samples", type=int, default=5)
    parser.add_argument("--all-dtypes", action="store_true")
    parser.add_argument("--progress", action="store_true")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    os.environ.setdefault("PYTORCH_TEST_WITH_SLOW", "0")
    print(sweep(arguments.names, arguments.samples, arguments.all_dtypes, arguments.progress).text())
