"""What a guarded operation calls is not checked again, unless the operation itself could not be checked."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import portable
import pytest
from extra_row import environment

HERE = Path(__file__).parent
ROOT = HERE.parents[1]

RUN = r"""
import os, sys
device = sys.argv.pop(1)
if device == "cuda":  # of --cpu, with late work
    os.environ.update(TRAPLINE_CPU="1", TRAPLINE_CPU_LATE="0")
sys.path[:0] = sys.argv[1:]
from trapline import _boot
if device == "cuda":
    _boot.watch_for_cpu()
import torch
if device == "cuda":
    from trapline._cpu import redirect
    redirect.install()
from conftest import Fault, Guard, load_adapter
guard = Guard(load_adapter())
try:
    labels = torch.tensor([0, 7]).to(device)
    torch.ops.aten.nll_loss(torch.zeros(2, 3, device=device), labels).item()
except Fault as fault:
    print("reported", fault)
except Exception as error:
    print("missed:", error)
else:
    print("missed")
print(sorted({call["op"] for call in guard.module.history()}))
"""


@portable.compiled_only
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_row_that_does_not_apply_does_not_switch_off_the_check_inside(tmp_path, device):
    # nll_loss decomposes into nll_loss_forward; of no call does the added row apply.
    changed = environment(
        tmp_path, "nll_loss_forward.target", id="nll_loss.target", op="aten::nll_loss", composite=1
    )
    done = subprocess.run(
        [
            sys.executable,
            "-W",
            "ignore",
            "-c",
            RUN,
            device,
            str(HERE),
            str(ROOT / "python"),
            str(ROOT / "tests" / "python"),
        ],
        env=changed,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    said, history = done.stdout.splitlines()[-2:]
    assert "'aten::nll_loss'" in history, history  # the row was taken
    assert said == "reported nll_loss_forward.target"
