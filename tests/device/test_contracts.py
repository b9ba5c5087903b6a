"""Every bad call of the contracts table on the device: what is said of it is what is said of the same call in
host memory, it is said by a check on the device, and the context is alive afterwards."""

from __future__ import annotations

import ctypes
import re
import sys

import late
import pytest
import torch
import torch.nn.functional as F
from conftest import ROOT
from programs import Fault

sys.path.insert(0, str(ROOT / "tests" / "python"))

import conformance
from trapline._library import capi

NOT_ON_THE_CPU = "_scaled_grouped_mm"  # nothing can run it here


def violation_of(call, device):
    """What the guard said; None where it said nothing."""
    try:
        with torch.device(device):
            call()
            torch.cuda.synchronize()
    except Fault as fault:
        return fault.violation
    except NotImplementedError as refused:
        assert NOT_ON_THE_CPU in str(refused)
    except RuntimeError:
        pass  # the operation's own
    return None


def told(violation):
    scan = dict(violation["scan"])
    return violation["contract"], {name: repr(value) for name, value in scan.items()}


@pytest.mark.parametrize("call", conformance.BAD_CALLS, ids=lambda call: call.contract)
def test_it_is_said_as_in_host_memory_and_contained(guard, call):
    on_host = violation_of(call.run, "cpu")
    launches = guard.counts()["launches"]
    violation = violation_of(call.run, "cuda")
    if call.contract == "bernoulli_.p" and "late" not in violation:
        pytest.skip("the device of --cpu runs torch.bernoulli as a whole, in host memory")
    assert guard.counts()["launches"] > launches, "no check was launched"
    if NOT_ON_THE_CPU in call.contract:
        pytest.skip("the device of --cpu cannot run the operation: only that it is checked can be seen")
    assert violation is not None, "nothing was said"
    assert told(violation) == told(on_host)
    assert violation["late"] and violation["contained"]
    assert not late.poisoned()
    assert (torch.ones(2, device="cuda") + 1).tolist() == [2.0, 2.0]


def rows():
    from trapline._library import paths

    count = ctypes.c_size_t()
    table = paths.library().trapline_contracts(ctypes.byref(count))
    return {table[i].id.decode() for i in range(count.value)}


def test_the_docs_name_the_rows_that_are_not_checked_on_a_device(guard):
    checked = set()
    for contract, call in [(call.contract, call.run) for call in conformance.BAD_CALLS] + [
        ("copy_.src", lambda: torch.tensor([1.0, float("nan")]).long())
    ]:
        late.reset()
        launches = guard.counts()["launches"]
        violation_of(call, "cuda")
        if guard.counts()["launches"] > launches:
            checked.add(contract)
    text = (ROOT / "docs" / "cuda.md").read_text(encoding="utf-8")
    said = re.search(r"^Rows that are not checked on the device: (.*?)\.\n", text, re.MULTILINE | re.DOTALL)
    assert said is not None
    names = set(re.findall(r"`([^`]+)`", said[1]))
    assert names or said[1] == "none"
    assert rows() - checked == names


def test_weights_are_not_copied_to_check_where_they_are_cut(guard):
    left = torch.zeros(64, 256, dtype=torch.bfloat16, device="cuda")
    right = torch.zeros(4, 256, 256, dtype=torch.bfloat16, device="cuda")
    offs = torch.tensor([16, 32, 48, 64], dtype=torch.int32, device="cuda")
    peaks = []
    for on in (False, True):
        guard.module.set_enabled(on)
        launches = guard.counts()["launches"]
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        torch.ops.aten._grouped_mm(left, right, offs)
        torch.cuda.synchronize()
        peaks.append(torch.cuda.max_memory_allocated() - before)
        assert guard.counts()["launches"] == launches + on
    assert peaks[1] - peaks[0] < right.numel()


def captured(call):
    stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        graph.capture_begin()
        result = call()
        graph.capture_end()
    return stream, graph, result


def replayed(stream, graph):
    with torch.cuda.stream(stream):
        graph.replay()
    stream.synchronize()


def test_grouped_products_are_checked_in_a_graph(guard):
    left = torch.zeros(4, 16, dtype=torch.bfloat16, device="cuda")
    right = torch.zeros(2, 16, 16, dtype=torch.bfloat16, device="cuda")
    offs = torch.tensor([2, 4], dtype=torch.int32, device="cuda")
    stream, graph, _ = captured(lambda: torch.ops.aten._grouped_mm(left, right, offs))
    replayed(stream, graph)
    with torch.cuda.stream(stream):
        offs.copy_(torch.tensor([2, 5], dtype=torch.int32, device="cuda"))
    with pytest.raises(Fault) as fault:
        replayed(stream, graph)
    assert (fault.value.violation["contract"], fault.value.violation["scan"]["value"]) == (
        "_grouped_mm.offs",
        5,
    )
    assert not late.poisoned()


LENGTHS = {
    "list": list,
    "host": torch.tensor,
    "host int32": lambda values: torch.tensor(values, dtype=torch.int32),
    "device": lambda values: torch.tensor(values, device="cuda"),
    "device int32": lambda values: torch.tensor(values, dtype=torch.int32, device="cuda"),
    "device strided": lambda values: torch.tensor([[v, 7] for v in values], device="cuda")[:, 0],
}


