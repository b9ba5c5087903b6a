"""What is not Trapline's business goes through untouched."""

from __future__ import annotations

from pathlib import Path

import e2e_runner as runner
import pytest

KEY_ERROR = """
import torch
settings = {"rate": torch.ones(2)}
print(settings["rate"].sum().item(), flush=True)
settings["momentum"]
"""

ZERO_DIVISION = """
import torch

def share(parts):
    return torch.ones(3).sum().item() / parts

share(0)
"""

NOT_OF_THE_FAMILY = """
import torch
raise RuntimeError("the simulation left the domain") from ValueError("negative pressure")
"""

HANDLED = """
import torch
import torch.nn.functional as F
try:
    F.cross_entropy(torch.zeros(2, 3), torch.tensor([0, 7]))
except IndexError as error:
    print("skipped:", error, flush=True)
"""

HANDLED_RUNTIME_ERROR = HANDLED.replace("IndexError", "RuntimeError")


@pytest.mark.parametrize(
    "text", [KEY_ERROR, ZERO_DIVISION, NOT_OF_THE_FAMILY], ids=["key", "division", "runtime"]
)
def test_other_exceptions_are_byte_identical(tmp_path: Path, text: str) -> None:
    command = [runner.PYTHON, str(runner.write_program(tmp_path / "other.py", text))]
    alone, guarded = runner.plain(command), runner.trapline([], command)
    assert alone.returncode == guarded.returncode == 1
    assert guarded.stderr == alone.stderr
    assert guarded.stdout == alone.stdout


@pytest.mark.parametrize("text", [HANDLED, HANDLED_RUNTIME_ERROR], ids=["IndexError", "RuntimeError"])
def test_a_fault_that_the_program_handles_is_told_in_short(tmp_path: Path, text: str) -> None:
    outcome = runner.trapline([], [runner.PYTHON, str(runner.write_program(tmp_path / "handled.py", text))])
    assert outcome.returncode == 0
    assert outcome.stdout.startswith("skipped: ")
    summary, words = outcome.stdout.splitlines()
    assert "target[1] is 7" in summary and words == "(PyTorch: Target 7 is out of bounds.)"
    caught, total = outcome.stderr.splitlines()
    assert caught.startswith("trapline: caught: [TL10") and "target[1] is 7" in caught
    assert "handled.py:" in caught and total.endswith("; to see it: trapline run --report DIR -- ...")


def check_only_a_note(outcome: runner.Outcome) -> None:
    """The program's stderr is complete; after a failure one line says that no guard was there to see it."""
    own, *notes = outcome.stderr.splitlines()
    assert own == "err"
    assert len(notes) == (1 if outcome.returncode else 0)
    said = "trapline: the program failed, and none of its processes was guarded"
    assert all(note.startswith(said) for note in notes)


@pytest.mark.parametrize("code", [0, 3, 255])
def test_exit_code_and_streams_of_a_program_without_torch(code: int) -> None:
    text = f"import sys; print(input()); print('err', file=sys.stderr); sys.exit({code})"
    outcome = runner.trapline([], [runner.PYTHON, "-c", text], input=b"typed\n")
    assert (outcome.returncode, outcome.stdout) == (code, "typed\n")
    check_only_a_note(outcome)


def test_a_signal_is_128_plus_its_number() -> None:
    outcome = runner.trapline([], [runner.PYTHON, "-c", "import os; os.kill(os.getpid(), 9)"])
    assert outcome.returncode == 137


def test_a_program_that_is_not_python_runs_as_it_is() -> None:
    outcome = runner.trapline([], ["sh", "-c", "echo out; echo err >&2; exit 7"])
    assert (outcome.returncode, outcome.stdout) == (7, "out\n")
    check_only_a_note(outcome)
