"""A whole process with a late device: its end, arguments above the cap, and `--on-fault skip`."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from conftest import HERE, ROOT

BEGINNING = f"""
import sys
sys.path[:0] = [{str(HERE)!r}, {str(ROOT / "python")!r}]
import conftest
import late
import torch
import torch.nn.functional as F
import trapline

trapline.install()
table = torch.arange(30.0).view(10, 3).to("cuda")
"""


@pytest.fixture
def run(tmp_path):
    def start(program, **environment):
        script = tmp_path / "program.py"
        script.write_text(BEGINNING + program, encoding="utf-8")
        return subprocess.run(
            [sys.executable, str(script)],
            env={**os.environ, "TRAPLINE_GUARD": "1", **environment},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    return start


def test_what_nobody_was_told_is_said_when_the_process_ends(run):
    done = run("""
indices = torch.tensor([1, 12]).to("cuda"), torch.tensor([13]).to("cuda")
with late.held():
    for index in indices:
        F.embedding(index, table)
print("ends")
""")
    assert (done.returncode, done.stdout) == (0, "ends\n"), done.stderr
    said = [line for line in done.stderr.splitlines() if "found when the process ended" in line]
    assert len(said) == 2
    for line, place, value in zip(said, ("[1]", "[0]"), (12, 13)):
        assert line.startswith("trapline: found when the process ended: embedding: ")
        assert f"{place} is {value}, but the table has 10 rows: valid ids are [0, 10)" in line


def test_a_process_that_was_told_says_nothing_at_its_end(run):
    done = run("""
try:
    F.embedding(torch.tensor([1, 12]).to("cuda"), table).cpu()
except trapline.DeviceAssertError as error:
    print(error.finding["element"]["value"], error.finding["contained"])
""")
    assert (done.returncode, done.stdout, done.stderr) == (0, "12 True\n", "")


ABOVE_THE_CAP = """
try:
    F.embedding(torch.tensor([1, 12]).to("cuda"), table).cpu()
except trapline.DeviceAssertError as error:
    print(error.finding["element"]["value"], error.finding["contained"], late.poisoned())
print(trapline._guard.active.adapter.info()["device"]["uncopied"])
"""


@pytest.mark.parametrize("mode", ["raise", "skip"])
def test_above_the_cap_the_report_is_the_same_and_the_context_is_lost(run, mode):
    program = (
        "weight = torch.ones(1, requires_grad=True)\ntorch.optim.SGD([weight], lr=0.1)\n" + ABOVE_THE_CAP
    )
    done = run(program, TRAPLINE_HEAL_CAP_MB="0", TRAPLINE_ON_FAULT=mode)
    # Nothing can be skipped there: the operation has had the bad value.
    assert (done.returncode, done.stdout) == (0, "12 False True\n1\n"), done.stderr


LOST = """
def told(wait):
    try:
        wait()
        return "nothing"
    except trapline.DeviceAssertError as error:
        return error.finding["element"]["value"], error.finding["contained"], late.poisoned()
    except RuntimeError as error:
        return str(error).splitlines()[0]

F.embedding(torch.tensor([1, 12]).to("cuda"), table)
late.come()
print(told(torch.cuda.synchronize if WAIT == "synchronize" else torch.cuda.default_stream().synchronize))
"""


@pytest.mark.parametrize("wait", ["synchronize", "stream"])
def test_where_the_context_is_lost_a_wait_says_why(run, wait):
    """Nothing can be asked of a lost device any more, not even whether it captures a graph."""
    done = run(f"WAIT = {wait!r}\n" + LOST, TRAPLINE_HEAL_CAP_MB="0")
    assert (done.returncode, done.stdout) == (0, "(12, False, True)\n"), done.stderr


TRAINING = """
weight = torch.randn(10, 5).to("cuda").requires_grad_()
optimizer = torch.optim.SGD([weight], lr=0.1)
changed = []
for number in range(4):
    index = torch.tensor([1, 2, 12 if number == 2 else 3]).to("cuda")
    before = weight.detach().cpu()
    loss = F.cross_entropy(F.embedding(index, weight), torch.tensor([0, 4, 1]).to("cuda"))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    changed.append(not torch.equal(before, weight.detach().cpu()))
print(changed, late.poisoned(), trapline._skip.ledger.counts()["skipped"])
"""


def test_a_bad_batch_on_the_device_is_left_out(run):
    done = run(TRAINING, TRAPLINE_ON_FAULT="skip")
    assert (done.returncode, done.stdout) == (0, "[True, True, False, True] False 1\n"), done.stderr
    said = [line for line in done.stderr.splitlines() if line.startswith("trapline: skipping this step: ")]
    assert len(said) == 1 and "embedding: input[2] is 12" in said[0]


WAITED = """
weight = torch.ones(1, requires_grad=True)
torch.optim.SGD([weight], lr=0.1)
calls = (
    lambda: torch.repeat_interleave(torch.tensor([1, 2]).to("cuda"), torch.tensor([1, -2]).to("cuda")),
    lambda: torch.ops.aten._validate_compressed_sparse_indices(
        True, torch.tensor([0, 1, 3]).to("cuda"), torch.tensor([0, 1]).to("cuda"), 2, 3, 2
    ),
)
for call in calls:
    try:
        call()
        torch.cuda.synchronize()
        print("nothing was raised")
    except trapline.DeviceAssertError as error:
        print(error.finding["element"]["value"], late.poisoned())
print(trapline._skip.ledger.counts()["skipped"])
"""


def test_what_has_no_harmless_value_is_raised_with_skip_too(run):
    done = run(WAITED, TRAPLINE_ON_FAULT="skip")
    assert (done.returncode, done.stdout) == (0, "-2 False\n3 False\n0\n"), done.stderr
