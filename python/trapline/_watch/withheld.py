"""Steps that GradScaler leaves out: none of them is a fault, unless it leaves out all of them."""

from __future__ import annotations

from typing import Any, Optional

from trapline._library.say import debug

LASTING = 5  # in a row whose losses were NaN
# In a row whose losses were finite: the scale, 65536 at first, was halved until it was less than one.
LASTING_FINITE = 20


class Streak:
    """The steps in a row that a scaler has left out, and what the first of them was."""

    def __init__(self) -> None:
        self.ends()

    def ends(self) -> None:
        """A step was taken."""
        self._nan = self._finite = 0
        self._first: Optional[dict[str, Any]] = None

    def goes_on(self, nan_loss: bool, fact: Optional[dict[str, Any]]) -> None:
        if self._finite if nan_loss else self._nan:
            self.ends()
        if nan_loss:
            self._nan += 1
        else:
            self._finite += 1
        self._first = self._first or fact

    def is_new(self) -> bool:
        """Its place is not known yet."""
        return self._first is None

    def is_long(self) -> bool:
        """So long with finite losses that its place is worth a look."""
        return self._finite >= 3

    def verdict(self, optimizers: int) -> Optional[dict[str, Any]]:
        """At the end of the program."""
        optimizers = max(1, optimizers)
        lasting = self._nan >= LASTING * optimizers or self._finite >= LASTING_FINITE * optimizers
        return self._first if lasting else None


def around_scaler(light: Any, original: Any) -> Any:
    """Around ``GradScaler.step``."""

    def step(scaler: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        light.catches_up()
        turn, bad = light.steps.turn, light.nan_loss
        result = original(scaler, optimizer, *args, **kwargs)
        try:
            if light.steps.turn == turn and light.found is None and optimizer is not None:
                _is_withheld(light, optimizer, bad)
        except Exception as error:
            debug(f"watch: {error!r}")
        return result

    return step


def _is_withheld(light: Any, optimizer: Any, nan_loss: bool) -> None:
    """A scaler has left the step out: no fault, unless it leaves out all of them."""
    if not nan_loss and light.suspect is None and light.streak.is_long() and light.streak.is_new():
        light.sees_gradients(optimizer)
    light.counts_step(optimizer)
    suspect, light.suspect = light.suspect, None
    if suspect is not None:
        light.second.returns()
    fact = None if suspect is None else suspect.numbered(light.steps.taken)
    light.early.is_withheld(fact, nan_loss)
    light.streak.goes_on(nan_loss, fact)
