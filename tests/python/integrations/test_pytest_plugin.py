"""``pytest --trapline``: a fault shows its finding, an expected error stays one, and silence otherwise."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
import textwrap

import pytest

TESTS = """\
import pytest, torch
from torch import nn
from torch.nn import functional as F

def test_good():
    assert F.cross_entropy(torch.zeros(4, 3), torch.tensor([0, 1, 2, 0])) > 0

def test_expected():
    with pytest.raises(IndexError, match="out of bounds"):
        F.cross_entropy(torch.zeros(4, 3), torch.tensor([0, 1, 3, 0]))

def test_label():
    model = nn.Linear(5, 3)
    labels = torch.tensor([0, 1, 7, 2])
    F.cross_entropy(model(torch.zeros(4, 5)), labels)

def test_shapes():
    nn.Linear(5, 3)(torch.zeros(4, 7))

def test_assertion():
    assert 1 == 2

@pytest.mark.trapline(off=True)
def test_off():
    with pytest.raises(IndexError) as caught:
        F.cross_entropy(torch.zeros(4, 3), torch.tensor([0, 1, 3, 0]))
    assert caught.type is IndexError

def test_on_again():
    with pytest.raises(IndexError) as caught:
        F.cross_entropy(torch.zeros(4, 3), torch.tensor([0, 1, 3, 0]))
    assert caught.type.__name__ == "DeviceAssertError"

@pytest.fixture
def broken():
    return nn.Embedding(4, 2)(torch.tensor([1, 4]))

def test_fixture(broken):
    pass
"""
PLUGIN = ("-m", "pytest", "-p", "trapline.pytest_plugin", "-p", "no:cacheprovider", "-p", "no:xdist")


@pytest.fixture
def pytest_of(trainers):
    (trainers.folder / "test_it.py").write_text(TESTS)

    def run(*options, plugin=PLUGIN):
        return trainers.plain(sys.executable, *plugin, *options, "test_it.py", TRAPLINE_REPORT_DIR="")

    return run


def section(out: str, test: str) -> str:
    """What pytest prints of one test."""
    return re.split(r"^[_=]{5,}.*", out.split(f" {test} _", 1)[1].split("\n", 1)[1], flags=re.M)[0]


def test_a_fault_shows_the_finding_in_the_tracebacks_place(pytest_of):
    done = pytest_of("--trapline")
    label = section(done.out, "test_label")
    assert label.startswith("error[TL101]: cross_entropy: target[2] is 7, but `model` has 3 outputs")
    assert "--> test_it.py:15 in test_label" in label and "help: " in label
    assert "functional.py" not in label and len(label.splitlines()) < 25
    assert section(done.out, "test_shapes").startswith("error[TL201]: linear: ")
    assert "error[TL103]: embedding: input[1] is 4" in section(done.out, "ERROR at setup of test_fixture")
    assert "assert 1 == 2" in section(done.out, "test_assertion")
    assert "FAILED test_it.py::test_label - trapline.DeviceAssertError: cross_" in done.out
    assert "3 failed, 4 passed, 1 error" in done.out
    assert done.err == ""


def test_an_asked_for_traceback_stays(pytest_of):
    label = section(pytest_of("--trapline", "--tb=long").out, "test_label")
    assert "functional.py" in label
    assert "error[TL101]: cross_entropy: target[2] is 7" in label.split("- trapline -")[1]


@pytest.mark.parametrize("options", [("--trapline",), ("--trapline", "-s")])
def test_tests_that_pass_print_nothing(pytest_of, options):
    done = pytest_of(*options, "-q", "-k", "good or expected or off")
    assert re.fullmatch(r"\.\.\.\s+(\[100%\]\n)?3 passed, 5 deselected in .*\n", done.out)
    assert (done.err, done.returncode) == ("", 0)


def test_reports_of_tests_that_fail_are_written(pytest_of, trainers):
    pytest_of("--trapline-report", "found/here")
    reports = [json.loads(path.read_text()) for path in (trainers.folder / "found" / "here").glob("*.json")]
    told = {(report["findings"][0]["code"], report["notes"][0]) for report in reports}
    assert told == {
        ("TL101", "the test is test_it.py::test_label"),
        ("TL201", "the test is test_it.py::test_shapes"),
        ("TL103", "the test is test_it.py::test_fixture"),
    }


def test_without_the_option_nothing_is_different(pytest_of):
    done = pytest_of()
    assert "IndexError: Target 7 is out of bounds." in section(done.out, "test_label")
    assert "4 failed, 3 passed, 1 error" in done.out  # test_on_again wants the guard
    assert "trapline" not in done.err
    code = "import sys, trapline.pytest_plugin; print([m for m in sys.modules if m in ('torch', 'ctypes')])"
    assert pytest_of(plugin=("-c", code)).out.strip() == "[]"


@pytest.mark.skipif(importlib.util.find_spec("xdist") is None, reason="pytest-xdist is not here")
def test_under_xdist(pytest_of, trainers):
    plugin = tuple(word for word in PLUGIN if word != "no:xdist")[:-1]
    done = pytest_of("--trapline", "--trapline-report", "found", "-n", "2", plugin=plugin)
    assert "error[TL101]: cross_entropy: target[2] is 7" in section(done.out, "test_label")
    assert "3 failed, 4 passed, 1 error" in done.out
    assert len(list((trainers.folder / "found").glob("*.json"))) == 3


def test_a_guard_that_cannot_be_is_one_clear_line(pytest_of, trainers):
    done = trainers.plain(
        sys.executable, *PLUGIN, "--trapline", "test_it.py", TRAPLINE_LIB="/nowhere/libtrapline.so"
    )
    assert done.returncode == 4 and re.search(r"^ERROR: --trapline: trapline: .*nowhere", done.err, re.M)


def test_torch_that_a_marked_test_imports_is_not_guarded(trainers):
    text = """\
    import pytest

    @pytest.mark.trapline(off=True)
    def test_off():
        import torch
        with pytest.raises(IndexError) as caught:
            torch.zeros(3)[torch.tensor([3])]
        assert caught.type is IndexError

    def test_on():
        import torch
        with pytest.raises(IndexError) as caught:
            torch.zeros(3)[torch.tensor([3])]
        assert caught.type.__name__ == "DeviceAssertError"
    """
    (trainers.folder / "test_it.py").write_text(textwrap.dedent(text))
    assert "2 passed" in trainers.plain(sys.executable, *PLUGIN, "--trapline", "-q", "test_it.py").out


def test_a_fault_while_tests_are_collected(trainers):
    (trainers.folder / "test_it.py").write_text("import torch\nX = torch.zeros(3)[torch.tensor([3])]\n")
    out = trainers.plain(sys.executable, *PLUGIN, "--trapline", "-q", "test_it.py").out
    assert "error[TL105]: x[index]: index[0] is 3" in out and "--> test_it.py:2" in out


def test_a_unittest(trainers):
    text = """\
    import unittest, torch

    class TestIt(unittest.TestCase):
        def test_bad(self):
            torch.zeros(3)[torch.tensor([3])]

        def test_expected(self):
            with self.assertRaises(IndexError):
                torch.zeros(3)[torch.tensor([4])]
    """
    (trainers.folder / "test_it.py").write_text(textwrap.dedent(text))
    out = trainers.plain(sys.executable, *PLUGIN, "--trapline", "-q", "test_it.py").out
    assert "error[TL105]: x[index]: index[0] is 3" in out and "1 failed, 1 passed" in out
