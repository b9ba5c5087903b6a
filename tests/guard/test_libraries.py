"""Operations of other libraries: a row with their full name guards them, whenever they are registered."""

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
device, when = sys.argv[1:3]
if device == "cuda":  # of --cpu, with late work
    os.environ.update(TRAPLINE_CPU="1", TRAPLINE_CPU_LATE="0")
sys.path[:0] = sys.argv[3:]
from trapline import _boot
if device == "cuda":
    _boot.watch_for_cpu()
import torch
if device == "cuda":
    from trapline._cpu import redirect
    redirect.install()
from conftest import Fault, Guard, load_adapter

def register():
    library = torch.library.Library("their_library", "DEF")
    library.define("lookup(Tensor weight, Tensor indices) -> Tensor")
    def lookup(weight, indices):
        return weight.index_select(0, indices)
    library.impl("lookup", lookup, "CPU")
    library.impl("lookup", lookup, "CUDA")
    return library

if when == "before":
    library = register()
guard = Guard(load_adapter())
if when == "after":
    library = register()
    torch.nn.functional.embedding(torch.tensor([0]), torch.eye(3))  # a guarded call, and a good one
try:
    ids = torch.tensor([1, 3], device=device)
    torch.ops.their_library.lookup(torch.eye(3, device=device), ids).sum().item()
except Fault as fault:
    seen = guard.violations[-1]
    print("reported", fault, seen["op"], seen["scan"]["value"])
else:
    print("missed")
print("their_library::lookup" in guard.module.info()["overloads"])
"""


@portable.compiled_only
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_an_operation_of_another_library_is_a_row(tmp_path, device, when):
    # What makes the verdict is found by the row's id.
    changed = environment(tmp_path, "embedding.indices", op="their_library::lookup")
    folders = [str(HERE), str(ROOT / "python"), str(ROOT / "tests" / "python")]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", RUN, device, when, *folders],
        env=changed,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-2:] == ["reported embedding.indices their_library::lookup 3", "True"]
