"""What the variable with the bad numbers was given last."""

import pytest
from conftest import make_violation

torch = pytest.importorskip("torch")
from trapline._fault.program import given  # noqa: E402


def predict(n):
    return list(range(n))


def inner(index):
    return given.given_facts("index", index)


def between(at):
    return inner(at)


def called(labels):
    return given.given_facts("labels", labels)


def test_a_call_of_the_program():
    target = torch.tensor(predict(4))
    found = given.given_facts("target", target)
    assert (found["name"], found["text"]) == ("target", "torch.tensor(predict(4))")
    moved = target.long().unsqueeze(1)
    assert given.given_facts("moved", moved)["text"] == "torch.tensor(predict(4))"


def test_through_the_functions_that_hand_it_on():
    chosen = torch.tensor(predict(4))
    found = between(chosen)
    assert (found["name"], found["text"]) == ("chosen", "torch.tensor(predict(4))")


def test_what_stands_in_the_call():
    grid = [i for _ in range(2) for i in range(3)]
    grid = sorted(grid)
    found = called(torch.tensor(grid))
    assert (found["name"], found["text"]) == ("grid", "sorted(grid)")


def test_a_cut_is_told_and_an_entry_is_not():
    batch = {"y": torch.arange(8).reshape(2, 4)}
    y = batch["y"]
    assert given.given_facts("y", y) is None
    later = y[:, 1:]
    assert given.given_facts("later", later)["text"] == "y[:, 1:]"


def test_a_loop_gives_it():
    for x, y in [(torch.zeros(2), torch.arange(2))]:
        y = y.to("cpu")
        assert given.given_facts("y", y) is None
        assert x is not None


def match(boxes, labels):
    labels[0] = len(boxes)


def test_what_writes_into_a_tensor_that_holds_nothing():
    labels = torch.zeros(3, dtype=torch.long)
    match([1, 2], labels)
    assert given.given_facts("labels", labels)["text"] == "match([1, 2], labels)"
    ids = torch.empty(2, 2, dtype=torch.long)
    ids[0] = torch.tensor([3, 4])
    ids[1].fill_(7)
    assert given.given_facts("ids", ids)["text"] == "ids[1].fill_(7)"
    none = torch.ones(2)
    assert given.given_facts("none", none) is None


def test_what_only_reads_writes_nothing(capsys):
    seen = []
    for labels in [torch.tensor([1, 2])]:
        print(labels)
        seen.append(labels)
        assert given.given_facts("labels", labels) is None
    nothing = torch.zeros(2)
    print(nothing)
    assert given.given_facts("nothing", nothing) is None
    assert "tensor" in capsys.readouterr().out


def test_views_and_what_a_variable_is_given_of_itself():
    marks = torch.tensor(predict(4))
    index = marks[:, None, :].expand(4, 2, 4) if marks.dim() > 1 else marks
    marks = torch.where(marks > 2, marks, torch.zeros_like(marks))
    assert given.given_facts("marks", marks)["text"] == "torch.tensor(predict(4))"
    wide = marks[:, None].expand(-1, 3)
    assert given.given_facts("wide", wide)["text"] == "torch.tensor(predict(4))"
    assert index is not None


def test_what_is_no_tensor_yet():
    p = predict(4)
    p = torch.as_tensor(p, dtype=torch.float32).clamp(1, 3)
    found = given.given_facts("p", p)
    assert (found["text"], found["entered"]) == ("predict(4)", True)
    q = torch.tensor(predict(4)).long()
    assert given.given_facts("q", q)["entered"] is True
    r = q.index_select(0, q)
    assert "entered" not in given.given_facts("r", r)
    s = torch.as_tensor(predict(3)).cumsum(0)
    assert "entered" not in given.given_facts("s", s)
    t = predict(4)
    t = torch.as_tensor(t).float()
    assert given.given_facts("t", t)["entered"] is True
    t = torch.where(t > 2, t, t / 0)
    assert "entered" not in given.given_facts("t", t), "which may have made the NaN"
    u = torch.tensor(predict(4)).float().masked_fill(t > 2, float("nan"))
    assert "entered" not in given.given_facts("u", u)


def test_one_of_two_results():
    values = torch.tensor(predict(4)).view(2, 2).float()
    least = values.min(dim=1).values
    assert given.given_facts("least", least)["text"] == "values.min(dim=1).values"
    held = least.data
    assert given.given_facts("held", held) is None


class Sampler:
    def __init__(self, counts):
        self.weights = counts.float().pow(-1)
        self.table = counts

    def draws(self):
        return given.given_facts("self.weights", self.weights), given.given_facts("self.table", self.table)


def test_what_an_object_keeps():
    made, kept = Sampler(torch.tensor([0, 2])).draws()
    assert (made["name"], made["text"]) == ("self.weights", "counts.float().pow(-1)")
    assert kept is None


def test_another_argument_of_the_operation_is_not_it():
    kept = [torch.ones(3)]
    found = given.given_facts("x".strip("x"), kept[0])  # the one that stands written in the call
    assert found is None


class Table:
    def look_up(self, index):
        return self(torch.tensor(sorted(index)))

    def __call__(self, index):
        return given.given_facts("", index)


def test_the_only_argument_of_a_call():
    found = Table().look_up([3, 1])
    assert found["text"] == "sorted(index)"


def test_the_facts_of_a_violation_hold_the_other_dimension(facts_of):
    index = torch.tensor(predict(9))[:, None]
    arguments = {"self": torch.zeros(4, 9), "dim": 0, "index": index}
    facts = facts_of(make_violation("gather.index", index, 0, 4, arguments))
    assert facts["other_dimension"] == {"dim": 1, "size": 9}


def test_a_mark_that_is_written_into_numbers():
    probs = torch.softmax(torch.arange(4.0), 0)
    probs[probs < 0.1] = -float("inf")
    assert given.given_facts("probs", probs)["text"] == "-float('inf')"
    kept = torch.softmax(torch.arange(4.0), 0)
    kept[kept < 0.1] = 0.5
    assert given.given_facts("kept", kept) is None, "which part is bad is not known"
