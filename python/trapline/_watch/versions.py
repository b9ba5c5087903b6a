"""Whether the program has written a weight besides the optimizers' steps, by how often it was written at all.

PyTorch counts what is written into a tensor (``_version``). A step writes each weight equally often.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple, Optional

_LEAST = 2  # weights that tell how often a step writes


class _Noted(NamedTuple):
    version: int
    turn: int  # steps that were taken before


class Versions:
    def __init__(self) -> None:
        # By id: a tensor that somebody refers to weakly cannot be swapped (torch.utils.swap_tensors).
        self._noted: dict[int, _Noted] = {}

    def notes(self, parameters: Iterable[Any], turn: int) -> None:
        """Before the step after `turn`."""
        self._noted.update((id(p), _Noted(p._version, turn)) for p in parameters if not p.is_inference())

    def is_written(self, parameter: Any, others: Iterable[Any], turn: int) -> bool:
        """After `turn` steps: between some of them, and not by these. Of the `others` those that were taken
        up at the same time, and were written as often in each step, say how often a step does that.
        """
        mine = self._noted.get(id(parameter))
        if mine is None or turn <= mine.turn:
            return False
        steps, written = turn - mine.turn, parameter._version - mine.version
        counts = Counter(self._written_of(other, mine.turn) for other in others)
        usual = [count for count, times in counts.items() if count and times >= _LEAST]
        return any(count % steps == 0 and 0 < written - count < steps for count in usual)

    def _written_of(self, other: Any, turn: int) -> Optional[int]:
        noted = self._noted.get(id(other))
        return None if noted is None or noted.turn != turn else other._version - noted.version
