"""Where a number that is not finite came from: stage two of the watch (:mod:`trapline._watch.light`).

The outermost modules of the step run again, without gradients, under a mode that follows what is not finite
from the operation that made it (:mod:`trapline._watch.flow`). Only what reaches the output counts: what a
model masks is no fault.

How they run again, and what is put back: :mod:`trapline._watch.again`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from functools import partial
from typing import Any, Optional

from trapline._fault.data import batches, hand, rows_of
from trapline._fault.model.autograd import (
    MASKING,
    bad_constant,
    bad_saved,
    exponent_of,
    in_graph,
    is_bad_value,
    is_finite_below,
    is_smoothed,
    node_in_graph,
    op_named,
    overflowed_before,
    where_bad,
)
from trapline._fault.program import arisen, called, owners, sole
from trapline._watch import backward, constants, replayed, sites, spoilt, weights
from trapline._watch.again import (
    Call,
    Kept,
    autocast_of,
    copies,
    draw_again,
    has_collectives,
    inner_of,
    is_plain,
    weights_of,
)
from trapline._watch.candidates import left_of
from trapline._watch.factor import factor_of, is_loss
from trapline._watch.flow import tensors
from trapline._watch.forward import (
    by_chance,
    derived,
    followed,
    given_to,
    hidden,
    is_finite_without,
    named,
    outputs,
    part_of,
    zeros,
)
from trapline._watch.rows import batch_in_hand, read_row, record_given, record_of, sample_of, turn_of
from trapline._watch.slopes import is_bad_slope, op_of

_DEPTH = 3
_MAX_NODES = 20_000
_COMPILED = ("differentiablegraph",)  # of TorchScript


def loss_of(tensors: Any) -> Any:
    """What `backward` starts from, where it is one number in host memory: a device is not waited for, there
    the gradients' step and the weights tell.
    """
    loss = tensors[0] if type(tensors) in (list, tuple) and tensors else tensors
    if not is_plain(loss) or not loss.is_cpu:
        return None
    return None if loss.numel() != 1 or loss.is_complex() else loss


def reached(loss: Any) -> dict[int, Any]:
    """The parameters that the loss depends on, by id."""
    out: dict[int, Any] = {}
    seen, queue = {loss.grad_fn}, deque([loss.grad_fn])
    while queue and len(seen) < _MAX_NODES:
        node = queue.popleft()
        variable = getattr(node, "variable", None)
        if variable is not None:
            out[id(variable)] = variable
        for following, _ in getattr(node, "next_functions", ()):
            if following is not None and following not in seen:
                seen.add(following)
                queue.append(following)
    return out


def is_of(call: Call, reached: dict[int, Any]) -> bool:
    """The loss may depend on this call: on its weights, or it has none."""
    module = call.module()
    ids = [id(parameter) for parameter in module.parameters()] if module is not None else []
    return module is not None and (not ids or any(one in reached for one in ids))


def of_loss(calls: list[Call], loss: Any, known: weights.Known, own: list[Call]) -> dict[str, Any]:
    """For a loss that is not finite, before `backward` has used up the graph. `own`: of the `calls` those
    that no earlier loss of the step was made of."""
    looked, given = bool(calls), {}
    loss_weight = ""  # a loss whose own weights are not finite
    seen = seen_of(calls)
    for at, call in enumerate(calls):
        if call.module() is None or has_collectives(call):
            looked = False
            continue
        inner = inner_of(call)
        try:
            output, flow = followed(call)
        except Exception:
            if not any(one.module() is call.module() for one in calls[at + 1 :]):
                raise
            continue  # it failed in the program, too, which called again with other arguments
        if flow.half:
            seen["half"] = True
        made = flow.origin_of(output)
        if made is not None and made.given is not None and made.given[1] in dict(inner.named_buffers()):
            # The forward pass may have written it into a buffer of its own, the first time.
            made = _in_spite_of_buffers(call) or made
            later = [one.module() for one in calls[at + 1 :]]
            if made.given is not None and any(module is call.module() for module in later):
                continue  # which has written it
        if made is None:
            held = list(tensors(output))
            looked = looked and bool(held) and all(bool(tensor.isfinite().all()) for tensor in held)
            continue
        if made.given is not None:
            kind, name = made.given
            what = {"what": "inf"} if made.only_inf else {}
            if kind == "weights" and is_loss(inner):
                loss_weight = f"{type(inner).__name__}({name}=...)"
                continue
            if kind == "weights":
                row = read_row(inner, name, [call.args, call.kwargs])
                told = weights.of_weights(inner, name, known)
                if told.get("buffer") and not {"written", "origin", "type"} & set(told):
                    row = constants.of_buffer(inner, name, [call.args, call.kwargs])
                return {**told, **row, **what, **weights.since_start(inner, name, known)}
            broken = {} if spoilt.sample() else weights.of_optimizers(known)
            if broken:
                return broken
            bad = _not_finite_in(call)
            sample = spoilt.sample()
            record = {} if sample else record_of(bad)
            # Where neither a loader nor an array of the program's has it, a statement may have made it.
            held = record or batches.given_out()
            if sample or (call is calls[0] and held and not hand.is_finite()):
                # Without a loader nobody says that the rows are data.
                into = {} if sample and batches.given_out() else {"type": name, **_into(inner)}
                return {"kind": "input", **into, **(sample or record), **what}
            # What another part of the program made of the numbers, or what is in them.
            into = {"type": name, **_into(inner)}
            held_in = {} if record else spoilt.of_argument(bad)
            record = record or turn_of(call, own)
            given = given or {"kind": "input", **into, "looked": False, **what, **held_in, **record}
            looked = False
            continue
        where = {**_of_operation(made, call, inner, own), **seen, **spoilt.first()}
        infinite = bool(loss.isnan()) and not any(bool(one.isnan().any()) for one in tensors(output))
        return _became_nan(loss, calls, seen) or {**where, "what": "inf"} if infinite else where
    again = replayed.of_loss(loss, calls)
    if again:
        # What was made in a function that is over may be of another batch than that in hand.
        told = "sample" in again or "drawn" in again or ("leads" in again and again["op"] == "mean")
        whose = {key: given[key] for key in ("sample",) if key in given}  # what went into the module
        row = {} if told else whose or batch_in_hand(again["op"]) or _record_of(own)
        smoothed = {"smoothed": True} if is_smoothed(loss.grad_fn) else {}
        return {
            **sites.of_loss(again["op"]),
            **again,
            **smoothed,
            "looked": looked or bool(given),
            **seen,
            **row,
        }
    target = _target(loss) if looked else None
    if target is not None:
        if "sample" not in target:  # no data are known to hold it: the program may have made it
            other = weights.of_other(known.modules)
            return other or _made_of_finite(seen) or {**target, "made": True, **batch_in_hand()}
        return target
    hit = node_in_graph(loss.grad_fn, is_bad_value, MASKING)
    if hit is not None and not is_finite_below(hit[1]):  # something before it had overflowed
        hit = overflowed_before(hit[1]) or hit
    by = {} if hit is None else {"op": op_named(hit[0]), **sample_of(where_bad(*hit), weights_of(calls))}
    if hit is not None and looked:
        by |= derived(hit[1], calls)
    if hit is not None and hit[0].startswith("NllLoss"):  # every target of the batch is left out
        by |= batch_in_hand()
    if not by and looked:
        by = factor_of(loss, weights_of(calls), loss_weight, calls)
    added = None if by else bad_constant(loss.grad_fn)
    if not by and ((looked and spoilt.sample()) or added is not None):
        # The modules were given nothing of it.
        whose = spoilt.sample() or (spoilt.by_holder(~added.isfinite()) or record_of(added))
        other = {} if "sample" in whose else weights.of_other(known.modules)
        return other or _made_of_finite(seen) or {"kind": "target", **whose, "looked": False}
    if "factor" not in by:
        by |= sites.of_loss(by.get("op", ""))
    if "op" in by and "origin" not in by and "factor" not in by:
        by |= _line(arisen.made(by["op"], None if hit is None else exponent_of(hit[1])))
    if looked and not given and "origin" not in by and "factor" not in by:
        by |= arisen.line()
    if given and not by:
        return given
    if "op" not in by or ("factor" in by and "computed" not in by):
        again = replayed.of_loss(loss, calls, by_line=True)
        # A factor that no variable holds may be made of what the loss is made of, too.
        by = again if again and ("op" not in by or again.get("finite_before")) else by
    return {"kind": "loss", "looked": looked, **seen, **_record_of(own), **by}


def _of_operation(made: Any, call: Call, inner: Any, own: list[Call]) -> dict[str, Any]:
    """What a module that ran again has made, and whose row it is. `own`: the calls of that loss."""
    found = {**named(made, inner), **zeros(call, made)}
    first = made
    if made.infinite is not None:
        first = made.infinite
        found["inf_before"] = before = named(first, inner)
        if "origin" in before:  # the line of what is to be changed
            found["origin"] = before.pop("origin")
    row = given_to(made, inner)
    told = row.get("sample", {})
    if (told.get("likely") or told.get("by") == "alone") and by_chance(call, first):
        row = {"finite_before": row["finite_before"], **batch_in_hand()}
    if "sample" not in row and not batches.given_out() and _only_one_is_bad(call, own):
        entry = rows_of.entry_given(first.given_to)
        row |= {"sample": entry.sample} if entry is not None else turn_of(call, own)
    if "sample" not in row and not made.own:
        row |= replayed.only_sample(partial(is_finite_without, call), first.learned)
        row = {**batch_in_hand(found["op"]), **row}
    if "sample" not in row and (len(own) == 1 or not first.learned):
        row |= _record_of([call])
    return {**({} if made.own else _called(found, call)), **found, **part_of(first), **row}


def _became_nan(loss: Any, calls: list[Call], seen: dict[str, Any]) -> dict[str, Any]:
    """Of a module's infinite output, what behind it made NaN of that; {} where it does not run again."""
    again = replayed.of_loss(loss, calls)
    if "inf_before" not in again:
        return {}
    return {**sites.of_loss(again["op"]), **again, "looked": True, **seen}


