"""Every bad call of the conformance table goes on in skip mode; its healed argument has no bad element."""

from __future__ import annotations

import pytest
import torch
from conformance import BAD_CALLS
from trapline import DeviceAssertError
from trapline._library import capi, diagnose, heal
from trapline._skip import ledger

BY_ELEMENT = (
    capi.PREDICATE_INDEX,
    capi.PREDICATE_WRAPPED_INDEX,
    capi.PREDICATE_INDEX_LIST,
    capi.PREDICATE_UNIT_INTERVAL,
    capi.PREDICATE_NON_NEGATIVE,
)


def has_cpu_kernel(op: str) -> bool:
    name = op.partition("::")[2].partition(".")[0]
    computed = torch._C._dispatch_has_computed_kernel_for_dispatch_key
    overloads = getattr(torch.ops.aten, name).overloads()
    full = (f"aten::{name}" + ("" if one == "default" else f".{one}") for one in overloads)
    return any(torch._C._dispatch_has_kernel(one) and computed(one, "CPU") for one in full)


@pytest.mark.parametrize("call", BAD_CALLS, ids=lambda call: call.contract)
def test_bad_call_is_healed(skipping, monkeypatch, call):
    torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1)
    healed = []
    original = heal.heal

    def watched(tensor, scan, predicate):
        result = original(tensor, scan, predicate)
        healed.append((call.contract, tensor, result, scan, predicate))
        return result

    monkeypatch.setattr(heal, "heal", watched)
    if diagnose.contract(call.contract)["remember"]:
        pytest.skip("no error by itself")
    if diagnose.contract(call.contract)["heal"] == capi.HEAL_NONE:  # such as counts, which have to add up
        with pytest.raises(DeviceAssertError):
            call.run()
        return
    before = ledger.taints()
    if not has_cpu_kernel(diagnose.contract(call.contract)["op"]):
        with pytest.raises(NotImplementedError):  # PyTorch's word on the healed call
            call.run()
        assert ledger.taints() > before
        return
    call.run()
    assert ledger.taints() > before
    assert healed
    for _, tensor, result, scan, predicate in healed:
        assert result.shape == tensor.shape
        assert result.dtype == tensor.dtype
        bad = heal.bad_elements(tensor, scan, predicate)
        assert bad.any()
        still_bad = heal.bad_elements(result, scan, predicate)
        if (
            diagnose.contract(call.contract)["heal"] == capi.HEAL_ALL
        ):  # they are in order, and no element tells
            assert not result.any()
        else:
            assert not still_bad.any()
        if predicate in BY_ELEMENT:  # element by element: the good ones stay
            assert torch.equal(result[~bad], tensor[~bad])


def test_values(skipping):
    scan = {"lo": 0, "hi": 3, "also": -100}
    labels = torch.tensor([0, -100, 7, -1, 2])
    assert heal.heal(labels, scan, capi.PREDICATE_INDEX).tolist() == [0, -100, 2, 0, 2]
    probabilities = torch.tensor([[0.2, 0.8], [float("nan"), 1.0], [0.0, 0.0]])
    assert heal.heal(probabilities, {}, capi.PREDICATE_PROBABILITY_ROWS).tolist() == [
        [pytest.approx(0.2), pytest.approx(0.8)],
        [1, 1],
        [1, 1],
    ]
    unit = torch.tensor([float("nan"), -0.5, 0.25, float("inf")])
    assert heal.heal(unit, {}, capi.PREDICATE_UNIT_INTERVAL).tolist() == [0.0, 0.0, 0.25, 1.0]
    assert heal.heal(torch.tensor([0, 9, 3]), {}, capi.PREDICATE_OFFSETS).tolist() == [0, 0, 0]
    assert heal.heal(torch.tensor([1]), {"lo": 0, "hi": 0}, capi.PREDICATE_INDEX) is None
    assert heal.heal(torch.tensor([1]), {"lo": 0, "hi": 1}, 999) is None


def test_the_program_keeps_its_own_index_list(skipping):
    torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1)
    index = torch.tensor([0, 9])
    rows = torch.arange(6.0).reshape(3, 2)
    assert rows[index, torch.tensor([5, 1])].tolist() == [1.0, 5.0]
    assert index.tolist() == [0, 9]
