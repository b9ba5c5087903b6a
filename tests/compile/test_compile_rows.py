"""Every row of the contracts table as a compiled program meets it: the bad calls of the conformance table.

Without TRAPLINE_LONG nothing is lowered: the graph that Inductor would get, checks and all, runs as it is.
"""

from __future__ import annotations

import math

import pytest
from conftest import LONG

torch = pytest.importorskip("torch")

import conformance  # noqa: E402

# What cannot be compiled as it stands in the conformance table, and what was seen instead.
NOT_COMPILED = {
    "_ctc_loss.targets": "Dynamo leaves what depends on lengths in tensors to the dispatcher",
    "_ctc_loss_backward.targets": "the same",
    "_validate_compressed_sparse_indices.compressed_idx": "torch's shape function reads elements",
    "_validate_compressed_sparse_indices.plain_idx": "the same",
    "binomial.prob": "numbers in the program: the operation and its check run while it is compiled",
    "_embedding_bag.indices": "Dynamo refuses to make a leaf that requires grad: test_embedding_bag",
    "_embedding_bag.offsets": "the same",
}


class Caught(IndexError, RuntimeError):
    def __init__(self, violation):
        super().__init__(violation["contract"])
        self.violation = violation


@pytest.fixture
def caught(guard, monkeypatch):
    """Compiled checks raise Caught; the guard's hooks on the dispatcher keep their own exception."""
    from trapline._guard import active

    monkeypatch.setattr(active, "on_violation", Caught)


def _as_traced(module, inputs):
    from torch._inductor.compile_fx import compile_fx

    def run_as_it_is(graph, example_inputs, **options):
        def boxed(arguments):
            return graph(*arguments)

        boxed._boxed_call = True
        return boxed

    return compile_fx(module, inputs, inner_compile=run_as_it_is)


def _public(contract):
    """In-place operations and `out=` are traced as functional ones: the row is another, not the name."""
    from trapline._library import diagnose

    row = diagnose.contract(contract)
    return row["public_op"], row["predicate"]


@pytest.mark.parametrize("call", conformance.BAD_CALLS, ids=lambda call: call.contract)
def test_bad_call_is_caught(caught, call):
    if call.contract in NOT_COMPILED:
        pytest.skip(NOT_COMPILED[call.contract])
    compiled = torch.compile(call.run, backend="inductor" if LONG else _as_traced, fullgraph=True)
    with pytest.raises(Caught) as raised:
        compiled()
    violation = raised.value.violation
    scan = violation["scan"]
    assert _public(violation["contract"]) == _public(call.contract)
    same_value = math.isnan(scan["value"]) if math.isnan(call.value) else scan["value"] == call.value
    assert same_value, scan
    assert (scan["first"], scan["bad"]) == (call.first, call.bad)
    assert violation["contract"].split(".", 1)[1] in violation["args"]
    assert 'conformance.py", line ' in violation["graph_stack"]


@pytest.mark.parametrize("number", range(len(conformance.GOOD_CALLS)))
def test_good_call_passes(caught, number):
    call = conformance.GOOD_CALLS[number]
    if "_compressed" in call.__code__.co_names:
        pytest.skip(NOT_COMPILED["_validate_compressed_sparse_indices.compressed_idx"])
    torch.compile(call, backend="inductor" if LONG else _as_traced)()


@pytest.mark.parametrize(
    ("indices", "offsets", "argument", "value"),
    [([1, 12], [0, 1], "indices", 12), ([1, 2], [0, 3], "offsets", 3)],
)
def test_embedding_bag(caught, indices, offsets, argument, value):
    table = torch.randn(10, 3, requires_grad=True)

    def bag(indices, offsets):
        return torch.nn.functional.embedding_bag(indices, table, offsets, mode="sum")

    compiled = torch.compile(bag, backend="inductor" if LONG else _as_traced, fullgraph=True)
    compiled(torch.tensor([1, 2]), torch.tensor([0, 1])).sum().backward()
    with pytest.raises(Caught) as raised:
        compiled(torch.tensor(indices), torch.tensor(offsets))
    violation = raised.value.violation
    assert violation["contract"] == f"_embedding_bag.{argument}"
    assert violation["scan"]["value"] == value


def test_every_row_is_here_or_has_a_reason():
    """A row whose operation no trace holds would have no check and no bad call to say so."""
    from trapline._compile import table
    from trapline._guard.plan import make_plans
    from trapline._library import paths

    compiled = {row.id.split(".")[0].rstrip("_") for plan in table.plans() for row in plan.rows}
    for plan in make_plans(paths.library()):
        for row in plan.rows:
            assert row.id.split(".")[0].rstrip("_") in compiled, row.id
