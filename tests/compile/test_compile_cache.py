"""Compiled code out of the cache on disk, in a second process: the checks are in it, the lines are new."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from conftest import ROOT

pytest.importorskip("torch")

PROGRAM = """
import json, sys
import torch
import torch.nn.functional as F
from torch._dynamo.utils import counters

def step(scores, labels):
    return F.cross_entropy(scores * 2, labels)

scores = torch.arange(12.0).reshape(4, 3).requires_grad_()
said = {}
try:
    torch.compile(step)(scores, torch.tensor(json.loads(sys.argv[1]))).backward()
    said["gradient"] = scores.grad.tolist()
except (IndexError, RuntimeError) as error:
    said["error"] = type(error).__name__
    finding = getattr(error, "finding", None) or {}
    said["line"] = finding.get("origin", {}).get("line")
    said["op"] = finding.get("op")
    said["code"] = finding.get("origin", {}).get("code")
said["hits"] = counters["aot_autograd"]["autograd_cache_hit"] + counters["inductor"]["fxgraph_cache_hit"]
said["misses"] = counters["inductor"]["fxgraph_cache_miss"]
print(json.dumps(said))
"""
GOOD, BAD = [0, 1, 2, 0], [0, 1, 3, 0]
LINE = PROGRAM.splitlines().index("    return F.cross_entropy(scores * 2, labels)") + 1


@pytest.fixture
def run(tmp_path):
    """Runs the program, moved down by some lines, with one cache for all runs of the test."""

    def start(labels, moved=0, **environment):
        script = tmp_path / "program.py"
        script.write_text("# moved\n" * moved + PROGRAM, encoding="utf-8")
        path = [str(ROOT / "python" / "trapline" / "startup"), str(ROOT / "python")]
        env = {k: v for k, v in os.environ.items() if not k.startswith(("TRAPLINE_O", "TRAPLINE_R"))}
        env |= {
            "PYTHONPATH": os.pathsep.join(path),
            "TRAPLINE_GUARD": "1",
            "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache"),
            **environment,
        }
        done = subprocess.run(
            [sys.executable, str(script), json.dumps(labels)],
            env=env,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    return start


def test_a_second_process_takes_the_checks_out_of_the_cache(run):
    first = run(GOOD)
    assert (first["hits"], first["misses"] > 0) == (0, True)
    moved = run(BAD, moved=7)
    assert moved["misses"] == 0 and moved["hits"] > 0  # nothing was compiled again, though all lines moved
    assert (moved["error"], moved["op"]) == ("DeviceAssertError", "cross_entropy")
    assert moved["line"] == LINE + 7
    assert moved["code"].strip() == "return F.cross_entropy(scores * 2, labels)"
    pure = run(BAD, moved=7, TRAPLINE_ADAPTER="pure")  # the same code, the check in Python
    assert (pure["misses"], pure["error"], pure["line"]) == (0, "DeviceAssertError", LINE + 7)
    without = run(BAD, TRAPLINE_OFF="1")
    assert without["misses"] > 0  # code with checks is not for a process without a guard
    assert without["error"] != "DeviceAssertError"
    assert run(GOOD, TRAPLINE_OFF="1")["gradient"] == first["gradient"]
    assert run(BAD, moved=1)["line"] == LINE + 1  # nor the other way round
