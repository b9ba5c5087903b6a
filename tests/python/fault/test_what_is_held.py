"""What the program itself holds tells of the numbers: their batch, their range, the list of their record."""

import pytest

torch = pytest.importorskip("torch")
import numpy as np  # noqa: E402
from conftest import label_violation, make_violation, table_violation  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402
from trapline._fault.data import at_work, variables, which  # noqa: E402
from trapline._fault.program import holders  # noqa: E402

pytestmark = pytest.mark.usefixtures("installed")


def boxes():
    targets = torch.zeros(6, 5)
    targets[:, 0] = torch.arange(6.0) * 5
    return DataLoader(TensorDataset(torch.rand(6, 3), targets), batch_size=3)


def loss(images, targets, value):
    picked = targets[0].reshape(-1)[:1].long().repeat(7)  # of another size than the batch
    return at_work.sample_facts([picked], "", value)


def test_the_number_stands_in_the_batch():
    for images, targets in boxes():
        sample = loss(images, targets, int(targets[2, 0]))
        assert sample is not None and sample["by"] == "hand"
        assert sample["batch"] == int(targets[0, 0]) // 15


def test_another_number_or_a_usual_one_does_not():
    for images, targets in boxes():
        assert loss(images, targets, 7) is None
        assert loss(images, targets, 0) is None
        assert loss(images, targets, None) is None


class Sessions:
    def __init__(self):
        self.targets = np.arange(48) % 12 + 1


def test_the_range_of_all_that_is_held(facts_of):
    data, order = Sessions(), np.arange(48)[::-1].copy()
    index = order[:8]
    targets = torch.as_tensor(data.targets[index])
    facts = facts_of(label_violation(torch.zeros(8, 12), targets))
    assert facts["sample"]["dataset"]["name"] == "data.targets"
    seen = facts["seen"]
    assert (seen["source"], seen["min"], seen["max"], seen["count"], seen["kinds"]) == (
        "dataset",
        1,
        12,
        48,
        12,
    )


def test_positions_of_a_record_that_was_cut_from_a_list(facts_of):
    pages = [[{"y": 10 * n + k} for k in range(4)] for n in range(8)]
    for start in range(4, len(pages), 2):
        batch = pages[start : start + 2]
        boxes = torch.tensor([[word["y"] for word in page] for page in batch])
        facts = facts_of({**table_violation(torch.zeros(50, 2), boxes), "layer": {"name": "y_position"}})
        assert facts["sample"]["dataset_index"] == 5
        assert facts["sample"]["row"] == 1
        break


def test_most_of_several_rows_is_no_one_record(facts_of, monkeypatch):
    likely = {"dataset_index": 4, "batch": 0, "row": 0, "likely": True}
    monkeypatch.setattr(which, "sample_of", lambda *_: dict(likely))
    places = torch.tensor([[8, 9, 11, 8, 3, 9], [9, 4, 8, 10, 8, 2]])

    def of(index):
        return facts_of(make_violation("gather.index", index, 0, 8, {"self": torch.zeros(2, 8), "dim": 1}))

    assert "sample" not in of(places)
    one = torch.tensor([[8, 9, 11, 8, 13, 9], [1, 4, 2, 3, 5, 2]])  # as many, all of them in one row
    assert of(one)["sample"]["dataset_index"] == 4


def test_the_text_of_the_call_tells_more_than_equal_numbers(monkeypatch):
    live = holders.user_frames
    monkeypatch.setattr(
        holders, "user_frames", lambda: [one for one in live() if one.f_code.co_name.startswith("test_")]
    )

    def of(scores, target):  # no frame of the program's, as PyTorch's own are
        return variables.variable_facts(label_violation(scores, target), target, None)

    before = torch.arange(1, 41).reshape(4, 10)
    words = before.clone()  # holds the same numbers
    first, second = torch.zeros(30, 9), torch.zeros(30, 9)
    found = of(first, words[1:].flatten() + 0)
    assert found["name"] == "words"
    found = of(second, before[1:].flatten() + 0)
    assert found["name"] == "before"
