"""The bad element in the user's own variable, where the operation was given something made of it."""

import dataclasses
from collections import UserDict, namedtuple

import pytest
from conftest import make_violation

torch = pytest.importorskip("torch")

from trapline._fault.data import variables  # noqa: E402
from trapline._fault.program import holders  # noqa: E402


@pytest.fixture
def named(facts_of, monkeypatch):
    """The variable of a violation's facts; the tests' own machinery, which holds the violation, left out."""
    frames, held = holders.user_frames, holders.held_by
    mine = [__file__]
    monkeypatch.setattr(
        holders, "user_frames", lambda: [frame for frame in frames() if frame.f_code.co_filename in mine]
    )
    monkeypatch.setattr(
        holders, "held_by", lambda frame: [pair for pair in held(frame) if "violation" not in pair[0]]
    )
    return lambda violation: facts_of(violation).get("variable")


def scatter(index, rows):
    """What gather(source, 0, index) shows to the guard."""
    args = {"self": torch.zeros(rows), "dim": 0, "index": index}
    return make_violation("gather.index", index, 0, rows, args)


def edges(rows=2, count=40, nodes=20):
    generator = torch.Generator().manual_seed(3)
    return torch.randint(0, nodes, (rows, count), generator=generator)


def test_self_loops_added_before_the_call(named):
    edge_index = edges()
    edge_index[1, 3] = 20

    def propagate(_edges):  # the library's part: another name, and no frame of the user's holds its result
        return scatter(torch.cat([_edges, torch.arange(20).repeat(2, 1)], 1)[1], 20)

    assert named(propagate(edge_index)) == {"name": "edge_index", "index": [1, 3]}


def test_joined_in_two_dimensions(named):
    edge_index = edges()
    edge_index[0, 7] = 20
    violation = scatter(torch.cat([edge_index, torch.arange(20).repeat(2, 1)], 1), 20)
    assert named(violation) == {"name": "edge_index", "index": [0, 7]}


def test_a_view_of_the_same_memory(named):
    labels = torch.arange(24).reshape(4, 6)
    assert named(scatter(labels[:, 1:].t()[2:3, 1:], 9)) == {"name": "labels", "index": [1, 3]}


def test_flattened_shifted_and_filtered(named):
    batch = {"labels": edges(4, 12, 9), "mask": torch.ones(4, 12, dtype=torch.bool)}
    batch["labels"][2, 5] = 9
    expected = {"name": 'batch["labels"]', "index": [2, 5]}
    assert named(scatter(batch["labels"].reshape(-1).clone(), 9)) == expected
    assert named(scatter(batch["labels"][:, 1:].reshape(-1), 9)) == expected
    assert named(scatter(batch["labels"][batch["labels"] > 2], 9)) == expected


def test_a_column_of_classes_in_a_tensor_of_floats(named):
    targets = torch.rand(12, 6)
    targets[:, 1] = torch.arange(12) % 4
    targets[9, 1] = 80
    assert named(scatter(targets[:, 1].long(), 80)) == {"name": "targets", "index": [9, 1]}
    violation = scatter(targets[torch.tensor([1, 9, 3, 0, 4, 11, 7, 8, 2])][:, 1].long(), 80)
    assert named(violation) == {"name": "targets", "index": [9, 1]}


def test_the_argument_itself_goes_by_its_name_in_the_program(named):
    y = torch.tensor([1, 2, 30])
    assert named(scatter(y, 9)) == {"name": "y", "index": [2]}


def test_lists_arrays_and_objects(named):
    numpy = pytest.importorskip("numpy")
    ids = [3, 1, 44, 7]
    assert named(scatter(torch.tensor(ids), 9)) == {"name": "ids", "index": [2]}
    del ids
    array = numpy.array([[5, 1, 2], [1, 77, 3]])
    assert named(scatter(torch.tensor(array), 9)) == {"name": "array", "index": [1, 1]}
    del array

    class Store:
        def __init__(self, **held):
            self.__dict__["_mapping"] = held

        def __getattr__(self, name):
            raise AssertionError("foreign code must not run")

    class Data:
        def __init__(self, **held):
            self.__dict__["_store"] = Store(**held)

        @property
        def num_nodes(self):
            raise AssertionError("foreign code must not run")

    @dataclasses.dataclass
    class Batch:
        label: object

    Pair = namedtuple("Pair", "x target")
    made = torch.tensor([1, 2, 3, 15])
    for data, name in (
        (Data(edge_index=made), "data.edge_index"),
        (Batch(made), "data.label"),
        (Pair(None, made), "data.target"),
        (UserDict(input_ids=made), 'data["input_ids"]'),
        ([None, made], "data[1]"),
    ):
        assert named_in_a_call(named, data, made.clone()) == {"name": name, "index": [3]}


