"""The record at the same place of what the program's text made a tensor of."""

import numpy as np
import pytest
import torch
from conftest import make_violation
from trapline._fault.data import made_of

RECORDS = [{"at": n % 5} for n in range(40)]
RECORDS[21] = {"at": 9}


def ask(given, hi=5):
    violation = make_violation("gather.index", given, 0, hi, {"index": given}, frames=[])
    return made_of.sample_facts(violation["tensor"], violation["scan"], None)


def both(rows):
    index = torch.tensor([2 * row["at"] for row in rows])
    return index, torch.ones(len(rows))


def test_one_of_several_results_of_a_call():
    records = [dict(row) for row in RECORDS]
    place, weights = both(records)
    assert len(weights) == 40
    found = ask(place, 9)
    assert (found["dataset_index"], found["row"], found["by"], found["likely"]) == (21, 21, "made", True)
    assert found["dataset"] == {"name": "records", "type": "list", "length": 40}


def test_through_a_statement_between():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"at": [row["at"] for row in RECORDS]})
    cells = [at + 1 for at in table["at"]]
    place = torch.tensor(cells)
    assert ask(place, 6)["dataset"]["name"] == "table.iloc"


def test_a_slice_of_the_programs_text():
    rows = [dict(row) for row in RECORDS]
    found = []
    for at in range(0, len(rows), 16):
        index = both(rows[at : at + 16])[0]
        if int(index.max()) > 8:
            found.append(ask(index, 9))
    assert [(one["dataset_index"], one["row"]) for one in found] == [(21, 5)]


def test_many_bad_rows_are_no_records_own_fault():
    records = [dict(row) for row in RECORDS]
    place = both(records)[0]
    assert ask(place, 4) is None


def test_numbers_are_no_records():
    numbers = [row["at"] for row in RECORDS]
    place = torch.tensor(numbers)
    assert ask(place) is None
    array = np.array(numbers) + 1
    cast = torch.from_numpy(array)
    assert ask(cast, 6) is None
    both_columns = np.stack([array, array], 1)
    chosen = torch.from_numpy(both_columns[:, 0].copy())
    assert ask(chosen, 6)["dataset"]["name"] == "both_columns"
