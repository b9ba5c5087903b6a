"""What the watch must not do to a healthy program: run a checkpoint again, hold on to a parameter."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.utils import checkpoint as checkpoints  # noqa: E402

STEPS = 8  # more than are looked at whatever it costs


def looks_at_nothing_that_a_hook_gives():
    from trapline._fault.model.autograd import is_packed

    packed = checkpoints.checkpoint(torch.exp, torch.ones(2, requires_grad=True), use_reentrant=False)
    return is_packed(packed.grad_fn)


@pytest.mark.skipif(not looks_at_nothing_that_a_hook_gives(), reason="this PyTorch does not tell of hooks")
def test_a_checkpoint_runs_as_often_as_without_it(watch):
    calls = []

    def block(x):
        calls.append(len(calls))
        x = x / (x * x + 1).sqrt()
        return x.exp().log() * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6)

    model = nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for turn in range(1, STEPS + 1):
        optimizer.zero_grad()
        checkpoints.checkpoint(block, model(torch.ones(2, 4)), use_reentrant=False).sum().backward()
        optimizer.step()
        assert len(calls) == 2 * turn
    assert watch.verdict() is None


def test_what_a_checkpoint_saved_is_not_asked_for_where_the_loss_is_nan(watch):
    calls = []

    def block(x):
        calls.append(len(calls))
        return (x / (0.0 if len(optimizers) else 1.0)).exp()

    model, optimizers = nn.Linear(4, 4), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for turn in range(1, 4):
        optimizers[:] = [optimizer] if turn == 3 else []
        optimizer.zero_grad()
        x = model(torch.ones(2, 4)) * (0.0 if turn == 3 else 1.0)
        loss = checkpoints.checkpoint(block, x, use_reentrant=False).sum()
        before = len(calls)
        loss.backward()
        optimizer.step()
        assert len(calls) == before + 1  # its own recomputation
    assert watch.verdict()["step"] == 3


@pytest.fixture
def swaps():
    torch.__future__.set_swap_module_params_on_conversion(True)
    yield
    torch.__future__.set_swap_module_params_on_conversion(False)


@pytest.mark.parametrize("with_optimizer", [True, False])
def test_parameters_can_be_swapped(watch, swaps, with_optimizer):
    model = nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01) if with_optimizer else None
    for _ in range(STEPS):
        model.zero_grad()
        model(torch.ones(2, 4)).sum().backward()
        if optimizer is not None:
            optimizer.step()
    model.zero_grad()
    model.double()
    model.load_state_dict(nn.Linear(4, 4).double().state_dict())
    assert model.weight.dtype is torch.float64