def _called(found: dict[str, Any], call: Call) -> dict[str, Any]:
    """The program's line that called the module, where no line of the program's own in it is known."""
    origin = found.get("origin")
    if origin is not None and origin.get("user", True):
        return {}
    at = called.line_of([call.module(), inner_of(call)])
    return at if origin is None or not at else {"called": at["origin"]}


def _only_one_is_bad(call: Call, own: list[Call]) -> bool:
    """Of several calls of one loss: what the others made is finite."""
    others = [one for one in own if one is not call and one.module() is call.module()]
    made = (followed(one)[0] for one in others)
    return bool(others) and all(bool(part.isfinite().all()) for output in made for part in tensors(output))


def _only_record(op: str) -> dict[str, Any]:
    """Of a batch of one."""
    row = batch_in_hand(op)
    return row if "dataset_index" in row.get("sample", {}) else {}


def _record_of(calls: list[Call]) -> dict[str, Any]:
    """Of the only call, as a batch of one is told, whatever is to blame."""
    return record_given([calls[0].args, calls[0].kwargs]) if len(calls) == 1 else {}


def _made_of_finite(seen: dict[str, Any]) -> dict[str, Any]:
    """The loss, where the program's text shows the operation, or the call, that made it of finite numbers."""
    by = {} if spoilt.sample() else arisen.made() or {}
    return (
        {"kind": "loss", "looked": True, "op": by["op"], **_line(by), **seen, **batch_in_hand()} if by else {}
    )


