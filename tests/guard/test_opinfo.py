"""PyTorch's own samples of its operations: bit-identical results with the guard on, and no finding.

`make test` takes a few samples of each; `TRAPLINE_LONG=1` takes all samples of all dtypes.
"""

from __future__ import annotations

import os

import pytest
from conftest import Fault

pytest.importorskip("expecttest", reason="PyTorch's own test library needs expecttest")

from opinfo import all_operations, errors, guarded_names, is_guarded, sweep

LONG = os.environ.get("TRAPLINE_LONG") == "1"


def test_guarded_operations_are_untouched(guard, capsys):
    """All dtypes of every operation that arrives at a hook."""
    names = guarded_names(guard.module.info()["overloads"])
    operations = [op for op in all_operations() if is_guarded(op, names)]
    tally = sweep(guard, operations, every=True, most=None if LONG else 3)
    with capsys.disabled():
        print(tally.text())
    assert tally.samples > 1000
    assert not tally.found
    assert not tally.differ


def test_all_operations_are_untouched(guard, capsys):
    """Every operation that PyTorch describes; all its dtypes and samples only with TRAPLINE_LONG=1."""
    names = guarded_names(guard.module.info()["overloads"])
    rest = [op for op in all_operations() if not is_guarded(op, names)]
    tally = sweep(guard, rest, every=LONG, most=None if LONG else 2)
    with capsys.disabled():
        print(tally.text())
    assert tally.operations > 300
    assert not tally.found
    assert not tally.differ


def test_error_inputs_are_reported(guard, capsys):
    """What PyTorch's own tests expect an error for: Trapline's with torch's words, or torch's own."""
    names = guarded_names(guard.module.info()["overloads"])
    seen = errors(guard, [op for op in all_operations() if is_guarded(op, names)], Fault)
    with capsys.disabled():
        print(f"\nOpInfo: error inputs: {seen.ours} reported by Trapline, {seen.theirs} by torch before it")
    assert seen.ours > 5
    assert seen.theirs > 30
    assert not seen.lost
    assert not seen.silent
    assert not seen.words_differ
