"""An argument that the code of an installed package refused, by a `raise` or an `assert` of its own.

What is said holds in the frame that raised: its condition is read from the source and evaluated once more. A
condition that is not understood makes no fact.
"""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any, Optional

from trapline._exceptions import indirect, selections, siblings
from trapline._exceptions.conditions import Place, Unknown, call_at, called
from trapline._exceptions.refused import Atom, Bounds, Refused, decisive, refused
from trapline._fault.data import values, variables, which
from trapline._fault.data.lengths import too_long
from trapline._fault.model import models, nans
from trapline._fault.program import frames, holders, libraries, owners, places, scope

Facts = dict[str, Any]
Pair = tuple[FrameType, int]
Rule = Atom  # a whole condition, and what it was
_MAX_TEXT = 160
_MAX_VALUES = 16
_MAX_ROW = 8  # numbers that are shown
_MAX_MESSAGE = 4096
_MAX_HELPERS = 4  # functions that only raise for others: check(condition, message)
_RANKS = ("nan", "unknown", "value", "rows", "distinct", "shape", "number")
_PLUMBING = ("_call_impl", "_wrapped_call_impl", "__call__", "forward")
# A plain number that these names is one of several, and no setting.
_ID = re.compile(r"(?:^|[._])(?:id|idx|index|label|class_id|token)$")
# Their statement itself is the condition.
_ASSERTING = ("_assert", "_assert_async", "_functional_assert_async")


def argument_facts(trace: list[Pair], user: FrameType, indexed: bool, message: str) -> Facts:
    """The fact `check`, else `selection`, and what belongs to it; {} where neither is certain."""
    facts = check_facts(trace, user, indexed, message)
    selection = selections.selection_facts(trace, user) if not facts else None
    if selection is not None:
        facts = {"selection": selection, "library": _library(trace)}
    return facts


def _library(trace: list[Pair]) -> Facts:
    return libraries.facts_of([], [frame for frame, _ in reversed(trace)])


def check_facts(trace: list[Pair], user: FrameType, indexed: bool, message: str) -> Facts:
    """The fact `check` and what belongs to it, for a traceback, outermost first; {} where nothing is certain.
    `user`: the frame of the user's line; `indexed`: an IndexError, which may be about a plain number."""
    at = _raiser(trace)
    if at is None or places.is_user(trace[at][0].f_code):
        return {}
    package = _package(trace[at][0])
    if package in ("", "torch", "trapline") or package in sys.stdlib_module_names:
        return {}
    best: Optional[tuple[tuple[int, int], Refused, Rule, Pair]] = None
    for atoms, rule, pair in _rules(trace, at, message):
        understood = [found for found in map(refused, atoms) if found is not None]
        understood = [f for f in understood if f.kind != "number" or indexed or _ID.search(f.name)]
        understood = [found for found in map(indirect.spoiled, atoms) if found is not None] or understood
        for found in understood:
            if len(understood) > 1:  # one of them alone would have been taken
                found.bounds = Bounds()
            rank = _RANKS.index(found.kind), -len(found.tensors)
            if best is None or rank < best[0]:
                best = (rank, found, rule, pair)
    if best is None:
        further = indirect.beyond_classes(trace, at, message)
        return _facts(*further, trace, user) if further is not None else {}
    frame, lasti = best[3]
    siblings.complete(Place(frame, frames.line_of(frame.f_code, lasti)), best[1], _ASSERTING)
    return _facts(best[1], best[2], best[3], trace, user)


def _raiser(trace: list[Pair]) -> Optional[int]:
    """The frame whose own line ended the call: the last, or that before `torch._assert`."""
    at = len(trace) - 1
    while at >= 0 and _package(trace[at][0]) == "torch":
        if trace[at][0].f_code.co_name not in _ASSERTING:
            return None
        at -= 1
    return at if at >= 0 else None


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__") or "").partition(".")[0]


