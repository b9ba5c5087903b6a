"""Accelerate: the sample whatever its loaders do, and the steps of a loop of one's own."""

from __future__ import annotations

import pytest
from conftest import TORCHRUN, need


@pytest.fixture
def python():
    return need("accelerate")


# Where the batch stands in its epoch; a loop that goes on after three batches is at the same place.
@pytest.mark.parametrize(("mode", "batch"), [("train", 8), ("skip", 8), ("accumulate", 8)])
def test_sample_under_shuffling(trainers, python, mode, batch):
    found = trainers.run(python, "accelerate_loop.py", mode, "--broken").finding
    assert found["sample"]["dataset_index"] == 71
    assert found["sample"]["batch"] == batch
    assert "progress" not in found


@pytest.mark.parametrize(("mode", "step"), [("train", 8), ("accumulate", 4), ("skip", 8)])
def test_follow_counts_the_steps(trainers, python, mode, step):
    found = trainers.run(python, "accelerate_loop.py", mode, "--broken", "--follow").finding
    assert found["progress"] == {
        "step": step,
        "epoch": 0,
        "phase": "train",
        "model": "Linear",
        "trainer": "Accelerate",
    }


def test_after_install(trainers, python):
    done = trainers.plain(python, "accelerate_loop.py", "train", "--broken", "--install", "--follow")
    assert "   = step:    8, epoch 0, train (Accelerate, Linear)\n" in done.err


@pytest.mark.parametrize(("mode", "batch"), [("train", 4), ("split", 8), ("skip", 4)])
def test_ranks(trainers, python, mode, batch):
    ranks = (*TORCHRUN, "--nproc-per-node", "2", "accelerate_loop.py", mode, "--broken", "--follow")
    found = trainers.run(python, *ranks).finding
    assert (found["sample"]["dataset_index"], found["sample"]["batch"]) == (71, batch)
    assert found["process"]["world_size"] == 2


def test_a_rank_that_was_sent_its_batch_names_no_sample(trainers, python):
    """The first rank alone reads the data; what it drew is not known to the others."""
    ranks = (*TORCHRUN, "--nproc-per-node", "2", "accelerate_loop.py", "dispatch", "--broken")
    found = trainers.run(python, *ranks).finding
    assert found["process"]["rank"] == 1 and "dataset_index" not in found.get("sample", {})


@pytest.mark.parametrize("options", [("train",), ("skip",)])
def test_the_healthy_twin_has_no_finding_and_the_same_numbers(trainers, python, options):
    plain = trainers.plain(python, "accelerate_loop.py", *options).result()
    guarded = trainers.run(python, "accelerate_loop.py", *options, "--follow")
    assert (guarded.returncode, guarded.findings, guarded.result()) == (0, [], plain)
    installed = trainers.plain(python, "accelerate_loop.py", *options, "--install", "--follow")
    assert installed.result() == plain
