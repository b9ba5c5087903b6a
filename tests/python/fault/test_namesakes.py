"""Labels that went to another head than theirs, and an output layer that its table has outgrown."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from trapline._fault.model import namesakes  # noqa: E402


class Cars(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.heads = nn.ModuleDict({"body": nn.Linear(4, 4), "colour": nn.Sequential(nn.Linear(4, 8))})
        self.colour = nn.Linear(4, 9)


def asked(layer: str, variable: str, highest: int) -> Any:
    model = Cars()
    assert model.heads is not None
    return namesakes.namesake({"name": layer}, variable, highest)


def test_the_head_of_that_name_beside_it() -> None:
    assert asked("heads.body", 'labels["colour"]', 5) == {
        "name": "heads.colour",
        "places": 8,
        "key": "colour",
    }
    assert asked("heads.body", "batch.colour", 5)["name"] == "heads.colour"


def test_none_where_it_is_its_own_or_has_no_room() -> None:
    assert asked("heads.colour", 'labels["colour"]', 5) is None
    assert asked("heads.body", 'labels["colour"]', 8) is None
    assert asked("heads.body", 'labels["doors"]', 5) is None
    assert asked("body", "colour", 5) is None


class Language(nn.Module):
    def __init__(self, rows: int, width: int = 16) -> None:
        super().__init__()
        self.embed = nn.Embedding(rows, width)
        self.lm_head = nn.Linear(16, 42)


def counted(model: nn.Module, highest: int, index: list[int]) -> Any:
    assert model is not None
    return namesakes.tied({"name": "lm_head", "value": 42}, {"name": "ids", "index": index}, highest)


def test_the_table_of_the_same_ids() -> None:
    found = counted(Language(46), 45, [3, 9])
    assert (found["count"], found["of"]) == (46, "the number of rows of `embed`, the table of the same ids,")


def test_no_table_that_cannot_be_tied() -> None:
    assert counted(Language(46), 46, [3, 9]) is None  # nor does it have the id
    assert counted(Language(42), 41, [3, 9]) is None
    assert counted(Language(43), 42, [3, 9]) is None  # one row more is a mask's, as a rule
    assert counted(Language(46, width=8), 45, [3, 9]) is None
    assert counted(Language(46), 45, [3]) is None  # a class of a whole text


class Roots(nn.Module):
    """Three heads of the same features."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Linear(7, 96)
        self.root, self.vowel, self.consonant = (nn.Linear(96, size) for size in (168, 11, 7))
        self.wide = nn.Linear(7, 168)  # of other features


class Fields(nn.Module):
    """A table for each column, small ones first."""

    def __init__(self) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(size, 4) for size in (2, 4, 12, 17))
        self.other = nn.Embedding(30, 4)


def test_the_only_table_beside_it_with_as_many_rows_as_the_ids_need() -> None:
    fields = Fields()
    layer = {"name": "tables.0", "attribute": "num_embeddings", "value": 2}
    assert namesakes.other_table(layer, 11) == {"name": "tables.2", "places": 12}
    assert namesakes.other_table(layer, 10) is None and namesakes.other_table(layer, 29) is None
    layer = {"name": "tables.2", "attribute": "num_embeddings", "value": 12}
    assert namesakes.other_table(layer, 16) == {"name": "tables.3", "places": 17}
    fields.tables.append(nn.Embedding(17, 4))
    assert namesakes.other_table(layer, 16) is None  # two of them


def other(highest: int, model: Any = None) -> Any:
    model = model or Roots()
    layer = {"name": "vowel", "attribute": "out_features", "value": 11}
    return namesakes.other_head(layer, highest), model


def test_the_only_head_with_as_many_outputs_as_the_labels_need() -> None:
    assert other(167)[0] == {"name": "root", "places": 168}
    assert other(166)[0] is None and other(6)[0] == {"name": "consonant", "places": 7}
    model = Roots()
    model.consonant = nn.Linear(96, 168)
    assert other(167, model)[0] is None  # two of them