def _rules(trace: list[Pair], at: int, message: str) -> Iterator[tuple[list[Atom], Rule, Pair]]:
    """The comparisons that decided together, and the condition as a whole. Of the questions around the
    nearest one only those count of whose sizes the message tells: others may be no fault."""
    pair = trace[at]
    place = Place(pair[0], frames.line_of(pair[0].f_code, pair[1]))
    told = {int(number) for number in re.findall(r"\d+", message[:_MAX_MESSAGE])}
    for around, nodes in enumerate(_conditions(place)):
        understood = False
        for node, truth in nodes:
            for found, rule, where in _followed(trace, at, place, node, truth, _MAX_HELPERS):
                atoms = [atom for atom in found if not around or _is_told(refused(atom), told)]
                understood = understood or any(map(refused, atoms))
                yield atoms, rule, where
        if understood:
            return


def _is_told(found: Optional[Refused], told: set[int]) -> bool:
    if found is None or found.kind != "shape":
        return found is not None
    return any(int(size) in told for _, tensor in found.tensors for size in tensor.shape if int(size) > 1)


def _followed(
    trace: list[Pair], at: int, place: Place, node: ast.AST, truth: bool, helpers: int
) -> Iterator[tuple[list[Atom], Rule, Pair]]:
    """One condition; where it is a parameter, that of the call that gave it."""
    atoms = decisive(place, node, truth)
    plain = [atom for atom in atoms if not isinstance(atom[1], ast.Name)]
    if plain:
        yield plain, (plain[0] if len(atoms) == 1 else (place, node, truth)), trace[at]
    above = at - 1
    if plain or not helpers or above < 0 or places.is_user(trace[above][0].f_code):
        return
    pair = trace[above]
    caller = Place(pair[0], frames.line_of(pair[0].f_code, pair[1]))
    for _, name, wanted in atoms:
        given = _argument(caller, pair, place.frame, name.id)  # type: ignore[attr-defined]
        if given is not None:
            yield from _followed(trace, above, caller, given, wanted, helpers - 1)


def _conditions(place: Place) -> Iterator[list[tuple[ast.AST, bool]]]:
    """What was asked before the line was reached, and what the answer was; the nearest question first. One
    that lies farther out counts where the nearer ones ask for no tensor: `if self.training is True:`."""
    parents = place.parents
    inner: Optional[ast.AST] = None
    for node in ast.walk(place.tree) if place.tree is not None else ():
        spans = isinstance(node, (ast.Raise, ast.Assert, ast.Expr))
        if spans and node.lineno <= place.line <= (node.end_lineno or 0):
            inner = node
    if isinstance(inner, ast.Assert):
        yield [(inner.test, False)]
        return
    if isinstance(inner, ast.Expr):
        call = inner.value
        if isinstance(call, ast.Call) and called(call) in _ASSERTING and call.args:
            yield [(call.args[0], False)]
        return
    found: list[tuple[ast.AST, bool]] = []
    node = inner
    while node is not None and isinstance(parents.get(node), ast.If):
        above = parents[node]
        assert isinstance(above, ast.If)
        if node in above.body:
            yield found if found else [(above.test, True)]
            if found or not _is_setting(place, above.test):
                return
        else:
            found.append((above.test, False))
        node = above
    if found:
        yield found


def _is_setting(place: Place, test: ast.AST) -> bool:
    """Whether a question looks at no tensor: what it is about stands in the questions around it."""
    try:
        return type(place.value(test)) is bool and not any(
            scope.is_tensor(place.stored(part))
            for part in ast.walk(test)
            if isinstance(part, (ast.Name, ast.Attribute)) and _known(place, part)
        )
    except Unknown:
        return False


def _known(place: Place, node: ast.AST) -> bool:
    try:
        place.stored(node)
    except Unknown:
        return False
    return True


