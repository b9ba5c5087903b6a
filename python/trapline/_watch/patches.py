"""Functions of torch's that calls go through on their way to it, until they are put back."""

from __future__ import annotations

import functools
from typing import Any, Callable


class Patches:
    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []

    def wrap(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        """Puts ``make(original)`` in the place of `name`."""
        original = getattr(owner, name)
        wrapper = make(original)
        functools.update_wrapper(wrapper, original)
        setattr(owner, name, wrapper)

        def undo() -> None:
            if getattr(owner, name) is wrapper:  # somebody else's would be lost
                setattr(owner, name, original)

        self._undo.append(undo)

    def undo(self) -> None:
        for undo in self._undo:
            undo()
        self._undo.clear()
