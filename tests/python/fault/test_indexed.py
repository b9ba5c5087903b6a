"""What made the tensor that an index is used on."""

import pytest

torch = pytest.importorskip("torch")
from trapline._fault.program import indexed  # noqa: E402

USERS = torch.tensor([0, 3, 5])


def facts_of(tensor):
    found = indexed.indexed_facts(tensor)
    return found and (found["name"], found["text"])


def test_the_statement_that_made_it():
    hits = torch.zeros(len(USERS), 4)
    assert facts_of(hits) == ("hits", "torch.zeros(len(USERS), 4)")
    rows = hits[1:].float()
    assert facts_of(rows.to("cpu")) == ("rows", "hits[1:].float()")


def test_what_is_made_like_another_has_its_size():
    scores = USERS.float().reshape(-1, 1)
    places = scores + 1.0
    one_hot = torch.zeros_like(places)
    assert facts_of(one_hot) == ("places", "scores + 1.0")

    def of(given):
        return facts_of(torch.zeros_like(given)), facts_of_like(given)

    def facts_of_like(given):
        made = torch.ones_like(given)
        return facts_of(made)

    assert of(places) == (None, ("made", "torch.ones_like(given)"))


def tables(size):
    angles = torch.arange(float(size))
    return angles.cos(), angles.sin()


def test_one_of_several_things_by_the_call_that_gave_them():
    cos, sin = tables(8)
    assert facts_of(cos) == facts_of(sin) == ("cos, sin", "tables(8)")
    rows = sin[cos > 0]  # a part of them has another size
    assert facts_of(rows) is None or facts_of(rows)[0] == "rows"


def test_of_a_parameter_what_the_caller_made():
    def add(counts, users):
        return facts_of(counts)

    hits = torch.ones(5)
    assert add(hits, USERS) == ("hits", "torch.ones(5)")


def test_a_member_by_the_statement_of_its_class():
    class Bank(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("memory", torch.zeros(7, 2))
            self.scale = torch.nn.Parameter(torch.ones(3))
            self.kept = None

        def forward(self):
            if self.kept is None:
                self.kept = torch.arange(4.0).cos()
            return facts_of(self.memory), facts_of(self.scale), facts_of(self.kept)

    memory, scale, kept = Bank()()
    assert kept == ("self.kept", "torch.arange(4.0).cos()")
    assert memory == ("self.memory", "torch.zeros(7, 2)")
    assert scale == ("self.scale", "torch.nn.Parameter(torch.ones(3))")


def test_nothing_where_several_may_have(wide=True):
    class Growing:
        def __init__(self):
            self.memory = torch.zeros(7, 2)

        def grow(self):
            self.memory = torch.zeros(9, 2)

        def look(self):
            return facts_of(self.memory)

    assert Growing().look() is None
    batch = {"x": torch.zeros(3)}
    x = batch["x"]  # an entry of a batch: what made it is not here
    assert facts_of(x) is None
    assert facts_of([1, 2]) is None
