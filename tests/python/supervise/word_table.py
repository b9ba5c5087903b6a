"""A model of ten words, and what it is asked."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

ROWS = 10
_TABLE = torch.randn(ROWS, 4)


def look_up(word: int) -> Any:
    """Raises DeviceAssertError for a word from 10 on."""
    return F.embedding(torch.tensor([1, word]), _TABLE)


def words(word: int) -> str:
    """What the guard says of it."""
    return f"embedding: input[1] is {word}, but the table has 10 rows: valid ids are [0, 10)"
