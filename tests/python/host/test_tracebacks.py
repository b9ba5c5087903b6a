"""The traceback that a user reads has no frames of the tool."""

import traceback

import pytest

pytest.importorskip("torch")
from trapline._exceptions import tracebacks
from trapline._library import paths

OURS = paths.PACKAGE_DIR + "/_watch/roots.py"


def through_ours(function):
    scope = {}
    exec(compile("def passes_on(function):\n    return function()\n", OURS, "exec"), scope)
    return scope["passes_on"](function)


def fails():
    raise ValueError("here")


def functions_of(error):
    return [frame.name for frame in traceback.extract_tb(error.__traceback__)]


def caught(call):
    with pytest.raises(ValueError) as raised:
        call()
    return raised.value


def test_what_stands_between_two_frames_of_others():
    error = caught(lambda: through_ours(lambda: through_ours(fails)))
    assert functions_of(error).count("passes_on") == 2
    tracebacks.without_ours(error)
    assert "passes_on" not in functions_of(error)
    assert functions_of(error)[-1] == "fails"


def test_the_cause_as_well_and_our_own_mistakes_stay():
    def wraps():
        try:
            through_ours(fails)
        except ValueError as inner:
            raise ValueError("outer") from inner

    error = caught(wraps)
    tracebacks.without_ours(error)
    assert functions_of(error.__cause__) == ["wraps", "through_ours", "fails"]
    ours = {}
    exec(compile("def breaks():\n    raise ValueError('ours')\n", OURS, "exec"), ours)
    error = caught(ours["breaks"])
    tracebacks.without_ours(error)
    assert functions_of(error)[-1] == "breaks"
    tracebacks.without_ours(None)
