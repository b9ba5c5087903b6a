"""What a check saw, as the facts have it (a dictionary) and as libtrapline takes it (``trapline_scan``)."""

from __future__ import annotations

from typing import Any

from trapline._library import capi


def as_dict(scan: capi.Scan) -> dict[str, Any]:
    """The dictionary of a violation, as ``src/guard/python/convert.cpp`` makes it, too."""
    is_float = bool(scan.is_float)
    return {
        "bad": scan.bad,
        "total": scan.total,
        "first": scan.first,
        "value": scan.fvalue if is_float else scan.ivalue,
        "min": scan.fmin if is_float else scan.imin,
        "max": scan.fmax if is_float else scan.imax,
        "lo": scan.lo,
        "hi": scan.hi,
        "also": scan.also if scan.has_also else None,
        "list_position": scan.list_position if scan.list_position >= 0 else None,
        "reason": scan.reason,
        "is_float": is_float,
    }


def as_struct(scan: dict[str, Any]) -> capi.Scan:
    """The structure for a dictionary, which may lack members."""
    out = capi.Scan()
    out.is_float = bool(scan.get("is_float"))
    for name in ("bad", "total", "reason", "lo", "hi"):
        setattr(out, name, int(scan.get(name) or 0))
    out.first = _integer(scan.get("first"), -1)
    out.list_position = _integer(scan.get("list_position"), -1)
    out.has_also = scan.get("also") is not None
    out.also = _integer(scan.get("also"), 0)
    kind, letter = (float, "f") if out.is_float else (int, "i")
    for name in ("value", "min", "max"):
        if scan.get(name) is not None:
            setattr(out, letter + name, kind(scan[name]))
    return out


def _integer(value: Any, otherwise: int) -> int:
    return otherwise if value is None else int(value)