@pytest.mark.parametrize("made", LENGTHS)
@pytest.mark.parametrize(
    "labels, lengths, first, bad",
    [
        ([[1, 9], [3, 9]], [2, 1], 1, 1),  # labels behind their row's length are padding, whatever they hold
        ([[1, 9], [3, 9]], [2, 2], 1, 2),
        ([[1, 8], [3, 9]], [1, 2], 3, 1),
    ],
)
def test_lengths_are_read_wherever_they_are(guard, made, labels, lengths, first, bad):
    scores, labels = torch.zeros(6, 2, 5).log_softmax(2).to("cuda"), torch.tensor(labels).to("cuda")
    given = LENGTHS[made]([6, 6]), LENGTHS[made](lengths)
    operation = torch.ctc_loss if made.startswith("host") else torch.ops.aten._ctc_loss
    violation = violation_of(lambda: operation(scores, labels, *given), "cpu")
    assert (violation["scan"]["first"], violation["scan"]["bad"]) == (first, bad)
    assert violation["late"] and not late.poisoned()


def test_a_list_of_lengths_without_padding_is_looked_at_in_a_graph(guard):
    """Nothing has to be brought to the device then, which a capture would forbid."""
    scores, labels = torch.zeros(6, 2, 5).log_softmax(2).to("cuda"), torch.tensor([[1, 2], [3, 4]]).to("cuda")
    launches = guard.counts()["launches"]
    captured(lambda: torch.ops.aten._ctc_loss(scores, labels, [6, 6], [2, 2]))
    assert guard.counts()["launches"] == launches + 1


def test_a_mask_that_takes_too_many_is_replaced_by_one_that_takes_none(guard):
    table, source = torch.arange(6.0).view(2, 3).to("cuda"), torch.full((3,), 9.0).to("cuda")
    good, bad = torch.tensor([True, False, False]).to("cuda"), torch.tensor([True, True, False]).to("cuda")
    assert table.masked_scatter(good, source).tolist() == [[9.0, 1.0, 2.0], [9.0, 4.0, 5.0]]
    result = table.masked_scatter(bad, source)
    with pytest.raises(Fault) as fault:
        result.tolist()
    scan = fault.value.violation["scan"]
    assert [scan[name] for name in ("bad", "total", "first", "hi")] == [1, 6, 1, 3]
    assert result.tolist() == table.tolist() and not late.poisoned()


def test_a_healed_mask_is_not_used_for_another_shape(guard):
    """A mask takes as many elements as it is repeated: good for one tensor, bad for the next."""
    mask = torch.tensor([True, False]).to("cuda")
    source = torch.ones(4, device="cuda", requires_grad=True)
    torch.zeros(3, 2, device="cuda").masked_scatter(mask, source).sum().item()
    wide = torch.zeros(9, 2, device="cuda").masked_scatter(mask, source)
    with pytest.raises(Fault) as fault:
        wide.sum().item()
    assert fault.value.violation["scan"]["bad"] == 5 and not late.poisoned()


def test_compressed_indices_are_said_before_the_operation_runs(guard):
    """It asserts of both together, so that no value is harmless: not even one that is in range."""
    check = torch.ops.aten._validate_compressed_sparse_indices
    rows_, columns = torch.tensor([0, 3, 3]).to("cuda"), torch.tensor([0, 5, 7]).to("cuda")
    with pytest.raises(Fault) as fault:
        check(True, rows_, columns, 2, 3, 3)
    assert fault.value.violation["contract"].endswith("plain_idx")
    assert not late.poisoned()


@pytest.mark.parametrize(
    ("rows_", "element", "value", "reason"),
    [
        ([1, 2, 3], 0, 1, capi.REASON_FIRST_NOT_ZERO),  # the first is not 0
        ([0, 3, 2, 3], 2, 2, capi.REASON_NOT_ASCENDING),  # not ascending
        ([0, 1, 4], 2, 4, capi.REASON_ABOVE),  # beyond the elements that there are
        ([0, 2, 2], 2, 2, capi.REASON_TOO_FEW),  # one element belongs to no row
        ([0, 0, 3], 2, 3, capi.REASON_TOO_MANY),  # more in a row than it has columns
        ([0] * 5000 + [2, 1, 3], 5001, 1, capi.REASON_NOT_ASCENDING),  # a row of any length
    ],
)
def test_each_invariant_of_compressed_indices_is_checked(guard, rows_, element, value, reason):
    """PyTorch asserts all of them in one kernel: `[..., 0] == 0`, `[..., -1] == nnz`, steps of 0 to `dim`."""
    check = torch.ops.aten._validate_compressed_sparse_indices
    width = 2 if reason == capi.REASON_TOO_MANY else 4
    with pytest.raises(Fault) as fault:
        check(
            True, torch.tensor(rows_).to("cuda"), torch.tensor([0, 1, 0]).to("cuda"), len(rows_) - 1, width, 3
        )
    assert fault.value.violation["contract"].endswith("compressed_idx")
    scan = fault.value.violation["scan"]
    assert (scan["first"], scan["value"], scan["reason"]) == (element, value, reason)
    assert not late.poisoned()


def test_padding_that_nobody_reads_does_no_harm(guard):
    """CUDA stops at -1, the CPU wants the whole row in range."""
    scores, target = torch.zeros(2, 3, device="cuda"), torch.tensor([[2, -1, 9], [0, -1, -7]]).to("cuda")
    loss = F.multilabel_margin_loss(scores, target)
    assert loss.item() == pytest.approx(2 / 3) and guard.violations == []
