"""The statement that made one of several things, or a member."""

import pytest

torch = pytest.importorskip("torch")
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402
from trapline._fault.data import entries  # noqa: E402
from trapline._fault.program import sourced  # noqa: E402

NODES, KINDS = 5, 3


def quoted(variable, tensor):
    found = sourced.sourced_facts(variable, tensor)
    return None if found is None else (found["name"], found["text"])


def build(heads, kinds):
    index = torch.stack([heads, heads.flip(0)])
    kind = torch.cat([kinds, kinds + KINDS, torch.full((NODES,), 2 * KINDS)])
    return index, kind


def layer(kinds):
    return quoted("kinds", kinds)


def test_one_of_the_things_that_a_function_gives():
    index, kind = build(torch.arange(NODES), torch.zeros(NODES, dtype=torch.long))
    made = "torch.cat([kinds, kinds + KINDS, torch.full((NODES,), 2 * KINDS)])"
    assert quoted("kind", kind) == ("kind", made)
    assert layer(kind) == ("kind", made)  # through the function that it was given to
    assert index.shape == (2, NODES)


def test_what_a_library_gives():
    best, places = torch.rand(2, 4).topk(2)
    assert quoted("places", places) == ("best, places", "torch.rand(2, 4).topk(2)")
    assert best.shape == places.shape


class Loaders:
    def __init__(self, labels):
        self.labels = labels * 10

    def loader(self):
        return DataLoader(TensorDataset(torch.rand(4, 2), self.labels), batch_size=2)


def test_through_a_loader_that_a_method_makes():
    for x, label in Loaders(torch.arange(4)).loader():
        assert entries.entry_facts("label", label)["text"] == "labels * 10"
        assert entries.entry_facts("x", x)["text"] == "torch.rand(4, 2)"


def test_nothing_where_a_loop_gives_another():
    _, second = build(torch.arange(NODES), torch.arange(NODES))
    for turn in range(2):
        if turn:
            assert quoted("second", second) is None
        _, second = build(second, second)


class Walker:
    def __init__(self, size):
        self.at = torch.randint(0, size, (3,))
        self.seen = torch.zeros(3)

    def step(self):
        at = self.at
        return quoted("at", at), quoted("self.at", self.at), quoted("self.seen", self.seen)

    def reset(self):
        self.seen = torch.ones(3)


def test_a_member():
    at, of_self, seen = Walker(4).step()
    assert at == of_self == ("self.at", "torch.randint(0, size, (3,))")
    assert seen is None  # of two statements the one or the other
