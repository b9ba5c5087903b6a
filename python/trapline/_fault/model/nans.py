"""What surrounds a NaN: what went into the model, its dtype, a row that was banned, what the program does."""

from __future__ import annotations

import ast
import dis
import os
import re
import shlex
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any, Optional

from trapline._fault.data import losses, recorded, values
from trapline._fault.program import (
    arisen,
    calls,
    computed,
    differences,
    holders,
    owners,
    places,
    scope,
    texts,
    warned,
)
from trapline._library import capi

_MAX = 1 << 24  # elements of an input that are looked at
_MAX_COLUMNS = 256
_NEAR = 16  # frames
_GENERATION = re.compile(
    r"^_?(generate|sample_(?!\w*(?:log_?prob|action|noise|latent|prior|posterior))\w+|next_token|decode|greedy"
    r"|nucleus\w*|top_?[pk]\w*)$"
)  # what draws an action, or from a distribution as such, writes no text
_TEMPERATURE = re.compile(r"^_?(temperature|temp|tau|T)$")
_KNOBS = ("temperature", "top_k", "top_p", "logits_processor", "max_new_tokens")
_POLICY = re.compile(r"(^|_)(obs|observations?|actions?|env|envs|policy|agent|actor|rollout)(_|$)")
_TAKES_VALUE = ("-W", "-X", "--check-hash-based-pycs")


def is_not_finite(scan: dict[str, Any]) -> bool:
    """The fault is a NaN or an Inf in a floating argument."""
    return bool(scan.get("is_float")) and scan.get("reason") in (capi.REASON_NAN, capi.REASON_INF)


def nan_facts(
    violation: dict[str, Any], given: Any, weights: Optional[dict[str, Any]] = None
) -> dict[str, Any]:
    """For a NaN or Inf in the floating argument `given`. `weights`: facts of those that are not finite."""
    scan = violation["scan"]
    given_to = _input_of_running() or _input_of_called(given)
    data = None if given_to is None else given_to.pop("data", None)
    found: dict[str, Any] = {
        "input": given_to,
        "data": data,  # a part of it is finite, and no model computed it
        "precision": _precision(),
        "zero": _zero(),
        "banned": _banned(violation["tensor"], scan["first"], given),
        "made": _made(given),  # by what the graph and the text say
        "apart": differences.of_infinities(violation["tensor"], scan["first"])
        if scan["first"] >= 0
        else None,
        "losses": losses.first_bad(),
        "situation": _situation(given),
        "trains": _trains(given),
        # Without modules there is none to be named, nor of what an object of the program's keeps.
        "command": command() if owners.roots() and not _is_kept(given) else "",
    }
    if not (weights or {}).get("bad") and not any(
        found[reason] for reason in ("input", "made", "zero", "banned", "apart")
    ):
        function = str(violation.get("op") or "").replace("aten::", "").partition(".")[0]
        found["made"] = _made_again(given, function)
    if found["input"] and not found["made"]:  # numbers that came to the modules from without
        found["warned"] = warned.of_not_finite(only_inf=False) or None
    return {name: value for name, value in found.items() if value is not None and value != ""}


def _is_kept(given: Any) -> bool:
    """A member of an object, no module, whose method runs: `self.neg_weight` of a trainer."""
    running = (frame.f_locals.get("self") for frame in holders.user_frames())
    kept = (one for one in running if one is not None and not owners.is_module(one))
    return any(value is given for one in kept for value in list(scope.members(one).values()))


def _made(given: Any) -> Optional[dict[str, Any]]:
    """The operation that made it, as the graph of `given` says, and the statement that it stands in."""
    from trapline._fault.model import autograd  # it needs torch, which the program may not have imported yet

    node = getattr(given, "grad_fn", None)
    hit = None if node is None else autograd.node_in_graph(node, autograd.is_bad_value, autograd.MASKING)
    op = "" if hit is None else autograd.op_named(hit[0])
    return arisen.made(op) or ({"op": op, **_only_call(op)} if op else None)


def _made_again(given: Any, function: str) -> Optional[dict[str, Any]]:
    """The same by running the statements again that made it, or what the line gives the `function`."""
    made = recorded.made_again(given, function)
    origin = made.get("origin") or {}
    if not made:
        return None
    return {
        **made,
        **({"text": origin["code"].strip(), "line": origin["line"]} if origin.get("code") else {}),
    }


_RARE = ("acos", "acosh", "asin", "atanh", "cosh", "sinh", "logit", "erfinv")  # in a library's own code


def _only_call(op: str) -> dict[str, Any]:
    """The statement of the one call of such a function in the whole program."""
    found = [
        (file, node)
        for file, tree in (texts.user_trees() if op in _RARE else ())
        for node in texts.nodes_of(tree)
        if isinstance(node, ast.Call) and computed.called(node) == op
    ]
    if len(found) != 1:
        return {}
    file, call = found[0]
    origin = {"file": file, "line": call.lineno, "function": ""}
    return {"text": computed.text_of(call), "line": call.lineno, "origin": origin}


