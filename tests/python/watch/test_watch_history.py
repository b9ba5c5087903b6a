"""Whether the numbers of the last steps have grown."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
from trapline._watch.history import History


def of_losses(losses):
    history = History()
    history.extend((step, loss, None) for step, loss in enumerate(losses))
    return history.growth()


def test_what_grows_until_it_overflows():
    grown = of_losses([1.6**n for n in range(20)])
    assert (grown["of"], grown["steps"], grown["high"]) == ("loss", 20, 1.6**19)
    assert grown["low"] == pytest.approx(1.6**4.5, rel=0.03)


def test_what_grows_up_and_down():
    """Each step goes too far, as a rate that is too large makes it."""
    grown = of_losses([10.0**n if n % 2 else 10.0 ** (n - 4) for n in range(21)])
    assert (grown["of"], grown["high"]) == ("loss", 10.0**19)


@pytest.mark.parametrize(
    "losses",
    [
        [3.09, 2.32, 0.8, 0.4, 0.0036, 0.40, 0.23, 0.31, 0.71],  # it follows what was drawn
        [0.5, 0.6, 0.001, 0.4, 0.5, 0.6],  # one that was small by chance
        [1.0, 1.0, 1.0, 1.0, 5000.0],  # a leap
        [1.0, 1.0, 1.0, 1.0, 5000.0, 2.0],
        [100.0, 50.0, 0.1, 0.2, 20.0],  # not above what was before
    ],
)
def test_what_varies_has_not_grown(losses):
    assert of_losses(losses) is None
