"""Which record a call of a module was for, where a loop over some of them is over."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

EMPTY = 17  # a cloud whose points are all 0
CLOUDS = [torch.full((2, 3), float(at != EMPTY)) * (1 + at % 5) for at in range(40)]
SIZE = 8


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(3, 1)

    def forward(self, points):
        return self.head(points / points.norm()).mean()


def learn(optimizer, losses):
    optimizer.zero_grad()
    sum(losses).backward()
    optimizer.step()


# What the module is given, `cloud[:1]`, is nobody's entry.


def of_loop(net, optimizer, numbers):
    clouds, losses = [CLOUDS[number] for number in numbers], []
    for cloud in clouds:
        losses.append(net(cloud[:1]))
    learn(optimizer, losses)


def of_list(net, optimizer, numbers):
    clouds = [CLOUDS[number] for number in numbers]
    learn(optimizer, [net(cloud[:1]) for cloud in clouds])


def of_counted(net, optimizer, numbers):
    clouds, losses = [CLOUDS[number] for number in numbers], []
    for at, cloud in enumerate(clouds):
        losses.append(net(cloud[:1]) - at)
    learn(optimizer, losses)


def of_pairs(net, optimizer, numbers):
    clouds, far = [CLOUDS[number] for number in numbers], [1.0] * len(numbers)
    losses = [net(cloud[:1]) - one for cloud, one in zip(clouds, far)]
    learn(optimizer, losses)


def of_numbers(net, optimizer, numbers):
    losses = [net(CLOUDS[number][:1]) for number in numbers]
    learn(optimizer, losses)


def of_some(net, optimizer, numbers):
    """Which call was for which record?"""
    clouds, losses = [CLOUDS[number] for number in numbers], []
    for cloud in clouds:
        if float(cloud.sum()) > 20:
            continue
        losses.append(net(cloud[:1]))
    learn(optimizer, losses)


def seen_by(watch, step_of):
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
    order = torch.randperm(len(CLOUDS), generator=torch.Generator().manual_seed(1)).tolist()
    for at in range(0, len(CLOUDS), SIZE):
        step_of(net, optimizer, order[at : at + SIZE])
    seen = watch.verdict()
    assert (seen["step"], seen["op"]) == (order.index(EMPTY) // SIZE + 1, "div")
    return seen


@pytest.mark.parametrize("step_of", [of_loop, of_list, of_counted, of_pairs, of_numbers])
def test_the_record_of_the_only_call_that_is_bad(watch, step_of):
    sample = seen_by(watch, step_of)["sample"]
    assert (sample["dataset_index"], sample["dataset"]["name"]) == (EMPTY, "CLOUDS")
    assert sample["by"] == "loop" and sample["likely"]


def test_turns_that_call_nothing_say_nothing(watch):
    assert "dataset_index" not in seen_by(watch, of_some).get("sample", {})
