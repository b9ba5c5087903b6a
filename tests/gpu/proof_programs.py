"""Random programs on several streams and threads (tests/device/programs.py): every bad value is reported
exactly once with its true line, and the context lives. What a read may not return early only a device that is
held back can show: tests/device.
"""

from __future__ import annotations

import os
import sys

import proof
from proof import DEVICE, ROOT, LeftOut, case

sys.path.insert(0, str(ROOT / "tests" / "device"))

SEEDS = int(os.environ.get("TRAPLINE_PROOF_SEEDS", "400"))
PARTS = 4


def prove(part: int) -> dict[str, int]:
    if DEVICE.type != "cuda":
        raise LeftOut("needs CUDA")
    from programs import Fault, Program, Run

    global adapter
    adapter = adapter or proof.Adapter(Fault)
    told = bad = 0
    for seed in range(part, SEEDS, PARTS):
        program = Program(seed)
        run = Run(program).go()
        assert run.wrong == [], (seed, run.wrong)
        assert not run.lost, f"program {seed}: the context is lost"
        got = sorted(report.key() for report in run.reports)
        assert got == sorted(program.expected.values()), (seed, got, sorted(program.expected.values()))
        told, bad = told + len(got), bad + bool(got)
    assert told > bad > 0
    proof.usable()
    return {"programs": len(range(part, SEEDS, PARTS)), "with bad values": bad, "reports": told}


adapter: proof.Adapter | None = None
for number in range(PARTS):

    def part(number: int = number) -> dict[str, int]:
        return prove(number)

    part.__name__ = f"random_programs_{number + 1}_of_{PARTS}"
    case(part)

if __name__ == "__main__":
    raise SystemExit(proof.main())
