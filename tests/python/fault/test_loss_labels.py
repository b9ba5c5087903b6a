"""Labels that a loss makes one-hot, or looks up by: an index of the operation, labels in the program."""

import pytest
from conftest import make_violation

torch = pytest.importorskip("torch")
import trapline._fault as fault  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402


@pytest.fixture(autouse=True)
def installed():
    fault.install()
    yield
    fault.uninstall()


def scattered(facts_of, index):
    args = {"self": torch.zeros(len(index), 5), "dim": 1, "index": index}
    return facts_of(make_violation("scatter.index", index, 0, 5, args))


def to_one_hot(facts_of, target):
    return scattered(facts_of, target.unsqueeze(1))


def spread(facts_of, target):
    return scattered(facts_of, target.unsqueeze(1))


class SoftLoss(nn.Module):
    def forward(self, facts_of, scores, target):
        return spread(facts_of, target)


class TableLoss(nn.Module):
    """Keeps a row for each sample of the data set."""

    def forward(self, facts_of, scores, sample_index):
        return scattered(facts_of, sample_index.unsqueeze(1))


class Router(nn.Module):
    def forward(self, facts_of, scores, target):
        return spread(facts_of, target)


class Data(TensorDataset):
    classes = ("a", "b", "c", "d", "e", "f", "g")


def first(facts_of, step):
    y = torch.tensor([0, 1, 4, 2, 3, 1, 0, 2, 4, 6, 1, 3, 2, 5, 0, 1])
    for scores, target in DataLoader(Data(torch.zeros(16, 5), y), batch_size=8):
        if int(target.max()) > 4:
            return step(scores, target)
    raise AssertionError


@pytest.mark.parametrize("module", [SoftLoss(), TableLoss(), Router()])
def test_whose_labels_an_index_is(facts_of, module):
    facts = first(facts_of, lambda scores, target: module(facts_of, scores, target))
    assert facts["sample"]["dataset_index"] == 9
    labels = isinstance(module, SoftLoss)
    assert facts.get("table") == ("labels" if labels else None)
    assert facts.get("counted") == (
        {"count": 7, "of": "the number of the data set's classes"} if labels else None
    )


def test_a_function_by_its_name(facts_of):
    assert first(facts_of, lambda scores, target: to_one_hot(facts_of, target))["table"] == "labels"


def test_an_index_that_is_called_so_elsewhere(facts_of):
    assert "table" not in first(facts_of, lambda scores, target: spread(facts_of, target))


class Focal(nn.Module):
    def forward(self, facts_of, scores, target):
        return spread(facts_of, target)


def test_a_loss_by_another_name(facts_of):
    assert first(facts_of, lambda scores, target: Focal()(facts_of, scores, target))["table"] == "labels"


def picked(facts_of, scores, target):
    args = {"self": scores, "dim": 1, "index": target.unsqueeze(1)}
    return facts_of(make_violation("gather.index", args["index"], 0, 5, args))


def test_what_a_softmax_is_looked_up_by(facts_of):
    head = nn.Linear(5, 5)

    def log_softmax(scores, target):
        return picked(facts_of, head(scores).log_softmax(1), target)

    def log_of_softmax(scores, target):
        return picked(facts_of, -head(scores).softmax(1).log(), target)

    def features(scores, target):
        return picked(facts_of, head(scores), target)

    assert first(facts_of, log_softmax)["table"] == "labels"
    assert first(facts_of, log_of_softmax)["table"] == "labels"
    assert "table" not in first(facts_of, features)


def test_an_action_is_no_label(facts_of):
    policy = nn.Linear(5, 5)
    actions = torch.tensor([0, 1, 4, 2, 6, 1, 0, 2])
    (batch,) = list(DataLoader(TensorDataset(torch.zeros(8, 5), actions), batch_size=8))
    args = {"self": policy(batch[0]).log_softmax(1), "dim": 1, "index": batch[1].unsqueeze(1)}
    assert "table" not in facts_of(make_violation("gather.index", args["index"], 0, 5, args))
