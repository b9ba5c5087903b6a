"""`trapline run --on-fault skip` with a compiled step: the check heals its argument, the step is left out."""

from __future__ import annotations

import json

import e2e_runner as runner
import pytest

pytest.importorskip("torch")

PROGRAM = """
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
labels = torch.randint(0, 5, (32,))
labels[13] = 9
model = torch.nn.Linear(4, 5)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
step = torch.compile(lambda x, t: F.cross_entropy(model(x), t))
for x, t in DataLoader(TensorDataset(torch.randn(32, 4), labels), batch_size=8):
    loss = step(x, t)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("finite", all(bool(p.isfinite().all()) for p in model.parameters()))
"""


def test_a_bad_batch_is_left_out(tmp_path):
    runner.TIME_LIMIT = 600
    program = runner.write_program(tmp_path / "train.py", PROGRAM)
    command = [runner.PYTHON, str(program)]
    outcome = runner.trapline(["--on-fault", "skip", "--report", tmp_path / "kept"], command, cwd=tmp_path)
    assert outcome.stdout == "finite True\n", outcome.stderr
    assert "1 of 4 optimizer steps was skipped" in outcome.stderr
    quarantined = [
        json.loads(line)
        for path in tmp_path.rglob("*quarantine*.jsonl")
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    assert [(q["dataset_index"], q["value"], q["op"]) for q in quarantined] == [(13, 9, "cross_entropy")]
