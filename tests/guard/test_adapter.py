"""The adapter's own face: switching, the handler's manners, the history, remembered casts."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import textwrap
import threading

import portable
import pytest
import torch
import torch.nn.functional as F
from conftest import Fault

WEIGHT = torch.arange(30.0).view(10, 3)
GOOD = torch.tensor([1, 2])
BAD = torch.tensor([1, 12])


def bad():
    return F.embedding(BAD, WEIGHT)


def is_torchs_own(call):
    with pytest.raises(IndexError) as raised:
        call()
    return not isinstance(raised.value, Fault) and "trapline" not in str(raised.value)


def test_install_counts_overloads(guard):
    assert guard.overloads == len(guard.module.info()["overloads"]) >= 70
    assert "aten::index.Tensor" in guard.module.info()["overloads"]


def test_switching(guard):
    guard.module.set_enabled(False)
    assert is_torchs_own(bad)
    guard.module.set_enabled(True)
    with pytest.raises(Fault):
        bad()


def test_uninstall_and_install_again(guard):
    guard.module.uninstall()
    assert is_torchs_own(bad)
    guard.module.set_enabled(True)  # without hooks there is nothing to switch on
    assert not guard.module.info()["enabled"]
    guard.module.install(guard.handle)
    with pytest.raises(Fault):
        bad()


def test_second_install_replaces_the_handler(guard):
    class Other(ValueError):
        pass

    guard.module.install(lambda violation: Other())
    with pytest.raises(Other):
        bad()


def test_install_refuses_what_is_not_callable(adapter):
    with pytest.raises(TypeError, match="callable"):
        adapter.install(7)


@portable.compiled_only
def test_install_refuses_another_torch(adapter, monkeypatch):
    monkeypatch.setattr(torch, "__version__", "1.2.3+cpu")
    with pytest.raises(
        ValueError, match=r"built for torch .*, but torch 1\.2\.3\+cpu is running: rebuild"
    ) as raised:
        adapter.install(print)
    assert "\n" not in str(raised.value)


def test_the_very_object_is_raised(adapter):
    error = Fault("mine")
    adapter.install(lambda violation: error)
    try:
        with pytest.raises(Fault) as raised:
            bad()
        assert raised.value is error
    finally:
        adapter.uninstall()


def test_violation_has_all_its_parts(guard):
    with pytest.raises(Fault):
        F.cross_entropy(torch.zeros(2, 3), torch.tensor([0, 3]), ignore_index=-1)
    violation = guard.violations[0]
    assert violation["op"] == "aten::nll_loss_forward" and violation["overload"] == ""
    assert violation["scan"] == {
        "bad": 1, "total": 2, "first": 1, "value": 3, "min": 0, "max": 3, "lo": 0, "hi": 3,
        "also": -1, "list_position": None, "reason": 2, "is_float": False,
    }  # fmt: skip
    assert violation["args"]["ignore_index"] == -1 and violation["args"]["weight"] is None
    assert violation["args"]["self"].shape == (2, 3)
    assert violation["args"]["target"] is violation["tensor"]
    code, lasti = next(frame for frame in violation["frames"] if frame[0].co_filename == __file__)
    assert code.co_name == "test_violation_has_all_its_parts"
    assert 0 < lasti < len(code.co_code)


@pytest.mark.parametrize("answer", [None, "text", IndexError], ids=["none", "text", "class"])
def test_handler_that_returns_no_exception(adapter, answer):
    adapter.install(lambda violation: answer)
    try:
        with pytest.raises(IndexError, match="embedding: 1 of 2 elements of input is not valid: 12, at"):
            bad()
    finally:
        adapter.uninstall()


def test_handler_that_fails(adapter):
    adapter.install(lambda violation: 1 / 0)
    try:
        with pytest.raises(IndexError, match="the handler failed"):
            bad()
    finally:
        adapter.uninstall()


def test_handler_that_is_interrupted(adapter):
    def interrupted(violation):
        raise KeyboardInterrupt

    adapter.install(interrupted)
    try:
        with pytest.raises(KeyboardInterrupt):
            bad()
    finally:
        adapter.uninstall()


def test_handler_may_run_operations_and_uninstall(adapter):
    def handler(violation):
        tensor = violation["tensor"]
        assert tensor.min().item() == 1 and WEIGHT[GOOD].shape == (2, 3)
        try:
            bad()
        except Fault:
            raise AssertionError("the guard checked its own handler") from None
        except IndexError:
            pass
        adapter.uninstall()
        return Fault("done")

    before = len(adapter.history())
    adapter.install(handler)
    with pytest.raises(Fault, match="done"):
        bad()
    assert is_torchs_own(bad)
    assert len(adapter.history()) <= before + 1


# History ------------------------------------------------------------------------------------------


def test_history_keeps_the_last_calls(guard):
    for size in range(1, 31):
        F.embedding(torch.arange(size) % 10, WEIGHT)
    calls = guard.module.history()
    assert len(calls) == 20
    assert [call["op"] for call in calls] == ["aten::embedding"] * 20
    assert [call["args"][1]["shape"] for call in calls] == [[size] for size in range(11, 31)]
    assert calls[-1]["args"] == [
        {"name": "weight", "shape": [10, 3], "dtype": "float32", "min": None, "max": None},
        {"name": "indices", "shape": [30], "dtype": "int64", "min": 0, "max": 9},
    ]
    assert calls[-1]["frames"][0][0].co_name == "embedding"
    assert calls[-1]["frames"][1][0].co_name == "test_history_keeps_the_last_calls"


def test_history_of_an_index_list(guard):
    WEIGHT[:, GOOD]
    assert guard.module.history()[-1]["args"][1] == {
        "name": "indices[1]", "shape": [2], "dtype": "int64", "min": 1, "max": 2,
    }  # fmt: skip


def test_inner_operations_are_not_recorded(guard):
    F.embedding(GOOD, WEIGHT)  # calls index_select inside
    F.embedding(GOOD, WEIGHT)
    assert [call["op"] for call in guard.module.history()[-2:]] == ["aten::embedding"] * 2


def test_history_from_many_threads(guard):
    for _ in range(20):  # what other tests left is out of the history then
        F.embedding(GOOD, WEIGHT)
    stop = threading.Event()

    def work():
        while not stop.is_set():
            F.embedding(GOOD, WEIGHT)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(200):
            calls = guard.module.history()
            assert len(calls) <= 20
            assert {(call["op"], *call["args"][1]["shape"]) for call in calls} <= {("aten::embedding", 2)}
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert guard.module.history()


def test_forked_child_begins_a_new_history(guard):
    F.embedding(GOOD, WEIGHT)
    assert guard.module.history()
    child = os.fork()
    if child == 0:
        before = len(guard.module.history())
        F.embedding(GOOD, WEIGHT)
        os._exit(10 * before + len(guard.module.history()))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1


# Casts of NaN (A7) --------------------------------------------------------------------------------


def test_nan_cast_is_remembered(guard):
    result = torch.tensor([1.0, math.nan, math.inf]).view(3, 1).long()
    item = guard.module.remembered()[0]
    assert item["contract"] == "copy_.src"
    assert item["scan"]["bad"] == 2 and item["scan"]["first"] == 1
    assert item["storage"] == result.data_ptr()
    assert item["shape"] == [3, 1]
    assert item["frames"][0][0].co_name == "test_nan_cast_is_remembered"
    assert not guard.violations


def test_at_most_sixteen_casts_are_remembered(guard):
    for size in range(1, 21):
        torch.full((size,), math.nan).int()
    assert [item["shape"] for item in guard.module.remembered()] == [[size] for size in range(20, 4, -1)]


def test_finite_and_float_copies_are_not_remembered(guard):
    before = guard.module.remembered()
    torch.tensor([1.0, 2.0]).long()
    torch.tensor([1.0, math.nan]).double()
    torch.tensor([1.0, math.nan]).bool()
    assert len(guard.module.remembered()) == len(before)


# Life of the process ------------------------------------------------------------------------------


def test_operations_while_python_shuts_down():
    """An atexit callback that runs after the guard's own finds it off."""
    here = os.path.dirname(__file__)
    program = f"""
        import atexit, sys
        sys.path[:0] = [{here!r}, {os.path.join(here, "..", "..", "python")!r}]
        import torch, torch.nn.functional as F
        def late():
            try:
                F.embedding(torch.tensor([0, 4]), torch.ones(4, 2))
            except IndexError as error:
                print(type(error).__name__, "trapline" in str(error))
        atexit.register(late)
        from conftest import Fault, load_adapter
        load_adapter().install(lambda violation: Fault("trapline"))
        late()
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == ["Fault True", "IndexError False"]
