"""PyTorch's own samples: equal to the CPU's bit for bit, or refused by name.

`make test` takes two samples of each operation; `TRAPLINE_LONG=1` takes all samples of all dtypes.
"""

from __future__ import annotations

import os
import warnings

import pytest

pytest.importorskip("expecttest", reason="PyTorch's own test library needs expecttest")
LONG = os.environ.get("TRAPLINE_LONG") == "1"


def test_samples():
    from sweep import sweep

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tally = sweep(samples=10**9 if LONG else 2, every=LONG)
    print(tally.text())
    assert tally.samples > 1000
    assert not tally.differ, tally.text()
    assert tally.refused < 0.02 * tally.samples, tally.text()
