"""A table of weights of which some rows are not finite: the row that was read, and whose sample read it."""

from __future__ import annotations

import math

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402
from trapline._fault.data import cut  # noqa: E402
from trapline._watch import rows  # noqa: E402


@pytest.fixture
def watch(watch_with_batches):
    return watch_with_batches


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(6, 4)
        self.head = nn.Linear(4, 1)

    def forward(self, ids, other=None):
        return self.head(self.table(ids).mean(1))


def train(ids, bad_rows, other=None):
    model = Model()
    with torch.no_grad():
        model.table.weight[bad_rows] = math.nan
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for (batch,) in DataLoader(TensorDataset(ids), batch_size=2):
        optimizer.zero_grad()
        model(batch, other).sum().backward()
        optimizer.step()


IDS = torch.tensor([[0, 1], [1, 2], [2, 1], [0, 4]])


def test_row_and_sample(watch):
    train(IDS, [3, 4])
    seen = watch.verdict()
    assert (seen["kind"], seen["name"], seen["row"], seen["step"]) == ("weights", "table.weight", 4, 2)
    assert seen["sample"]["dataset_index"] == 3


def test_other_ids_leave_the_sample_open(watch):
    train(IDS, [4], other=torch.tensor([4, 4]))
    assert (watch.verdict()["row"], "sample" in watch.verdict()) == (4, False)


def test_all_rows_are_no_row(watch):
    train(IDS, list(range(6)))
    assert (watch.verdict()["kind"], "row" in watch.verdict()) == ("weights", False)


@pytest.mark.parametrize("learned", [False, True])
def test_the_record_of_a_model_that_takes_one_at_a_time(watch, learned):
    """What is made of the record alone is its own; of what weights have made, any record may be the first."""
    shapes = [(torch.rand(4 + at % 3, 3), torch.ones(3)) for at in range(9)]
    shapes[6][0][:] = 2.0

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.head = nn.Linear(3, 1)

        def forward(self, points, scale):
            if learned:
                return (self.head(points) * 2.0 + 1e3).exp().mean(0)
            return self.head((points - points.mean(0)) / (points * scale).std(0)).mean(0)

    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for chunk in torch.arange(9).split(3):
        loss = torch.stack([net(*shapes[int(at)]) for at in chunk]).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    seen = watch.verdict()
    assert seen["step"] == (1 if learned else 3)
    sample = seen.get("sample", {})
    assert sample.get("dataset_index") == (None if learned else 6)
    assert sample.get("dataset") == (None if learned else {"name": "shapes", "type": "list", "length": 9})


@pytest.mark.parametrize("inside", [True, False])
def test_the_record_of_the_one_call_that_a_loss_was_made_of(watch, inside):
    """In another shape than the list has it, and with other records in the same step: the weights are in it,
    and a batch of one would be told, too."""
    texts = [torch.rand(4 + at % 3) for at in range(9)]
    texts[7] *= 1e30

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.head = nn.Linear(1, 1)

        def forward(self, x):
            made = self.head(x[..., None])
            return made.exp().mean() if inside else made

    net = Net()
    nn.init.ones_(net.head.weight)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
    for at, text in enumerate(texts, 1):
        out = net(text[None])
        (out if inside else out.exp().mean()).backward()
        if at % 2 == 0:
            optimizer.step()
            optimizer.zero_grad()
    seen = watch.verdict()
    assert seen["step"] == 4 and seen["op"] == "exp"
    assert (seen["sample"]["dataset_index"], seen["sample"]["by"]) == (7, "loop")
    assert seen["sample"]["dataset"]["name"] == "texts"


def test_the_few_rows_that_have_no_score(watch):
    pad = torch.zeros(12, 5, dtype=torch.bool)
    pad[:, 4] = True
    pad[[6, 7]] = True
    model = nn.MultiheadAttention(6, 2, batch_first=True)
    given = (1 + torch.arange(360.0) % 7).reshape(12, 5, 6)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for x, mask in DataLoader(TensorDataset(given, pad), batch_size=4):
        optimizer.zero_grad()
        model(x, x, x, key_padding_mask=mask)[0].sum().backward()
        optimizer.step()
    seen = watch.verdict()
    assert (seen["kind"], seen["op"], seen["step"]) == ("output", "_softmax", 2)
    assert 6 in (seen["sample"].get("dataset_index"), *seen["sample"].get("one_of", ()))


def test_the_few_rows_of_the_models_own_numbers(watch):
    bad = torch.tensor([[False, False], [True, False], [False, False], [False, True]])
    data = (1 + torch.arange(36.0) % 5).reshape(12, 3)
    found = [rows.sample_of(bad) for _ in DataLoader(TensorDataset(data), batch_size=4)]
    assert [one["sample"]["one_of"] for one in found] == [[1, 3], [5, 7], [9, 11]]


def test_rows_that_the_program_cut_itself_are_not_those_of_another_number():
    """256 points of the inside and 64 of the edge: the latter is no sample for four of the former."""
    edge = torch.rand(64, 2)
    bad = torch.zeros(256, 2, dtype=torch.bool)
    bad[110] = True
    with cut.standing_in([edge]):
        assert rows.sample_of(bad[:64] | bad[64:128], learned=False)["sample"]["row"] == 110 - 64
        assert rows.sample_of(bad, learned=False) == {}
