"""What is told of steps that are left out for a NaN, which samples are named, and what is counted."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from test_skip_loops import OPTIMIZERS, model, same
from test_skip_nan import plain, told
from torch import nn
from trapline import DeviceAssertError
from trapline._skip import ledger, policy
from trapline._watch import light

NAN = math.nan


def step_by(factor: float, net: nn.Module, optimizer: Any) -> None:
    optimizer.zero_grad()
    (F.cross_entropy(net(torch.ones(2, 4)), torch.tensor([0, 1])) * factor).backward()
    optimizer.step()


def test_only_one_is_the_first(holding, tmp_path):
    net = model()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for factor in (1.0, NAN, 1.0, NAN, 1.0):
        step_by(factor, net, optimizer)
    assert holding.counts() == (5, 2)
    assert told()[1].startswith(
        "a later NaN of this run was in step 4, in `factor`, which the loss is multiplied"
    )
    assert light._light.holding.written == 2


def test_weights_that_were_bad_before_are_told_once(holding):
    net = model()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    with torch.no_grad():
        net[0].weight[0] = NAN
    for _ in range(3):
        step_by(1.0, net, optimizer)
    assert holding.counts() == (3, 3)
    assert light._light.holding.told == 1
    assert "in the weights that the step began with: layer 0.weight" in told()[1]


def test_share_above_the_limit_raises_with_the_finding(holding):
    holding.stop()
    holding.start(limit=2.0)
    policy.by_watch(light.holding)
    net = model()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for factor in (1.0, NAN, 1.0, NAN, 1.0):
        step_by(factor, net, optimizer)
    with pytest.raises(DeviceAssertError, match="3 of 6 optimizer steps had to be skipped") as it:
        step_by(NAN, net, optimizer)
    assert it.value.finding["code"] == "TL109"
    assert ledger.mode() == "raise"
    step_by(NAN, net, optimizer)  # from now on as without skip: a step is taken, and told at the end
    assert light.verdict()["step"] == 7


def loader(x):
    from torch.utils.data import DataLoader, TensorDataset

    return DataLoader(TensorDataset(x, torch.arange(len(x)) % 3), batch_size=8)


def train_on(loader) -> None:
    net = model()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(net(x.nan_to_num() if x.isnan()[:, 0].any() else x), y).backward()
        optimizer.step()


def test_samples_of_data_that_are_not_finite(holding):
    x = torch.randn(64, 4)
    x[17, 1] = x[20, 2] = NAN
    train_on(loader(x))
    assert holding.counts() == (8, 1)
    assert [(entry["dataset_index"], entry["value"]) for entry in holding.entries()] == [
        (17, "nan"),
        (20, "nan"),
    ]
    assert holding.entries()[0]["code"] == "TL109"
    assert [len(a) for a, _ in loader(x)].count(8) == 7  # left out in the next epoch


def test_samples_are_not_named_where_such_numbers_are_usual(holding):
    x = torch.randn(64, 4)
    x[3, 0] = NAN  # the program mends it
    x[17, 1] = NAN
    train_on(loader(x))
    assert holding.counts() == (8, 1)
    assert holding.entries() == []


def test_nothing_is_asked_where_nobody_watches(holding):
    light.uninstall()
    net, _, _ = plain(OPTIMIZERS["SGD"], bad=True)
    assert holding.counts() == (8, 0)
    assert net[0].weight.isnan().any()


def test_a_healed_fault_beside_it_is_told_alone(holding):
    net = model()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    before = model()
    (F.cross_entropy(net(torch.ones(2, 4)), torch.tensor([0, 7])) * NAN).backward()
    optimizer.step()
    assert holding.counts() == (1, 1) and same(net, before) and told() == []
    step_by(1.0, net, optimizer)
    assert holding.counts() == (2, 1)


def test_the_step_after_one_that_was_left_out_is_counted_in_c_again(counted, holding):
    net = model()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(10):
        step_by(1.0, net, optimizer)
    assert light._light.hot.armed
    F.cross_entropy(net(torch.ones(2, 4)), torch.tensor([0, 7])).backward()
    optimizer.step()
    for _ in range(2):
        step_by(1.0, net, optimizer)
    assert light._light.hot.armed
    assert light.recent()[-1][0] == 13
