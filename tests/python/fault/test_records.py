"""Batches made by hand: which record of the program's own data a bad element came from."""

import random
from collections import deque
from dataclasses import dataclass

import torch
from conftest import make_violation
from trapline._fault.data import records


def labels(count=40, bad=29, value=9):
    y = torch.arange(count) % 7
    y[bad] = value
    return y


def fault(target, classes=7):
    return make_violation("nll_loss_forward.target", target, 0, classes, {"target": target}, frames=[])


def test_a_slice_of_the_data():
    y = labels()
    part = y[24:32]
    assert records.sample_facts(fault(part)) == {
        "dataset_index": 29,
        "row": 5,
        "dataset": {"name": "y", "type": "Tensor", "length": 40},
    }


def test_the_batch_itself_is_no_data_set():
    y = labels()
    assert records.sample_facts(fault(y)) is None
    sequence = torch.stack([labels(), labels()])
    assert records.sample_facts(fault(sequence[:, 1:])) is None, "as many rows: a batch that is shifted"


def test_rows_drawn_by_an_index():
    y = labels()
    torch.manual_seed(0)
    order = torch.randperm(40)
    for start in range(0, 40, 8):
        index = order[start : start + 8]
        if 29 in index.tolist():
            row = index.tolist().index(29)
            found = records.sample_facts(fault(y[index]))
            assert (found["dataset_index"], found["row"], found["dataset"]["name"]) == (29, row, "y")


def test_rows_of_texts_flattened():
    texts = torch.randint(0, 50, (30, 6), generator=torch.Generator().manual_seed(1))
    texts[17, 4] = 99
    index = [3, 17, 8, 22]
    found = records.sample_facts(fault(texts[index].reshape(-1), 50))
    assert (found["dataset_index"], found["row"], found["dataset"]["length"]) == (17, 1, 30)


def test_a_copied_run():
    y = labels().tolist()
    target = torch.tensor(y[24:32])
    found = records.sample_facts(fault(target))
    assert (found["dataset_index"], found["row"], found["dataset"]["type"]) == (29, 5, "list")


def test_a_run_that_occurs_twice_proves_nothing():
    y = labels(20, 9).tolist() * 2
    target = torch.tensor(y[8:16])
    assert records.sample_facts(fault(target)) is None


def test_a_transition_of_a_replay_buffer():
    random.seed(0)
    replay = deque(maxlen=300)
    for step in range(300):
        replay.append((torch.randn(4), 9 if step == 211 else step % 3, random.random()))
    batch = [replay[5], replay[211], replay[77], replay[42]]
    _states, actions, _rewards = zip(*batch)
    action = torch.tensor(actions).unsqueeze(1)
    assert records.sample_facts(fault(action, 3)) == {
        "dataset_index": 211,
        "row": 1,
        "dataset": {"name": "replay", "type": "deque", "length": 300},
    }


@dataclass
class Transition:
    state: torch.Tensor
    action: int


class Buffer:
    def __init__(self):
        self.memory = deque(maxlen=50)

    def sample(self):
        return torch.tensor([self.memory[at].action for at in (4, 31, 8)])


def test_a_buffer_whose_batch_is_gone():
    buffer = Buffer()
    for step in range(50):
        buffer.memory.append(Transition(torch.zeros(2), -1 if step == 31 else 0))
    assert records.sample_facts(fault(buffer.sample(), 3)) == {
        "dataset_index": 31,
        "dataset": {"name": "buffer.memory", "type": "deque", "length": 50},
        "likely": True,
        "by": "record",
    }
    buffer.memory[8].action = -1
    assert records.sample_facts(fault(torch.tensor([0, -1, 0]), 3)) == {
        "one_of": [8, 31],
        "of": 2,
        "dataset": {"name": "buffer.memory", "type": "deque", "length": 50},
    }


def test_a_record_that_does_not_hold_the_value():
    data = [(torch.zeros(2), step % 3) for step in range(20)]
    batch = data[4:8]
    assert records.sample_facts(fault(torch.tensor([0, 9, 1, 2]), 3)) is None and batch


def test_nothing_of_the_users_runs():
    class Loud(list):
        def __iter__(self):
            raise AssertionError("called")

        def __getitem__(self, index):
            raise AssertionError("called")

    loud = Loud([1, 2, 9])
    assert records.sample_facts(fault(torch.tensor([1, 2, 9]), 3)) is None and loud is not None
