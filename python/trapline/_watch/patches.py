"""Functions of torch's that calls go through on their way to it, until they are put back."""

from __future__ import annotations

import functools
from typing import Any, Callable

from trapline._library.standin import known_to_script


class Patches:
    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []

    def wrap(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        """Puts ``make(original)`` in the place of `name`."""
        original = getattr(owner, name)
        wrapper = make(original)
        functools.update_wrapper(wrapper, original)
        setattr(owner, name, wrapper)
        unknown = known_to_script(wrapper, original)

        def undo() -> None:
            if getattr(owner, name) is wrapper:  # somebody else's would be lost
                setattr(owner, name, original)
                unknown()

        self._undo.append(undo)

    def undo(self) -> None:
        for undo in self._undo:
            undo()
        self._undo.clear()
