"""Hugging Face's Trainer: step, epoch, phase and sample, without a callback and with one."""

from __future__ import annotations

import sys

import pytest
from conftest import TORCHRUN, need

# mode: what the finding says of the training, and of the sample
EXPECTED = {
    "train": ("TL101", {"step": 17, "epoch": 0.68, "phase": "train"}, {"dataset_index": 137, "batch": 17}),
    "accumulate": (
        "TL101",
        {"step": 1, "epoch": 0.64, "phase": "train"},
        {"dataset_index": 137, "batch": 17},
    ),
    "workers": ("TL101", {"step": 17, "epoch": 0.68, "phase": "train"}, {"dataset_index": 137, "batch": 17}),
    "lengths": ("TL104", {"step": 0, "phase": "train"}, {"dataset_index": 137, "batch": 0, "by": "length"}),
    "evaluate": ("TL101", {"step": 5, "epoch": 0.2, "phase": "validation"}, {"dataset_index": 9, "batch": 1}),
    "predict": ("TL103", {"phase": "predict"}, {"dataset_index": 5, "batch": 0}),
}


@pytest.fixture
def python():
    return need("transformers", "accelerate", "datasets")


def holds(whole, part):
    return {name: whole.get(name) for name in part} == part


@pytest.mark.parametrize("mode", EXPECTED)
def test_without_a_word_from_the_program(trainers, python, mode):
    code, progress, sample = EXPECTED[mode]
    found = trainers.run(python, "hf_trainer.py", mode, "--broken").finding
    assert found["code"] == code
    assert holds(found["progress"], {**progress, "model": "bert-tiny", "trainer": "Trainer"})
    assert ("step" in found["progress"]) == ("step" in progress)
    assert holds(found["sample"], sample)


def test_resumed_from_a_checkpoint(trainers, python):
    trainers.plain(python, "hf_trainer.py", "resume")
    found = trainers.run(python, "hf_trainer.py", "resume", "--broken").finding
    assert holds(found["progress"], {"step": 17, "epoch": 0.68, "phase": "train"})
    assert holds(found["sample"], {"dataset_index": 137, "batch": 17, "row": 3})


def test_the_callback_says_the_same(trainers, python):
    told = trainers.run(python, "hf_trainer.py", "evaluate", "--broken", "--callback").finding["progress"]
    assert told == trainers.run(python, "hf_trainer.py", "evaluate", "--broken").finding["progress"]


def test_text_of_the_report(trainers, python):
    text = trainers.text(python, "hf_trainer.py", "evaluate", "--broken").err
    assert "   = step:    5, epoch 0.2, validation (Trainer, bert-tiny)\n" in text


def test_after_install(trainers, python):
    done = trainers.plain(python, "hf_trainer.py", "train", "--broken", "--install")
    assert "   = step:    17, epoch 0.68, train (Trainer, bert-tiny)\n" in done.err


@pytest.mark.parametrize("mode", ["accumulate", "evaluate"])
def test_the_healthy_twin_has_no_finding_and_the_same_numbers(trainers, python, mode):
    plain = trainers.plain(python, "hf_trainer.py", mode).result()
    guarded = trainers.run(python, "hf_trainer.py", mode, "--callback")
    assert (guarded.returncode, guarded.findings, guarded.result()) == (0, [], plain)
    assert trainers.plain(python, "hf_trainer.py", mode, "--install", "--callback").result() == plain


def test_ranks(trainers, python):
    ranks = (*TORCHRUN, "--nproc-per-node", "2", "hf_trainer.py", "ranks", "--broken")
    found = trainers.run(python, *ranks).finding
    assert holds(found["sample"], {"dataset_index": 137, "batch": 8})
    assert holds(found["progress"], {"step": 8, "phase": "train"})
    assert (found["process"]["rank"], found["process"]["world_size"]) == (1, 2)


@pytest.mark.parametrize(
    ("callback", "progress"), [((), {}), (("--callback",), {"step": 17, "epoch": 0.68, "phase": "train"})]
)
def test_a_device_that_tells_late(trainers, python, callback, progress):
    """In another thread, some steps on: the callback alone knows of which step the call was."""
    late = ("hf_trainer.py", "late", "--broken", "--cuda", *callback)
    found = trainers.run(python, *late, options=("--cpu",), TRAPLINE_CPU_LATE="1").finding
    assert found["progress"] == {**progress, "model": "bert-tiny", "trainer": "Trainer"}
    assert holds(found["sample"], {"dataset_index": 137, "batch": 17})


def test_its_module_is_not_imported_by_itself(trainers):
    code = (
        "import sys, trapline; print([m for m in sys.modules if 'integrations' in m or 'transformers' in m])"
    )
    assert trainers.plain(sys.executable, "-c", code).out == "[]\n"
