"""The part of ``make gpu-proof`` that goes over the contracts table, as a program of ``trapline run --cpu``
whose device is late: what it will be asked on a GPU it is asked here, and every row's answer is right."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from conftest import ROOT
from trapline._library import paths


@pytest.mark.parametrize("seed", ["0", "7"])
def test_every_contract_is_reported_and_contained(tmp_path, seed):
    trapline = os.path.join(paths.build_dir(), "bin", "trapline")
    program = [sys.executable, str(ROOT / "tests" / "gpu" / "proof_contracts.py"), "--device", "cuda"]
    done = subprocess.run(
        [trapline, "run", "--cpu", "--report", str(tmp_path), "--", *program],
        env={**os.environ, "TRAPLINE_CPU_LATE": seed, "TRAPLINE_BUILD_DIR": str(paths.build_dir())},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    cases = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"case"')]
    assert [case for case in cases if case["ok"] is False] == [], done.stderr[-2000:]
    left_out = {case["case"]: case["detail"] for case in cases if case["ok"] is None}
    assert set(left_out) == {"_scaled_grouped_mm.offs"} and "the CPU has not" in str(left_out)
    assert cases[-1]["case"] == "good_calls"
    contained = [case["detail"]["contained"] for case in cases[:-1] if case["ok"]]
    assert len(contained) > 80 and all(contained)
