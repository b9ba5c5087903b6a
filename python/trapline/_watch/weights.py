"""Weights that are not finite: who has made them so."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Callable, NamedTuple, Optional

import torch

from trapline._fault.program import arisen, owners, written
from trapline._watch import schedules, stepped
from trapline._watch.again import is_plain
from trapline._watch.forward import is_bad_weight
from trapline._watch.rows import batch_in_hand
from trapline._watch.slopes import Slopes, op_of
from trapline._watch.suspect import are_finite, bad_gradients, parameters_of

# A step of these by finite gradients leaves finite weights, where their state and settings are finite, too:
# they divide by nothing but a root and an `eps` above 0. Without a state there is no telling.
_FINITE_STEPS = ("Adam", "AdamW", "NAdam", "Adamax", "RMSprop", "Adagrad", "SGD")


_LITTLE = 1e30  # that a weight of float32 may be changed by and not overflow


class Known(NamedTuple):
    """What is known of the training when its weights are asked for."""

    optimizers: Any  # tallies by optimizer
    bad: set[int]  # ids of the parameters that were not finite before the first step
    late: set[int]  # of these those that were taken up later
    good: set[int]  # of those that were finite
    modules: list[Any]  # the outermost ones, also those whose calls were not kept (a teacher's)
    is_fine: Callable[[Any], str]  # of a parameter: since when the program alone can have broken it
    entered: set[int]  # ids of those that were finite before their module's first call, in this step
    is_written: Callable[[Any], bool]  # of a parameter: the program has written it besides the steps
    loaded: dict[str, Any]  # what made the bad weights that `load_state_dict` has put in place: facts


def of_weights(module: Any, name: str, known: Known) -> dict[str, Any]:
    """Of a checkpoint or an initialisation, unless an optimizer, or the program itself, has made them so."""
    every = dict(module.named_parameters())
    mine = every.get(name)
    bad = [key for key, one in every.items() if not are_finite([one])]
    others = _others(bad)
    written_here = [key for key in bad if id(every[key]) in known.entered]
    if id(mine) in known.entered and written_here:
        first, leaf = written_here[0], written_here[0].rpartition(".")
        owner = module.get_submodule(leaf[0]) if leaf[0] else module
        return {
            "kind": "weights",
            "name": first,
            **others,
            "written": "forward",
            **written.by_module(owner, leaf[2]),
        }
    if mine is None:
        path, _, leaf = name.rpartition(".")
        owner = module.get_submodule(path) if path else module
        by = written.by_module(owner, leaf)
        function = str(by.get("origin", {}).get("function", ""))
        here = {"written": "forward"} if function.rpartition(".")[2] == "forward" else {}
        made = {} if by or next(module.parameters(), None) is not None else _made_with(module, name)
        return {"kind": "weights", "name": name, "buffer": True, **by, **here, **made}
    told = told_as(mine, name, known.modules)
    if id(mine) in known.bad and known.is_fine(mine) != "loaded":
        late = written.weights_before(name) if id(mine) in known.late else {}
        return {"kind": "weights", "name": told, **late}
    by_hand = of_program(mine, known, name)
    if by_hand:
        return {**by_hand, "name": told, **others}
    for optimizer, tally in list(known.optimizers.items()):
        if tally.count > tally.before and any(parameter is mine for parameter in parameters_of(optimizer)):
            return {"kind": "optimizer", "name": told, **others, **setting_of(optimizer, mine)}
    if id(mine) in known.good:  # the program updates them itself, or from copies that an optimizer has
        return {"kind": "optimizer", "name": told}
    return {"kind": "weights", "name": told, **written.weights_before(name)}


def _made_with(module: Any, name: str) -> dict[str, Any]:
    """Of a library's module without weights, a loss as a rule, which has computed a buffer of what it was
    made with: by the variable that has it, `type`, and the line that made it."""
    made = arisen.bound(module)
    held = next((variable for variable, root in owners.roots() if root is module), "")
    return {"name": f"{held}.{name}", "type": type(module).__name__, **made} if made and held else {}


def _others(bad: list[Any]) -> dict[str, Any]:
    """How many weights broke with the one that is named."""
    return {"others": len(bad) - 1} if len(bad) > 1 else {}


def of_program(parameter: Any, known: Known, name: str = "") -> dict[str, Any]:
    """Of a weight that was seen to be finite, and that no optimizer has stepped with since."""
    if known.is_fine(parameter) == "loaded":
        return {"kind": "weights", "written": "loaded", **(known.loaded or written.weights("step", name))}
    stepping = [one for one, tally in list(known.optimizers.items()) if tally.count > tally.before]
    mine = [one for one in stepping if any(held is parameter for held in parameters_of(one))]
    if not mine and known.is_written(parameter):  # the optimizer that it had is gone
        return {"kind": "weights", "written": "first", **written.weights_before(name)}
    if not mine:  # the program's own update is the step
        return {}
    since = known.is_fine(parameter) or ("loss" if any(_steps_finite(one, parameter) for one in mine) else "")
    return {"kind": "weights", "written": since, **written.weights(since, name)} if since else {}


def _steps_finite(optimizer: Any, parameter: Any) -> bool:
    """Its last step cannot have broken the weight."""
    kind = type(optimizer)
    if any(group.get("centered") for group in optimizer.param_groups):  # the root of a difference
        return False
    state = optimizer.state.get(parameter) or {}
    kept = [one for one in state.values() if isinstance(one, torch.Tensor) and one.shape == parameter.shape]
    return (
        kind.__module__.startswith("torch.optim.")
        and kind.__name__ in _FINITE_STEPS
        and parameter.dtype in (torch.float32, torch.float64)
        and parameter.dim() > 0
        and (bool(kept) or _adds_little(optimizer, parameter))
        and are_finite(kept)
        and not setting_of(optimizer, parameter)
    )


def _adds_little(optimizer: Any, parameter: Any) -> bool:
    """SGD without momentum, whose gradient is still there: what it adds cannot overflow."""
    gradient = parameter.grad
    if type(optimizer).__name__ != "SGD" or gradient is None or gradient.is_sparse or not gradient.numel():
        return False
    rates = [float(group["lr"]) for group in optimizer.param_groups]
    return float(gradient.detach().abs().max()) * max(rates) < _LITTLE


def since_start(module: Any, name: str, known: Known) -> dict[str, Any]:
    """Of -inf that was there before the first step, after steps whose losses were finite: it may be there on
    purpose (what must not follow another in a CRF), and the step's data are the first to meet it."""
    mine = dict(module.named_parameters()).get(name)
    stepped_once = any(tally.count > tally.before for tally in list(known.optimizers.values()))
    if id(mine) not in known.bad - known.late or mine is None or not stepped_once:
        return {}
    values = mine.detach()
    on_purpose = bool((values.isfinite() | values.isneginf()).all())
    return {"since_start": True, **batch_in_hand()} if on_purpose else {}


