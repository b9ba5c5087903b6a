"""A loss made outside of modules: the program's own statements run again, and leave nothing behind."""

from __future__ import annotations

import math
import random

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.utils.data import DataLoader, Dataset  # noqa: E402
from trapline._watch import replayed  # noqa: E402

BAD = 3  # the step


@pytest.fixture
def watch(watch_that_looks):
    return watch_that_looks


def line_of(seen):
    return seen["origin"]["code"].strip()


def model_of_ones():
    model = nn.Linear(2, 2, bias=False)
    nn.init.constant_(model.weight, 1.0)
    return model


def angles(out, wind):
    unit = out / out.norm(dim=-1, keepdim=True)
    goal = wind / wind.norm(dim=-1, keepdim=True)
    return (1 - (unit * goal).sum(-1)).mean()


def train(model, loss_of, give=lambda turn: torch.ones(4, 2)):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    for turn in range(1, BAD + 2):
        out = model(torch.ones(4, 2))
        loss = loss_of(out, give(turn))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def zero_row(turn):
    wind = torch.ones(4, 2)
    wind[2] *= turn != BAD
    return wind


def test_which_of_two_divisions(watch):
    train(model_of_ones(), angles, zero_row)
    seen = watch.verdict()
    assert (seen["kind"], seen["op"], seen["step"], seen["finite_before"]) == ("loss", "div", BAD, True)
    assert line_of(seen) == "goal = wind / wind.norm(dim=-1, keepdim=True)"
    assert seen["leads"] is True  # the function that has the line is over