def _argument(caller: Place, pair: Pair, entered: FrameType, name: str) -> Optional[ast.AST]:
    """The expression that a call handed in as a parameter."""
    code = entered.f_code
    parameters = list(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
    if name not in parameters or caller.tree is None:
        return None
    call = call_at(caller, pair[1], (code.co_name,))
    if call is None or any(isinstance(argument, ast.Starred) for argument in call.args):
        return None
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    at = parameters.index(name) - (1 if parameters[0] in ("self", "cls") else 0)
    return call.args[at] if 0 <= at < len(call.args) else None


def _facts(found: Refused, rule: Rule, pair: Pair, trace: list[Pair], user: FrameType) -> Facts:
    place, node, truth = rule
    shown = place.text(node)
    check: Facts = {
        "package": _package(pair[0]),
        "op": _called_by_user(trace, user),
        "within": _within(trace, user),
        "where": f"{_short(pair[0].f_code.co_filename, _package(pair[0]))}:{place.line}",
        "condition": shown if len(shown) <= _MAX_TEXT else shown[: _MAX_TEXT - 3] + "...",
        "kind": found.kind,
        "needs": not truth,
        "joint": node is not found.node,
    }
    facts: Facts = {"check": check}
    facts["library"] = _library(trace)
    if found.kind == "shape":
        check["sides"] = [[text, list(v) if isinstance(v, tuple) else v] for text, v in found.sides]
        check["tensors"] = [
            {"name": _user_name(tensor, user) or name, **_described(tensor)} for name, tensor in found.tensors
        ]
        longest = _longest(found)
        if longest is not None:
            facts["sample"] = longest
        return facts
    if found.kind == "number":
        check["name"], check["element"] = found.name, {"index": [], "value": values.number(found.content)}
        _limits(found, check)
        return facts
    content, bad = found.content, found.bad
    first = int(bad.reshape(-1).nonzero()[0])
    check["name"], check["tensor"] = found.name, _described(found.tensor)
    element = check["element"] = {
        "index": values.unravel(first, content.shape),
        "value": values.number(content.reshape(-1)[first].item()),
        "bad": int(bad.sum()),
        "total": content.numel(),
    }
    if found.kind in ("nan", "rows"):
        if found.kind == "rows":
            check["row"] = _row(content, element["index"][0])
    else:
        _limits(found, check)
        element["min"] = values.number(content.min().item())
        element["max"] = values.number(content.max().item())
        check["values"] = _wrong_values(found)
        if set(content.unique()[:3].tolist()) == {0, 255}:
            check["two_colours"] = True
    scan = _scan(found, first)
    violation = {"tensor": content, "scan": scan, "args": {}, "op": "", "contract": ""}
    variable = variables.variable_facts(violation, found.tensor, None)
    if variable is None and found.kind == "nan":
        variable = _with_the_same_holes(found, user)
    if variable is not None:
        check["variable"] = variable
    if found.kind == "nan":
        weights = models.bad_weights(reachable=True)
        given = found.tensor if scope.is_tensor(found.tensor) else content
        facts["nan"] = nans.nan_facts(violation, given, weights)
        if weights is not None:
            facts["weights"] = weights
    if not (facts.get("weights") or {}).get("bad"):
        sample = which.sample_of(violation, None, False, [])
        if sample is not None:
            facts["sample"] = sample
    return facts


def _longest(found: Refused) -> Optional[Facts]:
    """The sample that made a batch longer than the check takes."""
    op = found.node.ops[0] if isinstance(found.node, ast.Compare) else None
    lengths = [value for _, value in found.sides]
    if len(found.tensors) != 1 or isinstance(op, (ast.Eq, ast.NotEq)) or {type(v) for v in lengths} != {int}:
        return None
    shape = found.tensors[0][1].shape
    return too_long(min(lengths)) if max(lengths) in tuple(shape)[1:] else None


def _with_the_same_holes(found: Refused, user: FrameType) -> Optional[Facts]:
    """The variable of the user's of the same sizes that is NaN in the same places, and not everywhere: no
    arithmetic of one element with another's has been there."""
    import torch

    holes = found.content.isnan()
    if not bool(found.bad.any()) or bool(holes.all()):
        return None
    for name, value in holders.held_by(user):
        held = holders.as_tensor(value, values.MAX_ELEMENTS)
        fits = held is not None and held.dtype.is_floating_point and held.shape == holes.shape
        if fits and held is not None and torch.equal(held.detach().cpu().isnan(), holes):
            first = int(found.bad.reshape(-1).nonzero()[0])
            return {"name": name, "index": values.unravel(first, holes.shape)}
    return None


def _row(content: Any, at: int) -> list[Any]:
    """The numbers of one row, as many digits as tell them; none of a long one."""
    numbers = content[at].reshape(-1)
    if numbers.numel() > _MAX_ROW:
        return []
    return [values.number(float(f"{n:.5g}") if type(n) is float else n) for n in numbers.tolist()]


def _limits(found: Refused, check: Facts) -> None:
    """What the check would have taken."""
    bounds = found.bounds
    if bounds.allowed:
        check["allowed"] = [values.number(value) for value in bounds.allowed]
    for name in ("lower", "upper"):
        if getattr(bounds, name) is not None:
            check[name] = values.number(getattr(bounds, name))
    if bounds.upper is not None:
        check["closed"], check["limit"] = bounds.closed, bounds.text
    if found.distinct:
        check["distinct"] = found.distinct


def _wrong_values(found: Refused) -> list[list[Any]]:
    """The different wrong values with their counts, most frequent first."""
    several, counts = found.content[found.bad].unique(return_counts=True)
    order = counts.argsort(descending=True)[:_MAX_VALUES].tolist()
    return [[values.number(several[at].item()), int(counts[at])] for at in order]


def _scan(found: Refused, first: int) -> Facts:
    """As a check of an operation has it; integers with the range that tells the bad ones from the others."""
    content, bad = found.content, found.bad
    floating = content.dtype.is_floating_point
    scan: Facts = {
        "first": first,
        "bad": int(bad.sum()),
        "total": content.numel(),
        "value": content.reshape(-1)[first].item(),
        "is_float": floating,
        "reason": 3 if floating and found.kind == "nan" else 0,
        "lo": None,
        "hi": None,
    }
    good = content[~bad]
    if not floating and good.numel():
        low, high = int(good.min()), int(good.max()) + 1
        if bool((bad == ((content < low) | (content >= high))).all()):
            scan["lo"], scan["hi"] = min(low, 0), high
    return scan


def _described(tensor: Any) -> Facts:
    if scope.is_tensor(tensor):
        return values.describe(tensor)
    return {"shape": [int(size) for size in tensor.shape], "dtype": str(tensor.dtype), "device": "cpu"}


def _user_name(tensor: Any, user: FrameType) -> str:
    """What the user's line calls the tensor."""
    for name, value in holders.held_by(user):
        if value is tensor:
            return name
    return ""


def _called_by_user(trace: list[Pair], user: FrameType) -> str:
    """The class or function of the package that the user's line called."""
    after = [frame for frame, _ in trace]
    at = max(i for i, frame in enumerate(after) if frame is user) if user in after else -1
    for frame in after[at + 1 :]:
        if _package(frame) == "torch":
            continue
        holder = frame.f_locals.get("self")
        if owners.is_module(holder) or frame.f_code.co_name in _PLUMBING or frame.f_code.co_name[:2] == "__":
            return type(holder).__name__ if holder is not None else ""
        return frame.f_code.co_name
    return ""


def _within(trace: list[Pair], user: FrameType) -> str:
    """The classes of the packages whose methods led from the user's line to the check."""
    after = [frame for frame, _ in trace]
    at = max(i for i, frame in enumerate(after) if frame is user) if user in after else -1
    selves = (frame.f_locals.get("self") for frame in after[at + 1 :])
    return " ".join(dict.fromkeys(type(holder).__name__ for holder in selves if holder is not None))


def _short(filename: str, package: str) -> str:
    path = filename.replace("\\", "/")
    at = path.rfind(f"/{package}/")
    return path[at + 1 :] if at >= 0 else os.path.basename(path)
