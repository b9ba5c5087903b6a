"""The watch where losses are on a device: read late, and only a NaN that a step was taken with is a fault."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT

sys.path.append(str(ROOT / "tests" / "e2e"))
pytest.importorskip("jsonschema")

import e2e_runner as runner

TRAINING = """
import copy, sys
import torch

torch.manual_seed(0)
how = sys.argv[1]
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
kept = copy.deepcopy(model.state_dict())
for step in range(1, 41):
    y = model(torch.randn(16, 4, device="cuda"))
    loss = (y**2).mean()
    if step == 25 and how in ("division", "left out", "restored", "later"):
        loss = y.sum() / (y * 0).sum() * 0
    if step == 25 and how == "sqrt":
        loss = (y * 0).sqrt().mean()
    optimizer.zero_grad()
    loss.backward()
    if how == "left out" and not torch.isfinite(loss):
        continue
    optimizer.step()
    if how == "restored" and step == 30:
        model.load_state_dict(kept)
    if how == "later" and step == 30:
        torch.multinomial(torch.softmax(model(torch.randn(2, 4, device="cuda")), dim=-1), 1)
print("done")
"""


def _run(tmp_path: Path, how: str, late: bool = False, options: tuple[str, ...] = ()) -> Any:
    (tmp_path / "training.py").write_text(TRAINING, encoding="utf-8")
    environment = runner.environment(**({"TRAPLINE_CPU_LATE": "1"} if late else {}))
    command = [runner.PYTHON, str(tmp_path / "training.py"), how]
    return runner.trapline_json(tmp_path, command, ["--cpu", *options], environment)


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize(
    ("how", "place"),
    [
        ("division", "the first NaN that was noticed was in step 25; its place was not found"),
        ("sqrt", "the first NaN that was noticed was in the gradients of step 25: its loss was finite"),
    ],
)
def test_the_step_is_told(tmp_path: Path, late: bool, how: str, place: str) -> None:
    outcome = _run(tmp_path, how, late)
    assert (outcome.returncode, outcome.stdout) == (0, "done\n"), outcome.stderr
    (finding,) = outcome.report["findings"]
    assert (finding["code"], finding["certainty"], finding["summary"]) == ("TL109", "likely", place)
    assert "--watch nan" in finding["fix"][0]
    steps = finding["last_steps"]
    assert [row["step"] for row in steps] == list(range(1, 26))
    assert (steps[-1]["loss"] == "nan") == (how == "division") and all(row["loss"] > 0 for row in steps[:-1])


@pytest.mark.parametrize("how", ["good", "left out", "restored"])
def test_what_the_program_has_mended_is_no_fault(tmp_path: Path, how: str) -> None:
    outcome = _run(tmp_path, how)
    assert (outcome.returncode, outcome.stdout) == (0, "done\n"), outcome.stderr
    assert outcome.report["findings"] == []


def test_a_later_fault_tells_the_step(tmp_path: Path) -> None:
    outcome = _run(tmp_path, "later")
    (finding,) = outcome.report["findings"]
    assert finding["cause"] == "invalid_probability"
    assert [e["text"] for e in finding["evidence"] if e["source"] == "watch"] == [
        "the first NaN that was noticed was in step 25; its place was not found"
    ]


LONG = """
import torch
from trapline._watch import light

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
watch, counted, gradients = light._light, [], []
fetches = watch.device._late._fetches
def fetch(value, step, kind, began):
    gradients.extend([step] if kind == "gradient" else [])
    fetches(value, step, kind, began)
watch.device._late._fetches = fetch
for step in range(1, 401):
    if step in (100, 300):  # it is time for a look
        watch.catches_up()
        watch.device._late._next = 0.0
    y = model(torch.randn(16, 4, device="cuda"))
    loss = (y**2).mean() if step < 300 else (y * 0).sqrt().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    torch.cuda.synchronize()  # what was looked at has arrived
    counted.append(watch.hot.armed)
