"""The line of a data set that makes a number which is not finite, found by asking it for the sample again."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")

from torch import nn  # noqa: E402
from torch.utils.data import DataLoader, Dataset, TensorDataset  # noqa: E402

SPOILT = 13


def scaled(row):
    return row / (row.max() - row.min())


LINE_OF_SCALED = scaled.__code__.co_firstlineno + 1


class Rows(Dataset):
    """Row 13 is constant."""

    def __init__(self, transform, as_numpy=False):
        self.rows = torch.arange(40.0)[:, None] + torch.tensor([0.0, 1.0])
        self.rows[SPOILT] = 0
        self.rows = self.rows.numpy() if as_numpy else self.rows
        self.transform = transform
        self.asked = []

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, at):
        self.asked.append(at)
        return self.transform(self.rows[at]), torch.ones(1)


def train(loader):
    torch.manual_seed(0)
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()


def line_of(seen):
    return (seen["origin"]["file"], seen["origin"]["line"])


def test_an_operation_of_pytorchs(watch_with_batches):
    data = Rows(scaled)
    train(DataLoader(data, batch_size=4))
    seen = watch_with_batches.verdict()
    assert (seen["kind"], seen["sample"]["dataset_index"]) == ("input", SPOILT)
    assert (seen["fetched"], line_of(seen)) == ({"op": "div"}, (__file__, LINE_OF_SCALED))
    assert data.asked.count(SPOILT) > 1


def test_an_operation_of_numpys_whose_warning_was_silenced(watch_with_batches):
    data = Rows(lambda row: torch.from_numpy(scaled(row)), as_numpy=True)
    with np.errstate(invalid="ignore"):
        train(DataLoader(data, batch_size=4))
    seen = watch_with_batches.verdict()
    assert (seen["fetched"], line_of(seen)) == (
        {"numpy": "invalid value"},
        (__file__, LINE_OF_SCALED),
    )
    assert "warned" not in seen


def test_in_the_collate_function(watch_with_batches):
    def collate(samples):
        return torch.stack([scaled(x) for x, _ in samples]), torch.stack([y for _, y in samples])

    train(DataLoader(Rows(lambda row: row), batch_size=4, collate_fn=collate))
    seen = watch_with_batches.verdict()
    assert (seen["fetched"], line_of(seen)) == ({"op": "div"}, (__file__, LINE_OF_SCALED))


def test_what_the_data_set_holds_was_made_before(watch_with_batches):
    data = Rows(lambda row: row * 1)
    data.rows[SPOILT, 0] = float("nan")
    train(DataLoader(data, batch_size=4))
    seen = watch_with_batches.verdict()
    assert seen["sample"]["dataset_index"] == SPOILT
    assert "fetched" not in seen and "origin" not in seen


def test_two_lines_of_numpys_are_none(watch_with_batches):
    def both(row):
        first = row / (row.max() - row.min())
        second = row / row.sum()
        return torch.from_numpy(first + second)

    with np.errstate(invalid="ignore"):
        train(DataLoader(Rows(both, as_numpy=True), batch_size=4))
    seen = watch_with_batches.verdict()
    assert seen["sample"]["dataset_index"] == SPOILT
    assert "fetched" not in seen


def test_a_sample_that_is_finite_the_next_time(watch_with_batches):
    once = []

    def first_time(row):
        if row.sum() or once:
            return row.clone()
        once.append(1)
        return scaled(row)

    train(DataLoader(Rows(first_time), batch_size=4))
    seen = watch_with_batches.verdict()
    assert (seen["kind"], once) == ("input", [1])
    assert "fetched" not in seen and "origin" not in seen


def test_the_random_generators_are_put_back(watch_with_batches):
    def shaken(row):
        return scaled(row) * np.random.rand() * torch.rand(1)

    after = []
    for spoilt in (False, True):
        np.random.seed(3)
        data = Rows(shaken)
        data.rows[SPOILT, 1] = 0.0 if spoilt else 5.0
        train(DataLoader(data, batch_size=4))
        after.append((np.random.rand(), torch.rand(1).item()))
    assert after[0] == after[1]


@pytest.mark.parametrize(
    "bad, told",
    [
        ([13], {"bad": 1, "total": 40, "first": [13], "place": [1]}),
        ([30, 6], {"bad": 2, "total": 40, "first": [6, 30], "place": [1]}),
        (list(range(40)), {"bad": 40, "total": 40, "first": list(range(8)), "place": [1]}),
    ],
)
def test_how_many_rows_of_the_data_set(watch_with_batches, bad, told):
    x = torch.rand(40, 2)
    x[bad, 1] = float("nan")
    train(DataLoader(TensorDataset(x, torch.ones(40, 1)), batch_size=4))
    assert watch_with_batches.verdict()["rows"] == told


def test_of_an_array_that_the_data_set_holds(watch_with_batches):
    data = Rows(torch.from_numpy, as_numpy=True)
    data.rows[5, 0] = data.rows[7, 1] = np.inf
    train(DataLoader(data, batch_size=4))
    assert watch_with_batches.verdict()["rows"] == {"bad": 2, "total": 40, "first": [5, 7]}


def test_of_an_array_in_a_mapping_of_the_data_set(watch_with_batches):
    class Mapped(Rows):
        def __init__(self):
            super().__init__(torch.from_numpy, as_numpy=True)
            self.x, self.rows = {"inputs": self.rows}, None

        def __len__(self):
            return 40

        def __getitem__(self, at):
            return torch.from_numpy(self.x["inputs"][at]), torch.ones(1)

    data = Mapped()
    data.x["inputs"][:, 1] = np.nan
    train(DataLoader(data, batch_size=4))
    told = watch_with_batches.verdict()["rows"]
    assert (told["bad"], told["total"], told["place"]) == (40, 40, [1])


def test_a_batch_of_which_every_row_is_bad_at_the_same_place(watch_with_batches):
    train(DataLoader(Rows(lambda row: (row - row.mean()) / torch.tensor([1.0, 0.0])), batch_size=4))
    seen = watch_with_batches.verdict()
    assert seen["rows"] == {"bad": 4, "total": 4, "batch": True}


def test_rows_that_are_made_of_the_array_are_not_counted(watch_with_batches):
    data = Rows(lambda row: row * 2)
    data.rows[5, 0] = data.rows[7, 1] = float("nan")
    train(DataLoader(data, batch_size=4))
    seen = watch_with_batches.verdict()
    assert (seen["sample"]["dataset_index"], "rows" in seen) == (5, False)


class Opens(Rows):
    """Opens its file at the first sample, in whatever process that is."""

    def __init__(self):
        super().__init__(scaled)
        self.file = None

    def __getitem__(self, at):
        self.file = self.file or object()
        self.last = at
        return super().__getitem__(at)


def test_what_a_data_set_opens_for_it_is_not_kept(watch_with_batches):
    """Or a worker that is forked later would have the file of this process."""
    data = Opens()
    train(DataLoader(torch.utils.data.Subset(data, range(40)), batch_size=4, num_workers=1))
    seen = watch_with_batches.verdict()
    assert seen["fetched"] == {"op": "div"}
    assert data.asked == [SPOILT], "in this process"
    assert data.file is None and not hasattr(data, "last")