def _into(module: Any) -> dict[str, Any]:
    """The program's name of a module whose class says little (Sequential, Linear)."""
    if not type(module).__module__.startswith("torch.nn."):
        return {}
    named = (
        owners.written(variable, path)
        for variable, root in owners.roots()
        for path, part in root.named_modules()
        if part is module
    )
    name = next(named, "")
    return {"name": name} if name else {}


def _not_finite_in(call: Call) -> Any:
    """The first of its arguments that holds such numbers."""
    given = tensors([call.args, call.kwargs])
    return next((one.detach() for one in given if not bool(one.isfinite().all())), None)


def _in_spite_of_buffers(call: Call) -> Any:
    output, flow = followed(call, mends=True)
    made = flow.origin_of(output)
    return made if made is not None and made.given is None else None


def _line(made: Optional[dict[str, Any]]) -> dict[str, Any]:
    return {"origin": made["origin"]} if made and "origin" in made else {}


def _target(loss: Any) -> Optional[dict[str, Any]]:
    """What the loss was given beside the modules' outputs.

    Where an operation of it has saved that, or something that is not finite just where that is not.
    """
    for saved, is_target in bad_saved(loss.grad_fn):
        sample = spoilt.sample(saved)
        if is_target or sample:
            what = {} if bool(saved.isnan().any()) else {"what": "inf"}
            return {"kind": "target", **(sample or spoilt.by_holder(~saved.isfinite())), **what}
    return None


