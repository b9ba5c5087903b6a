"""Where the source makes numbers of categories with pandas; several places tell nothing."""

from __future__ import annotations

import pytest
from conftest import label_violation
from trapline._fault.program import codes, marks

pandas = pytest.importorskip("pandas")


def test_of_a_column() -> None:
    table = pandas.DataFrame({"city": ["Ulm", None]})
    numbers = table["city"].astype("category").cat.codes
    found = codes.codes_facts()
    assert found is not None and list(numbers) == [0, -1]
    assert found["text"] == "table['city'].astype('category').cat.codes"
    assert found["of"] == "edges"  # another test of this file cuts into bins


def test_of_an_index() -> None:
    known = pandas.Index(["a", "b"])
    numbers = known.get_indexer(["b", "e"])
    found = codes.codes_facts()
    assert found is not None and list(numbers) == [1, -1]
    assert (found["text"], found["of"]) == ("known.get_indexer(['b', 'e'])", "unknown")


def test_of_a_list_that_is_given() -> None:
    """What is written otherwise has -1, too."""
    numbers = pandas.Categorical(["ulm", None], categories=["Ulm"]).codes
    found = codes.codes_facts()
    assert found is not None and list(numbers) == [-1, -1]
    assert found["of"] == "either"


def test_two_places_tell_nothing() -> None:
    known = pandas.Index(["a", "b"])
    first, _ = pandas.factorize(pandas.Series(["b", None]))
    second = known.get_indexer(["e"])
    assert (list(first), list(second)) == ([0, -1], [-1])
    assert codes.codes_facts() is None


def test_of_bins() -> None:
    """What lies on the lowest edge is in none."""
    import pandas as pd

    cut = pd.cut(pandas.Series([0.0, 1.0]), [0.0, 1.5])
    numbers = cut.cat.codes
    found = codes.codes_facts()
    assert found is not None and list(numbers) == [-1, 0]
    assert found["of"] == "edges"


@pytest.mark.parametrize("writer", [None, {"text": "df.fillna(-1)", "file": "a.py", "line": 4, "of": "fill"}])
def test_beside_another_place_that_writes_it(facts_of, monkeypatch, writer) -> None:
    """A merge that found nothing, and codes that have -1 for what is missing: it may be either."""
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(marks, "only_writer", lambda number: writer)
    table = pandas.DataFrame({"city": ["Ulm", None]})
    numbers = table["city"].astype("category").cat.codes
    facts = facts_of(label_violation(torch.zeros(2, 3), torch.tensor(numbers.to_numpy(), dtype=torch.long)))
    assert (facts.get("written"), "codes" in facts) == (writer, writer is None)
