"""A module runs again, under a mode that follows what is not finite (:mod:`trapline._watch.flow`)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, Optional

from trapline._fault.data.values import first_place
from trapline._fault.data.without import Without
from trapline._fault.model.autograd import near_in_graph, node_in_graph, op_named
from trapline._fault.program import arisen, sole
from trapline._watch import backward
from trapline._watch.again import (
    Call,
    Kept,
    autocast_of,
    copies,
    draw_again,
    has_collectives,
    inner_of,
    is_plain,
    refuses,
)
from trapline._watch.flow import WEIGHED, Flow, parts, tensors
from trapline._watch.rows import batch_in_hand, sample_of
from trapline._watch.slopes import is_bad_slope

_DEPTH = 3
_NAMES = {"_to_copy": "cast", "copy_": "cast"}
_OF_DERIVATIVES = ("div", "reciprocal", "rsqrt", "pow")  # what formulas of derivatives divide by


def followed(call: Call, mends: bool = False) -> tuple[Any, Flow]:
    """The output of the call when it runs again, and what made the numbers in it. `mends`: with buffers that
    are finite."""
    try:
        return _follow(call, mends)
    except RuntimeError:  # it asks for gradients itself (forces of an energy)
        return _follow(call, mends, trained=True)


def _follow(call: Call, mends: bool, trained: bool = False) -> tuple[Any, Flow]:
    import torch

    inner = inner_of(call)
    flow = Flow()
    flow.names(list(tensors([call.args, call.kwargs])), ("input", type(inner).__name__))
    with ExitStack() as stack:
        stack.enter_context(Kept(inner, mends=mends))
        knows_weights(flow, inner)
        stack.enter_context(torch.set_grad_enabled(trained))
        if trained:
            stack.enter_context(backward.anomaly())
        stack.enter_context(autocast_of(call))
        draw_again(call)
        args, kwargs = copies(call.args, trained=trained), copies(call.kwargs, trained=trained)
        for given, copied in zip(_given(call), tensors([args, kwargs])):
            if given.grad_fn is not None:  # a loss is given predictions
                flow.learned(copied)
        with flow:
            output = inner(*args, **kwargs)
    return output, flow


def knows_weights(flow: Flow, module: Any) -> None:
    """Which numbers are the module's own, and which of these are bad before anything runs."""
    held = [*module.named_parameters(), *module.named_buffers()]
    held = [(name, tensor) for name, tensor in held if not refuses(tensor)]
    flow.owns(tensor for _, tensor in held)
    for name, parameter in held:
        if is_bad_weight(parameter):
            flow.names([parameter.detach()], ("weights", name))


def derived(node: Any, calls: list[Call]) -> dict[str, Any]:
    """A division that the derivative of a module's operation has made (`autograd.grad` of its output): the
    module holds an operation without a finite derivative, and the graph leads from the division to such a
    one, or the module was given what a derivative is asked for.
    """
    import torch

    if not op_named(node.name()).startswith(_OF_DERIVATIVES):
        return {}
    near = {op_named(name) for name, _ in near_in_graph(node, is_bad_slope)}
    for call in calls:
        asks = any(one.requires_grad and one.grad_fn is None for one in _given(call))
        if not near and not asks:
            continue
        if call.module() is None or has_collectives(call):
            continue
        inner = inner_of(call)
        with Kept(inner), torch.enable_grad(), autocast_of(call), backward.anomaly():
            draw_again(call)
            output = inner(*copies(call.args, trained=True), **copies(call.kwargs, trained=True))
        for tensor in outputs(output):
            hit = node_in_graph(tensor.grad_fn, is_bad_slope)
            if hit is not None and (asks or op_named(hit[0]) in near):
                frame = backward.frame_of(hit[1].metadata.get("traceback_") or [])
                return {
                    "op": op_named(hit[0]),
                    "derived": True,
                    **({} if frame is None else {"origin": frame}),
                }
    return {}


def _given(call: Call) -> list[Any]:
    return list(tensors([call.args, call.kwargs], trained=True))


def hidden(call: Call, seen: dict[str, Any], op: str) -> dict[str, Any]:
    """An operation of the forward pass whose Inf the output hides (a gate, a tanh), where `op` multiplied it:
    its derivative is 0 times Inf.
    """
    flow = followed(call)[1] if op in WEIGHED else None
    made = None if flow is None else flow.hidden
    if flow is None or made is None or made.given is not None:
        return {}
    first, inner = made.infinite or made, inner_of(call)
    what = {"what": "inf"} if flow.hidden_inf or made.infinite is not None else {}
    return {**named(first, inner), **seen, **what, **given_to(made, inner)}


def given_to(made: Any, root: Any) -> dict[str, Any]:
    """What the operation, or the one that had made its infinity, was given: the module's own numbers alone,
    or a row that is a sample's."""
    later, made = made, made.infinite or made
    grouped = made.derivative is None
    row = {"own": True} if made.own else sample_of(made.bad, learned=made.learned, grouped=grouped)
    if later is not made and "sample" not in row:  # infinities that a mask has for all
        row |= sample_of(later.bad, learned=later.learned, grouped=later.derivative is None)
    if not row and made.op.startswith("nll_loss"):  # every target of the batch is left out
        row = batch_in_hand()
    return {"finite_before": made.finite, **row}


