"""The quarantine file: what is in it, and which samples a later run leaves out."""

from __future__ import annotations

import datetime
import json
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    Subset,
    TensorDataset,
    WeightedRandomSampler,
)
from trapline._skip import quarantine


class Pictures(Dataset):
    """A data set of files, as torchvision's ImageFolder lays it out."""

    def __init__(self, labels: list[int], root: str = "/data/train") -> None:
        self.root = root
        self.samples = [(f"{root}/{i}.png", label) for i, label in enumerate(labels)]

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> Any:
        return torch.full((4,), float(index)), self.samples[index][1]


class Tokens(Dataset):
    def __init__(self) -> None:
        self.rows = [torch.tensor([1, 2, 3]), torch.tensor([50, 4]), torch.tensor([5]), torch.tensor([6, 60])]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> torch.Tensor:
        return self.rows[index]


def train(loader: Any, classes: int = 3) -> int:
    """One epoch; returns how many batches it had."""
    net = torch.nn.Linear(4, classes)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    count = 0
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(net(x), y).backward()
        optimizer.step()
        count += 1
    return count


def numbers(loader: Any) -> list[list[int]]:
    """The data set indices of each batch of a loader over Pictures."""
    return [[int(row[0]) for row in x] for x, _ in loader]


def flat(batches: list[list[int]]) -> list[int]:
    return [index for batch in batches for index in batch]


LABELS = [0, 1, 2, 7, 0, -1, 2, 0, 9, 1]  # 3, 5 and 8 do not fit three classes


def test_one_line_for_every_bad_sample(skipping):
    data_set = Pictures(LABELS)
    assert train(DataLoader(data_set, batch_size=4)) == 3
    entries = skipping.entries()
    assert [e["dataset_index"] for e in entries] == [3, 5, 8]
    assert [e["value"] for e in entries] == [7, -1, 9]
    assert [e["file"] for e in entries] == [f"/data/train/{i}.png" for i in (3, 5, 8)]
    for entry in entries:
        assert (entry["code"], entry["cause"]) == ("TL101", "label_out_of_range")
        assert (entry["op"], entry["argument"]) == ("cross_entropy", "target")
        assert (entry["valid"]["min"], entry["valid"]["max"]) == (0, 2)
        assert entry["count"] == 1
        when = datetime.datetime.strptime(entry["when"], "%Y-%m-%dT%H:%M:%SZ")
        assert abs((datetime.datetime.utcnow() - when).total_seconds()) < 600
        assert entry["dataset"]["class"].endswith("Pictures")
        assert entry["dataset"]["length"] == 10


def test_all_rows_of_padded_tokens(skipping):
    """A user's collate function: which sample made which row is asked of the data set."""
    table = torch.nn.Embedding(10, 4)
    optimizer = torch.optim.SGD(table.parameters(), lr=0.1)

    def collate(rows: list[torch.Tensor]) -> torch.Tensor:
        return torch.nn.utils.rnn.pad_sequence(sorted(rows, key=len, reverse=True), batch_first=True)

    for ids in DataLoader(Tokens(), batch_size=4, collate_fn=collate):
        table(ids).sum().backward()
        optimizer.step()
    assert sorted((e["dataset_index"], e["value"]) for e in skipping.entries()) == [(1, 50), (3, 60)]


def test_bad_probability_is_traced_by_its_target(skipping):
    data_set = TensorDataset(torch.tensor([[0.5], [2.0], [0.25]]), torch.tensor([[1.0], [0.0], [1.0]]))
    weight = torch.nn.Parameter(torch.ones(1))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    for x, y in DataLoader(data_set, batch_size=3):
        F.binary_cross_entropy(x * weight, y).backward()
        optimizer.step()
    assert [(e["dataset_index"], e["value"]) for e in skipping.entries()] == [(1, 2.0)]


def test_a_later_run_leaves_the_samples_out(skipping):
    train(DataLoader(Pictures(LABELS), batch_size=4))
    skipping.stop()
    skipping.start()
    loader = DataLoader(Pictures(LABELS), batch_size=4)
    assert numbers(loader) == [[0, 1, 2, 4], [6, 7, 9]]
    assert len(loader) == 2
    assert train(loader) == 2
    assert skipping.counts() == (2, 0)
    assert len(skipping.entries()) == 3


def test_the_next_epoch_of_the_same_run_leaves_them_out(skipping):
    loader = DataLoader(Pictures(LABELS), batch_size=4)
    train(loader)
    assert skipping.counts() == (3, 3)
    train(loader)
    assert skipping.counts() == (5, 3)


def test_other_data_sets_keep_the_same_index(skipping):
    train(DataLoader(Pictures(LABELS), batch_size=4))
    assert flat(numbers(DataLoader(Pictures(LABELS, "/data/val"), batch_size=4))) == list(range(10))
    assert flat(numbers(DataLoader(Pictures([*LABELS, 0]), batch_size=4))) == list(range(11))
    moved = DataLoader(Pictures(LABELS, "/elsewhere/train"), batch_size=4)
    assert flat(numbers(moved)) == [0, 1, 2, 4, 6, 7, 9]


def test_subsets_count_by_the_data_set_below(skipping):
    below = Pictures(LABELS)
    train(DataLoader(Subset(Subset(below, [9, 8, 7, 6, 5]), [1, 2]), batch_size=2))
    (entry,) = skipping.entries()
    assert (entry["dataset_index"], entry["base_index"]) == (0, 8)
    assert numbers(DataLoader(Subset(below, [2, 8, 4]), batch_size=2)) == [[2, 4]]


