"""Lightning's Trainer under both of its names: step, epoch, stage and module."""

from __future__ import annotations

import pytest
from conftest import need

PACKAGES = ("lightning", "pytorch_lightning")
EXPECTED = {
    "train": ({"step": 5, "epoch": 0, "phase": "train"}, {"dataset_index": 37, "batch": 5}),
    "accumulate": ({"step": 1, "epoch": 0, "phase": "train"}, {"dataset_index": 37, "batch": 5}),
    "validate": ({"step": 10, "epoch": 0, "phase": "validation"}, {"dataset_index": 37, "batch": 9}),
    "second": ({"step": 10, "epoch": 0, "phase": "validation"}, {"dataset_index": 37, "loader": "val"}),
    "sanity": ({"step": 0, "epoch": 0, "phase": "sanity check"}, {"dataset_index": 37, "batch": 9}),
    "test": ({"phase": "test"}, {"dataset_index": 37, "batch": 9}),
}
WHO = {"model": "Classifier", "trainer": "Lightning"}


@pytest.mark.parametrize("mode", EXPECTED)
def test_without_a_word_from_the_program(trainers, mode):
    progress, sample = EXPECTED[mode]
    found = trainers.run(need("lightning"), "lightning_fit.py", "lightning", mode, "--broken").finding
    assert (found["code"], found["progress"]) == ("TL101", {**progress, **WHO})
    assert {name: found["sample"].get(name) for name in sample} == sample


@pytest.mark.parametrize("package", PACKAGES)
def test_the_callback_says_the_same(trainers, package):
    python = need(package)
    found = trainers.run(python, "lightning_fit.py", package, "validate", "--broken", "--callback").finding
    assert found["progress"] == {**EXPECTED["validate"][0], **WHO}


def test_after_install(trainers):
    command = ("lightning_fit.py", "lightning", "train", "--broken", "--install")
    err = trainers.plain(need("lightning"), *command).err
    assert "= step:    5, epoch 0, train (Lightning, Classifier)\n" in err


def test_an_exception_that_lightning_passes_on(trainers):
    """It forgets its stage before it raises the exception again."""
    found = trainers.run(need("lightning"), "lightning_fit.py", "lightning", "predict", "--broken").finding
    assert (found["code"], found["progress"]) == ("TL201", {"phase": "predict", **WHO})


def test_ranks(trainers):
    found = trainers.run(need("lightning"), "lightning_fit.py", "lightning", "ranks", "--broken").finding
    assert found["sample"]["dataset_index"] == 37
    assert found["progress"]["step"] == found["sample"]["batch"]
    assert found["process"]["world_size"] == 2


@pytest.mark.parametrize("package", PACKAGES)
def test_the_healthy_twin_has_no_finding_and_the_same_numbers(trainers, package):
    command = ("lightning_fit.py", package, "validate")
    plain = trainers.plain(need(package), *command).result()
    guarded = trainers.run(need(package), *command, "--callback")
    assert (guarded.returncode, guarded.findings, guarded.result()) == (0, [], plain)
    assert trainers.plain(need(package), *command, "--install", "--callback").result() == plain
