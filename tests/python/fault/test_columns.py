"""The range over a data set, in the forms that programs keep labels in; and the one data set that differs."""

import pytest
from conftest import label_violation, make_violation, table_violation

torch = pytest.importorskip("torch")
import trapline._fault as fault  # noqa: E402
from torch.utils.data import ConcatDataset, DataLoader, Dataset, Subset, TensorDataset  # noqa: E402
from trapline._fault.data import data_sets  # noqa: E402
from trapline._fault.data.columns import columns  # noqa: E402

CLASSES = 4
held = []


@pytest.fixture(autouse=True)
def installed():
    fault.install()
    yield
    fault.uninstall()
    held.clear()


def labels(count=40, offset=0):
    return [i % CLASSES + offset for i in range(count)]


class Files(Dataset):
    """Paths and labels, as ImageFolder keeps them."""

    def __init__(self, numbers):
        self.items = self.form(numbers)

    def form(self, numbers):
        return [(f"clip{i}.npy", label) for i, label in enumerate(numbers)]

    def label(self, i):
        return self.items[i][1]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return torch.zeros(3), self.label(i)


class Records(Files):
    def form(self, numbers):
        return [{"path": f"clip{i}.npy", "label": label} for i, label in enumerate(numbers)]

    def label(self, i):
        return self.items[i]["label"]


class Table(Files):
    def form(self, numbers):
        pandas = pytest.importorskip("pandas")
        return pandas.DataFrame({"clip": [f"clip{i}" for i in range(len(numbers))], "label": numbers})

    def label(self, i):
        return int(self.items.iloc[i]["label"])


class Tensors(Files):
    def form(self, numbers):
        return torch.tensor(numbers)

    def label(self, i):
        return self.items[i]


def first_fault(loader):
    held.append(loader)  # the bookkeeping holds none
    for _, target in loader:
        if bool((target >= CLASSES).any()):
            return label_violation(torch.zeros(len(target), CLASSES), target)
    raise AssertionError("no bad batch")


@pytest.mark.parametrize("form", [Files, Records, Table, Tensors])
def test_the_range_over_the_data_set(facts_of, form):
    numbers = labels()
    numbers[33] = 7
    facts = facts_of(first_fault(DataLoader(form(numbers), batch_size=8)))
    seen = {"min": 0, "max": 7, "count": 40, "source": "dataset", "beyond": 1, "kinds": 5, "gap": 4}
    assert facts["seen"] == seen


def test_of_a_hugging_face_data_set():
    datasets = pytest.importorskip("datasets")
    data_set = datasets.Dataset.from_dict({"text": ["a", "b", "c"], "label": [3, 1, 2]}).select([2, 0])
    found = dict(columns(data_set))
    assert list(found) == [("label",)] and found[("label",)].values.tolist() == [2, 3]


def test_one_data_set_of_a_concatenation(facts_of):
    whole = ConcatDataset([Files(labels()), Files(labels(20)), Files(labels(30, 1))])
    rows = [i for i in range(90) if i % 3]
    facts = facts_of(first_fault(DataLoader(Subset(whole, rows), batch_size=8)))
    assert facts["seen"]["count"] == 60 and "several" not in facts["seen"]
    numbers = [label for i, label in enumerate(labels(30, 1)) if (60 + i) % 3]
    assert facts["seen"]["part"] == {
        "min": 1,
        "max": 4,
        "bad": numbers.count(4),
        "count": len(numbers),
        "others_min": 0,
        "others_max": 3,
        "zero": False,
        "position": 2,
    }


def test_targets_of_one_data_set_of_a_concatenation(facts_of):
    """Numbers in percent beside shares: 1.0 is a valid one."""
    whole = ConcatDataset([Files([0.25, 1.0] * 10), Files([25.0, 75.0] * 10)])
    for _, target in DataLoader(whole, batch_size=8):
        if bool((target > 1).any()):
            break
    args = {"self": torch.rand(8), "target": target}
    violation = make_violation(
        "binary_cross_entropy.target", target, 0.0, 1.0, args, bad=(target < 0) | (target > 1)
    )
    part = facts_of(violation)["seen"]["part"]
    assert (part["position"], part["bad"], part["count"]) == (1, 20, 20)
    assert (part["min"], part["max"], part["others_min"], part["others_max"]) == (25.0, 75.0, 0.25, 1.0)


class View(Dataset):
    """A choice of another data set's records, of the program's own kind."""

    def __init__(self, dataset, rows):
        self.dataset, self.rows = dataset, rows

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.dataset[self.rows[i]]