def is_finite_without(call: Call, without: Without) -> bool:
    """The call's output, where a row of the batch is left out of what it was given."""
    import torch

    inner = inner_of(call)
    with Kept(inner), torch.no_grad(), autocast_of(call):
        draw_again(call)
        output = inner(*copies(call.args, without=without), **copies(call.kwargs, without=without))
    return all(bool(tensor.isfinite().all()) for tensor in tensors(output))


_DIVIDES = ("div", "true_divide", "reciprocal", "rsqrt", "log")


def zeros(call: Call, made: Any) -> dict[str, Any]:
    """`zeros`: the only weights of the module, but for biases, that are 0 everywhere before its first step,
    with others for which its output is finite. Many are 0 on purpose (a last layer, positions), and no
    rows of data single them out."""
    import torch

    inner = inner_of(call)
    whole = made.own or (made.bad is not None and bool(made.bad.all()))
    if made.op not in _DIVIDES or call.step or not whole:
        return {}
    found = [
        (name, one)
        for name, one in inner.named_parameters()
        if one.dim() > 1 and one.is_cpu and one.numel() and not bool(one.detach().any())
    ]
    if len(found) != 1:
        return {}
    name, weight = found[0]
    others = torch.linspace(0.5, 1.0, weight.numel(), dtype=weight.dtype).reshape(weight.shape)
    try:
        with Kept(inner), torch.no_grad(), autocast_of(call):
            draw_again(call)
            given = (copies(call.args), copies(call.kwargs))
            output = torch.func.functional_call(inner, {name: others}, *given)
    except Exception:  # a forward that holds its weights otherwise
        return {}
    return {"zeros": name} if all(bool(one.isfinite().all()) for one in tensors(output)) else {}


def by_chance(call: Call, first: Any) -> bool:
    """The bad rows of an operation are those of an argument that holds one drawn number for each sample: when
    that one's rows are moved on by one, so are they."""
    rows = _bad_rows(first)
    for place, given in enumerate(call.args if rows is not None else ()):
        one_each = is_plain(given) and given.dim() and given.numel() == len(given) == len(rows)
        if not one_each or not arisen.is_drawn(given, further=2):
            continue
        moved = [one.roll(1, 0) if at == place else one for at, one in enumerate(call.args)]
        output, flow = followed(Call((*call[:1], tuple(moved), *call[2:])))
        made = flow.origin_of(output)
        again = None if made is None else _bad_rows(made.infinite or made)
        if again is not None and again.tolist() == rows.roll(1, 0).tolist():
            return True
    return False


def _bad_rows(made: Any) -> Any:
    return None if made.bad is None or not made.bad.dim() else made.bad.reshape(len(made.bad), -1).any(1)


def named(made: Any, root: Any) -> dict[str, Any]:
    op = _NAMES.get(made.op, made.op.removesuffix("_forward"))
    if "linalg_" in op:  # as users call them
        op = "linalg." + op.partition("linalg_")[2].removesuffix("_ex")
    found: dict[str, Any] = {"kind": "output", "op": op}
    frame = made.frame
    if made.derivative is not None:
        found |= {"op": backward.name_of(made.derivative), "derived": True}
        told = backward.frame_of(made.derivative.metadata.get("traceback_") or [])
        frame = told or sole.place(found["op"]).get("origin") or frame
    if made.module is not None:
        found["type"] = type(made.module).__name__
        found["name"] = next((name for name, part in root.named_modules() if part is made.module), "")
    if frame is not None:
        found["origin"] = frame
    if made.met is not None and made.met[0].frame is not None:
        put, where = made.met
        found["met"] = {"op": put.op.rstrip("_"), "origin": put.frame, **(_first_of(where) or {})}
    return found


def part_of(made: Any) -> dict[str, Any]:
    """Where the result of an operation is not finite, if not everywhere: the first place, and how many."""
    bad = made.bad if made.nan is None else made.nan
    first = None if bad is None or made.derivative is not None else _first_of(bad)
    return {} if first is None else {"part": first}


def _first_of(bad: Any) -> Optional[dict[str, Any]]:
    count = int(bad.sum()) if bad.dim() else 0
    if not 0 < count < bad.numel():
        return None
    return {"index": first_place(bad), "bad": count, "total": bad.numel()}


def is_bad_weight(parameter: Any) -> bool:
    """Those that are not trained may be masks: of -inf."""
    if not parameter.dtype.is_floating_point or refuses(parameter):
        return False
    values = parameter.detach()
    bad = ~values.isfinite()
    return bool((bad if parameter.requires_grad else bad & ~values.isneginf()).any())


def outputs(value: Any, depth: int = _DEPTH) -> Iterator[Any]:
    if hasattr(value, "grad_fn"):
        yield value
    elif depth > 0:
        for item in parts(value):
            yield from outputs(item, depth - 1)
