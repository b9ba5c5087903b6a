"""The operations that a finite loss leaves as makers of a gradient that is not finite."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from trapline._watch.candidates import candidates, doubt, left_of  # noqa: E402

X = torch.ones(3, 2)


class Own(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        del ctx
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        del ctx
        return gradient


LOSSES = {
    "a division whose result is seen": (lambda x: (x / x.sum()).mean(), []),
    "a division behind where": (lambda x: torch.where(x > 0, x / x.sum(), x).mean(), ["div"]),
    "a logarithm behind exp": (lambda x: x.log().exp().sum(), ["log"]),
    "a logarithm as a divisor": (lambda x: (x / (x + 1).log()).sum(), ["log"]),
    "a square": (lambda x: ((x - 1) ** 2).mean() / 3, []),
    "a root and a logarithm that is seen": (lambda x: (x.sqrt() - x.log()).mean(), ["sqrt"]),
    "a reciprocal of a root": (lambda x: (x.log() ** -1.0).mean(), ["pow", "log"]),
    "one of the program's own": (lambda x: Own.apply(x / x.sum()).mean(), ["Own.backward", "div"]),
}


@pytest.mark.parametrize("name", LOSSES)
def test_what_is_left(name):
    loss_of, expected = LOSSES[name]
    loss = loss_of(X.clone().requires_grad_())
    node = loss.grad_fn
    loss.backward()  # frees what was saved
    assert candidates(node) == expected


def test_of_those_that_lead_to_bad_parameters_alone():
    fine, bad = (torch.ones(2, requires_grad=True) for _ in range(2))
    loss = (fine / fine.sum() * Own.apply(bad)).exp().sum()
    node = loss.grad_fn
    assert candidates(node) == ["div", "Own.backward"]
    assert candidates(node, {id(bad)}) == ["Own.backward"]
    assert candidates(node, {id(bad), id(fine)}) == ["div", "Own.backward"]


def test_one_that_is_left_alone_is_named():
    loss = X.clone().requires_grad_().sqrt().mean()
    assert left_of(loss.grad_fn, None) == {"op": "sqrt", "alone": True}
    assert left_of(loss.grad_fn, [("SqrtBackward0", (), [])]) == {}


def test_not_where_numbers_may_have_overflowed():
    fact = {"op": "sqrt", "alone": True, "growth": {"high": 1e9}}
    doubt(fact)
    assert fact == {"made_with": ["sqrt"], "growth": {"high": 1e9}}
    fact = {"op": "sqrt", "alone": True, "growth": {"high": 9.0}}
    doubt(fact)
    assert fact == {"op": "sqrt", "growth": {"high": 9.0}}