def named_in_a_call(named, data, index):
    violation, index = scatter(index, 9), None
    assert data is not None and index is None
    return named(violation)


def test_the_nearest_frame_and_the_surest_tie_win(named):
    ids = edges(4, 12, 9)
    ids[2, 5] = 9

    def forward(x):
        shuffled = x.reshape(-1).sort().values
        return named(scatter(x.reshape(-1).clone(), 9)), shuffled

    assert forward(ids)[0] == {"name": "x", "index": [2, 5]}


def test_other_numbers_that_hold_the_value_are_not_named(named):
    ids = torch.randint(0, 100, (1000,), generator=torch.Generator().manual_seed(1))  # of a larger table
    classes = torch.randint(0, 10, (64,), generator=torch.Generator().manual_seed(2))  # as many, unrelated
    ids[7] = classes[11] = 9

    def call():
        index = torch.randint(0, 9, (64,), generator=torch.Generator().manual_seed(3))
        index[3] = 9
        return scatter(index, 9)

    violation = call()
    assert named(violation) is None and ids.numel() + classes.numel() == 1064


def test_a_value_alone_ties_nothing(named):
    previous = torch.tensor([-1])
    other = torch.full((30,), -1)
    made = edges(1, 30, 9).reshape(-1).tolist()
    made[4] = -1

    def call(values):
        return scatter(torch.tensor(values), 9)

    violation, made = call(made), None
    assert named(violation) is None
    assert previous.numel() + other.numel() == 31 and made is None


def test_an_empty_row_is_the_only_such_row_of_the_variable(named):
    weights = torch.rand(12, 5)
    weights[9] = 0.0
    at = torch.tensor([3, 9, 4])

    def draw(probs):
        violation = make_violation("multinomial.self", probs, 0, 0, {"self": probs})
        violation["scan"].update({"reason": 6, "first": 5, "value": 0.0, "is_float": True})
        return violation

    assert named(draw(weights[at])) == {"name": "weights", "index": [9, 0]}
    weights[2] = 0.0  # which of the two rows?
    assert named(draw(weights[at])) is None


def test_few_elements_that_are_not_background_are_found_anywhere(named):
    """Eight labels in a row, nearly all of them the same."""
    target = torch.full((4, 9), 4)
    target[:, 5] = torch.tensor([0, 1, 2, 3])
    keep = torch.ones(4, 9, dtype=torch.bool)
    keep[0, 0] = keep[1, 2] = False

    def loss(kept):
        return make_violation("nll_loss_forward.target", kept, 0, 4, {"target": kept})

    found = named(loss(target[keep]))
    assert found is None or found["index"] == [0, 1]


def test_a_target_that_is_as_long_as_there_are_classes():
    heads = torch.zeros(12, 31, dtype=torch.long)
    assert variables.is_as_long("heads", 31)
    assert not variables.is_as_long("heads", 30)
    assert not variables.is_as_long("flat", 372)
    assert heads.reshape(-1).numel() == 372


def test_ids_that_are_as_long_as_there_are_classes():
    input_ids, mask = torch.ones(8, 38, dtype=torch.long), torch.ones(8, 38, dtype=torch.bool)  # noqa: F841
    hidden = torch.zeros(8, 30)  # noqa: F841
    start = torch.zeros(8, dtype=torch.long)
    assert variables.ids_as_long(start, 38) == "input_ids"
    assert variables.ids_as_long(start, 30) is None
    assert variables.ids_as_long(torch.zeros(7, dtype=torch.long), 38) is None


def test_a_variable_whose_elements_were_repeated(named):
    """300 labels, all of them several times, in a library."""
    labels = torch.tensor([0, 1, 2, 3, 2, 1, 0, 2, 3, 1, 4, 2])
    found = named(scatter(labels.repeat(5), 4))
    assert (found["name"], found["repeated"]) == ("labels", True)
    assert "repeated" not in named(scatter(labels.clone(), 4))
    assert "repeated" not in named(scatter(torch.cat([labels, labels + 1]), 4))
