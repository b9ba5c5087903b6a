"""Every row of the contracts table, against torch itself: A1 to A6 and A11 of the requirements."""

from __future__ import annotations

import math

import pytest
import torch
from cases import cases
from conftest import Fault

CASES = list(cases())
IDS = [case[0] for case in CASES]
# Without the guard these write outside their memory: the process would not survive.
CORRUPTS = {
    "_embedding_bag_dense_backward.indices",
    "_embedding_bag_per_sample_weights_backward.indices",
    "_segment_reduce_backward.lengths",
    "_segment_reduce_backward.offsets",
    "segment_reduce.lengths",
    "segment_reduce.offsets",
    "embedding_renorm.indices",
}


def needs(contract):
    op = contract.partition(".")[0]
    if not torch._C._jit_get_schemas_for_operator(f"aten::{op}"):
        pytest.skip(f"torch {torch.__version__} has no aten::{op}")


def flat(result):
    return [result] if isinstance(result, torch.Tensor) else list(result)


def test_every_row_has_a_case():
    import ctypes

    from trapline._library import capi, paths

    library = paths.library()
    count = ctypes.c_size_t()
    library.trapline_contracts.restype = ctypes.POINTER(capi.Contract)
    rows = library.trapline_contracts(ctypes.byref(count))
    acting = {rows[i].id.decode() for i in range(count.value) if not rows[i].remember}
    assert acting == set(IDS)


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_bad_call_raises_what_the_handler_returns(guard, case):
    contract, bad, first, value, _ = case
    needs(contract)
    with pytest.raises(Fault) as raised:
        bad()
    assert str(raised.value) == contract
    assert len(guard.violations) == 1
    violation = guard.violations[0]
    assert violation["contract"] == contract
    scan = violation["scan"]
    assert (scan["bad"], scan["first"]) == (1, first)
    if isinstance(value, float) and math.isnan(value):
        assert math.isnan(scan["value"])
    else:
        assert scan["value"] == value and type(scan["value"]) is type(value)
    offending = violation["tensor"].reshape(-1)[first].item()
    assert offending == scan["value"] or math.isnan(offending)


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_good_call_is_untouched(adapter, guard, case):
    good = case[4]
    needs(case[0])
    torch.manual_seed(1)
    try:
        guarded = flat(good())
    except NotImplementedError:
        pytest.skip("this torch has no kernel of it for the CPU")
    assert guard.calls() > 0
    adapter.set_enabled(False)
    torch.manual_seed(1)
    plain = flat(good())
    assert not guard.violations
    assert all(torch.equal(a, b) for a, b in zip(guarded, plain))


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_bad_call_is_torchs_own_affair_without_the_guard(guard, case):
    needs(case[0])
    if case[0] in CORRUPTS:
        pytest.skip("torch reads and writes out of bounds")
    guard.module.uninstall()
    try:
        case[1]()
    except Fault:
        pytest.fail("the guard is gone, but its exception came")
    except (IndexError, RuntimeError):
        pass
    assert not guard.violations