def of_given(gradient: Any) -> dict[str, Any]:
    """For a gradient that the program itself has computed."""
    row = sample_of(~gradient.detach().isfinite(), learned=True)
    return {"kind": "gradient", "given": True, "looked": True, **row}


def seen_of(calls: list[Call]) -> dict[str, Any]:
    """`input_finite`, `half`: only where that was seen."""
    import torch

    out: dict[str, Any] = {}
    given = [tensor for call in calls for tensor in tensors([call.args, call.kwargs])]
    if given and all(bool(tensor.isfinite().all()) for tensor in given):
        out["input_finite"] = True
    dtypes = {one.dtype for one in [*given, *weights_of(calls)]} | {call.autocast for call in calls}
    if torch.float16 in dtypes:
        out["half"] = True
    return out


def half_of(parameters: Iterable[Any]) -> dict[str, Any]:
    import torch

    return {"half": True} if any(p.dtype is torch.float16 for p in parameters) else {}


def of_gradients(
    calls: list[Call],
    bad: list[tuple[Any, Any]],
    in_loss: Optional[backward.Culprit] = None,
    between: tuple[Any, Optional[list[Any]]] = (None, None),
    modules: Iterable[Any] = (),
    again: Optional[dict[str, Any]] = None,
) -> dict[str, Any]:
    """For gradients that are not finite after a loss that was: the last parameter in forward order, which
    backward reaches first, and an operation of the modules without a finite derivative.

    `between`: of a loss in a step that was not looked at its graph, and what `Slopes` held of it.
    `again`: what was seen behind `backward` (:mod:`trapline._watch.behind`).
    """
    import torch

    owned = {id(parameter) for parameter, _ in bad}
    mine = [call for call in calls if call.module() is not None and call.has_one_of(owned)]
    seen = seen_of(mine)
    if "input_finite" not in seen:
        given = _weighed(mine)
        if given:
            return given
    for call in mine:
        made = _made_nan(call)
        if made is not None:  # in what the loss leaves out
            return {**_of_operation(made, call, inner_of(call), []), **seen}
    if any(str(gradient.dtype) == "torch.float16" for _, gradient in bad):
        seen["half"] = True
    found: dict[str, Any] = {"kind": "gradient", **weights.name_of(bad[-1][0], modules), **seen}
    for call in calls:
        module = call.module()
        for name, parameter in module.named_parameters() if module is not None else ():
            if id(parameter) in owned:
                found["name"] = weights.told_as(parameter, name, modules)
    compiled = in_loss is not None and in_loss.node is not None and in_loss.op() in _COMPILED
    data = spoilt.sample() if compiled else {}  # its operations nobody sees
    if data:
        return {"kind": "input", **data}
    row = {} if in_loss is None else sample_of(in_loss.bad, weights_of(calls))
    if in_loss is not None and in_loss.node is not None and _has_come(mine):
        same = again is not None and again.get("op") == in_loss.op()
        more = again or {} if same else sole.place(in_loss.op())
        return {
            **found,
            "op": in_loss.op(),
            "backward": {},
            **row,
            **more,
            **spoilt.left_out(in_loss.bad),
        }
    for call in reversed(calls):
        made = _made_backward(call)
        if made:
            record = {} if "sample" in made else _record_of(mine) or _only_record(made["op"])
            return hidden(call, seen, made["op"]) or {**found, **made, **record}
    if in_loss is not None and in_loss.node is not None:  # by way of a gradient's gradient
        return {**found, "op": in_loss.op(), "backward": {}, **sole.place(in_loss.op()), **row}
    if again:
        return {**found, **again}
    graph, held = between
    by = op_of(held)
    for call in reversed(mine):  # in a step that was not looked at: by another gradient, so without certainty
        made = _made_backward(call, owned) if call.arrived is None else None
        if made and (not by or made["op"] == by):
            del made["backward"]
            return {**found, **made}
    if by:
        return {**found, "op": by}
    may_be = {} if graph is None else left_of(graph, held, owned)
    if "op" in may_be:
        return {**found, **may_be}
    for call in calls:
        if call.module() is None or not call.has_one_of(owned) or has_collectives(call):
            continue
        with Kept(inner_of(call)), torch.enable_grad(), autocast_of(call):
            draw_again(call)
            output = inner_of(call)(*copies(call.args), **copies(call.kwargs))
        for tensor in outputs(output):
            node = in_graph(tensor.grad_fn, is_bad_slope)
            if node:
                return {**found, **node}
    return {**found, **may_be}


