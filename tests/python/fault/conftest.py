"""Hand-made violations: what an adapter hands over, computed here with torch from the arguments of a call."""

import importlib.util
import os
import sys

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(ROOT, "python"))

if importlib.util.find_spec("torch") is None:  # scripts/test.sh says so
    collect_ignore_glob = ["test_*.py"]
else:
    import torch


def live_pairs(depth=1):
    """(code, lasti) of the caller's frames, innermost first."""
    frame, pairs = sys._getframe(depth), []
    while frame is not None:
        pairs.append((frame.f_code, frame.f_lasti))
        frame = frame.f_back
    return pairs


def make_violation(contract, tensor, lo, hi, args, also=None, frames=None, bad=None):
    """A violation of an index contract over the whole `tensor`."""
    flat = tensor.detach().flatten()
    mask = (flat < lo) | (flat >= hi) if bad is None else bad.flatten()
    if also is not None:
        mask &= flat != also
    first = int(mask.nonzero()[0])
    is_float = tensor.dtype.is_floating_point
    scan = {
        "bad": int(mask.sum()),
        "total": flat.numel(),
        "first": first,
        "value": flat[first].item(),
        "min": flat.min().item(),
        "max": flat.max().item(),
        "lo": lo,
        "hi": hi,
        "also": also,
        "list_position": None,
        "reason": 2,
        "is_float": is_float,
    }
    op = contract.split(".")[0]
    return {
        "contract": contract,
        "op": "aten::" + op,
        "overload": "",
        "scan": scan,
        "tensor": tensor,
        "args": args,
        "frames": frames if frames is not None else live_pairs(2),
        "thread": "main",
    }


def label_violation(logits, target, ignore_index=-100):
    """What cross_entropy(logits, target) shows to the guard."""
    log_probs = torch.log_softmax(logits, 1)
    args = {"self": log_probs, "target": target, "weight": None, "reduction": 1, "ignore_index": ignore_index}
    frames = live_pairs(2)
    return make_violation("nll_loss_forward.target", target, 0, logits.shape[1], args, ignore_index, frames)


def table_violation(weight, indices):
    """What embedding(indices, weight) shows to the guard."""
    args = {"weight": weight, "indices": indices, "padding_idx": -1}
    return make_violation("embedding.indices", indices, 0, weight.shape[0], args, None, live_pairs(2))


@pytest.fixture
def installed():
    """Batches of DataLoaders are remembered: `pytestmark = pytest.mark.usefixtures("installed")`."""
    import trapline._fault as fault

    fault.install()
    yield
    fault.uninstall()


@pytest.fixture
def facts_of(monkeypatch):
    """Runs the collectors on a violation and returns the facts; a failed collector fails the test."""
    from trapline._fault import violation as collector

    monkeypatch.setenv("TRAPLINE_DEBUG", "1")  # else it would not be said

    def collect(violation):
        notes = []
        facts = collector.collect(violation, notes)
        assert notes == []
        return facts

    return collect
