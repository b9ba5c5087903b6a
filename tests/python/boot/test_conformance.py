"""All three guards catch every bad call of the table, leave the good ones alone, and describe them alike."""

from __future__ import annotations

import ctypes
import math

import pytest

torch = pytest.importorskip("torch")

import conformance  # noqa: E402
import portable  # noqa: E402


class Caught(IndexError, RuntimeError):
    def __init__(self, violation):
        super().__init__(violation["contract"])
        self.violation = violation


def _load(kind):
    from trapline._extension import compiler
    from trapline._library import paths

    if kind == "pure":
        from trapline._guard import pure

        return pure
    if kind == "kernel":
        return portable.Portable()
    from trapline._guard import active

    path = f"{paths.build_dir()}/adapters/{compiler.adapter_name()}"
    return active.load(path)


@pytest.fixture(params=["pure", "kernel", "native"])
def adapter(request, library, monkeypatch):
    """An adapter whose handler hands back the violation."""
    monkeypatch.setenv("TRAPLINE_LIB", str(library))
    try:
        module = _load(request.param)
    except FileNotFoundError:
        pytest.skip("the build has no compiled adapter for this torch")
    module.install(Caught)
    yield module
    module.uninstall()


def _contract_ids():
    from trapline._library import paths

    count = ctypes.c_size_t()
    rows = paths.library().trapline_contracts(ctypes.byref(count))
    return {rows[i].id.decode(): bool(rows[i].remember) for i in range(count.value)}


@pytest.mark.parametrize("call", conformance.BAD_CALLS, ids=lambda call: call.contract)
def test_bad_call_is_caught(adapter, call):
    with pytest.raises(Caught) as caught:
        call.run()
    violation = caught.value.violation
    scan = violation["scan"]
    assert violation["contract"] == call.contract
    same_value = math.isnan(scan["value"]) if math.isnan(call.value) else scan["value"] == call.value
    assert same_value, scan
    assert (scan["first"], scan["bad"]) == (call.first, call.bad)
    assert isinstance(violation["tensor"], torch.Tensor)
    assert violation["op"].startswith("aten::")
    assert call.contract.rpartition(".")[2] in violation["args"]
    files = [code.co_filename for code, _ in violation["frames"]]
    assert conformance.__file__ in files
    assert not any(file.endswith("pure.py") for file in files)
    assert all(isinstance(lasti, int) for _, lasti in violation["frames"])


def test_every_row_has_a_bad_call(library, monkeypatch):
    monkeypatch.setenv("TRAPLINE_LIB", str(library))
    wanted = {row for row, remembers in _contract_ids().items() if not remembers}
    assert wanted == {call.contract for call in conformance.BAD_CALLS}


@pytest.mark.parametrize("number", range(len(conformance.GOOD_CALLS)))
def test_good_call_passes(adapter, number, recwarn):
    conformance.GOOD_CALLS[number]()
    assert [str(w.message) for w in recwarn.list] == []


def test_gradients_are_those_without_guard(adapter):
    def step():
        torch.manual_seed(0)
        table = torch.nn.Embedding(10, 4)
        loss = torch.nn.functional.cross_entropy(table(torch.tensor([1, 2, 3])), torch.tensor([0, 3, 1]))
        loss.backward()
        return loss.detach(), table.weight.grad

    with_guard = step()
    adapter.set_enabled(False)
    without = step()
    assert all(torch.equal(a, b) for a, b in zip(with_guard, without))


def test_inference_mode_is_guarded(adapter):
    with torch.inference_mode(), pytest.raises(Caught):
        torch.nn.functional.one_hot(torch.tensor([5]), 3)


def test_switch(adapter):
    x, bad = torch.zeros(3), torch.tensor([3])
    adapter.set_enabled(False)
    with pytest.raises(IndexError) as plain:
        x[bad]
    assert not isinstance(plain.value, Caught)
    adapter.set_enabled(True)
    with pytest.raises(Caught):
        x[bad]
    adapter.uninstall()
    with pytest.raises(IndexError) as plain:
        x[bad]
    assert not isinstance(plain.value, Caught)
    assert adapter.install(Caught) > 50


def test_history_is_a_ring_of_guarded_calls(adapter):
    torch.zeros(4).take(torch.tensor([0]))
    for _ in range(25):
        torch.nn.functional.embedding(torch.tensor([[1, 2]]), torch.zeros(10, 2))
    torch.zeros(3) + 1
    calls = adapter.history()
    assert [call["op"] for call in calls] == ["aten::embedding"] * 20
    args = {arg["name"]: arg for arg in calls[-1]["args"]}
    assert args["indices"] == {"name": "indices", "shape": [1, 2], "dtype": "int64", "min": 1, "max": 2}
    assert args["weight"]["shape"] == [10, 2]
    assert calls[-1]["frames"][-1][0].co_filename


def test_nan_cast_is_remembered_not_raised(adapter):
    result = torch.tensor([1.0, math.nan]).long()
    newest = adapter.remembered()[0]
    assert newest["contract"] == "copy_.src"
    assert newest["storage"] == result.untyped_storage().data_ptr()
    assert (newest["shape"], newest["scan"]["first"], newest["scan"]["bad"]) == ([2], 1, 1)
    assert any(code.co_filename == __file__ for code, _ in newest["frames"])


def test_other_backends_are_left_alone(adapter):
    index = torch.tensor([5], device="meta")
    assert torch.zeros(3, device="meta").index_select(0, index).shape == (1,)


def test_a_handler_that_fails_still_stops_the_operation(adapter):
    def broken(violation):
        raise ValueError("not this one")

    adapter.install(broken)
    with pytest.raises(IndexError):
        torch.zeros(3).take(torch.tensor([7]))


def test_operations_inside_the_handler_are_not_checked(adapter):
    seen = []

    def handler(violation):
        seen.append(violation["contract"])
        violation["tensor"].new_zeros(3)[:2].long()
        return Caught(violation)

    adapter.install(handler)
    with pytest.raises(Caught):
        torch.zeros(3).take(torch.tensor([7]))
    assert seen == ["take.index"]
