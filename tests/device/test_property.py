"""Random programs on CUDA's key, over seeds. With the guard: the context is never lost, every bad
value is reported exactly once with its true origin, and no result that depends on it is read before. Without
it the same program loses the context."""

from __future__ import annotations

import os

import late
import pytest
from programs import Program, Run

SEEDS = 10_000 if os.environ.get("TRAPLINE_LONG") == "1" else 500
FIRST = int(os.environ.get("TRAPLINE_SEED", "0"))
PARTS = 20


def guarded(seed):
    program = Program(seed)
    late.reset(seed)
    run = Run(program).go()
    assert run.wrong == [], seed
    assert not run.lost and not late.poisoned(), seed
    got = sorted(report.key() for report in run.reports)
    assert got == sorted(program.expected.values()), seed
    assert run.read_too_early() == [], seed
    return program


@pytest.mark.parametrize("part", range(PARTS))
def test_programs(guard, part):
    bad = reported = 0
    for seed in range(FIRST + part, FIRST + SEEDS, PARTS):
        program = guarded(seed)
        bad += bool(program.expected)
        reported += len(program.expected)
    assert bad > 0 and reported > bad  # the programs do hold what is looked for
    assert not guard.module.device_remaining()


def test_without_the_guard_the_same_programs_lose_the_context(guard):
    guard.module.set_enabled(False)
    lost = kept = 0
    for seed in range(60):
        program = Program(seed)
        late.reset(seed)
        run = Run(program).go()
        assert run.wrong == [], seed
        assert late.poisoned() == bool(program.expected), seed
        assert run.reports == []
        lost, kept = lost + late.poisoned(), kept + (not late.poisoned())
    assert lost > 10 and kept > 10
