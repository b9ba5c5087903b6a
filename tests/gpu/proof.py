"""What every part of the GPU proof shares: the device, the guard, and how a result is written down.

A part is a program of its own (``python tests/gpu/proof_host.py --device cuda``), since a part that loses the
CUDA context must not take the others with it. It prints one JSON line a case, with ``case``, ``ok`` and
``detail``, in the order of running. ``scripts/gpu_proof.py`` runs all parts and keeps the record.

``--device cpu`` runs the same programs where there is no GPU. That proves the programs, and nothing about
a GPU.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any, Callable

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))
sys.path.insert(0, str(ROOT / "tests" / "python"))
os.environ.setdefault("TRAPLINE_BUILD_DIR", str(ROOT / "build"))

import conformance  # noqa: E402, F401 - for the parts: the path to it is set here
import torch  # noqa: E402

CASES: list[tuple[str, Callable[[], Any]]] = []


class LeftOut(Exception):
    """This case cannot run here; ``str()`` says why."""


def case(function: Callable[[], Any]) -> Callable[[], Any]:
    """Register a case. It returns a detail for the record, or raises: AssertionError when what it saw is
    wrong.
    """
    CASES.append((function.__name__, function))
    return function


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--from", dest="first", type=int, default=0, help="skip that many cases")
    return parser.parse_args()


ARGS = arguments()
DEVICE = torch.device(ARGS.device)


def guard() -> None:
    import trapline

    trapline.install()
    assert trapline.is_active(), "the guard is not active"


class Adapter:
    """The compiled guard alone: its handler keeps what it was given, and raises `fault` of it."""

    def __init__(self, fault: Callable[[dict[str, Any]], Exception]) -> None:
        from trapline._extension import compiler
        from trapline._fault.data import batches
        from trapline._guard import active, waits
        from trapline._library import paths

        self.fault = fault
        self.violations: list[dict[str, Any]] = []
        self.module = active.load(compiler.build(os.path.join(paths.build_dir(), "adapters")))
        self.module.install(self.handle)
        waits.install(self.module)
        batches.tell_each(self.module.device_batch)

    def handle(self, violation: dict[str, Any]) -> Exception:
        self.violations.append(violation)
        return self.fault(violation)


def synchronize() -> None:
    if DEVICE.type == "cuda":
        torch.cuda.synchronize()


def caught(run: Callable[[], Any]) -> dict[str, Any]:
    """The finding of a run that must fault, no later than at the next synchronization."""
    import trapline

    try:
        run()
        synchronize()
    except trapline.DeviceAssertError as error:
        return error.finding
    raise AssertionError("no fault was reported")


def usable() -> None:
    """A fresh matrix product is right: the CUDA context is alive."""
    a = torch.arange(64 * 64, dtype=torch.float32).reshape(64, 64)
    fresh = (a.to(DEVICE) @ torch.eye(64, device=DEVICE)).cpu()
    assert torch.equal(fresh, a), "a fresh matrix product is wrong"


def write(name: str, ok: bool | None, detail: Any) -> None:
    print(json.dumps({"case": name, "ok": ok, "detail": detail}), flush=True)


def lost() -> bool:
    try:
        synchronize()
        usable()
    except Exception:
        return True
    return False


def main() -> int:
    """Run the cases. Ends with 3 where the context is lost: the caller goes on behind the case that lost
    it.
    """
    failed = False
    for name, function in CASES[ARGS.first :]:
        try:
            write(name, True, function())
        except LeftOut as why:
            write(name, None, str(why))
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            where = traceback.extract_tb(error.__traceback__)[-1]
            write(
                name,
                False,
                f"{type(error).__name__}: {error} ({os.path.basename(where.filename)}:{where.lineno})",
            )
            failed = True
            if lost():
                return 3
    return 1 if failed else 0
