"""Places in the program that were reported by this process already: a fault there is summed up only."""

from __future__ import annotations

from types import CodeType
from typing import Any, Optional

from trapline._fault.program import places

_MAX = 4096  # a program has no more places that fail; beyond them all is summed up
_reported: dict[tuple[Any, ...], tuple[list[CodeType], Any, str]] = {}


def site_of(violation: dict[str, Any]) -> Optional[tuple[Any, ...]]:
    """Contract and the frames down from the deepest one of the user's: the same for each turn of a loop."""
    pairs = violation.get("frames")
    if not pairs:
        return None
    site = [violation.get("contract")]
    for code, lasti in pairs:
        site += (id(code), lasti)
        if places.is_user(code):
            break
    return tuple(site)


def is_reported(site: Optional[tuple[Any, ...]]) -> bool:
    """True when a whole report was made for a fault at this place."""
    return site is not None and (site in _reported or len(_reported) >= _MAX)


def reported(site: Optional[tuple[Any, ...]], violation: dict[str, Any], finding: dict[str, Any]) -> None:
    """Notes that a whole report was made, with the origin and the code that it named."""
    if site is not None:  # the code objects are kept, so that no other takes their identity
        codes = [code for code, _ in violation["frames"][: len(site) // 2]]
        _reported[site] = codes, finding.get("origin"), str(finding.get("code", "TL901"))


def origin_of(site: Optional[tuple[Any, ...]]) -> Any:
    """The origin of the report of this place; None without one."""
    return _reported[site][1] if site in _reported else None


def code_of(site: Optional[tuple[Any, ...]]) -> Optional[str]:
    """The code of the report of this place; None without one."""
    return _reported[site][2] if site in _reported else None


def forget() -> None:
    """For tests: no place was reported."""
    _reported.clear()
