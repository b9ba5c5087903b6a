"""Elements that are one in memory count once: an index that was expanded over the channels."""

import pytest
from conftest import make_violation

torch = pytest.importorskip("torch")


def collected(facts_of, index, x):
    return facts_of(make_violation("gather.index", index, 0, 10, {"self": x, "dim": 1, "index": index}))


def test_an_expanded_index_counts_once(facts_of):
    wide = torch.tensor([0, 12, 3, 12, 11, 5])[:, None, None].expand(6, 1, 48)
    facts = collected(facts_of, wide, torch.rand(6, 10, 48))
    assert (facts["scan"]["bad"], facts["scan"]["total"]) == (3, 6)
    assert facts["values"] == [[12, 2], [11, 1]]
    assert facts["index"] == [1, 0, 0] and facts["tensor"]["shape"] == [6, 1, 48]


def test_a_copy_counts_as_it_is(facts_of):
    wide = torch.tensor([0, 12, 3])[:, None].expand(3, 4).contiguous()
    facts = collected(facts_of, wide, torch.rand(3, 10))
    assert (facts["scan"]["bad"], facts["scan"]["total"]) == (4, 12)


def test_what_was_seen_is_counted_once_too(facts_of):
    wide = torch.tensor([0, 12, 3, 12, 11, 5])[:, None, None].expand(6, 1, 48)
    assert collected(facts_of, wide, torch.rand(6, 10, 48))["seen"]["count"] == 6
    whole = wide.contiguous()
    assert collected(facts_of, whole, torch.rand(6, 10, 48))["seen"]["count"] == 288
