"""Every row of the contracts table: its bad call is reported exactly, and the context is usable
afterwards.
"""

from __future__ import annotations

import functools
import math

import proof
import torch
from proof import conformance


def element(call: conformance.BadCall) -> dict:
    with torch.device(proof.DEVICE):
        finding = proof.caught(call.run)
    seen = finding["element"]
    value = seen["value"]
    # JSON has no NaN and no infinity: a finding writes them as words.
    got = float(value) if isinstance(value, (int, float)) else float(str(value).replace("Infinity", "inf"))
    assert got == call.value or (math.isnan(got) and math.isnan(call.value)), (
        f"value {value}, not {call.value}"
    )
    assert seen["bad"] == call.bad, f"{seen['bad']} bad elements, not {call.bad}"
    proof.usable()
    return {
        "value": str(value),
        "index": seen["index"],
        "bad": seen["bad"],
        "contained": finding.get("contained"),
    }


def prepare() -> None:
    proof.guard()
    for call in conformance.BAD_CALLS:
        proof.CASES.append((call.contract, functools.partial(element, call)))

    @proof.case
    def good_calls() -> int:
        with torch.device(proof.DEVICE):
            for call in conformance.GOOD_CALLS:
                call()
        proof.synchronize()
        return len(conformance.GOOD_CALLS)


if __name__ == "__main__":
    prepare()
    raise SystemExit(proof.main())
