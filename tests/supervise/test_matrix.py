"""The fault matrix (faults.py): every row once; in `make test-long` ten times with other times and flags."""

import os
import random

import faults
import pytest

TIMES = 10 if os.environ.get("TRAPLINE_LONG") == "1" else 1


@pytest.mark.parametrize("seed", range(TIMES))
@pytest.mark.parametrize("row", faults.ROWS, ids=lambda row: row.__name__)
def test_row(row, seed, tmp_path):
    row(tmp_path, random.Random(f"{row.__name__} {seed}"))
