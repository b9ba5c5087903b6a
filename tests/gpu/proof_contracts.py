"""Every row of the contracts table: its bad call is reported exactly, and the context is usable
afterwards.
"""

from __future__ import annotations

import functools
import math
import os

import proof
import torch
from proof import conformance
from trapline._guard import active


def launches() -> int:
    return (active.info().get("device") or {}).get("launches", 0)


def leave_out(contract: str) -> None:
    if contract == "bernoulli_.p" and os.environ.get("FAKE_CUDA_KERNELS"):
        raise proof.LeftOut("the stand-in of tests/fakecuda draws these numbers as a whole in host memory")
    if contract != "_scaled_grouped_mm.offs" or torch.version.cuda is None or proof.DEVICE.type != "cuda":
        return
    capability = torch.cuda.get_device_capability()
    if capability not in ((9, 0), (10, 0)):
        major, minor = capability
        raise proof.LeftOut(f"PyTorch needs compute capability 9.0 or 10.0 for it, this is {major}.{minor}")


def element(call: conformance.BadCall) -> dict:
    leave_out(call.contract)
    before = launches()
    try:
        with torch.device(proof.DEVICE):
            finding = proof.caught(call.run)
    except NotImplementedError as refused:  # the device of --cpu
        raise proof.LeftOut(str(refused)) from None
    seen = finding["element"]
    value = seen["value"]
    # JSON has no NaN and no infinity: a finding writes them as words.
    got = float(value) if isinstance(value, (int, float)) else float(str(value).replace("Infinity", "inf"))
    assert got == call.value or (math.isnan(got) and math.isnan(call.value)), (
        f"value {value}, not {call.value}"
    )
    assert seen["bad"] == call.bad, f"{seen['bad']} bad elements, not {call.bad}"
    if torch.version.cuda is not None and proof.DEVICE.type == "cuda":
        assert launches() > before, "found, but not by a check on the device"
        assert finding.get("contained"), "found, but not contained"
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