def of_other(modules: list[Any]) -> dict[str, Any]:
    """The weights of another module, which may have made the target (a teacher)."""
    for module in [*modules, *(root for _, root in owners.roots())]:
        for name, parameter in module.named_parameters():
            if is_bad_weight(parameter):
                return {"kind": "weights", "name": name, "beside": True, **written.weights("loss", name)}
    return {}


def of_optimizers(known: Known) -> dict[str, Any]:
    """Weights that were trained and are not finite: they made what goes into another module."""
    every = [*known.modules, *(root for _, root in owners.roots())]
    for optimizer, tally in list(known.optimizers.items()):
        for parameter in parameters_of(optimizer):
            if tally.count > tally.before and id(parameter) not in known.bad and not are_finite([parameter]):
                by_hand = of_program(parameter, known) or {"kind": "optimizer"}
                return {**by_hand, "looked": True, **name_of(parameter, every)}
    return {}


def of_broken(reached: dict[int, Any], known: Known) -> dict[str, Any]:
    """Of the parameters that the loss depends on one that was finite and is not."""
    for key, parameter in reached.items():
        if key in known.good and not are_finite([parameter]):
            by_hand = of_program(parameter, known) or {"kind": "optimizer"}
            return {**by_hand, "looked": True, **name_of(parameter, known.modules)}
    return {}


