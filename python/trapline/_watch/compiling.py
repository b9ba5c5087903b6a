"""The part that comes in when Dynamo is imported: the watch has to know when it begins to compile."""

from __future__ import annotations

from trapline._watch import light


def install() -> None:
    """``torch._dynamo.callback`` is imported."""
    light.follows_compilation()