def cast_facts(
    violation: dict[str, Any], predicate: Optional[int], cast_seen: bool
) -> Optional[dict[str, Any]]:
    """For an integer that a NaN became: the floating variable that is not finite where the bad ones are. A
    search among edges makes of NaN an integer like others: there it is a NaN alone, as masks hold -inf."""
    scan, tensor = violation["scan"], violation["tensor"]
    cast = cast_seen or scan.get("value") in (-(1 << 63), -(1 << 31))
    if scan.get("is_float") or scan.get("first", -1) < 0:
        return None
    bad = values.bad_mask(tensor.detach().reshape(-1), scan, predicate)
    if bad is None or (not cast and bool(bad.all())):  # which an array that waits for results is, too
        return None
    for frame in holders.user_frames():
        for name, value in holders.held_by(frame):
            held = _floats(value)
            for part, where in () if held is None else _parts(held, bad.numel()):
                if bool(((~part.isfinite() if cast else part.isnan()) == bad).all()):
                    first = part[scan["first"]]
                    index = where(scan["first"])
                    return {"input": {"name": name, "index": index, "value": values.number(first.item())}}
    return None


def library_facts(violation: dict[str, Any], predicate: Optional[int]) -> Optional[dict[str, Any]]:
    """The same of an index that a library has made of what the user gave it: the variable of which just the
    rows with a bad index have a NaN."""
    scan, tensor = violation["scan"], violation["tensor"]
    first = scan.get("first", -1)
    if scan.get("is_float") or first < 0 or tensor.dim() < 2 or len(tensor) < 2:
        return None
    bad = values.bad_mask(tensor.detach().reshape(-1), scan, predicate)
    if bad is None or bool(bad.all()):  # which NaN alone makes of some columns
        return None
    rows = bad.reshape(len(tensor), -1).any(1)
    for frame in holders.user_frames()[:1]:
        for name, value in holders.held_by(frame):
            held = _floats(value)
            if held is None or held.dim() < 2 or len(held) != len(rows):
                continue
            broken = held.reshape(len(rows), -1).isnan()
            if bool((broken.any(1) == rows).all()):
                index = values.unravel(int(broken.reshape(-1).nonzero()[0]), held.shape)
                return {"input": {"name": name, "index": index, "value": "nan"}}
    return None


def _parts(held: Any, count: int) -> Iterator[tuple[Any, Any]]:
    """The whole, or each column of a table with so many rows: one column of the features was cast."""
    if held.numel() == count:
        yield held.reshape(-1), lambda at: values.unravel(at, held.shape)
    elif held.dim() == 2 and held.shape[0] == count and held.shape[1] <= _MAX_COLUMNS:
        for column in range(held.shape[1]):
            yield held[:, column], lambda at, column=column: [at, column]


def _floats(value: Any) -> Any:
    held = holders.as_tensor(value, _MAX)
    return held if held is not None and held.dtype.is_floating_point else None


def _bad_place(name: str, value: Any) -> Optional[dict[str, Any]]:
    """The first NaN of a value, else its first +inf (masks hold -inf); one level into containers."""
    inside = [(name, value)] if scope.is_tensor(value) else [(name, value), *holders.items(name, value)[:64]]
    for path, item in inside:
        held = _floats(item) if scope.is_tensor(item) or type(item).__name__ == "ndarray" else None
        if held is None:
            continue
        for mask, word in ((held.isnan(), "nan"), (held == float("inf"), "inf")):
            if bool(mask.any()):
                place = {"name": path, "index": values.first_place(mask), "value": word}
                computed = scope.is_tensor(item) and item.requires_grad
                return place if computed or not bool(held.isfinite().any()) else {**place, "data": True}
    return None


def _input_of_running() -> Optional[dict[str, Any]]:
    """The outermost module that is running and has a NaN among the arguments that it was given."""
    for frame in reversed(scope.live_frames()):
        code = frame.f_code
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        local = frame.f_locals
        if len(names) < 2 or not owners.is_module(local.get(names[0])) or _of_torch(frame):
            continue
        rebound = {step.argval for step in dis.get_instructions(code) if step.opname == "STORE_FAST"}
        for name in names[1:]:
            if name in rebound or name not in local:
                continue
            place = _bad_place(name, local[name])
            if place is not None:
                return {**place, "module": _model_name(local[names[0]])}
    return None


def _input_of_called(given: Any) -> Optional[dict[str, Any]]:
    """A NaN in what the user's functions gave to a module, as far as their source tells."""
    for frame in holders.user_frames():
        for model, name, value in calls.model_inputs(frame):
            place = None if value is given else _bad_place(name, value)
            if place is not None:
                return {**place, "module": model}
    return None


def _of_torch(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] == "torch"


