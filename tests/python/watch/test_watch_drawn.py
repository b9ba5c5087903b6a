"""What drawing was given, and is not finite: the statements that made it run again, without a loss."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
from trapline._fault.data import recorded  # noqa: E402

# A function that is asked here stands for the one that draws: `made_again` is given what that would be.


def posterior(chances, kept, step):
    unmask = (kept[step - 1] - kept[step]) / (1 - kept[step])
    return torch.cat([unmask * chances, (1 - unmask).expand(len(chances), 1)], dim=-1)


def draw(kept, step):
    probs = posterior(torch.full((3, 2), 0.5), kept, step)
    return recorded.made_again(probs.view(-1, 3), "multinomial")


KEPT = [1.0, 0.5, 0.0]


def line_of(made):
    return made["origin"]["code"].strip()


def test_a_division_in_a_function_that_has_returned(watch):
    made = draw(torch.tensor(KEPT), 0)
    assert made["op"] == "div"
    assert line_of(made) == "unmask = (kept[step - 1] - kept[step]) / (1 - kept[step])"


def test_what_is_finite_is_made_by_nothing(watch):
    assert draw(torch.tensor(KEPT), 1) == {}


def test_nobody_runs_anything_without_the_watch():
    assert draw(torch.tensor(KEPT), 0) == {}


def weighted(far):
    near = far.pow(-2)
    return near / near.sum()


def test_what_the_line_itself_gives(watch):
    """No variable holds it; and of Inf that became NaN, what made the Inf is told."""
    far = torch.tensor([0.0, 1.0, 2.0])
    made = recorded.made_again(weighted(far), "made_again")
    assert (made["op"], line_of(made)) == ("pow", "near = far.pow(-2)")


def test_where_what_it_made_is_bad(watch):
    far = torch.tensor([0.5, 1.0, -2.0, 3.0])
    near = far.log()
    made = recorded.made_again(near / near.sum(), "made_again")
    assert (made["op"], made["part"]) == ("log", {"index": [2], "bad": 1, "total": 4})


def test_what_had_been_given_so_is_no_operations(watch):
    far = torch.tensor([float("nan"), 1.0, 2.0])
    assert recorded.made_again(weighted(far), "made_again") == {}


def test_a_softmax_of_a_row_that_a_mask_leaves_empty(watch):
    scores = torch.zeros(2, 3).masked_fill(
        torch.tensor([[True, False, True], [True, True, True]]), -torch.inf
    )
    probs = scores.softmax(-1)
    made = recorded.made_again(probs, "multinomial")
    assert (made["op"], made["finite"], line_of(made)) == ("softmax", False, "probs = scores.softmax(-1)")
