"""The line of the program that called a module, by its text."""

import sys

import torch
from trapline._fault.program import called


def here():
    return sys._getframe(1).f_lineno


def test_the_only_call_before_the_line():
    criterion, model = torch.nn.MSELoss(), torch.nn.Linear(2, 1)
    at = here() + 1
    loss = criterion(model(torch.ones(3, 2)), torch.ones(3, 1))
    assert loss.dim() == 0
    assert called.line_of([criterion])["origin"]["line"] == at
    assert called.line_of([model])["origin"]["line"] == at
    assert called.line_of([torch.nn.ReLU()]) == {}
    criterion(loss, loss)
    assert called.line_of([criterion]) == {}  # which of the two


def test_the_branch_that_ran():
    parts = {"head": torch.nn.Linear(2, 1)}
    twice = False
    if twice:
        made = parts["head"](torch.ones(4, 2))
    else:
        at = here() + 1
        made = parts["head"](torch.ones(3, 2))
    assert len(made) == 3
    assert called.line_of([parts["head"]])["origin"]["line"] == at