SAMPLERS = {
    "drop_last": ({"batch_size": 3, "drop_last": True}, [[0, 1, 2], [4, 6, 7]], 2),
    "no batches": ({"batch_size": None}, [[i] for i in (0, 1, 2, 4, 6, 7, 9)], 7),
    "own batches": ({"batch_sampler": [[3, 0], [5, 8], [1, 2]]}, [[0], [1, 2]], 3),
    "workers": (
        {"batch_size": 4, "num_workers": 1, "persistent_workers": True},
        [[0, 1, 2, 4], [6, 7, 9]],
        2,
    ),
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_samplers(skipping, name):
    train(DataLoader(Pictures(LABELS), batch_size=4))
    options, expected, length = SAMPLERS[name]
    loader = DataLoader(Pictures(LABELS), **options)
    for _ in range(2):
        given = [[int(x.reshape(-1, 4)[i, 0]) for i in range(x.numel() // 4)] for x, _ in loader]
        assert given == expected
    assert len(loader) == length


def test_a_shuffled_loader_keeps_the_order_of_the_rest(skipping):
    def order() -> list[int]:
        generator = torch.Generator().manual_seed(3)
        return flat(numbers(DataLoader(Pictures(LABELS), 4, shuffle=True, generator=generator)))

    before = order()
    train(DataLoader(Pictures(LABELS), batch_size=4))
    assert order() == [i for i in before if i not in (3, 5, 8)]


def test_samplers_that_repeat_have_no_exact_length(skipping):
    train(DataLoader(Pictures(LABELS), batch_size=4))
    sampler = WeightedRandomSampler([1.0] * 10, 40)
    given = flat(numbers(DataLoader(Pictures(LABELS), 4, sampler=sampler)))
    assert not set(given) & {3, 5, 8}
    repeated = DataLoader(Pictures(LABELS), 4, sampler=RandomSampler(range(10), True, 40))
    assert len(repeated) == 10


def test_ranks_keep_equal_lengths(skipping):
    train(DataLoader(Pictures(LABELS), batch_size=4))
    given = []
    for rank in range(2):
        sampler = DistributedSampler(Pictures(LABELS), num_replicas=2, rank=rank, shuffle=False)
        loader = DataLoader(Pictures(LABELS), batch_size=2, sampler=sampler)
        given.append(numbers(loader))
        assert len(loader) == 3
    # rank 0 draws 0 2 4 6 8, rank 1 draws 1 3 5 7 9: each bad one becomes the last good one
    assert given == [[[0, 2], [4, 6], [6]], [[1, 1], [1, 7], [9]]]


def test_ranks_whose_first_sample_is_bad(skipping):
    data_set = Pictures([7, 0, 1, 2])
    train(DataLoader(data_set, batch_size=4))
    sampler = DistributedSampler(data_set, num_replicas=2, rank=0, shuffle=False)
    assert numbers(DataLoader(data_set, batch_size=1, sampler=sampler)) == [[2], [2]]


def test_batch_samplers_of_ranks(skipping):
    train(DataLoader(Pictures(LABELS), batch_size=4))
    sampler = DistributedSampler(Pictures(LABELS), num_replicas=2, rank=1, shuffle=False)

    class Own(BatchSampler):
        pass

    loader = DataLoader(Pictures(LABELS), batch_sampler=Own(sampler, 2, False))
    assert numbers(loader) == [[1, 1], [1, 7], [9]]


def test_iterable_data_sets_are_left_alone(skipping):
    class Stream(IterableDataset):
        def __iter__(self):
            return iter([(torch.ones(4), 0), (torch.ones(4), 5)])

    loader = DataLoader(Stream(), batch_size=1)
    assert train(loader) == 2
    assert skipping.counts() == (2, 1)
    assert skipping.entries() == []


def test_a_damaged_file_costs_its_damaged_lines(skipping, capsys):
    train(DataLoader(Pictures(LABELS), batch_size=4))
    lines = skipping.quarantine.read_text().splitlines()
    skipping.stop()
    damaged = [lines[0], "{", '{"dataset_index": "x", "dataset": {}}', "[1]", "\0", lines[2][:-9]]
    skipping.quarantine.write_text("\n".join(damaged))
    quarantine._complained = False
    capsys.readouterr()
    skipping.start()
    said = capsys.readouterr().err.splitlines()
    path = skipping.quarantine
    assert said == [
        f"trapline: quarantine: {path}: line 2 and 4 more cannot be read: skipped: fix or delete it"
    ]
    loader = DataLoader(Pictures(LABELS), batch_size=10)
    assert numbers(loader) == [[0, 1, 2, 4, 5, 6, 7, 8, 9]]
    train(loader)
    # What is added begins on a line of its own.
    added = [json.loads(line)["dataset_index"] for line in path.read_text().splitlines()[-2:]]
    assert added == [5, 8]


def test_a_file_that_cannot_be_written_costs_one_line(skipping, capsys, tmp_path):
    quarantine._complained = False
    quarantine.install(str(tmp_path / "missing" / "q.jsonl"))
    assert train(DataLoader(Pictures(LABELS), batch_size=2)) == 5
    said = [line for line in capsys.readouterr().err.splitlines() if "cannot write" in line]
    assert said == [
        f"trapline: quarantine: cannot write {tmp_path}/missing/q.jsonl: No such file or directory: "
        "choose another file with --quarantine FILE"
    ]


def test_uninstall(skipping):
    train(DataLoader(Pictures(LABELS), batch_size=4))
    skipping.stop()
    assert isinstance(DataLoader(Pictures(LABELS))._index_sampler.sampler, SequentialSampler)
    assert numbers(DataLoader(Pictures(LABELS), batch_size=10)) == [list(range(10))]
