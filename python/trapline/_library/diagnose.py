"""Facts to finding by libtrapline: all words of a report are made there."""

from __future__ import annotations

import ctypes
from functools import lru_cache
from typing import Any, Optional

from trapline._library import VERSION, calls, capi, paths, scans, text

_MAX_TEXT = 1024


def version() -> str:
    """The library's version; this package's own when the library cannot be loaded."""
    try:
        return paths.library().trapline_version().decode()
    except (ImportError, OSError, AttributeError):
        return VERSION


@lru_cache(maxsize=1)
def contracts() -> dict[str, dict[str, Any]]:
    """The contracts table by id. Raises ImportError without a library."""
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
    answer = paths.call_diagnose(facts)
    if answer.get("error"):
        raise ValueError(answer["error"])
    return answer.get("finding")


def bare_sentence(contract: Any, scan: Any) -> str:
    """What is left to say of a violation when its finding cannot be made. Never raises."""
    try:
        said = ctypes.create_string_buffer(_MAX_TEXT)
        paths.library().trapline_bare_sentence(*_bare(contract, scan), said, _MAX_TEXT)
        return said.value.decode("utf-8", "replace")
    except Exception:  # no library, no memory: the row has a telling name
        return str(contract)


def bare_finding(contract: Any, scan: Any, reason: str) -> dict[str, Any]:
    """The same as a finding; ``reason``: why the cause cannot be named. Never raises."""
    try:
        lib = paths.library()
        said = calls.taken(
            lib, lib.trapline_bare_finding(*_bare(contract, scan), reason.encode("utf-8", "replace"))
        )
        return text.read(said or "{}")
    except Exception:
        return {"summary": str(contract)}


def render(finding: dict[str, Any], descriptor: int = 2) -> str:
    """A finding as text, as wide and as coloured as the descriptor takes it; "" where the library cannot."""
    lib = paths.library()
    return calls.taken(lib, lib.trapline_render(calls.as_json(finding), descriptor)) or ""


def render_html(finding: dict[str, Any]) -> str:
    """A finding as a piece of HTML, for a notebook; "" where the library cannot."""
    lib = paths.library()
    return calls.taken(lib, lib.trapline_render_html(calls.as_json(finding))) or ""


def _bare(contract: Any, scan: Any) -> tuple[bytes, Any]:
    try:
        struct = scans.as_struct(scan)
    except (AttributeError, TypeError, ValueError, OverflowError):  # garbage instead of a scan
        struct = None
    return str(contract).encode("utf-8", "replace"), None if struct is None else ctypes.byref(struct)
