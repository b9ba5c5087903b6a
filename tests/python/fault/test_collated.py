"""Numbers that the batching of graphs has raised, by what torch_geometric's Batch keeps of it."""

import pytest
from conftest import table_violation

torch = pytest.importorskip("torch")
from trapline._fault.data.collated import raised_facts  # noqa: E402


class Store:
    def __init__(self, mapping):
        self._mapping = mapping


class Batch:
    """As torch_geometric.data.Batch: three graphs of 12, 9 and 4 nodes with one number each."""

    def __init__(self, numbers, added=(0, 12, 21)):
        added = torch.tensor(added)
        self._store = Store({"solvent_index": torch.tensor(numbers) + added})
        self._store._slice_dict = {"solvent_index": torch.tensor([0, 1, 2, 3])}
        self._store._inc_dict = {"solvent_index": added}


def facts(batch, index=None):
    index = batch._store._mapping["solvent_index"] if index is None else index
    return raised_facts(index, table_violation(torch.zeros(12, 2), index)["scan"])


def test_without_what_was_added_all_would_be_valid():
    batch = Batch([3, 5, 11])
    assert facts(batch) == {"attribute": "solvent_index", "value": 5}
    assert facts(batch, torch.tensor([3, 17, 32])) == {"attribute": "solvent_index", "value": 5}, "a copy"


@pytest.mark.parametrize(
    "batch",
    [Batch([3, 15, 11]), Batch([3, 5, 11], added=(0, 0, 0)), Batch([3, 5, -2])],
    ids=["far", "none", "below"],
)
def test_else_nothing_is_said(batch):
    index = batch._store._mapping["solvent_index"]
    scan = {"lo": 0, "hi": 12, "first": 1}
    assert raised_facts(index, scan) is None


def test_other_numbers_are_not_meant():
    batch = Batch([3, 5, 11])
    assert facts(batch, torch.tensor([3, 17, 31])) is None
    del batch._store._inc_dict
    assert facts(batch) is None
