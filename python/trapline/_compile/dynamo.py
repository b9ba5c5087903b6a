"""Keeps Dynamo out of Trapline's own code, which runs inside the functions that Dynamo compiles.

Except for the hooks of the watch: they ask whether they are traced, and are nothing then. A hook that Dynamo
leaves alone would end the graph.
"""

from __future__ import annotations

import pkgutil
import sys

_TRACED = "_watch"
_named = False


def install() -> None:
    """Name what is in this package for Dynamo to leave alone; ``torch._dynamo.trace_rules`` is imported."""
    global _named
    if not _named:
        package = __name__.partition(".")[0]
        add = sys.modules["torch._dynamo.trace_rules"].add
        for module in pkgutil.iter_modules(sys.modules[package].__path__):
            if module.name != _TRACED:
                add(f"{package}.{module.name}")
        _named = True
