"""What optimizers' steps have made of the weights, and since when only the program can have changed them."""

from __future__ import annotations

import math
import time
import weakref
from collections.abc import Mapping
from functools import partial
from typing import Any, Callable, Optional

from trapline._fault.program import arisen, holders, scope, written
from trapline._library.say import debug
from trapline._watch import candidates, replayed, state, weights
from trapline._watch.again import Call, is_lazy, is_plain, norm_of
from trapline._watch.held import Held, in_optimizer
from trapline._watch.hot import NOWHERE
from trapline._watch.suspect import are_finite, modes, parameters_of

_ADDED = 8  # steps that are looked at when an optimizer is given more weights


class Updates:
    def __init__(self, light: Any) -> None:
        self._light = light
        self.spoilt = 0  # the step whose gradients were not finite, of weights that no module has
        self._fine: tuple[Callable[[], Any], int] = (
            _nobody,
            -1,
        )  # the optimizer whose weights were, and when
        self._probed: tuple[Any, Held] = (self._fine, _nobody)  # the same of this weight alone
        self._loaded: tuple[int, set[int]] = (-1, set())  # bad weights that were put in place, and when
        self._broken: tuple[Any, Optional[dict[str, Any]]] = (None, None)  # what was told last, and of which
        self._made: dict[str, Any] = {}  # facts: what made them, or else where they were put in place

    def sees(self, optimizer: Any, by_hand: bool = False) -> Optional[dict[str, Any]]:
        """What an update by finite gradients has made of the weights, in a step that is looked at; or, in one
        without a `backward`, by gradients that the program has written `by_hand`."""
        light = self._light
        began = time.perf_counter()
        norm = norm_of(parameter.detach() for parameter in parameters_of(optimizer))
        light.budget.spends(began)
        modules = list(light.roots.known)
        if norm is None or math.isfinite(norm):
            bad, fact = [], state.overflowed(optimizer, light.ring[-1][2], modules)
            if norm is not None:
                self._fine = (weakref.ref(optimizer), light.steps.turn)
        else:
            bad, fact = weights.of_update(
                optimizer, light.began.bad, modules, light.slopes, light.ring[-1][1], by_hand
            )
        if not bad and fact.get("kind") != "state":
            self.spoilt = light.steps.taken if fact else self.spoilt
            return None
        light.harmed = [weakref.ref(parameter) for parameter in bad]
        last = light.ring.facts(light.steps.taken + 1, None, None)
        return light.early.before({"step": light.steps.taken, "unit": "step", **fact, "last_steps": last})

    def probes(self, optimizer: Any, place: tuple[int, int]) -> None:
        """After its step the weight there was finite."""
        if optimizer is not None and place != NOWHERE:
            self._probed = ((weakref.ref(optimizer), self._light.steps.turn), in_optimizer(optimizer, *place))

    def loads(self, module: Any, state: Any) -> None:
        """What `load_state_dict` has put in place: an average of models, a copy of other weights."""
        turn = self._light.steps.turn
        bad = {id(p) for p in module.parameters() if p.is_cpu and not is_lazy(p) and not are_finite([p])}
        if bad and not self._made:
            self._made = self._made_of(state)
        self._loaded = (turn, bad | (self._loaded[1] if self._loaded[0] == turn else set()))

    def _made_of(self, state: Any) -> dict[str, Any]:
        given = state.values() if isinstance(state, Mapping) else ()
        value = next((one for one in given if is_plain(one) and one.is_cpu and not are_finite([one])), None)
        if value is not None:
            with self._light.second.running():
                made = replayed.of_value(replayed.Held(value, "load_state_dict"), [])
            if made:
                return {key: made[key] for key in ("op", "origin") if key in made}
        frame = next(iter(holders.user_frames()), None)
        return {} if frame is None else arisen.origin_of(frame.f_code, scope.line_of(frame))

    def known(self, earlier: list[Call], good: set[int]) -> weights.Known:
        """For a loss that is not finite. `earlier`: calls in this step whose loss was."""
        light = self._light
        tallies, bad, modules = light.steps.tallies, light.began.bad, list(light.roots.known)
        turn, coming = light.now()
        entered = light.began.entered((turn, coming - 1))
        is_fine = partial(self._is_fine, earlier)
        every = [parameter for module in modules for parameter in module.parameters()]
        is_written = partial(light.began.versions.is_written, others=every, turn=turn)
        late = light.began.late
        return weights.Known(tallies, bad, late, good, modules, is_fine, entered, is_written, self._made)

    def of_weights(self, parameters: dict[int, Any]) -> dict[str, Any]:
        """For gradients that are not finite behind a finite loss: weights that were good when training began
        and that the program itself has changed since, which the loss hides (a hinge, a mask)."""
        found = weights.of_broken(parameters, self.known([], self._light.began.good))
        return found if "written" in found else {}

    def broken(self) -> Optional[dict[str, Any]]:
        """At a fault before the next loss: weights that were finite, and that no step is known to break."""
        light, good = self._light, self._light.began.good
        for module in list(light.roots.known):
            for name, parameter in module.named_parameters():
                if id(parameter) in good and not is_lazy(parameter) and not are_finite([parameter]):
                    key = (light.now(), id(parameter))
                    if self._broken[0] == key:  # who asks again may see less of the program
                        return self._broken[1]
                    what = "nan" if bool(parameter.detach().isnan().any()) else "inf"
                    told = weights.of_weights(module, name, self.known([], good))
                    is_own = id(parameter) not in light.began.owned and light.steps.tallies
                    if told["kind"] == "optimizer" and is_own:  # the program's own, that is
                        told |= {"kind": "weights", "written": "first", **written.by_loop(name)}
                    at = light.steps.at(light.backwards)
                    fact = {"what": what, **at, **told} if told.get("written") else None
                    self._broken = (key, fact)
                    return fact
        return None

    def _is_fine(self, earlier: list[Call], parameter: Any) -> str:
        if self._loaded[0] == self._light.steps.turn and id(parameter) in self._loaded[1]:
            return "loaded"
        # A table may be bad in rows that the earlier call has not read.
        was_used = any(call.has_one_of({id(parameter)}) for call in earlier if call.module() is not None)
        if was_used and not candidates.rows_of([parameter]):
            return "backward"
        if self._steps_with(self._fine, parameter):
            return "step"
        # The one weight was finite after the step, and is not now: what changed it may have changed others.
        last, held = self._probed
        probe = held() if self._steps_with(last, parameter) else None
        return "step" if probe is not None and not are_finite([probe]) else ""

    def _steps_with(self, last: tuple[Callable[[], Any], int], parameter: Any) -> bool:
        """The optimizer, which has this weight, made the last step."""
        optimizer, turn = last[0](), last[1]
        is_last = optimizer is not None and turn == self._light.steps.turn
        return is_last and any(one is parameter for one in parameters_of(optimizer))


def around_added(light: Any, original: Any) -> Any:
    """Around ``Optimizer.add_param_group``: a training of what is added begins."""

    def add_param_group(optimizer: Any, group: Any) -> None:
        original(optimizer, group)
        if light.notes and optimizer in light.steps.tallies:
            light.catches_up()
            light.looks, light.budget.until = True, light.steps.turn + _ADDED
            light.began.notes(optimizer.param_groups[-1]["params"], light.steps)

    return add_param_group


def around_load(light: Any, original: Any) -> Any:
    """Around ``Module.load_state_dict``, after the first step: what came before is a checkpoint."""

    def load_state_dict(module: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(module, *args, **kwargs)
        try:
            light.catches_up()
            if light.notes and light.steps.turn and not modes():
                light.updates.loads(module, args[0] if args else kwargs.get("state_dict"))
        except Exception as error:
            debug(f"watch: {error!r}")
        return result

    return load_state_dict


def _nobody() -> None:
    return None