def _model_name(module: Any) -> str:
    """The program's variable or attribute that holds a module; its class where only `self` does."""
    for frame in holders.user_frames():
        for name, value in scope.variables(frame):
            if value is module and name not in ("self", "module", "args"):
                return name
    for frame in holders.user_frames():
        for attribute, part in holders.attributes(frame.f_locals.get("self")).items():
            if part is module and attribute.isidentifier():
                return attribute
    return type(module).__name__


def _precision() -> Optional[dict[str, Any]]:
    import torch

    for _, module in owners.roots():
        for parameter in module.parameters():
            if parameter.dtype is torch.float16:
                return {"dtype": "float16", "module": _model_name(module), "by": "parameters"}
    for device in ("cpu", "cuda"):
        try:
            if torch.is_autocast_enabled(device) and torch.get_autocast_dtype(device) is torch.float16:
                return {"dtype": "float16", "by": "autocast"}
        except (TypeError, AttributeError, RuntimeError):  # before 2.4 it takes no device
            return None
    return None


def _banned(tensor: Any, first: int, given: Any) -> Optional[dict[str, Any]]:
    """Scores of the argument's shape of which the bad row is -inf as a whole, in the nearest frames."""
    if tensor.dim() not in (1, 2) or first < 0 or tensor.shape[-1] < 2:
        return None
    row = first // int(tensor.shape[-1]) if tensor.dim() == 2 else 0
    for frame in [frame for frame in scope.live_frames() if not _of_torch(frame)][:_NEAR]:
        for name, value in scope.variables(frame):
            if not scope.is_tensor(value) or value is given or value.shape != tensor.shape:
                continue
            held = _floats(value)
            if held is not None and bool((held.reshape(-1, held.shape[-1])[row] == float("-inf")).all()):
                return {"name": name, "row": row}
    return None


def _zero() -> str:
    """A temperature of 0 in the user's code: by it the scores are divided."""
    for frame in holders.user_frames():
        for name, value in scope.variables(frame):
            if _TEMPERATURE.match(name) and _is_zero(value):
                return name
            if name == "self" or not name.startswith("__"):
                for part, item in holders.attributes(value).items():
                    if isinstance(part, str) and _TEMPERATURE.match(part) and _is_zero(item):
                        return f"{name}.{part}"
    return ""


def _is_zero(value: Any) -> bool:
    if scope.is_tensor(value):
        held = _floats(value)
        return held is not None and held.numel() == 1 and bool((held == 0).all())
    return type(value) in (int, float) and value == 0


def _situation(given: Any) -> str:
    near = [frame for frame in scope.live_frames() if not _of_torch(frame)][:_NEAR]
    for frame in near:
        if "/transformers/generation/" in frame.f_code.co_filename.replace("\\", "/"):
            return "generation"
        if _GENERATION.match(frame.f_code.co_name) or any(name in frame.f_locals for name in _KNOBS):
            return "generation"
    if given.requires_grad:
        return "training"
    if any(_is_policy(frame) for frame in near[:6]) and _draws():
        return "policy"
    found = owners.roots()
    return "inference" if found and not any(module.training for _, module in found) else ""


def _is_policy(frame: FrameType) -> bool:
    return any(_POLICY.search(name) for name in list(frame.f_locals)[:256])


def _draws() -> bool:
    names = (str(frame.f_globals.get("__name__", "")) for frame in scope.live_frames())
    return any(name.startswith("torch.distributions") for name in names)


def _trains(given: Any) -> bool:
    """False where a model is in reach, and neither an optimizer nor a gradient is."""
    import torch

    if given.requires_grad or any(_has_gradients(root) for _, root in owners.roots()):
        return True  # the latter also where a library kept the optimizer to itself
    return not owners.roots() or any(issubclass(type(v), torch.optim.Optimizer) for v in _reach())


def _has_gradients(module: Any) -> bool:
    return any(parameter.grad is not None for parameter in module.parameters())


def _reach() -> Iterator[Any]:
    for frame in scope.live_frames():
        if _of_torch(frame):
            continue
        for _, value in scope.variables(frame):
            yield value
            yield from list(holders.attributes(value).values())


def command() -> str:
    """How the program was started, cut after the script; "" in a notebook, and where the watch is on."""
    if recorded.is_watched() or "ipykernel" in sys.modules:
        return ""
    words = list(getattr(sys, "orig_argv", []))[1:]
    at = 0
    while at < len(words) and words[at].startswith("-") and words[at] not in ("-m", "-c", "-"):
        at += 2 if words[at] in _TAKES_VALUE else 1
    if at >= len(words) or words[at] == "-":
        return ""
    shown = words[at : at + 2] if words[at] == "-m" else ["-c"] if words[at] == "-c" else words[at : at + 1]
    text = " ".join(shlex.quote(word) for word in shown)
    more = at + len(shown) < len(words)
    start = "torchrun ..." if "TORCHELASTIC_RUN_ID" in os.environ else "python"
    if words[at] != "-m" and places.is_library_file(os.path.abspath(words[at])) and words[at] != "-c":
        start, text = "", os.path.basename(words[at])  # a console script
    return " ".join(part for part in (start, text, "..." if more else "") if part)