watch.catches_up()
print(watch.steps.taken, sum(counted[:99]), counted[100:299].count(False), gradients[32:])
"""


def test_most_steps_are_only_counted(tmp_path: Path) -> None:
    """In C, between two looks, which are at the loss and at a gradient."""
    (tmp_path / "long.py").write_text(LONG, encoding="utf-8")
    outcome = runner.trapline_json(tmp_path, [runner.PYTHON, str(tmp_path / "long.py")], ["--cpu"])
    assert outcome.stdout == "300 67 0 [100, 300]\n", outcome.stdout + outcome.stderr
    (finding,) = outcome.report["findings"]
    assert finding["code"] == "TL109" and finding["last_steps"][-1]["step"] == 300


FAULT = """
import time
import torch
logits = torch.zeros(4, 3, device="cuda", requires_grad=True)
loss = torch.nn.functional.cross_entropy(logits, torch.tensor([0, 1, 7, 2], device="cuda"))
time.sleep(0.3)
loss.backward()
"""


def test_a_fault_that_the_watch_meets_is_raised_by_the_backward_call(tmp_path: Path) -> None:
    (tmp_path / "fault.py").write_text(FAULT, encoding="utf-8")
    environment = runner.environment(TRAPLINE_CPU_LATE="1")
    outcome = runner.trapline_json(
        tmp_path, [runner.PYTHON, str(tmp_path / "fault.py")], ["--cpu"], environment
    )
    assert outcome.report["findings"][0]["surfaced"]["code"] == "loss.backward()", outcome.stderr
    assert "in backward" in outcome.stderr and "late.py" not in outcome.stderr, outcome.stderr


def test_nothing_is_watched_where_it_is_off(tmp_path: Path) -> None:
    assert _run(tmp_path, "division", options=("--watch", "off")).report["findings"] == []


BETWEEN = """
import sys
import torch
from trapline._watch import light

torch.manual_seed(0)
how = sys.argv[1]
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)).cuda()
if how == "on purpose":
    model.unused = torch.nn.Parameter(torch.full((3,), torch.nan, device="cuda"))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.5)
for step in range(1, 121):
    y = model(torch.randn(16, 4, device="cuda"))
    loss = (y**2).mean() if how != "division" or step != 110 else y.sum() / (y * 0).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step == 40:
        light._light.catches_up()
        light._light.device._late._next = 1e18  # no look is due for the rest of the run
print("done", light._light.hot.armed)
"""


@pytest.mark.parametrize("how", ["division", "good", "on purpose"])
def test_the_weights_are_looked_at_when_the_run_ends(tmp_path: Path, how: str) -> None:
    (tmp_path / "between.py").write_text(BETWEEN, encoding="utf-8")
    command = [runner.PYTHON, str(tmp_path / "between.py"), how]
    outcome = runner.trapline_json(tmp_path, command, ["--cpu"], runner.environment(TRAPLINE_CPU_LATE="1"))
    assert (outcome.returncode, outcome.stdout) == (0, "done True\n"), outcome.stderr
    told = [(found["certainty"], found["summary"]) for found in outcome.report["findings"]]
    at = "in step 120 or before it, in the gradient or the update of layer 0.weight"
    place = f"the first NaN of this run was {at}"
    assert told == ([("likely", place)] if how == "division" else [])


DATA = """
import sys
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
how, accumulate = sys.argv[1], 2
x, y = torch.randn(320, 4), torch.randn(320, 1)
if how != "good":
    x[216 if how == "first half" else 221, 2] = torch.nan
if how == "left out":  # of an earlier batch, which the program mends itself
    x[18, 1] = torch.nan
    x[221, 2] = 1.0
data = TensorDataset(x, y)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for number, (some, wanted) in enumerate(DataLoader(data, batch_size=4)):
    some, wanted = some.nan_to_num().cuda() if number == 4 else some.cuda(), wanted.cuda()
    loss = torch.nn.functional.mse_loss(model(some), wanted)
    if how == "left out" and number == 9:
        from trapline._watch import light
        light._light.device._drawn.clear()  # as if the steps before had only been counted
        loss = loss / 0.0
    loss.backward()
    if number % accumulate:
        optimizer.step()
        optimizer.zero_grad()
print("done")
"""


@pytest.mark.parametrize(("how", "sample"), [("first half", 216), ("second half", 221), ("good", None)])
def test_the_data_of_the_step_are_told(tmp_path: Path, how: str, sample: int | None) -> None:
    (tmp_path / "data.py").write_text(DATA, encoding="utf-8")
    command = [runner.PYTHON, str(tmp_path / "data.py"), how]
    outcome = runner.trapline_json(tmp_path, command, ["--cpu"], runner.environment(TRAPLINE_CPU_LATE="1"))
    assert (outcome.returncode, outcome.stdout) == (0, "done\n"), outcome.stderr
    told = [
        (found["certainty"], found["summary"], found["sample"]["dataset_index"])
        for found in outcome.report["findings"]
    ]
    place = "the first NaN of this run was in step 28, in the data"
    assert told == ([("likely", place, sample)] if sample else [])


def test_the_data_of_another_step_are_not_to_blame(tmp_path: Path) -> None:
    (tmp_path / "data.py").write_text(DATA, encoding="utf-8")
    command = [runner.PYTHON, str(tmp_path / "data.py"), "left out"]
    outcome = runner.trapline_json(tmp_path, command, ["--cpu"], runner.environment(TRAPLINE_CPU_LATE="1"))
    (finding,) = outcome.report["findings"]
    assert "sample" not in finding and "the data" not in finding["summary"], finding["summary"]
