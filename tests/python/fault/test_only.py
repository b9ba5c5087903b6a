"""The one record of the program's data with the bad value, where no batch leads to it."""

import pytest
import torch
from conftest import make_violation
from trapline._fault.data import only


def fault(values, hi):
    given = torch.tensor(values)
    return make_violation("embedding.indices", given, 0, hi, {"indices": given}, frames=[])


def ask(values, hi):
    violation = fault(values, hi)
    return only.sample_facts(violation["tensor"], violation["scan"])


class Environment:
    def __init__(self, table):
        self.table = table
        self.at = 0


def test_the_row_that_an_environment_reads():
    states = [n % 7 for n in range(40)]
    states[23] = 31
    env = Environment(states)
    assert env.at == 0
    found = ask([31], 7)
    assert (found["dataset_index"], found["by"], found["likely"]) == (23, "record", True)
    assert found["dataset"]["length"] == 40


def test_a_column_of_a_table():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"shop": [n % 5 for n in range(30)], "price": [0.5] * 30})
    table.loc[17, "shop"] = 12
    found = ask([3, 12], 5)
    assert found["dataset"] == {"name": "table.iloc", "type": "DataFrame", "length": 30}
    assert found["dataset_index"] == 17


def test_one_request_of_several():
    payloads = [{"user": n, "items": [n % 4, (n + 1) % 4, 2]} for n in range(12)]
    payloads[5]["items"].append(44)
    found = ask([[1, 2, 44]], 20)
    assert (found["dataset"]["name"], found["dataset_index"]) == ("payloads", 5)


def test_two_records_with_the_value_tell_nothing():
    states = [n % 7 for n in range(40)]
    states[23] = states[30] = 31
    other = [n % 7 for n in range(40)]
    other[4] = 31
    assert ask([31], 7) is None, (states, other)


def test_a_list_of_indices_has_every_number_once():
    order = list(range(100))
    assert ask([99], 99) is None, order


def test_a_column_of_other_numbers():
    ages = [20 + n % 50 for n in range(60)]
    ages[8] = 10
    assert ask([10], 10) is None, ages


def test_of_two_parts_the_smaller():
    labels = torch.arange(64) % 6
    labels[50] = 9
    part = labels[40:60].clone()
    found = ask([2, 9], 6)
    assert (found["dataset"]["name"], found["dataset_index"]) == ("part", 10) and len(part) == 20


def test_numbers_that_cannot_be_compared_are_passed_over():
    states = [n % 7 for n in range(40)]
    states[23] = 31
    others = [
        torch.eye(12).to_sparse(),
        torch.nested.nested_tensor([torch.ones(3), torch.ones(2)], layout=torch.jagged),
        torch.ones(12, dtype=torch.complex64),
        torch.arange(12).to(torch.uint16),
        [object()] * 12,
        [1 << 80] * 12,
    ]
    found = ask([31], 7)
    assert (found["dataset"]["name"], found["dataset_index"]) == ("states", 23) and len(others) == 6


@pytest.mark.parametrize("kind", [list, torch.tensor])
def test_a_short_list_of_numbers_is_what_a_model_is_given(kind):
    observed = kind([0.1 * n for n in range(12)])
    rows = kind([0.5 * n for n in range(40)])
    rows[23] = observed[7] = float("nan")
    given = torch.tensor([[0.2, float("nan")]])
    violation = make_violation("multinomial.self", given, 0, 0, {"self": given}, frames=[])
    violation["scan"] |= {"first": 1, "value": float("nan")}
    found = only.sample_facts(given, violation["scan"])
    assert (found["dataset"]["name"], found["dataset_index"]) == ("rows", 23) and len(observed) == 12


def test_the_tokens_of_a_prompt_are_no_records():
    ids = [32, *(n % 7 for n in range(11))]
    assert ask([ids], 32) is None
    assert ask(ids, 32)["dataset"]["name"] == "ids"  # a label for each record


def test_many_are_no_records_own_fault():
    codes = [n % 7 for n in range(40)]
    codes[4] = 31
    assert ask([31, 30, 29, 2], 7) is None
    assert ask([31, *codes[5:11]], 7)["dataset_index"] == 4


def test_what_a_model_has_made_is_no_data():
    scores = torch.ones(40, 2, requires_grad=True) * 1.0
    with torch.no_grad():
        scores[7, 1] = float("nan")
    made = torch.ones(40, 2)
    violation = make_violation(
        "multinomial.self",
        torch.tensor([[1.0, float("nan")]]),
        0,
        1,
        {},
        frames=[],
        bad=torch.tensor([[False, True]]),
    )
    ask_for = (violation["tensor"], {**violation["scan"], "value": float("nan")})
    assert made.shape == scores.shape and only.sample_facts(*ask_for) is None
    data = scores.detach().clone()
    assert only.sample_facts(*ask_for)["dataset"]["name"] == "data" and len(data) == 40


def test_what_a_function_has_chosen_itself_has_no_record():
    """Its places are none of the data's."""
    crystals = [n % 7 for n in range(40)]
    blob = bytearray(torch.tensor([*crystals[:23], 31, *crystals[23:]]).numpy().tobytes())
    crystals.clear()

    def histogram(keep):
        a = torch.frombuffer(blob, dtype=torch.int64)
        whole = ask([31], 7)
        a = a[keep]
        return whole, ask([31], 7), a

    whole, chosen, _ = histogram(torch.arange(41) % 2 == 1)
    assert whole["dataset_index"] == 23 and chosen is None


def test_what_a_modules_method_holds_is_of_a_batch():
    class Last(torch.nn.Module):
        def forward(self, blob):
            last = torch.frombuffer(blob, dtype=torch.int64)
            return ask([31], 7), last

    rows = [n % 7 for n in range(40)]
    blob = bytearray(torch.tensor([*rows[:23], 31, *rows[23:]]).numpy().tobytes())
    rows.clear()
    assert Last()(blob)[0] is None


def test_a_list_that_the_index_was_made_of_has_no_records():
    tokens = [32, *(n % 7 for n in range(11))]
    violation = fault(tokens, 32)
    found = only.sample_facts(violation["tensor"], violation["scan"])
    assert found["dataset"]["name"] == "tokens", "a label for each record"
    assert only.sample_facts(violation["tensor"], violation["scan"], index=True) is None
