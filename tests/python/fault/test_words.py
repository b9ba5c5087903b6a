"""The text of the exception: the finding's summary, and PyTorch's own words after it."""

from __future__ import annotations

import pickle

from trapline._exceptions import hooks
from trapline._fault import violation
from trapline._library.errors import DeviceAssertError
from trapline._skip import ledger


def error_of(summary, torch_says):
    finding = {"summary": summary}
    return DeviceAssertError(violation._text(finding, {"torch_says": torch_says}), finding)


def test_pytorchs_words_follow_the_summary():
    error = error_of("take: index[0] is 9", "out of range: tried to access index 9")
    assert str(error) == "take: index[0] is 9\n(PyTorch: out of range: tried to access index 9)"
    assert error.summary == "take: index[0] is 9" and error.finding == {"summary": error.summary}
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    assert ledger.summary(error) == error.summary


def test_without_words_there_is_one_line():
    assert str(error_of("ctc_loss: targets[0] is 9", None)).count("\n") == 0


def test_a_quoted_text_is_not_explained_again():
    """As it comes from a process that has reported it: another exception with the same text."""
    words = "index 9 is out of bounds for dimension 0 with size 3"
    error = error_of("x[index]: index[0] is 9", words)
    assert hooks._explain(RuntimeError(f"a worker failed: {error}"), "cell") is None
    assert isinstance(error, (IndexError, RuntimeError))
