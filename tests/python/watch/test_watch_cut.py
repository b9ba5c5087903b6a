"""Whose row it is in a program without a DataLoader, or with one of another kind than PyTorch's own."""

from __future__ import annotations

import math

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.utils.data import BatchSampler, DataLoader, Dataset, SequentialSampler  # noqa: E402
from trapline._fault.data import batches, cut, picked  # noqa: E402
from trapline._fault.model.autograd import bad_constant  # noqa: E402


@pytest.fixture
def watch(watch_with_batches):
    return watch_with_batches


class Log(nn.Module):
    """Of the input, which no training changes."""

    def __init__(self):
        super().__init__()
        self.head = nn.Linear(2, 1)

    def forward(self, x):
        return self.head(x.log())


def measured(count=40, bad=None):
    data = torch.rand(count, 2, generator=torch.Generator().manual_seed(1)) + 1.0
    if bad is not None:
        data[bad, 1] = 0.0
    return data


def train(model, parts):
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for x in parts:
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()


def test_the_row_of_an_array_that_is_cut_by_hand(watch):
    table = measured(bad=27)
    order = torch.randperm(40, generator=torch.Generator().manual_seed(3))
    train(Log(), [table[rows] for rows in order.split(8)])
    seen = watch.verdict()
    sample = seen["sample"]
    assert (seen["kind"], seen["op"], sample["dataset_index"]) == ("output", "log", 27)
    assert sample["dataset"] == {"name": "table", "type": "Tensor", "length": 40}
    assert "batch" not in sample


def test_of_an_array_that_is_trained_on_as_a_whole(watch):
    table = {"train": measured(bad=11), "other": measured(12)}
    train(Log(), [table["train"]])
    sample = watch.verdict()["sample"]
    assert (sample["dataset_index"], sample["dataset"]["name"]) == (11, "table['train']")


def test_of_a_frame_and_of_doubles():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(measured().double().numpy())
    given = torch.tensor(frame.to_numpy()[[7, 3, 30]], dtype=torch.float32)
    batch = cut.of([given])
    assert batch.indices == [7, 3, 30]
    assert batch.loader.data_set() is frame


def test_of_the_longer_array_and_not_of_the_batch_itself():
    table = measured()
    here = table[[4, 9]].clone()
    batch = cut.of([here.clone()])
    assert batch.indices == [4, 9] and batch.loader.data_set() is table


@pytest.mark.parametrize("kind", ["twice", "missing", "whole numbers"])
def test_not_where_a_row_cannot_be_told(kind):
    table = measured()
    given = table[[4, 9]].clone()
    if kind == "twice":
        table[20] = table[9]
    elif kind == "missing":
        given[1, 0] += 1e-3
    else:
        given = given.long()
    assert cut.of([given]) is None


def test_rows_with_numbers_that_are_not_finite():
    table = measured()
    table[9, 0], table[10, 0], table[11, 0] = math.nan, math.inf, -math.inf
    given = table[[11, 9, 10]].clone()
    assert cut.of([given]).indices == [11, 9, 10]


def test_only_where_no_loader_has_given_out_a_batch(watch):
    table = measured(bad=27)
    list(DataLoader(torch.arange(4)))
    with cut.standing_in([table[20:30].clone()]):
        assert batches.stand_in is None
    batches._noted.clear()
    with cut.standing_in([table[20:30].clone()]):
        assert batches.newest_first()[0].indices == list(range(20, 30))
    assert batches.newest_first() == []


class Columns(Dataset):
    """Indexed by a list, and kept as members of members, as torch_choice does."""

    def __init__(self, price):
        self.parts = {"item": Part(price)}

    def __len__(self):
        return len(self.parts["item"].price)

    def __getitem__(self, rows):
        return Given(self.parts["item"].price, rows, self.shared)


class Part:
    def __init__(self, price):
        self.price = price


class Given:
    def __init__(self, price, rows, shared):
        self.rows = rows
        self.parts = {"item": Part(price if shared else price[rows])}

    def chosen(self):
        price = self.parts["item"].price
        return price[self.rows] if len(price) != len(self.rows) else price


