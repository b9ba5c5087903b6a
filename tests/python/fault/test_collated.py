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


class Pairs:
    """Two graphs of 3 and 4 nodes; the second one's edges were moved by the 5 nodes of another part."""

    def __init__(self, added):
        edges = torch.tensor([[0, 1, 0, 2, 3], [1, 2, 1, 3, 0]])
        moved = edges + torch.tensor([0, 0, *[added] * 3])
        self._store = Store({"edge_index_t": moved, "x_t": torch.zeros(7, 2)})
        self._store._slice_dict = {"edge_index_t": torch.tensor([0, 2, 5]), "x_t": torch.tensor([0, 3, 7])}
        self._store._inc_dict = {"edge_index_t": torch.tensor([0, added]), "x_t": torch.tensor([0, 0])}


def edges_of(batch, first):
    index = torch.cat(
        [batch._store._mapping["edge_index_t"][1], torch.arange(7)]
    )  # and the loops of all nodes
    return raised_facts(index, {"lo": 0, "hi": 7, "first": first})


def test_edges_that_were_moved_by_the_nodes_of_another_part():
    assert edges_of(Pairs(5), 3) == {"attribute": "edge_index_t", "value": 3, "nodes_of": "x_t"}
    assert edges_of(Pairs(3), 3) is None  # the nodes of the graphs before it
