"""What computed the bad numbers, as the source says it; of numbers that were read nothing is said."""

from __future__ import annotations

from typing import Any, Optional

import numpy as np
import pytest
import torch
from trapline._fault.program import computed

AGES = torch.tensor([3.0, 90.0, 41.0, 12.0])
EDGES = torch.tensor([0.0, 10.0, 20.0])


def asked(name: str, given: Any) -> Optional[dict[str, Any]]:
    return computed.computed_facts(name, given)


def test_a_search_among_edges() -> None:
    bucket = torch.bucketize(AGES, EDGES)
    found = asked("bucket", bucket)
    assert found is not None
    assert (found["name"], found["text"]) == ("bucket", "torch.bucketize(AGES, EDGES)")
    assert (found["by"], found["edges"]) == ("bucketize", 3)


def test_the_last_assignment_counts() -> None:
    best = torch.tensor([1, 2])
    best = AGES.view(2, 2).argmax(dim=-1) + 1
    found = asked("best", best)
    assert found is not None and found["by"] == "argmax"
    assert found["text"] == "AGES.view(2, 2).argmax(dim=-1) + 1"


def test_through_names_and_forms() -> None:
    t, n = torch.arange(3), 4
    flat = t[:, None] * n + torch.tensor([1, 2])
    index = flat.reshape(-1).long()
    found = asked("index", index)
    assert found is not None and found["text"] == "t[:, None] * n + torch.tensor([1, 2])"
    assert "by" not in found


def test_one_of_two_results() -> None:
    _values, where = AGES.topk(3)
    found = asked("where", where)
    assert found is not None and (found["by"], found["text"]) == ("topk", "AGES.topk(3)")


def test_arithmetic_in_brackets_of_a_call() -> None:
    def last(n: torch.Tensor) -> Optional[dict[str, Any]]:
        index = (n - 1)[:, None].expand(-1, 2)
        return asked("index", index)

    found = last(torch.tensor([5, 0]))
    assert found is not None and found["text"].startswith("(n - 1)[:, None]")


def test_the_places_of_the_highest() -> None:
    values, where = AGES.view(2, 2).max(dim=0)
    found = asked("where", where)
    assert found is not None and (found["by"], found["text"]) == ("max", "AGES.view(2, 2).max(dim=0)")
    assert asked("values", values) is None
    highest = max(3, 4)
    assert asked("highest", highest) is None


def test_the_caller_computed_what_a_function_was_given() -> None:
    def look_up(ids: torch.Tensor) -> Optional[dict[str, Any]]:
        return asked("ids", ids)

    slot = np.digitize(AGES.numpy(), [0, 10, 20])
    ids = torch.from_numpy(slot)
    found = look_up(ids)
    assert found is not None and (found["by"], found["name"]) == ("digitize", "slot")


def place_of(table: torch.Tensor, index: torch.Tensor) -> Optional[dict[str, Any]]:
    return asked("", index)


def test_what_stands_in_the_call_in_another_shape() -> None:
    """`flat.gather(1, (5 * event + month)[:, None])`"""
    event, month = torch.tensor([0, 1]), torch.tensor([3, 4])
    found = place_of(AGES, ((event - 1) * 5 + month)[:, None])
    assert found is not None and found["text"] == "(event - 1) * 5 + month"


@pytest.mark.parametrize("kind", ["column", "loop", "written", "function"])
def test_numbers_that_were_read(kind: str) -> None:
    table = {"label": torch.tensor([1, 2, 3])}
    labels = table["label"].long()
    if kind == "loop":
        for labels in [torch.tensor([1, 2, 3])]:
            assert asked("labels", labels) is None
        return
    if kind == "written":
        labels = AGES.argsort()
        labels[0] += 7
    elif kind == "function":
        labels = asked_of_a_file()
    assert asked("labels", labels) is None


def asked_of_a_file() -> torch.Tensor:
    return torch.tensor([1, 2, 3])


def test_the_parts_of_arithmetic_that_keeps_the_places() -> None:
    batch = {"fine": torch.tensor([4, 6]), "coarse": torch.tensor([1, 2])}
    offset = torch.tensor([0, 4, 9])
    local = batch["fine"] - offset[batch["coarse"]]
    parts = computed.parts_of(local)
    assert any(part is batch["fine"] for part in parts) and any(part is batch["coarse"] for part in parts)
    mixed = batch["fine"][torch.randperm(2)] - 1
    assert computed.parts_of(mixed) == []


def test_what_chance_made() -> None:
    steps = torch.randint(1, 51, (8,))
    found = asked("steps", steps)
    assert found is not None and found["drawn"] is True
    best = AGES.view(2, 2).argmax(dim=-1)
    assert "drawn" not in (asked("best", best) or {"drawn": True})


def test_a_selection_by_a_mask_in_the_line() -> None:
    labels, mask = torch.tensor([3, 4, 5]), torch.tensor([True, False, True])
    found, taken = list(computed.selections()), labels[mask]
    ((name, whole, by),) = found
    assert taken.tolist() == [3, 5] and name == "labels" and whole is labels and by is mask
    assert list(computed.selections()) == []  # of another line
    assert [name for name, _, _ in computed.selections(before=True)] == ["labels"]