def _has_come(calls: list[Call]) -> bool:
    """What the operations of the loss made has come to the modules that have the gradients."""
    noted = [call.arrived for call in calls if call.arrived is not None]
    return not noted or any(arrived.is_bad() for arrived in noted)


def _made_backward(call: Call, spoiled: Optional[set[int]] = None) -> Optional[dict[str, Any]]:
    """The operation of this call, where finite numbers arrived and others came of them. With `spoiled` what
    arrived is not known, but which gradients are bad is.
    """
    import torch

    if call.module() is None or (spoiled is None and (call.arrived is None or not call.arrived.is_finite())):
        return None
    inner = inner_of(call)
    if has_collectives(call) or not backward.may_run(inner):
        return None
    with Kept(inner), torch.enable_grad(), backward.Intervals() as intervals:
        draw_again(call)
        args, kwargs = copies(call.args, trained=True), copies(call.kwargs, trained=True)
        with autocast_of(call), backward.anomaly():
            output = inner(*args, **kwargs)
        made = list(outputs(output))
        given = list(tensors([args, kwargs], trained=True))
        arrived = backward.Arrived.ones(made) if spoiled is not None else call.arrived
        return backward.culprit_of(inner, made, given, arrived, intervals, spoiled)


def _made_nan(call: Call) -> Any:
    """What made the NaN in the output of a module, where nothing that it was given had one."""
    if has_collectives(call):
        return None
    output, flow = followed(call)
    if not any(bool(tensor.isnan().any()) for tensor in tensors(output)):
        return None
    made = flow.origin_of(output)
    return made if made is not None and made.given is None else None


def _weighed(calls: list[Call]) -> dict[str, Any]:
    """Data that are not finite, and that weights are multiplied with: their gradient is 0 times Inf where the
    output hides it (a sigmoid).
    """
    import torch

    for call in calls:
        if has_collectives(call):
            continue
        inner, bad = inner_of(call), _not_finite_in(call)
        if isinstance(inner, torch.jit.ScriptModule) and bad is not None:  # what it multiplies nobody sees
            what = {} if bool(bad.isnan().any()) else {"what": "inf"}
            return {"kind": "input", **(spoilt.sample() or {"type": type(inner).__name__}), **what}
        made = followed(call)[1].weighed
        if made is not None and made.given is not None and made.given[0] == "input":
            what = {"what": "inf"} if made.only_inf else {}
            return {"kind": "input", **(spoilt.sample() or {"type": made.given[1]}), **what}
    return {}