def test_choices_of_the_same_records_are_made_alike(facts_of):
    """New classes, and a memory of the old ones: both are of one data set."""
    base = Files([i // 10 for i in range(60)])
    new, memory = Subset(base, range(30, 60)), Subset(base, range(0, 30))
    facts = facts_of(first_fault(DataLoader(ConcatDataset([new, memory]), batch_size=8)))
    assert "part" not in facts["seen"] and facts["seen"]["max"] == 5
    other = Files([i // 10 for i in range(20)])
    facts = facts_of(first_fault(DataLoader(ConcatDataset([new, other]), batch_size=8)))
    assert facts["seen"]["part"]["position"] == 0
    assert data_sets.below(View(Subset(base, [1]), [0])) is base


def test_no_data_set_differs_where_two_are_bad(facts_of):
    whole = ConcatDataset([Files(labels(40, 1)), Files(labels(20)), Files(labels(30, 1))])
    assert "part" not in facts_of(first_fault(DataLoader(whole, batch_size=8)))["seen"]


def test_one_of_the_programs_data_sets(facts_of):
    train, valid = DataLoader(Files(labels()), batch_size=8), DataLoader(Files(labels(20, 1)), batch_size=8)
    facts = facts_of(first_fault(valid))
    part = facts["seen"]["part"]
    assert (part["min"], part["max"], part["bad"], part["others_min"], part["others_max"]) == (1, 4, 5, 0, 3)
    assert facts["seen"]["several"] and "position" not in part and len(train) == 5


def test_parts_of_the_same_records_do_not_differ(facts_of):
    """A rare record is in one of them by chance."""
    numbers = labels()
    numbers[33] = 7
    whole = Files(numbers)
    rest = DataLoader(Subset(whole, list(range(8))), batch_size=8)
    facts = facts_of(first_fault(DataLoader(Subset(whole, list(range(8, 40))), batch_size=8)))
    assert facts["seen"]["several"] and "part" not in facts["seen"] and len(rest) == 1


def test_what_is_no_column():
    found = dict(columns(TensorDataset(torch.zeros(3, 2), torch.tensor([1, 2, 3]))))
    assert list(found) == [("tensors", 0), ("tensors", 1)]
    uneven = Files(labels(4))
    uneven.items[2] = ("clip2.npy",)
    assert list(columns(uneven)) == []
    other = Files(labels(3))
    other.items[1] = None
    assert list(columns(other)) == []
    assert list(columns(ConcatDataset([Files(labels(3)), Tensors(labels(3))]))) == []
    assert list(columns(Subset(Files(labels(3)), [7]))) == []


def test_the_field_that_alone_is_bad(facts_of):
    ids = torch.arange(40).reshape(10, 4) % 4
    ids[2:7, 3] = 9
    assert facts_of(table_violation(torch.zeros(9, 2), ids))["in_column"] == 3
    ids[8, 0] = 9
    assert "in_column" not in facts_of(table_violation(torch.zeros(9, 2), ids))
    assert "in_column" not in facts_of(table_violation(torch.zeros(9, 2), torch.full((10,), 9)))


def test_calls_of_one_line_for_columns_of_their_own(monkeypatch):
    """A loop makes each column one-hot: what went well with a number beyond this end had more classes."""
    from trapline._fault.data import recorded, seen

    column = torch.full((4, 1), 7)
    scan = {"bad": 4, "total": 4, "first": 0, "value": 7, "lo": 0, "hi": 7}
    before = [
        {
            "op": "one_hot",
            "frames": [("a.py", 5)],
            "args": [{"name": "self", "min": 0, "max": most, "shape": [4, 1]}],
        }
        for most in (3, 6, 23)
    ]
    monkeypatch.setattr(recorded, "history", lambda: before)
    monkeypatch.setattr(seen, "_place", lambda frames: [])
    monkeypatch.setattr(seen, "_argument_name", lambda violation: "self")
    found = seen.seen_facts({"tensor": column, "scan": scan, "op": "one_hot", "frames": []}, None)
    assert (found["min"], found["max"], found["count"]) == (0, 7, 12)


def test_the_labels_that_the_model_was_trained_with(monkeypatch):
    from trapline._fault.data import recorded, seen

    def backward(most, outputs=5):
        return {
            "op": "nll_loss_backward",
            "frames": [("a.py", 9)],
            "args": [
                {"name": "grad_output", "shape": []},
                {"name": "self", "shape": [4, outputs]},
                {"name": "target", "shape": [4], "min": 0, "max": most},
            ],
        }

    def trained(calls, no_grad=True):
        monkeypatch.setattr(recorded, "history", lambda: calls)
        return seen.trained({"no_grad": no_grad, "scan": {"hi": 5, "also": -100}})

    assert trained([backward(3), backward(4)]) == {"max": 4, "count": 8}
    assert trained([backward(3), backward(4)], no_grad=False) is None  # this is the training
    assert trained([backward(3), backward(3)]) is None  # a larger one may come yet
    assert trained([backward(4)]) is None  # fewer labels than classes
    assert trained([backward(6, outputs=7), backward(6, outputs=7)]) is None  # of another head