def of_update(
    optimizer: Any,
    began_bad: set[int],
    modules: list[Any],
    slopes: Slopes,
    loss: Optional[float] = None,
    by_hand: bool = False,
) -> tuple[list[Any], dict[str, Any]]:
    """The weights that an update has broken, after the step, and what is told of it: of gradients that were
    finite behind `backward`, and may have been changed since. `by_hand`: no `backward` has made them.
    """
    bad = [p for p in parameters_of(optimizer) if id(p) not in began_bad and not are_finite([p])]
    if not bad:
        return [], {}
    # One that holds NaN is named before one with Inf.
    bad.sort(key=lambda p: not bool(p.detach().isnan().any()))
    what = "nan" if bool(bad[0].detach().isnan().any()) else "inf"
    spoilt = bad_gradients(parameters_of(optimizer))
    if spoilt:
        if by_hand:
            made = arisen.beside()
            kept = {key: made[key] for key in ("op", "origin") if key in made}
            return bad, {"what": what, "kind": "gradient", "given": True, "by_hand": True, **kept}
        by, named = op_of(slopes.held), name_of(spoilt[0][0], modules)
        if not named and not by:  # copies of the weights, perhaps: the next loss will tell
            return [], {"kind": "gradient"}
        return bad, {
            "what": what,
            "kind": "gradient",
            **named,
            **({"op": by} if by else changed()),
        }
    others = _others(bad)
    facts = {**name_of(bad[0], modules), **others, **setting_of(optimizer, bad[0])}
    if "setting" not in facts and _steps_finite(optimizer, bad[0]):
        by = written.weights("step", facts.get("name", ""))
        return bad, {"what": what, "kind": "weights", "written": "first", **facts, **by}
    if "setting" not in facts:
        facts |= stepped.of_step(optimizer, bad, loss)
    return bad, {"what": what, "kind": "optimizer", "gradients_finite": True, **facts}


def changed() -> dict[str, Any]:
    """Of gradients that were finite behind `backward`: where the program writes them before the step."""
    return {"changed": True, **written.gradients()}


def infinite(parameters: Iterable[Any], modules: Iterable[Any]) -> dict[str, Any]:
    """`infinite`, the name of a weight that held an infinity before, where its own gradient is not finite."""
    for parameter in parameters:
        if not isinstance(parameter.grad, torch.Tensor) or not is_plain(parameter.grad):
            continue
        at = parameter.detach().isinf()
        if (
            at.shape == parameter.grad.shape
            and bool(at.any())
            and not bool(parameter.grad[at].isfinite().all())
        ):
            return {"infinite": name_of(parameter, modules).get("name", "")}
    return {}


def name_of(parameter: Any, modules: Iterable[Any]) -> dict[str, Any]:
    modules = list(modules)
    for module in modules:
        for name, candidate in module.named_parameters():
            if candidate is parameter:
                return {"name": told_as(parameter, name, modules)}
    return {}


def told_as(parameter: Any, name: str, modules: Iterable[Any]) -> str:
    """Its name, from the program's variable on where others of these modules have the same one."""
    same = {id(one) for module in modules for other, one in module.named_parameters() if other == name}
    if len(same) < 2:
        return name
    whole = {f"{owner.name}.{owner.parameter}" for owner in owners.owners_of(parameter)}
    return whole.pop() if len(whole) == 1 and next(iter(whole)).endswith(name) else name


def setting_of(optimizer: Any, parameter: Any) -> dict[str, Any]:
    """The setting of an optimizer that cannot be right: one that is not finite, an `eps` of 0, or one that is
    0 in the type of the weights."""
    for group in optimizer.param_groups:
        if all(candidate is not parameter for candidate in group["params"]):
            continue
        for name, value in group.items():
            single = value.item() if hasattr(value, "item") and getattr(value, "numel", int)() == 1 else value
            for number in single if isinstance(single, tuple) else (single,):
                if not isinstance(number, float):
                    continue
                if not math.isfinite(number) or (name == "eps" and number == 0):
                    by = schedules.that_gave(optimizer, number) if name == "lr" else {}
                    return {"setting": f"{name}={number:g}", **by}
                if name == "eps" and number > 0 and torch.tensor(number, dtype=parameter.dtype) == 0:
                    return {"setting": f"{name}={number:g}, 0 in {str(parameter.dtype).split('.')[-1]}"}
    return {}