def test_in_the_function_that_has_the_loss(watch):
    model = model_of_ones()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    for turn in range(1, BAD + 2):
        wind = zero_row(turn)
        goal = wind / wind.norm(dim=-1, keepdim=True)
        loss = (1 - (model(torch.ones(4, 2)) * goal).sum(-1)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    seen = watch.verdict()
    assert line_of(seen) == "goal = wind / wind.norm(dim=-1, keepdim=True)"
    assert "leads" not in seen


def share_of(loss, parts):
    loss = loss / parts
    loss.backward()


def test_through_the_argument_of_a_helper_that_binds_it_anew(watch):
    model = model_of_ones()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    for turn in range(1, BAD + 2):
        optimizer.zero_grad()
        share_of(angles(model(torch.ones(4, 2)), zero_row(turn)) * 2, parts=2)
        optimizer.step()
    assert line_of(watch.verdict()) == "goal = wind / wind.norm(dim=-1, keepdim=True)"


class Trainer:
    """As a library's: the loss is a member, and what made it is a callable that it was given."""

    def __init__(self, model, loss_of):
        self.model, self.loss_of = model, loss_of
        self.seen = []
        self.count = 0

    def take(self, wind):
        self.out = self.model(torch.ones(4, 2))
        self.loss = self.loss_of(self.out, wind)
        self.back()

    def back(self):
        self.loss.backward()


def test_a_loss_that_is_a_member(watch):
    model = model_of_ones()
    trainer, optimizer = Trainer(model, angles), torch.optim.SGD(model.parameters(), lr=0.0)
    for turn in range(1, BAD + 2):
        optimizer.zero_grad()
        trainer.take(zero_row(turn))
        optimizer.step()
    assert line_of(watch.verdict()) == "goal = wind / wind.norm(dim=-1, keepdim=True)"


def test_terms_that_are_gathered_in_a_loop_and_in_branches(watch):
    def loss_of(out, wind):
        terms, total = [], 0.0
        for part in (out, wind):
            if part.requires_grad:
                terms.append(part.square().mean())
            else:
                terms.append((part / part.sum(-1, keepdim=True)).mean())
        for term in terms:
            total += term
        return total

    train(model_of_ones(), loss_of, zero_row)
    assert line_of(watch.verdict()) == "terms.append((part / part.sum(-1, keepdim=True)).mean())"


def test_the_derivative_of_a_finite_loss_and_its_line(watch):
    def loss_of(out, wind):
        far = (out - 2 * wind).square().sum(-1)
        near = (out * 0 + 1).square().sum(-1).sqrt()
        return far.sqrt().mean() + near.mean()

    model = model_of_ones()  # gives 2, 2
    train(model, loss_of, lambda turn: torch.ones(4, 2) * (1.0 if turn == BAD else 3.0))
    seen = watch.verdict()
    assert (seen["kind"], seen["op"], seen["step"]) == ("gradient", "sqrt", BAD)
    assert line_of(seen) == "return far.sqrt().mean() + near.mean()"


# What runs again leaves nothing behind --------------------------------------------------------------


def test_nothing_is_done_a_second_time(watch, capsys):
    """Calls for their effect, counters, lists, generators and tensors of the program's."""
    kept, noted = {"calls": 0}, []
    mean = torch.zeros(2)

    class Meter:
        value = 0

        def update(self, value):
            self.value += value

    meter, drawn = Meter(), []

    def loss_of(out, wind):
        print("loss")
        kept["calls"] += 1
        noted.append(1)
        meter.update(1)
        drawn.append((random.random(), float(torch.rand(()))))
        mean.mul_(0.5).add_(0.5 * wind.mean(0))
        meter.last = float(wind.sum())
        return angles(out, wind)

    model = model_of_ones()
    random.seed(0), torch.manual_seed(0)
    train(model, loss_of, zero_row)
    steps = BAD + 1
    assert watch.verdict()["step"] == BAD
    assert (kept["calls"], len(noted), meter.value, len(drawn)) == (steps,) * 4
    assert capsys.readouterr().out == "loss\n" * steps
    random.seed(0), torch.manual_seed(0)
    assert drawn == [(random.random(), float(torch.rand(()))) for _ in range(steps)]
    expected = torch.zeros(2)
    for turn in range(1, steps + 1):
        expected.mul_(0.5).add_(0.5 * zero_row(turn).mean(0))
    assert torch.equal(mean, expected)


DRAWS = torch.Generator().manual_seed(1)


@pytest.mark.parametrize("where", ["argument", "global", "cell", "member"])
def test_generators_of_the_programs_draw_no_second_time(watch, where):
    class Noise:
        generator = torch.Generator().manual_seed(1)

    own, noise = torch.Generator().manual_seed(1), Noise()
    DRAWS.manual_seed(1)

    def drawn(generator=None):
        if where == "member":
            return torch.rand(4, 2, generator=noise.generator)
        if where == "global":
            return torch.rand(4, 2, generator=DRAWS)
        return torch.rand(4, 2, generator=own if where == "cell" else generator)

    def loss_of(out, wind):
        return angles(out + drawn(own), wind)

    train(model_of_ones(), loss_of, zero_row)
    assert watch.verdict()["op"] == "div"
    expected = torch.Generator().manual_seed(1)
    for _ in range(BAD + 1):
        torch.rand(4, 2, generator=expected)
    used = {"member": noise.generator, "global": DRAWS}.get(where, own)
    assert torch.equal(used.get_state(), expected.get_state())


def test_an_iterator_of_the_programs_is_not_read_again(watch):
    rows = iter(range(1000))

    def loss_of(out, wind):
        total = 0.0
        for _, row in zip(range(2), rows):
            total = total + row * 0.0
        return angles(out, wind) + total

    train(model_of_ones(), loss_of, zero_row)
    assert watch.verdict()["step"] == BAD
    assert next(rows) == 2 * (BAD + 1)  # `zip` asks its first one first


@pytest.mark.parametrize("how", ["global", "tensor", "queue", "file"])
def test_what_would_leave_traces_does_not_run_again(watch, tmp_path, how):
    from collections import deque

    store, queue, path = torch.zeros(4, 2), deque(range(100)), tmp_path / "log"

    def loss_of(out, wind):
        if how == "global":
            global count
            count += 1
        elif how == "tensor":
            store[0] = store[0] + 1
        elif how == "queue":
            wind = wind + 0 * queue.popleft()
        else:
            file = open(path, "a")  # noqa: SIM115
            file.write("x")
            file.close()
        return angles(out, wind)

    global count
    count = 0
    train(model_of_ones(), loss_of, zero_row)
    seen = watch.verdict()
    done = {"global": count, "tensor": int(store[0, 0]), "queue": 100 - len(queue)}
    done["file"] = len(path.read_text()) if path.exists() else 0
    assert done[how] == BAD + 1
    assert (seen["kind"], seen["step"]) == ("loss", BAD)


class Rows(Dataset):
    def __init__(self, at=None, value=0.0):
        self.x = torch.rand(64, 3, generator=torch.Generator().manual_seed(1)) + 1
        if at is not None:
            self.x[at] = value

    def __len__(self):
        return len(self.x)

    def __getitem__(self, at):
        return self.x[at]


def fit(rows, loss_of, weight=1.0):
    model = nn.Linear(3, 1, bias=False)
    nn.init.constant_(model.weight, weight)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    for x in DataLoader(rows, batch_size=8):
        loss = loss_of(model(x), x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def test_the_sample_without_which_a_sum_over_the_batch_would_be_finite(watch_with_batches):
    watch = watch_with_batches

    def loss_of(out, x):
        gaps = x.std(dim=1).min()
        return out.mean() / gaps

    fit(Rows(29), loss_of)
    seen = watch.verdict()
    assert (seen["op"], seen["step"], seen["sample"]["dataset_index"]) == ("div", 4, 29)


def test_no_sample_is_blamed_where_the_models_number_is(watch_with_batches):
    """A prediction below zero has to come first in some sample: that is told as the row that it is."""
    rows = Rows()
    rows.x[29, 0] = 2.05  # hardly more than the others'
    fit(rows, lambda out, x: torch.log(out + 4.5 - x[:, :1] * 2.2).mean(), weight=0.0)
    seen = watch_with_batches.verdict()
    sample = seen["sample"]
    assert (seen["op"], seen["step"], sample["dataset_index"], sample["by"]) == ("log", 4, 29, "alone")
    assert "likely" not in sample


def test_it_costs_no_more_than_its_time(watch, monkeypatch):
    from trapline._fault.replay import session

    monkeypatch.setattr(session, "_SECONDS", -1.0)
    train(model_of_ones(), angles, zero_row)
    seen = watch.verdict()
    assert (seen["kind"], seen["step"]) == ("loss", BAD) and "finite_before" not in seen


def test_where_nothing_holds_the_loss(watch):
    assert replayed.of_loss(torch.tensor(float("nan")), []) == {}


def flow_of(out, x, generator):
    noise = torch.randn(x.shape, generator=generator)
    share = torch.randint(0, 20, (len(x), 1), generator=generator) / 19
    mixed = (1 - share) * noise + share * x
    return (out - (x - mixed) / (1 - share)).square().mean()


def test_the_numbers_that_the_program_drew_are_drawn_again(watch):
    """Only where the share is 1 the division has no finite result."""
    model, generator = model_of_ones(), torch.Generator().manual_seed(5)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    first = None
    for turn in range(1, 41):
        loss = flow_of(model(torch.ones(2, 2)), torch.ones(2, 2), generator)
        first = first or (turn if not math.isfinite(loss.item()) else None)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    drawn = torch.rand(3, generator=generator)
    seen = watch.verdict()
    assert (seen["step"], seen["op"], seen["kind"]) == (first, "div", "loss")
    assert line_of(seen) == "return (out - (x - mixed) / (1 - share)).square().mean()"
    assert seen["drawn"] is True
    assert "sample" not in seen
    again = torch.Generator().manual_seed(5)
    for _ in range(40):
        flow_of(torch.ones(2, 2), torch.ones(2, 2), again)
    assert torch.equal(drawn, torch.rand(3, generator=again))


class Scope:
    """What is around a block and is no computation."""

    def __init__(self, name):
        self.name = name

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None


def halves(x, times):
    return x if times == 0 else halves(x / 2, times - 1)


def in_a_scope(out, wind):
    kept = out * 1
    del kept
    with Scope("loss"):
        return angles(halves(out, 2), wind)


def test_through_a_block_a_del_and_a_function_that_calls_itself(watch):
    train(model_of_ones(), in_a_scope, zero_row)
    seen = watch.verdict()
    assert (seen["kind"], seen["op"], seen["step"]) == ("loss", "div", BAD)
    assert line_of(seen) == "goal = wind / wind.norm(dim=-1, keepdim=True)"


def slope_of(model, x, scale):
    out = (model(x) ** 2).sum()
    (slope,) = torch.autograd.grad(out, [model.weight], create_graph=True)
    return (slope / scale).sum()


def test_an_inner_loop_that_asks_for_gradients(watch):
    model = model_of_ones()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    for turn in range(1, BAD + 2):
        scales = torch.tensor([1.0, float(turn != BAD)])
        total = 0.0
        for part in range(2):
            total = total + slope_of(model, torch.ones(2, 2), scales[part])
        total = total / 2
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
    seen = watch.verdict()
    assert (seen["kind"], seen["op"], seen["step"]) == ("loss", "div", BAD)
    assert line_of(seen) == "return (slope / scale).sum()"


def aspects(out, boxes):
    """Of YOLO's loss of boxes: what is kept out of the graph holds the same NaN as what is in it."""
    v = (torch.atan(boxes[:, 0] / boxes[:, 1]) - torch.atan(out[:, 0] / (1 + out[:, 1]))) ** 2
    with torch.no_grad():
        alpha = v / (1 + v)
    return (v * alpha).mean()


def test_a_loss_in_an_expression_with_a_factor_of_its_own(watch):
    model = model_of_ones()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    for turn in range(1, BAD + 2):
        boxes = torch.ones(4, 2)
        boxes[2] *= turn != BAD
        part = aspects(model(torch.ones(4, 2)), boxes)
        optimizer.zero_grad()
        (part * 0.5 + 1.0).backward()
        optimizer.step()
    seen = watch.verdict()
    assert (seen["kind"], seen["op"], seen["step"], "factor" in seen) == ("loss", "div", BAD, False)
    assert "boxes[:, 0] / boxes[:, 1]" in line_of(seen)