def test_a_branch_may_not_have_run() -> None:
    wraps = False
    slots = torch.arange(4)
    if int(slots.max()) > 7:
        slots = slots % 3
    assert asked("slots", slots) is None
    if not wraps:
        slots = slots + 1
        found = asked("slots", slots)
        assert found is not None and found["text"] == "slots + 1"


def test_which_branch_has_run_is_asked_of_its_variables() -> None:
    epoch, warm, fresh = 2, 1, None
    if epoch < warm or (epoch % 3 == 0 and fresh is not None):
        slots = torch.arange(4) % 3
    else:
        slots = torch.arange(4) * 2
    found = asked("slots", slots)
    assert found is not None and found["text"] == "torch.arange(4) * 2"
    if epoch == warm + 1:
        slots = slots // 2
        epoch = 7  # what the question was asked of is gone
    assert asked("slots", slots) is None
    if epoch == 7:
        slots = slots + 1
    for fold in range(2):
        assert asked("slots", slots) is None  # the loop may have come back to what follows
        epoch = fold


def test_what_is_written_into_a_part_is_told_as_that() -> None:
    order = torch.tensor([1, 0])
    rank = torch.empty_like(order)
    rank[order] = torch.arange(2)
    found = asked("rank", rank)
    assert found is not None and (found["name"], found["text"]) == ("rank[order]", "torch.arange(2)")


def test_one_of_two_that_are_given_together() -> None:
    place = AGES / 30
    low, high = place.floor().long(), place.ceil().long()
    found = asked("high", high)
    assert found is not None and (found["text"], found["by"]) == ("place.ceil().long()", "ceil")
    assert low.shape == high.shape


def test_the_same_name_of_another_function_is_not_meant() -> None:
    def append(pos: torch.Tensor) -> Optional[dict[str, Any]]:
        return asked("pos", pos)

    pos = torch.arange(5)
    assert append(torch.tensor([51])) is None and len(pos) == 5


def test_what_a_number_was_before_its_cast() -> None:
    """Only where the statement's own arithmetic gives the bad one again."""
    settings = {"steps": 1000}
    u = torch.tensor([0.25, 1.0005, 1.0])
    index = (u * settings["steps"]).long()
    found = computed.computed_facts("index", index, 1)
    assert found is not None and found["before"] == pytest.approx(1000.5)
    source = found["source"]
    assert (source["name"], source["index"], source["line"]) == ("u", [1], found["line"] - 1)
    assert (source["value"], source["text"]) == (pytest.approx(1.0005), "torch.tensor([0.25, 1.0005, 1.0])")
    end = computed.computed_facts("index", index, 2)
    assert end is not None and end["before"] == 1000.0
    u = u / 2
    moved = computed.computed_facts("index", index, 2)
    assert moved is not None and "before" not in moved


def test_the_numbers_that_arithmetic_was_given() -> None:
    """Each operand at the bad element's place, spread as PyTorch spreads them; only where they give it."""
    sizes = {"skills": 20}
    skill, correct = torch.tensor([[1, 2, 3], [4, 11, 6]]), torch.tensor([[0, 1, 0], [1, 2, 0]])
    index = (skill + sizes["skills"] * correct).flatten()
    found = computed.computed_facts("index", index, 4)
    assert found is not None and found["parts"] == [
        {"name": "skill", "index": [1, 1], "value": 11},
        {"name": "correct", "index": [1, 1], "value": 2},
    ]
    offsets = torch.tensor([0, 10, 30])
    shifted = skill.cpu() + offsets
    found = computed.computed_facts("shifted", shifted, 5)
    assert found is not None and found["parts"][1] == {"name": "offsets", "index": [2], "value": 30}
    offsets = offsets + 1  # another number now
    found = computed.computed_facts("shifted", shifted, 5)
    assert found is not None and "parts" not in found


def test_places_behind_a_number_of_each_row() -> None:
    length, begin = 8, torch.tensor([3, 60, 12])
    window = begin[:, None] + torch.arange(length)
    found = computed.computed_facts("window", window, 12)
    assert found is not None and found["parts"] == [{"name": "begin", "index": [1], "value": 60}]
    length = 9  # no longer what the places were counted by
    found = computed.computed_facts("window", window, 12)
    assert found is not None and "parts" not in found


def test_a_loop_that_gives_it_another_value_below() -> None:
    place = torch.tensor([3]) + 1
    for turn in range(3):
        found = asked("place", place)
        assert found is None, turn  # of the first turn, or of the one before
        place = place * 2
    for turn in range(2):
        place = torch.tensor([turn]) + 1
        found = asked("place", place)
        assert found is not None and found["text"] == "torch.tensor([turn]) + 1"
        place = place * 2


def test_the_argument_that_was_given_is_told_and_no_other() -> None:
    def layer(ends: torch.Tensor, rating: torch.Tensor) -> Any:
        source, _ = ends
        return asked("source", source), rating

    def gather(at: torch.Tensor, rating: torch.Tensor) -> Any:
        return asked("at", at), rating

    ends, rating = torch.zeros(2, 4, dtype=torch.long), torch.ones(4)
    assert layer(ends, rating / 40)[0] is None
    assert gather(rating=rating / 40, at=ends.argmax(0))[0]["text"] == "ends.argmax(0)"
