"""Another dimension that an index would fit, and the one that positions are counted along."""

import pytest
from conftest import make_violation

torch = pytest.importorskip("torch")
from trapline._fault.data import dimensions, hand, ranged  # noqa: E402


@pytest.fixture
def batch_of(monkeypatch):
    return lambda samples: monkeypatch.setattr(hand, "size", lambda: samples)


def other(source, index, dim=0):
    arguments = {"self": source, "dim": dim, "index": index}
    violation = make_violation("gather.index", index, 0, source.shape[dim], arguments)
    return dimensions.other_dimension(violation)


def test_the_dimension_behind_the_batch(batch_of):
    actions = torch.tensor([[8], [7], [9], [2], [1], [9], [0], [3]])
    assert other(torch.rand(8, 10), actions) == {"dim": 1, "size": 10}
    batch_of(8)
    assert other(torch.rand(8, 10), actions) == {"dim": 1, "size": 10, "batch": True}
    assert other(torch.rand(8, 12, 10), actions) == {"dim": 2, "size": 10, "batch": True}  # the exact one


def test_room_that_says_nothing(batch_of):
    few = torch.tensor([[0], [1], [2], [3], [4], [5], [6], [8]])
    assert other(torch.rand(8, 9), few) is None, "one of many is a step too far"
    most = torch.tensor([[8], [9], [7], [8]])
    assert other(torch.rand(8, 11), most) is None, "not exact, and no batch is known"
    assert other(torch.rand(8, 64), most) is None, "anything fits there"
    batch_of(8)
    assert other(torch.rand(8, 64), most) is None
    assert other(torch.rand(8, 11), most) is not None
    assert other(torch.rand(8, 8, 10), most) == {"dim": 2, "size": 10}, "two are as large as the batch"


def test_what_is_added_has_a_slice_for_each_index():
    pooled, graph = torch.zeros(16, 32), torch.arange(16, 32).repeat_interleave(6)

    def of(source):
        arguments = {"self": pooled, "dim": 0, "index": graph, "source": source}
        return dimensions.other_dimension(make_violation("index_add.index", graph, 0, 16, arguments))

    assert of(torch.rand(96, 32)) is None  # along dimension 1 it would want 96 columns
    assert of(torch.rand(16, 96)) is not None


def test_the_tensor_whose_dimension_is_counted(batch_of):
    def by_size(x):
        p = torch.arange(x.size(0), device=x.device)
        return ranged.ranged_facts(p)

    def by_names(x):
        n, length = x.shape
        return ranged.ranged_facts(torch.arange(length)), n

    def by_tuple(x):
        steps, _ = x.size(-1), 0
        return ranged.ranged_facts(torch.arange(0, steps)[None])

    x = torch.zeros(64, 16)
    found = by_size(x)
    assert (found["name"], found["shape"], found["dim"]) == ("x", [64, 16], 0)
    assert found["text"] == "torch.arange(x.size(0), device=x.device)" and "batch" not in found
    batch_of(64)
    assert by_size(x)["batch"] is True
    assert "batch" not in by_size(torch.zeros(64, 64))
    found, _ = by_names(x)
    assert (found["dim"], found["text"]) == (1, "torch.arange(length)")
    assert by_tuple(x)["dim"] == 1
    assert by_size(torch.zeros(64)) is None, "one dimension is all there is"


def test_what_is_not_known_to_be_counted():
    x, width = torch.zeros(64, 16), 16
    assert ranged.ranged_facts(torch.arange(width)) is None
    assert ranged.ranged_facts(torch.arange(x.shape[0] + 1)) is None
    assert ranged.ranged_facts(torch.arange(2, x.shape[0])) is None
    p = torch.arange(x.shape[0])
    x = x[:8]
    assert ranged.ranged_facts(p) is None, "it has another size by now"


def test_two_indices_that_are_exchanged():
    def asked(source, *index, at):
        violation = make_violation(
            "index.indices", index[at], 0, source.shape[at], {"self": source, "indices": list(index)}
        )
        violation["scan"]["list_position"] = at
        return dimensions.are_exchanged(violation)

    attention = torch.rand(3, 5, 9)
    batch, target, source = torch.zeros(3, dtype=torch.long), torch.tensor([8, 2, 0]), torch.tensor([4, 3, 1])
    assert asked(attention, batch, target, source, at=1)
    assert not asked(attention, batch, target, torch.tensor([6, 3, 1]), at=1)
    assert not asked(torch.rand(3, 5, 8), batch, target, source, at=1)


def test_a_part_of_a_larger_tensor():
    table = torch.zeros(256, 4)
    index = torch.tensor([0, 65])

    def of(part):
        arguments = {"self": part, "indices": [index]}
        made = make_violation("index.indices", index, -42, 42, arguments)
        made["scan"]["list_position"] = 0
        return dimensions.cut_from(made)

    assert of(table[:42]) == 256
    assert of(table[:42].clone()) is None
    assert of(table[:, :2]) is None, "another dimension"
    assert of(table.reshape(512, 2)[:42]) is None, "the larger one has another form"


def test_a_slice_has_other_dimensions():
    def of(source):
        return dimensions.is_selected(
            make_violation("index.indices", torch.tensor([9]), -3, 3, {"self": source})
        )

    assert of(torch.zeros(1, 3, 4)[0]) is True
    assert of(torch.zeros(3, 4)) is False
    assert of(torch.zeros(6, 4)[:3]) is False
