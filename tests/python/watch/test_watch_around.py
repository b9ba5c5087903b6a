"""What stands around the model: who sets the rate, which rows an index picks, which power of several."""

from __future__ import annotations

import math
import warnings

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from trapline._fault.data import cut  # noqa: E402
from trapline._fault.program import arisen  # noqa: E402
from trapline._library import aside  # noqa: E402

ONES = torch.ones(4, 3)


@pytest.fixture
def watch(watch_that_looks):
    return watch_that_looks


class Fades:
    def __init__(self, total):
        self.total = total

    def __call__(self, step):
        share = step / self.total
        return math.nan if share > 1 else (1 - share) ** 0.5


def fades(step):
    left = 3 - torch.tensor(float(step))
    return float(left**0.5)


def train(optimizer, scheduler, model):
    for _ in range(6):
        optimizer.zero_grad()
        model(ONES).square().mean().backward()
        optimizer.step()
        scheduler.step()


def test_the_scheduler_that_gave_a_rate_is_named_with_its_line(watch):
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, fades)
    train(optimizer, scheduler, model)
    seen = watch.verdict()
    assert (seen["kind"], seen["step"], seen["setting"]) == ("optimizer", 5, "lr=nan")
    assert seen["scheduler"] == {"name": "scheduler", "type": "LambdaLR"}
    assert seen["origin"]["code"].strip() == "return float(left**0.5)"


def test_a_rate_that_nobody_schedules_has_no_scheduler(watch):
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(3):
        optimizer.param_groups[0]["lr"] = math.nan if step == 1 else 0.01
        optimizer.zero_grad()
        model(ONES).square().mean().backward()
        optimizer.step()
    seen = watch.verdict()
    assert (seen["setting"], "scheduler" in seen) == ("lr=nan", False)


def test_rows_that_occur_twice_are_told_by_the_index_that_picks_them():
    data = torch.tensor([[1.0], [2.0], [1.0], [2.0], [3.0], [1.0], [2.0], [4.0], [5.0], [1.0]])
    idx = torch.tensor([5, 1, 7])
    batch = cut.of([data[idx]])
    assert batch is not None and batch.indices == [5, 1, 7]
    idx = torch.tensor([5, 5, 7])  # which of the two it was nobody can tell
    assert cut.of([data[idx]]) is None


def test_of_several_powers_the_one_with_that_exponent():
    """The graph says by what it was raised; NaN: by a tensor."""
    state, order = torch.tensor([-0.5, 2.0]), torch.tensor(1.5)
    rate = state.pow(0.5) / 2
    loss = ((rate - 1).pow(2) ** order).mean()
    root = (loss, arisen.made("pow", 0.5))[1]
    assert root is not None and root["text"] == "state.pow(0.5) / 2"
    assert (loss, arisen.made("pow", 2.0))[1] is None  # or is it the one by `order`?
    by_tensor = (loss, arisen.made("pow", float("nan")))[1]
    assert by_tensor is not None and by_tensor["text"] == "((rate - 1).pow(2) ** order).mean()"


def teach(teacher, sums, share):
    with torch.no_grad():
        for q, s in zip(teacher.parameters(), sums):
            q.copy_(s / share)


def test_a_teacher_whose_weights_the_program_writes(watch):
    torch.manual_seed(0)
    student, teacher = nn.Linear(3, 2), nn.Linear(3, 2)
    sums = [torch.zeros_like(p) for p in teacher.parameters()]
    optimizer = torch.optim.SGD(student.parameters(), lr=0.01)
    for step in range(1, 5):
        teach(teacher, sums, float(step != 4))
        with torch.no_grad():
            target = teacher(ONES)
        loss = (student(ONES) - target).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    seen = watch.verdict()
    assert (seen["kind"], seen["step"], seen["beside"]) == ("weights", 4, True)
    assert seen["origin"]["code"].strip() == "q.copy_(s / share)"


def test_what_the_watch_runs_again_warns_nobody(watch):
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        with aside.running():
            warnings.warn("std(): degrees of freedom is <= 0", stacklevel=1)
        warnings.warn("another", stacklevel=1)
    assert [str(one.message) for one in shown] == ["another"]
