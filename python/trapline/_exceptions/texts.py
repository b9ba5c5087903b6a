"""The facts of an exception that another process printed, or told, and this one only carries."""

from __future__ import annotations

import re
from typing import Any, Optional

from trapline._exceptions import batch_facts, raised
from trapline._fault import write
from trapline._fault.program import frames, places, scope

Facts = dict[str, Any]
_TEXT_FRAME = re.compile(r'^  File "([^"\n]*)", line (\d+), in (.*)\n(?:    (.*)\n)?', re.M)
_LAST_LINE = re.compile(r"^([^\W\d][\w.]*)(?:: (.*))?", re.S)


def from_text(text: str, around: BaseException, told: Optional[Facts] = None) -> Optional[Facts]:
    """Facts from the text of a traceback that another process printed, and those that it `told`. Where none
    of the user's code is in it, the frames of the exception that brought it lead there."""
    stack: list[frames.Frame] = []
    end = 0
    for match in _TEXT_FRAME.finditer(text):
        end = match.end()
        if places.is_own(match.group(1)):
            continue
        stack.append(
            {
                "file": match.group(1),
                "line": int(match.group(2)),
                "function": match.group(3),
                "code": match.group(4) or "",
                "user": not places.is_library_file(match.group(1)),
            }
        )
    if not any(frame["user"] for frame in stack):
        trace = raised.frames_in(around.__traceback__)
        stack = frames.make_stack([(frame.f_code, lasti) for frame, lasti in reversed(trace)]) + stack
    rest = re.sub(r"\A(?:[ \t][^\n]*\n)+", "", text[end:])  # the carets below the last source line
    last = _LAST_LINE.match(rest.strip())
    if not last or "DeviceAssertError" in last.group(1):
        return None
    facts: Facts = {
        "kind": "host_error",
        "exception": last.group(1).replace("torch.AcceleratorError", "AcceleratorError"),
        "message": (last.group(2) or "").strip(),
        "stack": stack,
        "process": write.process_facts(),
    }
    origin = frames.origin_of(stack)
    if origin is not None:
        facts["origin"] = origin
    told = {name: value for name, value in (told or {}).items() if name != "process"}
    if told.get("message") == facts["message"]:
        if (told.get("origin") or {}).get("user"):
            facts.update(told)
        elif "uneven" in told:  # no code of the user's runs there: the line is that of the loop
            facts["uneven"] = told["uneven"]
    if around.__traceback__ is not None:
        with scope.frames_of(around.__traceback__):
            facts.update(batch_facts.facts_of(facts["message"], told=told.get("sample")))
    return facts