@pytest.mark.parametrize("shared", [False, True])
def test_a_batch_sampler_as_the_sampler(watch, shared):
    price = measured()
    price[13, 0] = math.inf
    data = Columns(price)
    data.shared = shared
    sampler = BatchSampler(SequentialSampler(data), batch_size=8, drop_last=False)
    train(nn.Linear(2, 1), (b.chosen() for b in DataLoader(data, sampler=sampler, collate_fn=lambda x: x[0])))
    seen = watch.verdict()
    assert (seen["kind"], seen["what"]) == ("input", "inf")
    assert (seen["sample"]["dataset_index"], seen["sample"]["batch"]) == (13, 1)


class Frame:
    """torch_frame's: the loader draws numbers, and cuts this one."""

    def __init__(self, values):
        self.values = values

    def __len__(self):
        return len(self.values)


class FrameLoader(DataLoader):
    def __init__(self, frame, **more):
        self.frame = frame
        super().__init__(range(len(frame)), collate_fn=self.cut, **more)

    def cut(self, rows):
        return self.frame.values[rows]


def test_a_loader_that_draws_numbers(watch):
    values = measured()
    values[13, 0] = math.inf
    loader = FrameLoader(Frame(values), batch_size=8)
    train(nn.Linear(2, 1), loader)
    sample = watch.verdict()["sample"]
    assert (sample["dataset_index"], sample["dataset"]["name"]) == (13, "loader.frame")


class Mended(nn.Module):
    """Puts the largest number where an infinity was, which overflows."""

    def __init__(self):
        super().__init__()
        self.head = nn.Linear(2, 1)

    def forward(self, x):
        return self.head(torch.nan_to_num(x) * 10.0)


@pytest.mark.parametrize("before", [False, True])
def test_the_only_batch_that_is_not_finite(watch, before):
    values = measured()
    values[37, 0] = math.inf
    if before:  # such numbers are nothing new
        values[2, 1] = math.nan
    train(Mended(), DataLoader(values, batch_size=8))
    seen = watch.verdict()
    assert (seen["kind"], seen["op"]) == ("output", "mul")
    assert seen.get("spoilt") == (None if before else "inf")
    if not before:
        assert (seen["sample"]["dataset_index"], seen["sample"]["batch"]) == (37, 4)


def test_a_target_behind_a_choice():
    """Huber's loss as libraries write it: what is chosen is not finite."""
    out = torch.ones(4, requires_grad=True)
    target = torch.tensor([1.0, 2.0, -math.inf, 0.0])

    def loss(beta):
        off = target - out * 1.0
        near = off.detach().abs() < beta
        return torch.where(near, 0.5 * off**2, beta * (off.abs() - 0.5))

    found = bad_constant(loss(1.0).mean().grad_fn)
    assert found.tolist() == [0.0, 1.0, -math.inf, -1.0]


def test_not_behind_a_choice_that_hides_it():
    out = torch.ones(2, requires_grad=True)
    off = torch.tensor([math.inf, 2.0]) - out * 1.0
    loss = torch.where(off.detach().isfinite(), off**2, torch.zeros(2)).mean()
    assert bad_constant(loss.grad_fn) is None


