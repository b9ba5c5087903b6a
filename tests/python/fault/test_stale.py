"""What is indexed was cut after its index was made."""

import pytest

torch = pytest.importorskip("torch")
from trapline._fault.program import computed, stale  # noqa: E402

BOXES, SCORES = torch.rand(4, 4), torch.tensor([0.9, 0.1, 0.7, 0.2])


def test_an_order_of_all_for_some(boxes=BOXES, scores=SCORES):
    order = scores.argsort()
    made = computed.computed_facts("order", order)
    keep = scores > 0.5
    boxes, scores = boxes[keep], scores[keep]
    found, _ = stale.cut_since(boxes, made), lambda: boxes[order]
    assert found is not None and (found["name"], found["text"]) == ("boxes", "boxes[keep]")
    gathered, _ = stale.cut_since(boxes, made), lambda: torch.index_select(boxes, 0, order)
    assert gathered is not None and gathered["line"] == found["line"]


def test_an_order_of_those_that_are_left(boxes=BOXES, scores=SCORES):
    keep = scores > 0.5
    boxes, scores = boxes[keep], scores[keep]
    order = scores.argsort()
    made = computed.computed_facts("order", order)
    found, _ = stale.cut_since(boxes, made), boxes[order]
    assert made is not None and found is None


def test_what_is_no_part_of_it(boxes=BOXES, scores=SCORES):
    order = scores.argsort()
    made = computed.computed_facts("order", order)
    boxes = torch.zeros(2, 4)
    found, _ = stale.cut_since(boxes, made), lambda: boxes[order]
    assert found is None
