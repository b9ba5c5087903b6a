"""note_progress: what is told stands in the finding, per thread and task, also where a fault comes late."""

from __future__ import annotations

import asyncio
import contextvars
import sys
import threading

import pytest
import trapline
from trapline._library import progress


@pytest.fixture(autouse=True)
def forget():
    yield
    trapline.note_progress()
    progress.newest_batch = 0


def test_what_is_not_given_stays():
    trapline.note_progress(step=3, epoch=1, phase="train", model="bert", trainer="mine")
    trapline.note_progress(step=4)
    assert progress.now() == {"step": 4, "epoch": 1, "phase": "train", "model": "bert", "trainer": "mine"}
    trapline.note_progress(phase="")
    assert "phase" not in progress.now()
    trapline.note_progress()
    assert progress.now() == {}


class Hostile:
    def __bool__(self):
        raise RuntimeError("no")

    __eq__ = __hash__ = __bool__


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({"step": "7"}, {}),
        ({"step": 2.5}, {}),
        ({"epoch": 2.123456}, {"epoch": 2.1235}),
        ({"epoch": float("nan")}, {}),
        ({"model": 5}, {}),
        ({"model": "x" * 5000}, {"model": "x" * 200}),
        ({"step": Hostile(), "phase": Hostile()}, {}),
    ],
)
def test_only_plain_values_are_taken_and_nothing_is_raised(given, kept):
    trapline.note_progress(**given)
    assert progress.now() == kept


def test_a_tensor_is_not_asked():
    torch = pytest.importorskip("torch")
    trapline.note_progress(step=torch.tensor(3), epoch=torch.tensor(1.5))  # on a GPU it would wait
    assert progress.now() == {}


def test_a_number_of_numpy_is_one():
    numpy = pytest.importorskip("numpy")
    trapline.note_progress(step=numpy.int64(3), epoch=numpy.float32(0.5))
    assert progress.now() == {"step": 3, "epoch": 0.5}


def test_a_thread_and_a_task_know_their_own():
    trapline.note_progress(step=1)
    seen = {}

    def work():
        seen["before"] = progress.now()
        trapline.note_progress(step=50)
        seen["after"] = progress.now()

    thread = threading.Thread(target=work)
    contextvars.Context().run(thread.start)
    thread.join()
    assert (seen["before"], seen["after"], progress.now()) == ({}, {"step": 50}, {"step": 1})

    async def task(number):
        trapline.note_progress(step=number)
        await asyncio.sleep(0)
        return progress.now()

    async def both():
        return await asyncio.gather(task(10), task(20))

    assert asyncio.run(both()) == [{"step": 10}, {"step": 20}]


def test_a_fault_told_late_has_the_step_of_its_call():
    for batch in range(1, 5):
        progress.newest_batch = batch
        trapline.note_progress(step=batch * 10, model="m", phase="train")
    here = f"python/{threading.get_native_id()}"
    assert progress.of_fault(True, 3, here) == {"step": 30, "model": "m", "phase": "train"}
    assert progress.of_fault(False, None)["step"] == 40
    # Of which batch is not known: only what they all agree on.
    assert progress.of_fault(True, None, here) == {"model": "m", "phase": "train"}
    trapline.note_progress(phase="validation")
    assert progress.of_fault(True, 4, here) == {"step": 40, "model": "m"}
    assert progress.of_fault(True, 3, here)["phase"] == "train"


def test_a_fault_told_late_belongs_to_the_thread_of_its_call():
    trapline.note_progress(step=1)
    seen = []
    here = f"python/{threading.get_native_id()}"
    thread = threading.Thread(target=lambda: seen.append(progress.of_fault(True, 9, here)))
    thread.start()
    thread.join()
    assert seen == [{"step": 1}]  # as the thread that walks the graph backwards is told of it
    assert progress.of_fault(True, 9, "python/1") == progress.of_fault(True, 9, None) == {}
    trapline.note_progress()
    assert progress.of_fault(True, 9, here) == {}


def test_of_several_tasks_in_one_thread_none_is_named_late():
    async def task(number):
        trapline.note_progress(step=number)
        await asyncio.sleep(0)
        trapline.note_progress(step=number + 1)
        return progress.of_fault(True, None, f"python/{threading.get_native_id()}")

    async def both():
        return await asyncio.gather(task(10), task(20))

    assert asyncio.run(both()) == [{}, {}]


def test_a_loop_of_ones_own(trainers):
    program = """\
import sys, torch, trapline
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
labels = torch.arange(64) % 4
labels[41] = 4 if "--broken" in sys.argv else 1
model = torch.nn.Linear(5, 4)
done = 0
for epoch in range(2):
    for inputs, target in DataLoader(TensorDataset(torch.randn(64, 5), labels), 8):
        trapline.note_progress(step=done, epoch=epoch, phase="train", model="tiny")
        loss = torch.nn.functional.cross_entropy(model(inputs), target)
        done += 1
print("result", loss.item())
"""
    (trainers.folder / "loop.py").write_text(program)
    broken = trainers.run(sys.executable, "loop.py", "--broken")
    assert broken.finding["progress"] == {"step": 5, "epoch": 0, "phase": "train", "model": "tiny"}
    assert broken.finding["sample"]["dataset_index"] == 41
    text = trainers.text(sys.executable, "loop.py", "--broken").err
    assert "   = step:    5, epoch 0, train (tiny)\n" in text
    assert (
        trainers.run(sys.executable, "loop.py").result() == trainers.plain(sys.executable, "loop.py").result()
    )


def test_an_exception_of_the_host_says_it_too(trainers):
    program = """\
import torch, trapline
trapline.note_progress(step=12, epoch=0.5, model="tiny\\x1b[31m")
torch.nn.Linear(5, 4)(torch.zeros(3, 6))
"""
    (trainers.folder / "shapes.py").write_text(program)
    found = trainers.run(sys.executable, "shapes.py").finding
    assert (found["code"], found["progress"]["step"], found["progress"]["epoch"]) == ("TL201", 12, 0.5)
    text = trainers.text(sys.executable, "shapes.py").err
    assert "= step:    12, epoch 0.5 (tiny" in text and "\x1b[31m" not in text


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("ray/train/mine.py", "sys.modules['ray.train'] = None"),
        ("transformers/trainer.py", "self.state = None"),
        ("lightning/pytorch/trainer/trainer.py", "self.lightning_module = self"),
    ],
)
def test_what_only_looks_like_a_trainer_costs_nothing(trainers, file, line):
    """A user's own file of the same name, and a trainer that is not as the known one."""
    path = trainers.folder / file
    path.parent.mkdir(parents=True)
    path.write_text(f"""\
import sys, torch, trapline
class Mine:
    def training_step(self):
        {line}
        trapline.note_progress(step=7)
        torch.zeros(3)[torch.tensor([3])]
Mine().training_step()
""")
    assert trainers.run(sys.executable, file).finding["progress"] == {"step": 7}
