"""Keeps Dynamo out of Trapline's own code, which runs inside the functions that Dynamo compiles."""

from __future__ import annotations

import sys

_named = False


def install() -> None:
    """Name this package among those that Dynamo leaves alone; ``torch._dynamo.trace_rules`` is imported."""
    global _named
    if not _named:
        sys.modules["torch._dynamo.trace_rules"].add("trapline")
        _named = True
