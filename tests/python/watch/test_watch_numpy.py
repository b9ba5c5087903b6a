"""Numbers that NumPy had made before PyTorch was given them: the line where it warned of that."""

from __future__ import annotations

import sys
import warnings
from types import ModuleType

import pytest

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")

from torch import nn  # noqa: E402
from trapline._fault.program import places, warned  # noqa: E402


@pytest.fixture(autouse=True)
def forgets(monkeypatch):
    """Each test begins as a program does; pytest shows no warning, so that one is not noted."""
    monkeypatch.setattr(warned, "_shown", {})
    for module in list(sys.modules.values()):
        if type(module) is ModuleType and "__warningregistry__" in vars(module):
            monkeypatch.delitem(vars(module), "__warningregistry__")
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        yield


def train(rows, targets=None):
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for at, row in enumerate(rows):
        target = torch.zeros(1, 1) if targets is None else targets[at]
        optimizer.zero_grad()
        nn.functional.mse_loss(model(row), target).backward()
        optimizer.step()


def rows(last):
    return [torch.ones(1, 2), torch.tensor([[1.0, float(last)]])]


def test_the_line_of_what_goes_into_the_model(watch):
    line = sys._getframe().f_lineno + 1
    angle = np.arccos(np.float64(1.5))
    train(rows(angle))
    seen = watch.verdict()
    assert (seen["kind"], seen["step"]) == ("input", 2)
    assert [(one["file"], one["line"], one["text"]) for one in seen["warned"]] == [
        (__file__, line, "invalid value encountered in arccos")
    ]
    assert seen["warned"][0]["code"].strip() == "angle = np.arccos(np.float64(1.5))"


def test_of_what_the_loss_was_given(watch):
    gain = np.log(np.zeros(1, dtype=np.float32))
    train(rows(1), [torch.zeros(1, 1), torch.from_numpy(gain).reshape(1, 1)])
    seen = watch.verdict()
    assert (seen["kind"], seen["what"]) == ("target", "inf")
    assert [one["text"] for one in seen["warned"]] == ["divide by zero encountered in log"]


def test_not_where_the_model_made_it(watch):
    np.log(np.zeros(1))
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for scale in (1.0, 0.0):
        optimizer.zero_grad()
        (model(torch.ones(1, 2)) * scale).log().abs().mean().backward()
        optimizer.step()
    assert "warned" not in watch.verdict()


def test_an_infinity_is_not_made_by_what_makes_nan(watch):
    np.sqrt(np.float64(-1.0))
    train(rows(float("inf")))
    seen = watch.verdict()
    assert seen["kind"] == "input" and "warned" not in seen


def test_of_many_places_none(watch):
    np.sqrt(np.float64(-1.0))
    np.log(np.float64(-1.0))
    np.arcsin(np.float64(2.0))
    train(rows(float("nan")))
    assert "warned" not in watch.verdict()


def test_the_users_line_where_a_library_ran(monkeypatch):
    monkeypatch.setattr(places, "is_library_file", lambda file: file == "frame.py")
    shown = []
    show = warned.around_show(shown.append)
    message = warnings.WarningMessage(
        RuntimeWarning("divide by zero encountered in log"), RuntimeWarning, "frame.py", 399
    )
    line = sys._getframe().f_lineno + 1
    show(message)
    assert shown == [message]
    assert [(one["file"], one["line"]) for one in warned.of_not_finite(only_inf=True)] == [(__file__, line)]


def test_what_was_noted_before_the_watch_began(monkeypatch, tmp_path):
    made = ModuleType("prep")
    made.__file__ = str(tmp_path / "prep.py")
    made.__warningregistry__ = {
        "version": 7,
        ("Mean of empty slice", RuntimeWarning, 12): True,
        ("invalid value encountered in cast", RuntimeWarning, 13): True,  # which makes whole numbers
        ("invalid value encountered in greater", RuntimeWarning, 14): True,
        ("something else", UserWarning, 15): True,
    }
    monkeypatch.setitem(sys.modules, "prep", made)
    assert [(one["file"], one["line"]) for one in warned.of_not_finite(only_inf=False)] == [
        (made.__file__, 12)
    ]


def test_a_broken_warning_is_shown_all_the_same():
    class Broken:
        category = RuntimeWarning

        @property
        def message(self):
            raise ValueError

    shown = []
    broken = Broken()
    warned.around_show(shown.append)(broken)
    assert shown == [broken]
