"""The quarantine file as others leave it: of any kind, stale, or not to be written."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset
from trapline._skip import ledger, quarantine


@pytest.fixture(autouse=True)
def fresh(guard: None, skipping: object) -> None:
    quarantine._complained = False


def entries(count: int, data_set: TensorDataset) -> str:
    about = quarantine.describe(data_set)
    return "".join(json.dumps({"dataset_index": i, "dataset": about}) + "\n" for i in range(count))


@pytest.mark.parametrize("kind", ["pipe", "zero"])
def test_a_file_of_another_kind_is_refused(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = "/dev/zero" if kind == "zero" else str(tmp_path / "pipe")
    if kind == "pipe":
        os.mkfifo(path)
    quarantine.install(path)
    assert "is no regular file: name another with --quarantine FILE" in capsys.readouterr().err


def test_how_many_samples_are_left_out_is_said_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data_set = TensorDataset(torch.zeros(40, 4))
    (tmp_path / "q.jsonl").write_text(entries(40, data_set))
    quarantine.install(str(tmp_path / "q.jsonl"))
    for _ in range(2):
        assert list(DataLoader(data_set, batch_size=4)) == []
    said = [line for line in capsys.readouterr().err.splitlines() if "left out" in line]
    assert said == [f"trapline: quarantine: 40 of 40 samples left out, as {tmp_path}/q.jsonl says"]


def test_a_file_that_was_not_written_is_not_named(tmp_path: Path) -> None:
    quarantine.install(str(tmp_path / "missing" / "q.jsonl"))
    assert ledger.counts()["quarantine"] == str(tmp_path / "missing" / "q.jsonl")
    quarantine.add(TensorDataset(torch.zeros(4, 4)), [{"dataset_index": 1, "value": 9, "count": 1}], {})
    assert ledger.counts()["quarantine"] is None
