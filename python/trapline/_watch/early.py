"""A loss that was not finite and harmed nothing: no weight was bad after it, its gradients were finite.

A training that blows up has such losses for some steps before a weight overflows. Where none was finite in
between, the first of them is where it began.
"""

from __future__ import annotations

from typing import Any, Optional

_WITHHELD = 3
_AFTER = ("state", "optimizer")  # what the step made of its loss
_TOLD = ("loss", "output")  # else the numbers were given from elsewhere


class Early:
    def __init__(self) -> None:
        self.fact: Optional[dict[str, Any]] = None  # the first since a loss was finite
        self.harmless: Optional[dict[str, Any]] = None  # the first of this run
        self._lost: Optional[dict[str, Any]] = None
        self._withheld = 0  # steps with a loss that was NaN, which a scaler has left out

    def notes(self, fact: dict[str, Any], stepped: bool) -> None:
        """`stepped`: an optimizer counts the steps; a loss of which nothing came is not always one's own."""
        if stepped:
            gradients = "0" if fact["what"] == "nan" else "finite"
            self.harms_nothing(fact, f"its gradients were {gradients}: no weight took harm")
        if self.fact is None and stepped and fact["kind"] in _TOLD:
            self.fact = fact

    def harms_nothing(self, fact: dict[str, Any], why: str) -> None:
        if self.harmless is None:
            self.harmless = {**fact, "why": why}

    def is_withheld(self, fact: Optional[dict[str, Any]], nan_loss: bool) -> None:
        """Scaling makes no NaN of a loss: no smaller scale mends it, and its data are never learnt from."""
        self._withheld += nan_loss
        if fact is not None and nan_loss and self._lost is None:
            self._lost = fact
        if self._withheld >= _WITHHELD and self._lost is not None:
            many = f"GradScaler left out {self._withheld} such steps: nothing was learnt from their data"
            if self.harmless is None or self.harmless.get("withheld"):
                self.harmless = {**self._lost, "why": many, "withheld": True}

    def before(self, found: dict[str, Any]) -> dict[str, Any]:
        """Which of the two is told."""
        early, self.fact = self.fact, None
        if early is None or early["step"] > found["step"]:
            return found
        if early["step"] == found["step"] and found["kind"] not in _AFTER:
            return found
        sample = {key: found[key] for key in ("sample",) if key in found and key not in early}
        return {**early, "last_steps": found["last_steps"], **_grown(found), **sample}


def _grown(found: dict[str, Any]) -> dict[str, Any]:
    return {"growth": found["growth"]} if "growth" in found else {}
