"""Which scheduler gave an optimizer a rate that is not finite, and where its function computes it."""

from __future__ import annotations

import inspect
import math
from typing import Any

from trapline._fault.program import arisen, calls, names, places, scope

_MAKES = ("div", "pow", "log", "log2", "log10", "sqrt", "exp", "power")


def that_gave(optimizer: Any, rate: float) -> dict[str, Any]:
    """`scheduler`: `name` and `type` of the one whose last rate that is; `origin`: the user's function that
    it asks. {} where there is none."""
    for name, value in _reached():
        held = scope.members(value)
        last = held.get("_last_lr") if held.get("optimizer") is optimizer else None
        if isinstance(last, (list, tuple)) and any(_is_same(one, rate) for one in last):
            return {"scheduler": {"name": name, "type": type(value).__name__}, **_function(value, held, rate)}
    return {}


def _reached() -> Any:
    for name, value in names.variables():
        yield name, value
        for step, part in names.parts(value):
            yield name + step, part


def _is_same(one: Any, rate: float) -> bool:
    return isinstance(one, (int, float)) and (one == rate or (math.isnan(one) and math.isnan(rate)))


def _function(scheduler: Any, held: dict[str, Any], rate: float) -> dict[str, Any]:
    """LambdaLR's functions, or what a class of the user's computes."""
    asked = [*(held.get("lr_lambdas") or ()), getattr(type(scheduler), "get_lr", None)]
    for function in asked:
        called = function if inspect.isroutine(function) else type(function).__call__
        code = getattr(inspect.unwrap(called) if callable(called) else None, "__code__", None)
        if code is None or not places.is_user(code):
            continue
        tree, first = calls.tree_of(code), calls.first_line(code) - 1
        made = {node.lineno: kind for node, kind in arisen.operations(tree) if kind in _MAKES}
        # A power of a number below 0 is NaN, a division by 0 an infinity.
        kinds = ("pow", "power") if math.isnan(rate) else ("div",)
        likely = {line for line, kind in made.items() if kind in kinds}
        lines = likely if len(likely) == 1 else set(made)
        return arisen.origin_of(code, lines.pop() + first) if len(lines) == 1 else {}
    return {}
