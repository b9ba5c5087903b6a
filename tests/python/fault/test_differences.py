"""An infinity less another one, as scores that a mask has banned twice."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
from trapline._fault.program import differences  # noqa: E402

BANNED = float("-inf")


def both(second):
    return torch.tensor([[0.5, 0.25, BANNED], [0.1, 0.2, 0.3]]), torch.tensor(
        [[0.5, 0.1, second], [0.3, 0.2, 0.1]]
    )


def less(second):
    expert, amateur = both(second)
    score = 2 * expert - amateur
    probs = score.softmax(-1)
    return differences.of_infinities(probs, 0)


def more(second):
    expert, amateur = both(second)
    score = expert + amateur
    probs = score.softmax(-1)
    return differences.of_infinities(probs, 0)


def test_the_statement_that_makes_nan_of_two_infinities():
    found = less(BANNED)
    assert found == {"text": "2 * expert - amateur", "line": less.__code__.co_firstlineno + 2}
    assert more(-BANNED)["text"] == "expert + amateur"


def test_no_other_two():
    assert less(-BANNED) is None
    assert less(0.0) is None
    assert more(BANNED) is None


def test_only_in_the_bad_row():
    expert = torch.tensor([[0.5, BANNED], [0.1, 0.2]])
    amateur = torch.tensor([[0.5, BANNED], [0.3, 0.2]])
    score = expert - amateur
    assert differences.of_infinities(score, 2) is None
    assert differences.of_infinities(score, 1)["text"] == "expert - amateur"
