"""What a program that caught a fault can still do with what came of it: nothing without another report."""

from __future__ import annotations

import contextlib

import late
import pytest
import torch
import torch.nn.functional as F
from programs import Fault
from torch.utils.checkpoint import checkpoint

D = "cuda"


@pytest.fixture
def logits(guard):
    return torch.randn(4, 5).to(D).requires_grad_()


@pytest.fixture
def bad():
    return torch.tensor([0, 9, 4, 2]).to(D)


def caught(call):
    with pytest.raises(Fault) as raised:
        call()
    return raised.value.violation


def test_a_tensor_that_was_reported_is_checked_again(guard, logits, bad):
    for turn in range(3):  # a notebook's cell that is run again, a loop that tries again
        loss = F.cross_entropy(logits, bad)
        violation = caught(loss.item)
        assert violation["scan"]["value"] == 9 and not violation["again"], turn
    assert len(guard.violations) == 3 and not late.poisoned()


def test_another_operation_on_it_is_checked_again(guard, logits, bad):
    caught(F.cross_entropy(logits, bad).item)
    violation = caught(F.multi_margin_loss(logits, bad).item)
    assert violation["contract"] == "multi_margin_loss.target"


@pytest.mark.parametrize(
    "read", [lambda t: t.item(), lambda t: t.cpu(), lambda t: t.nonzero(), lambda t: (t * 2).exp().tolist()]
)
def test_what_autograd_knows_to_come_of_it_is_told_again(guard, logits, bad, read):
    loss = F.cross_entropy(logits, bad)
    assert not caught(torch.cuda.synchronize)["again"]
    for _ in range(2):
        violation = caught(lambda: read(loss))
        assert violation["again"] and violation["scan"]["value"] == 9
    other = F.cross_entropy(logits, torch.tensor([0, 1, 4, 2]).to(D))
    assert other.item() > 0 and logits.sum().cpu() is not None  # of the same leaf, by another call
    assert caught((loss + other).item)["again"]


@pytest.mark.parametrize("how", ["backward", "grad"])
def test_no_backward_pass_begins_with_it(guard, logits, bad, how):
    loss = F.cross_entropy(logits, bad)
    caught(loss.item)
    call = loss.backward if how == "backward" else lambda: torch.autograd.grad(loss, logits)
    assert caught(call)["again"]
    assert logits.grad is None
    F.cross_entropy(logits, torch.tensor([0, 1, 4, 2]).to(D)).backward()
    assert torch.isfinite(logits.grad.cpu()).all()


def test_what_is_known_before_backward_is_raised_before_it(guard, logits, bad):
    loss = F.cross_entropy(logits, bad)
    late.come()
    violation = caught(loss.backward)
    assert not violation["again"] and logits.grad is None


def test_a_pass_in_a_thread_of_autograd_raises_what_its_program_caused(guard, logits, bad):
    """Its own guarded calls come by: the program itself stands in backward()."""
    seen, device = [], contextlib.ExitStack()

    class Waits(torch.autograd.Function):
        @staticmethod
        def forward(ctx, value):
            return value * 1

        @staticmethod
        def backward(ctx, gradient):
            device.close()
            late.come()  # only now has the check of the forward call run
            seen.append(len(guard.violations))
            return gradient

    target = torch.tensor([0, 1, 4, 2]).to(D)
    device.enter_context(late.held())
    F.cross_entropy(logits, bad)  # nobody reads it
    loss = Waits.apply(F.cross_entropy(logits, target))
    violation = caught(loss.backward)
    assert violation["scan"]["value"] == 9 and seen == [0]
    assert logits.grad is None


def test_recomputation_in_backward_is_no_second_fault(guard, bad):
    table = torch.randn(9, 3).to(D).requires_grad_()
    with late.held():
        rows = checkpoint(F.embedding, bad, table, use_reentrant=False)
        rows.sum().backward()
    assert caught(torch.cuda.synchronize)["scan"]["value"] == 9
    torch.cuda.synchronize()
    assert len(guard.violations) == 1 and not late.poisoned()


def test_a_call_that_shared_the_copy_is_known_too(guard, logits, bad):
    with late.held():
        first, second = F.cross_entropy(logits, bad), F.cross_entropy(logits * 2, bad)
    assert guard.counts()["reused"] > 0
    assert not caught(torch.cuda.synchronize)["again"]
    assert caught(second.item)["again"] and caught(first.item)["again"]


def test_two_threads_with_one_bad_tensor(guard, logits, bad):
    import threading

    def work(found):
        for _ in range(20):
            try:
                F.cross_entropy(logits, bad).item()
                found.append("a number")
            except Fault:
                found.append("told")

    told = [[], []]
    threads = [threading.Thread(target=work, args=(found,)) for found in told]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert told == [["told"] * 20] * 2 and not late.poisoned()


def test_what_the_handler_has_dealt_with_is_no_news(guard, adapter, logits, bad):
    adapter.uninstall()
    adapter.install(lambda violation: guard.violations.append(violation) or True)  # as --on-fault skip
    loss = F.cross_entropy(logits, bad)
    assert loss.item() > 0
    loss.backward()
    assert loss.item() > 0
    torch.cuda.synchronize()
    assert len(guard.violations) == 1
