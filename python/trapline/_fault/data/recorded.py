"""What the active guard remembers, native or pure Python alike; nothing where there is no guard."""

from __future__ import annotations

from typing import Any


def history() -> list[dict[str, Any]]:
    """The last guarded calls, oldest first."""
    from trapline._guard import active

    return active.history()


def remembered() -> list[dict[str, Any]]:
    """Values that are no error by themselves but may be the origin of this one (NaN casts), newest first."""
    from trapline._guard import active

    return active.remembered()
