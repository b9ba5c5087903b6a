"""Facts to finding by libtrapline: all words of a report are made there."""

from __future__ import annotations

import ctypes
from functools import lru_cache
from typing import Any, Optional


def version() -> str:
    """The library's version; this package's own when the library cannot be loaded."""
    from trapline._library import VERSION, paths

    try:
        return paths.library().trapline_version().decode()
    except (ImportError, OSError, AttributeError):
        return VERSION


@lru_cache(maxsize=1)
def contracts() -> dict[str, dict[str, Any]]:
    """The contracts table by id. Raises ImportError without a library."""
    from trapline._library import capi, paths

    count = ctypes.c_size_t()
    rows = paths.library().trapline_contracts(ctypes.byref(count))
    table: dict[str, dict[str, Any]] = {}
    for position in range(count.value):
        row = rows[position]
        fields = {name: getattr(row, name) for name, _ in capi.Contract._fields_}
        table[row.id.decode()] = {k: v.decode() if isinstance(v, bytes) else v for k, v in fields.items()}
    return table


def contract(identifier: str) -> dict[str, Any]:
    """One row of the contracts table; empty when the library or the row is missing."""
    try:
        return contracts().get(identifier, {})
    except (ImportError, OSError, AttributeError):
        return {}


def diagnose(facts: dict[str, Any]) -> Optional[dict[str, Any]]:
    """The finding for some facts; None when the library is silent about them.

    Raises:
        ImportError: there is no library.
        ValueError: the library cannot read the facts.
    """
    from trapline._library import paths

    answer = paths.call_diagnose(facts)
    if answer.get("error"):
        raise ValueError(answer["error"])
    return answer.get("finding")
