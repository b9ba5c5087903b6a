"""torchrun: its table of failures has the finding's sentence, with `@record` and without."""

from __future__ import annotations

import json
import sys

import pytest
from conftest import TORCHRUN

SENTENCE = "cross_entropy: target[3] is 7, but `m` has 4 outputs: valid labels are [0, 4)".replace(
    "`m`", "`model`"
)
RANKS = (*TORCHRUN, "--nproc-per-node", "3", "ranks.py")


def root_cause(err: str) -> str:
    return err.split("Root Cause (first observed failure):")[1].split("=====", maxsplit=1)[0]


def test_the_table_has_the_sentence(trainers):
    done = trainers.run(sys.executable, *RANKS, "--broken")
    cause = root_cause(done.err)
    assert f"traceback : [TL101] rank 2: {SENTENCE} (ranks.py:" in cause
    assert "rank      : 2 (local_rank: 2)" in cause and "error.json" in cause
    # Those that only lost their peer are no root, and get no file of ours.
    assert done.err.count("[TL101] rank 2:") == 1
    assert done.finding["process"]["rank"] == 2 and done.finding["sample"]["dataset_index"] == 41


def test_after_install(trainers):
    done = trainers.plain(sys.executable, *RANKS, "--broken", "--install")
    assert f"traceback : [TL101] rank 2: {SENTENCE} (ranks.py:" in root_cause(done.err)
    assert "= sample:  points[41] (batch 3, row 3)\n" in done.err


def test_what_record_writes_stands(trainers):
    done = trainers.run(sys.executable, *RANKS, "--broken", "--record")
    assert f"trapline.DeviceAssertError: {SENTENCE}" in root_cause(done.err)
    assert "[TL101] rank 2:" not in root_cause(done.err)


def test_the_healthy_twin(trainers):
    plain = trainers.plain(sys.executable, *RANKS)
    guarded = trainers.run(sys.executable, *RANKS)
    assert (guarded.returncode, guarded.findings, guarded.result()) == (0, [], plain.result())


@pytest.mark.parametrize("folder", ["there", "missing"])
def test_a_file_that_is_there_is_not_touched_and_none_that_cannot_be_written_matters(trainers, folder):
    (trainers.folder / "there").mkdir()
    file = trainers.folder / folder / "error.json"
    if folder == "there":
        file.write_text("mine")
    (trainers.folder / "bad.py").write_text("import torch; torch.zeros(3)[torch.tensor([3])]")
    done = trainers.run(sys.executable, "bad.py", TORCHELASTIC_ERROR_FILE=str(file))
    assert done.finding["code"] == "TL105" and "Traceback" in done.err
    assert file.read_text() == "mine" if folder == "there" else not file.exists()


def test_the_file_is_what_torchrun_reads(trainers):
    file = trainers.folder / "error.json"
    (trainers.folder / "bad.py").write_text("import torch; torch.zeros(3)[torch.tensor([3])]")
    trainers.run(sys.executable, "bad.py", TORCHELASTIC_ERROR_FILE=str(file), RANK="1", WORLD_SIZE="2")
    told = json.loads(file.read_text())["message"]
    assert told["message"].startswith("[TL105] rank 1: x[index]: index[0] is 3")
    assert int(told["extraInfo"]["timestamp"]) > 0


def test_a_child_of_the_rank_and_a_start_under_supervision_write_none(trainers):
    file = trainers.folder / "error.json"
    (trainers.folder / "bad.py").write_text(
        "import multiprocessing, sys, torch\n"
        "def fail():\n"
        "    torch.zeros(3)[torch.tensor([3])]\n"
        "if __name__ == '__main__':\n"
        "    child = multiprocessing.get_context('spawn').Process(target=fail)\n"
        "    child.start(); child.join(); print('result', child.exitcode)\n"
        "    if len(sys.argv) > 1: fail()\n"
    )
    done = trainers.run(sys.executable, "bad.py", TORCHELASTIC_ERROR_FILE=str(file))
    assert done.result() == "result 1" and not file.exists()
    supervised = {"TORCHELASTIC_ERROR_FILE": str(file), "TRAPLINE_SUPERVISE_DIR": str(trainers.folder)}
    trainers.run(sys.executable, "bad.py", "itself", **supervised)
    assert not file.exists()
    trainers.run(sys.executable, "bad.py", "itself", TORCHELASTIC_ERROR_FILE=str(file))
    assert file.exists()
