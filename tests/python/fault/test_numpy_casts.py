"""NumPy's warning about a cast is evidence for an index that a NaN became."""

import sys
from types import ModuleType

import pytest
from trapline._fault.data import casts

LOWEST = -(1 << 63)
WARNED = ("invalid value encountered in cast", RuntimeWarning, 4)


@pytest.fixture
def warned(monkeypatch, tmp_path):
    def module(name, *keys):
        made = ModuleType(name)
        made.__file__ = str(tmp_path / f"{name}.py")
        made.__warningregistry__ = {"version": 7, **dict.fromkeys(keys, True)}
        monkeypatch.setitem(sys.modules, name, made)
        return made.__file__

    return module


def test_the_place_where_numpy_warned(warned):
    file = warned("prep", WARNED)
    found = casts.numpy_cast_facts({"value": LOWEST})
    assert (found["file"], found["line"]) == (file, 4)
    assert casts.numpy_cast_facts({"value": LOWEST + 3})["line"] == 4  # something was added
    assert casts.numpy_cast_facts({"value": -(1 << 31)})["line"] == 4


def test_values_that_no_nan_became(warned):
    warned("prep", WARNED)
    assert casts.numpy_cast_facts({"value": 7}) is None
    assert casts.numpy_cast_facts({"value": -1}) is None
    assert casts.numpy_cast_facts({"value": float("nan"), "is_float": True}) is None


def test_other_warnings_and_several_places(warned):
    warned("prep", ("divide by zero encountered in divide", RuntimeWarning, 3))
    assert casts.numpy_cast_facts({"value": LOWEST}) is None
    warned("prep", WARNED)
    warned("other", WARNED)
    assert casts.numpy_cast_facts({"value": LOWEST}) is None


def test_numpy_itself_leaves_the_note(guarded):
    pytest.importorskip("torch")
    pytest.importorskip("numpy")
    guarded.script(
        "program.py",
        """
        import numpy as np
        import torch
        raw = np.array([0.0, np.nan])
        codes = raw.astype(np.int64)
        torch.nn.functional.cross_entropy(torch.rand(2, 3), torch.from_numpy(codes))
        """,
    )
    ended = guarded.run("program.py")
    assert ended.returncode == 1
    text = next(guarded.reports.glob("finding-*.json")).read_text(encoding="utf-8")
    assert "NumPy warned of an invalid value in the cast in program.py:5" in text
