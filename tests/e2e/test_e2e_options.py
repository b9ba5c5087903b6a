"""`--cpu`, `--steps`, and bad input: one line that says what to do."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import e2e_runner as runner
import pytest

STEPS = """
import torch
weights = torch.nn.Parameter(torch.ones(3))
optimizer = torch.optim.SGD([weights], lr=0.1)
for step in range(1000):
    optimizer.zero_grad()
    weights.sum().backward()
    optimizer.step()
    print("step", step, flush=True)
raise SystemExit("the whole training ran")
"""

CUDA_ONLY = """
import torch
assert torch.cuda.is_available() and torch.cuda.device_count() >= 1
x = torch.ones(2, 2, device="cuda") @ torch.eye(2).cuda()
model = torch.nn.Linear(2, 2).to(torch.device("cuda", 0)).cuda()
torch.cuda.synchronize()
print(tuple(model(x).cpu().shape), flush=True)
"""

NO_TORCH = "import sys; sys.path = [p for p in sys.path if 'packages' not in p]; import torch"


def test_steps_ends_the_program_cleanly(tmp_path: Path) -> None:
    script = runner.write_program(tmp_path / "long.py", STEPS)
    outcome = runner.trapline(["--steps", "3"], [runner.PYTHON, script])
    assert outcome.returncode == 0, outcome.stderr
    assert "step 1" in outcome.stdout
    assert "step 3" not in outcome.stdout
    assert "the whole training ran" not in outcome.stderr
    assert "Traceback" not in outcome.stderr


def test_C5_cuda_program_without_a_gpu(tmp_path: Path) -> None:
    script = runner.write_program(tmp_path / "cuda_only.py", CUDA_ONLY)
    outcome = runner.trapline(["--cpu"], [runner.PYTHON, script])
    assert (outcome.returncode, outcome.stdout) == (0, "(2, 2)\n"), outcome.stderr


def test_torch_missing_is_the_programs_own_error() -> None:
    command = [runner.PYTHON, "-c", NO_TORCH]
    alone, guarded = runner.plain(command), runner.trapline([], command)
    assert "No module named 'torch'" in alone.stderr
    assert guarded.returncode == alone.returncode == 1
    assert guarded.stderr.startswith(alone.stderr)
    assert len(guarded.trapline_lines) <= 1


def test_script_that_cannot_be_opened_is_pythons_own_error(tmp_path: Path) -> None:
    command = [runner.PYTHON, str(tmp_path / "missing.py")]
    alone, guarded = runner.plain(command), runner.trapline([], command)
    assert guarded.returncode == alone.returncode == 2
    assert guarded.stderr.startswith(alone.stderr)


@pytest.mark.parametrize(
    "arguments",
    [
        ["frobnicate"],
        ["run"],
        ["run", "--"],
        ["run", "--no-such-option", "--", "true"],
        ["run", "--steps", "many", "--", "true"],
        ["run", "--format", "poem", "--", "true"],
        ["run", "--", "no-such-program-anywhere"],
        ["run", "--report", "/dev/null/folder", "--", "true"],
        ["run", "--format", "json", "-o", "/dev/null/folder/file", "--", "true"],
    ],
    ids=" ".join,
)
def test_bad_input_is_one_line_and_exit_2(arguments: list[str]) -> None:
    done = subprocess.run(
        [str(runner.TRAPLINE), *arguments],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
        env=runner.environment(),
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 2, (done.returncode, done.stdout, done.stderr)
    lines = done.stderr.splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("trapline: ")
    assert lines[0].count(": ") >= 2  # what: why: what to do
    assert done.stdout == ""


def test_report_folder_that_vanishes_loses_nothing(tmp_path: Path) -> None:
    """The program removes the report folder: its own traceback and code stay, and the reason is said."""
    folder = tmp_path / "reports"
    text = (
        "import os, shutil, torch\n"
        f"shutil.rmtree({os.fspath(folder)!r})\n"
        "torch.arange(3)[torch.tensor([3])]\n"
    )
    script = runner.write_program(tmp_path / "remove.py", text)
    outcome = runner.trapline(["--report", folder], [runner.PYTHON, script])
    assert outcome.returncode == 1
    assert "DeviceAssertError" in outcome.stderr
    assert "error[TL105]: x[index]: index[0] is 3, but dimension 0" in outcome.stderr
    assert "cannot write" not in outcome.stderr  # it was handed over
    said = " ".join(outcome.stderr.split())
    assert "note: the report folder could not be read, and what this run's processes wrote there" in said