class Codebook(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("codes", torch.ones(3, 2))
        self.register_buffer("count", torch.ones(3))

    @torch.no_grad()
    def update(self):
        self.codes.copy_(self.codes / self.count.unsqueeze(1))

    def forward(self, x):
        return (x.unsqueeze(1) * self.codes).sum(2)


class Coded(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.book = nn.Linear(2, 2), Codebook()

    def forward(self, x):
        return self.book(self.inner(x))


def test_the_line_that_wrote_a_buffer(watch):
    model = Coded()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for number in range(1, 4):
        if number == 3:
            model.book.count.zero_()
            model.book.codes.zero_()
            model.book.update()
        optimizer.zero_grad()
        model(torch.ones(4, 2)).square().mean().backward()
        optimizer.step()
    seen = watch.verdict()
    assert (seen["kind"], seen["name"], seen["buffer"]) == ("weights", "book.codes", True)
    assert seen["origin"]["code"].strip() == "self.codes.copy_(self.codes / self.count.unsqueeze(1))"


def test_a_single_number_that_the_loss_is_multiplied_with(watch):
    """Of many that are as bad it is the one of the same memory."""
    model, best = nn.Linear(2, 1), torch.tensor(math.inf)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for number in range(1, 4):
        share = torch.tensor(2.0) ** (200 if number == 3 else 2)
        optimizer.zero_grad()
        (share * model(torch.ones(4, 2)).square().mean()).backward()
        optimizer.step()
    seen = watch.verdict()
    assert (seen["factor"], seen["computed"]["name"]) == (True, "share")
    del best


def normalized(adjacent):
    scale = adjacent.sum(1).pow(-0.5)
    return scale[:, None] * adjacent * scale[None, :]


class Graph(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(2, 1)

    def forward(self, adjacent, x):
        return adjacent @ self.head(x)


def test_what_is_computed_beside_the_rows_is_no_data(watch):
    """The numbers that are not finite were made of other ones, whose rows are those of the batch."""
    table = measured()
    adjacent = torch.ones(40, 40)
    adjacent[27] = 0.0
    model = Graph()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for rows in torch.arange(40).split(8):
        part = adjacent[rows][:, rows]
        optimizer.zero_grad()
        loss = model(normalized(part), table[rows]).square().mean()
        loss.backward()
        optimizer.step()
    seen = watch.verdict()
    assert (seen["step"], seen.get("inf_before", seen)["op"]) == (4, "pow")
    assert seen["origin"]["code"].strip() == "scale = adjacent.sum(1).pow(-0.5)"
    assert seen["sample"]["dataset_index"] == 27


def test_the_row_of_a_target_beside_the_models_own_numbers(watch):
    """A loss that is a module is given the model's output first, which is no array of the program's data."""
    table, goals = measured(), measured(40)
    goals[27, 0] = math.nan
    model, criterion = nn.Linear(2, 2), nn.SmoothL1Loss()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for rows in torch.arange(40).split(8):
        pred = model(table[rows])
        loss = criterion(pred, goals[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    seen = watch.verdict()
    assert seen["kind"] in ("input", "target") and seen["step"] == 4
    assert seen["sample"]["dataset_index"] == 27
    assert seen["sample"]["dataset"]["name"] in ("table", "goals")


def test_the_place_in_a_table_that_the_program_has_made(watch):
    pandas = pytest.importorskip("pandas")
    made = pandas.DataFrame(measured().double().numpy(), columns=["speed", "load"])
    made.iloc[27, 1] = math.nan
    scaled = (made - 1.0) / 2.0
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for rows in torch.arange(40).split(8):
        optimizer.zero_grad()
        model(torch.tensor(scaled.to_numpy()[rows], dtype=torch.float32)).square().mean().backward()
        optimizer.step()
    seen = watch.verdict()
    assert (seen["kind"], seen["step"]) == ("input", 4)
    assert seen["element"] == {"name": "scaled.iloc", "index": [27, 1], "value": "nan"}
    assert seen["origin"]["code"].strip() == "scaled = (made - 1.0) / 2.0"
    assert seen["sample"]["dataset"]["name"] == "scaled.iloc"


def test_a_target_is_named_by_the_array_that_holds_it(watch_that_looks):
    torch.manual_seed(0)
    X, Y = torch.randn(64, 3), torch.randn(64)
    Y[41] = float("nan")
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for idx in torch.arange(64).split(16):
        optimizer.zero_grad()
        ((model(X[idx]).squeeze(1) - Y[idx]) ** 2).mean().backward()
        optimizer.step()
    seen = watch_that_looks.verdict()
    assert (seen["kind"], seen["step"]) == ("target", 3)
    assert (seen["sample"]["dataset"]["name"], seen["sample"]["dataset_index"]) == ("Y", 41)
    assert (seen["sample"]["row"], "likely" in seen["sample"]) == (9, False)


def test_the_row_that_the_program_picks_where_no_module_is(watch):
    """A model of bare tensors, and what was computed of the rows is equal to none."""
    x, offset = measured()[:, 0] - 1.0, torch.zeros(40)
    offset[27] = -200.0
    weight = torch.zeros((), requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=1e-3)
    order = torch.randperm(40, generator=torch.Generator().manual_seed(3))
    for start in range(0, 40, 8):
        idx = order[start : start + 8]
        present = 1.0 - torch.exp(-torch.exp(weight * x[idx] + offset[idx]))
        optimizer.zero_grad()
        present.log().mean().backward()
        optimizer.step()
    seen = watch.verdict()
    assert (seen["op"], seen["what"]) == ("log", "inf")
    assert (seen["sample"]["dataset_index"], seen["sample"]["likely"]) == (27, True)


def test_no_row_where_the_program_picks_by_several_indices():
    def both(table, one, other):
        first, second = table[one], table[other]
        return picked.by_text(), first, second

    def alone(table, one):
        first = table[one]
        return picked.by_text(), first

    table, one, other = measured(), torch.tensor([4, 9, 2]), torch.tensor([7, 8, 3])
    assert both(table, one, other)[0] is None
    (held,), index = alone(table, one)[0]
    assert held is table and index == [4, 9, 2]
    assert alone(table, torch.tensor([True] * 40))[0] is None
    assert alone(table, torch.tensor([4, 4]))[0] is None


def test_rows_by_a_slice_of_variables():
    def step(table, at, size):
        part = table[at : at + size]
        return picked.by_text(), part

    def written(table, rows):
        part = table[rows]
        return picked.by_text(), part

    def unknown(table, at):
        part = table[at : at + len(table)]
        return picked.by_text(), part

    table = measured()
    assert step(table, 8, 4)[0][1] == [8, 9, 10, 11]
    assert step(table, 38, 4)[0][1] == [38, 39]
    assert written(table, slice(3, 6))[0][1] == [3, 4, 5]
    assert unknown(table, 8)[0] is None
    assert step(table, 39, 4)[0] is None  # one row is no batch


def test_data_that_a_scripted_net_hides(watch):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(2, 4), nn.Linear(4, 1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.b(torch.tanh(self.a(x)))

    data, net = measured(), torch.jit.script(Net())
    data[27, 1] = math.inf
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
    for idx in torch.randperm(40, generator=torch.Generator().manual_seed(3)).split(8):
        optimizer.zero_grad()
        net(data[idx]).square().mean().backward()
        optimizer.step()
    seen = watch.verdict()
    assert seen["kind"] == "input"
    assert seen["sample"]["dataset_index"] == 27 and seen["element"]["index"] == [27, 1]


def test_a_record_that_a_loop_draws_and_not_what_it_drew_of_it(watch):
    class Root(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.ones(()))

        def forward(self, x):
            return (self.scale * x).sqrt()

    bench = [(torch.rand(12) + 0.5, torch.rand(12)) for _ in range(9)]
    bench[5][0][7] = 0.0
    model = Root()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for x, y in bench:
        optimizer.zero_grad()
        (model(x) - y).square().mean().backward()
        optimizer.step()
    seen = watch.verdict()
    assert (seen["kind"], seen["op"]) == ("gradient", "sqrt")
    assert seen["sample"]["dataset_index"] == 5 and seen["sample"]["dataset"]["name"] == "bench"


def test_what_a_module_was_given_by_the_name_and_the_line_of_the_program(watch):
    """Data that no array of the program's holds, and no loader has given out."""
    net = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
    for number in range(6):
        scene = torch.stack([measured(4, 1 if number == 4 else None)[:, 1].log(), torch.ones(4)], 1)
        optimizer.zero_grad()
        net(scene).mean().backward()
        optimizer.step()
    seen = watch.verdict()
    assert (seen["kind"], seen["element"]["name"], seen["element"]["index"]) == ("input", "scene", [1, 0])
    assert seen["origin"]["code"].strip().startswith("scene = torch.stack")
