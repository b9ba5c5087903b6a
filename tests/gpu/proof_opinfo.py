"""PyTorch's own samples of its operations (tests/guard/opinfo.py) on the device: the same bits with the
guard as without, and no finding; and the inputs that PyTorch expects an error for.

With ``--device cpu`` a few operations, to try the program.
"""

from __future__ import annotations

import sys

import proof
from proof import DEVICE, ROOT, LeftOut, case

sys.path.insert(0, str(ROOT / "tests" / "guard"))

PARTS = 4
FEW = 40  # every one of so many operations, where there is no GPU


class Fault(IndexError, RuntimeError):
    """What the handler makes."""


adapter: proof.Adapter | None = None


def guarded() -> proof.Adapter:
    global adapter
    adapter = adapter or proof.Adapter(Fault)
    return adapter


def operations() -> list:
    try:
        import opinfo
    except ImportError as missing:  # expecttest
        raise LeftOut(f"PyTorch's own samples cannot be imported: {missing}") from None
    every = opinfo.all_operations()
    return every if DEVICE.type == "cuda" else every[::FEW]


def prove(part: int) -> dict[str, int]:
    mine = operations()[part::PARTS]
    import opinfo

    names = opinfo.guarded_names(guarded().module.info()["overloads"])
    known = [op for op in mine if opinfo.is_guarded(op, names)]
    rest = [op for op in mine if not opinfo.is_guarded(op, names)]
    tallies = [
        opinfo.sweep(guarded(), known, every=True, most=3, device=DEVICE.type),
        opinfo.sweep(guarded(), rest, every=True, most=2, device=DEVICE.type),
    ]
    found = [line for tally in tallies for line in tally.found]
    differ = [line for tally in tallies for line in tally.differ]
    assert not found, found
    assert not differ, differ
    proof.usable()
    counts = {
        word: sum(getattr(tally, word) for tally in tallies) for word in ("operations", "samples", "refused")
    }
    return {
        **counts,
        "no samples": sum(len(tally.unmade) for tally in tallies),
        "of unsteady operations": sorted(name for tally in tallies for name in tally.unsteady),
    }


for number in range(PARTS):

    def part(number: int = number) -> dict[str, int]:
        return prove(number)

    part.__name__ = f"opinfo_{number + 1}_of_{PARTS}"
    case(part)


@case
def opinfo_error_inputs() -> dict[str, int]:
    every = operations()
    import opinfo

    names = opinfo.guarded_names(guarded().module.info()["overloads"])
    seen = opinfo.errors(guarded(), [op for op in every if opinfo.is_guarded(op, names)], Fault, DEVICE.type)
    assert not seen.lost, seen.lost
    assert not seen.silent, seen.silent
    assert not seen.words_differ, seen.words_differ
    proof.usable()
    return {"reported by Trapline": seen.ours, "by torch before it": seen.theirs}


if __name__ == "__main__":
    raise SystemExit(proof.main())
