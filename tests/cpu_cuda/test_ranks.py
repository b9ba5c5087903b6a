"""Collectives as a window of silence (docs/guard-device.md): the fault is told by the rank that has it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("bad_rank.py")


def line_with(words):
    return next(n for n, text in enumerate(PROGRAM.read_text().splitlines(), 1) if words in text)


def ended(how, tmp_path):
    command = [os.environ["TRAPLINE_BUILD_DIR"] + "/bin/trapline", "run", "--cpu", "--format", "json", "-o"]
    command += [str(tmp_path / "report.json"), "--", sys.executable, "-m", "torch.distributed.run"]
    command += ["--standalone", "--nproc-per-node", "2", str(PROGRAM), how]
    environment = {key: value for key, value in os.environ.items() if key != "TRAPLINE_CPU_DEVICES"}
    environment["TRAPLINE_CPU_LATE"] = "1"
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    assert done.returncode == 1, done.stderr
    report = json.loads((tmp_path / "report.json").read_text())
    return done, report["findings"][0]


@pytest.mark.parametrize("how", ["reduce", "ddp"])
def test_the_rank_that_has_the_fault_tells_it(how, tmp_path):
    done, finding = ended(how, tmp_path)
    assert (finding["code"], finding["process"]["rank"]) == ("TL101", 1)
    assert (finding["element"]["value"], finding["element"]["index"]) == (7, [5])
    assert finding["origin"]["line"] == line_with("# here")
    # Neither saw its number nor trained with it. Whether rank 0 sees what it was sent depends on when rank 1
    # hears of its fault.
    assert "rank 1" not in done.stdout
    assert how == "reduce" or "rank 0" not in done.stdout
