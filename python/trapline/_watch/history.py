"""Loss and gradient norm of the last steps."""

from __future__ import annotations

import math
import statistics
from collections import deque
from typing import Any, Optional

KEPT = 50  # steps
_RECENT = 20  # of them are asked whether the numbers grew
_TIMES = 20  # what they were in the first half of these


class History(deque[tuple[int, Optional[float], Optional[float]]]):
    """Rows of step, loss and gradient norm (None: not looked at), oldest first."""

    def __init__(self) -> None:
        super().__init__(maxlen=KEPT)

    def knows(self, step: int, loss: float) -> None:
        """The loss of an earlier step, which has arrived by now."""
        for at in range(len(self) - 1, -1, -1):
            if self[at][0] <= step:
                if self[at][0] == step:
                    self[at] = (step, loss, self[at][2])
                return

    def until(self, step: int) -> History:
        """The rows before it."""
        rows = History()
        rows.extend(row for row in self if row[0] < step)
        return rows

    def growth(self) -> Optional[dict[str, Any]]:
        """The gradient norm, or else the loss, that is a hundred times what it was, and not by one leap; more
        than ever in these steps, as one that only varies is not."""
        for at, name in ((2, "gradient norm"), (1, "loss")):
            known = [row[at] for row in list(self)[-_RECENT:]]
            values = [abs(value) for value in known if value is not None and math.isfinite(value)]
            if values[-2:-1] > values[-1:]:  # it goes up and down from step to step
                values.pop()
            if len(values) < 3 or min(values[:-1]) <= 0 or values[-1] < max(values):
                continue
            usual = statistics.median(values[: len(values) // 2])  # the least of all may be chance
            grew = values[-1] > max(_TIMES * usual, 100 * min(values[:-1]))
            if grew and max(values[:-1]) > 3 * min(values[:-1]):
                return {"of": name, "low": usual, "high": values[-1], "steps": len(values)}
        return None

    def norm_was_finite(self) -> bool:
        """Of the gradients of the last step, where they were looked at."""
        last = self[-1][2] if self else None
        return last is not None and math.isfinite(last)

    def told(self, step: int, loss: Optional[float], norm: Optional[float]) -> dict[str, Any]:
        """Facts: the last steps, and what has grown in them."""
        growth = self.growth()
        return {"last_steps": self.facts(step, loss, norm), **({} if growth is None else {"growth": growth})}

    def facts(self, step: int, loss: Optional[float], norm: Optional[float]) -> list[dict[str, float | str]]:
        """With the step that is being made. JSON knows no NaN: such numbers are words."""
        rows = [row for row in self if row[0] < step][-(KEPT - 1) :]
        if loss is not None or norm is not None:
            rows.append((step, loss, norm))
        known = (zip(("step", "loss", "gradient_norm"), row) for row in rows)
        return [{name: _written(value) for name, value in row if value is not None} for row in known]


def _written(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf")
