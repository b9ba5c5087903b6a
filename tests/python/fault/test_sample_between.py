"""What stands between the loader and the call: arithmetic of several tensors, numbers that were exchanged."""

import pytest
from conftest import table_violation

torch = pytest.importorskip("torch")
import trapline._fault as fault  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402


@pytest.fixture(autouse=True)
def installed():
    fault.install()
    yield
    fault.uninstall()


def of(facts, *names):
    return tuple(facts["sample"].get(name) for name in names)


def ids_of(value):
    ids = torch.randint(0, 50, (24, 10), generator=torch.Generator().manual_seed(3))
    ids[13, 4] = value
    return ids


def test_the_row_of_what_arithmetic_was_given(facts_of):
    """No single tensor of the batch tells the row of `a + 20 * b`; what the sum was given does."""
    skill, correct = ids_of(value=11) % 20, torch.randint(0, 2, (24, 10))
    correct[13, 4] = 2
    for a, b in DataLoader(TensorDataset(skill, correct), batch_size=6):
        index = a + 20 * b
        if int(index.max()) > 39:
            facts = facts_of(table_violation(torch.zeros(40, 2), index))
            break
    assert of(facts, "batch", "row", "dataset_index", "by", "likely") == (2, 1, 13, "function", None)


def test_places_that_begin_where_the_record_says(facts_of):
    """Numbers that count up are places, which no record has; what they begin at is."""
    begin = torch.randperm(40)[:24]
    begin[13] = 90
    for (batch,) in DataLoader(TensorDataset(begin), batch_size=6):
        window = batch[:, None] + torch.arange(32)
        if int(window.max()) > 96:
            facts = facts_of(table_violation(torch.zeros(96, 2), window))
            break
    assert of(facts, "batch", "row", "dataset_index", "by") == (2, 1, 13, "function")


def test_numbers_that_a_wrapper_put_between(facts_of):
    """A masked language model exchanges some ids before its network sees them: no sample has the bad one."""
    ids = ids_of(value=7)
    for (batch,) in DataLoader(TensorDataset(ids), batch_size=6):
        noisy = batch.clone()
        noisy[:, ::4] = 3
        noisy[2, 5] = 55
        facts = facts_of(table_violation(torch.zeros(50, 2), noisy))
        break
    assert of(facts, "by", "row", "dataset_index") == ("replaced", 2, 2)


def test_a_row_that_the_collate_function_makes_of_a_record(facts_of):
    """The one record that has the bad number, at the row that is made of it."""
    numpy, told = pytest.importorskip("numpy"), []

    def padded(samples):
        rows = torch.zeros(len(samples), 4, dtype=torch.long)
        for at, (cells, _) in enumerate(samples):
            rows[at, : len(cells)] = torch.from_numpy(cells)
        if int(rows.max()) >= 30:
            told.append(facts_of(table_violation(torch.zeros(30, 2), rows)).get("sample"))
        return rows

    records = [(numpy.array([at, at + 1, 7]), at % 2) for at in range(12)]
    records[8][0][1] = 30
    list(DataLoader(records, batch_size=4, sampler=[3, 0, 5, 7, 2, 8, 4, 1], collate_fn=padded))
    assert [(one["batch"], one["row"], one["dataset_index"]) for one in told] == [(1, 1, 8)]
    records[2][0][0] = 30  # which is in that batch, too
    told.clear()
    list(DataLoader(records, batch_size=4, sampler=[3, 0, 5, 7, 2, 8, 4, 1], collate_fn=padded))
    assert told[0]["one_of"] == [2, 8, 4, 1]
