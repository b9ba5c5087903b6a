"""Where NumPy, or PyTorch, warned that it had made numbers which are not finite.

Each tells it once for a line. Python notes in a module which of its lines have warned; those of a library say
nothing of the user's line, so that one is looked for while the warning is shown.
"""

from __future__ import annotations

import re
import sys
from typing import Any, Callable, Optional

from trapline._fault.program import places, scope, source
from trapline._library import aside
from trapline._library.say import debug

INVALID_CAST = "invalid value encountered in cast"
_INF = re.compile(r"(divide by zero|overflow) encountered in \w+")
_NAN = re.compile(
    r"invalid value encountered in (?!cast|greater|less|equal|not_equal|maximum|minimum|fm)\w+"
    r"|Mean of empty slice|Degrees of freedom <= 0 for slice"  # NumPy's mean, std
    r"|(std|var|std_mean|var_mean)\(\): degrees of freedom is <= 0"  # PyTorch's
)
_MOST = 64
_FEW = 2  # places that can all be told

_shown: dict[tuple[str, int], str] = {}  # what warned in each of the user's lines, in order


def around_show(original: Callable[[Any], None]) -> Callable[[Any], None]:
    """Around the function of Python's that every warning goes through that is shown."""

    def show(message: Any) -> None:
        if aside.is_running():  # the program has been told of it already
            return
        try:
            text = str(message.message)
            if len(_shown) < _MOST and (_NAN.match(text) or _INF.match(text)):
                _remember(text, message.filename, message.lineno)
        except Exception as error:
            debug(f"a warning: {error!r}")
        original(message)

    return show


def _remember(text: str, file: str, line: int) -> None:
    if places.is_library_file(file) or places.is_own(file):
        frame: Any = sys._getframe(2)
        while frame is not None and not places.is_user(frame.f_code):
            frame = frame.f_back
        if frame is None:
            return
        file, line = frame.f_code.co_filename, frame.f_lineno
    _shown.setdefault((file, line), text)


def noted(wanted: Callable[[str], Any]) -> dict[tuple[str, int], str]:
    """File and line of the user's, and what was said of it."""
    found = {place: text for place, text in _shown.items() if wanted(text)}
    for module in list(sys.modules.values()):
        held = scope.members(module)
        registry, file = held.get("__warningregistry__"), held.get("__file__")
        if type(registry) is not dict or type(file) is not str or places.is_library_file(file):
            continue
        for key in list(registry):
            if type(key) is tuple and len(key) == 3 and type(key[0]) is str and wanted(key[0]):
                found.setdefault((file, key[2]), key[0])
    return found


def frame(file: str, line: int) -> dict[str, Any]:
    return {"file": file, "line": line, "function": "", "code": source.line_text(file, line), "user": True}


def of_not_finite(only_inf: bool) -> list[dict[str, Any]]:
    """Facts: the places that can have made such numbers, a few; none where there are many."""
    made = noted(_INF.match) if only_inf else noted(_NAN.match) or noted(_INF.match)
    if len(made) > _FEW:
        return []
    return [{"text": text, **frame(*place)} for place, text in made.items()]


def of_cast() -> Optional[dict[str, Any]]:
    """The only place where it was a cast to integers."""
    made = list(noted(lambda text: text == INVALID_CAST))
    return frame(*made[0]) if len(made) == 1 else None
