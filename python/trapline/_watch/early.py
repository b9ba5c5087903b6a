"""A loss that was not finite and harmed nothing: no weight was bad after it, its gradients were finite.

A training that blows up has such losses for some steps before a weight overflows. Where none was finite in
between, the first of them is where it began.
"""

from __future__ import annotations

from typing import Any, Optional

_TOLD = ("loss", "output")  # else the numbers were given from elsewhere


class Early:
    def __init__(self) -> None:
        self.fact: Optional[dict[str, Any]] = None  # the first since a loss was finite
        self.harmless: Optional[dict[str, Any]] = None  # the first of this run

    def notes(self, fact: dict[str, Any], stepped: bool) -> None:
        """`stepped`: an optimizer counts the steps; a loss of which nothing came is not always one's own."""
        if self.harmless is None and stepped:
            self.harmless = fact
        if self.fact is None and stepped and fact["kind"] in _TOLD:
            self.fact = fact

    def before(self, found: dict[str, Any]) -> dict[str, Any]:
        """Which of the two is told."""
        early, self.fact = self.fact, None
        if early is None or early["step"] >= found["step"]:
            return found
        return {**early, "last_steps": found["last_steps"], **_grown(found)}


def _grown(found: dict[str, Any]) -> dict[str, Any]:
    return {"growth": found["growth"]} if "growth" in found else {}
