"""The last guarded calls before a fault, as facts."""

from __future__ import annotations

import os
from typing import Any

from trapline._fault.data.values import number
from trapline._fault.program import frames
from trapline._library import diagnose

_MAX = 20


def _range(argument: dict[str, Any]) -> str:
    low, high = argument.get("min"), argument.get("max")
    if low is None or high is None:
        return ""
    return f" in [{number(low)}, {number(high)}]"


def _argument_text(argument: dict[str, Any]) -> str:
    shape = argument.get("shape")
    dtype = str(argument.get("dtype") or "").replace("torch.", "")
    size = "" if shape is None else " [" + ", ".join(str(int(s)) for s in shape) + "]"
    return " ".join(part for part in (str(argument.get("name", "")), dtype) if part) + size + _range(argument)


def _public_names() -> dict[str, str]:
    try:
        return {row["op"]: row["public_op"] for row in diagnose.contracts().values()}
    except (OSError, AttributeError, ImportError):
        return {}


def history_facts(calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """adapter.history() as facts: oldest first, at most 20."""
    names = _public_names()
    facts: list[dict[str, Any]] = []
    for call in calls[-_MAX:]:
        op = str(call.get("op", "")).split(".")[0]
        where = ""
        stack = frames.make_stack(call.get("frames") or [])
        origin = frames.origin_of(stack)
        if origin is not None:
            where = f"{os.path.basename(origin['file'])}:{origin['line']}"
        arguments = [_argument_text(argument) for argument in call.get("args") or []]
        facts.append({"op": names.get(op) or op.removeprefix("aten::"), "args": arguments, "where": where})
    return facts
