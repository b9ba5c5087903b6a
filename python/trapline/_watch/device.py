"""The watch where the loss is on a device: nothing waits for it (:mod:`trapline._watch.late`).

Losses, and the gradient of one parameter, are looked at some steps late. A number that was not finite is a
fault when a weight is NaN after the step that was taken with it: only that question waits for the device.
"""

from __future__ import annotations

import math
import sys
import weakref
from collections import deque
from typing import Any, Optional

import torch

from trapline._fault.data import batches, samples
from trapline._library import progress
from trapline._library.errors import DeviceAssertError
from trapline._library.say import debug
from trapline._watch import held
from trapline._watch.hot import MAX_PROBE
from trapline._watch.late import Late
from trapline._watch.spoilt import not_finite
from trapline._watch.suspect import parameters_of
from trapline._watch.weights import name_of

_MAX_DRAWN = 64  # losses


class Device:
    def __init__(self, light: Any) -> None:
        self._light = light
        self._late = Late()
        self._bad: Optional[tuple[int, str, float]] = None  # until its step was taken
        self._probe: Any = None  # gives a parameter, or an optimizer that has none
        self._has_told = False  # `found` of the watch is from here
        self.is_used = False  # the last loss was on a device
        self._drawn: deque[tuple[int, int]] = deque(maxlen=_MAX_DRAWN)  # step, newest batch at its loss

    def sees_loss(self, tensors: Any) -> None:
        """What `backward` starts from."""
        loss = tensors[0] if type(tensors) in (list, tuple) and len(tensors) == 1 else tensors
        self.is_used = type(loss) is torch.Tensor and loss.is_cuda and loss.numel() == 1
        if self.is_used and self._light.found is None:
            step = self._light.steps.coming()
            self._late.sees(loss, step, "loss")
            self._drawn.append((step, progress.newest_batch))

    def sees_gradients(self, optimizer: Any) -> None:
        """Before its step."""
        try:
            probe = self._probe() if self._probe is not None else None
            if probe is None:
                small = (
                    (probe, held.in_optimizer(optimizer, number, at))
                    for number, group in enumerate(optimizer.param_groups)
                    for at, probe in enumerate(group["params"])
                    if probe.is_cuda and probe.numel() <= MAX_PROBE
                )
                probe, self._probe = next(small, (optimizer, weakref.ref(optimizer)))
            gradient = getattr(probe, "grad", None)
            if gradient is not None:
                self._late.sees_gradient(gradient, self._light.steps.coming())
        except DeviceAssertError:
            raise
        except Exception as error:
            debug(f"watch: {error!r}")

    def idle_until(self) -> Optional[float]:
        """When a loss is looked at again, as ``time.perf_counter`` says it; None: something is to be
        done before."""
        return self._late.next_look() if self._bad is None and not self._has_told else None

    def reads(self, at_end: bool = False) -> None:
        """What has arrived, and the verdict on it."""
        if self._late.step == 0 or (self._light.found is not None and not at_end):
            return
        try:
            for step, kind, value in self._late.last() if at_end else self._late.arrived():
                if kind == "loss":
                    self._light.ring.knows(step, value)
                if not math.isfinite(value) and self._bad is None:
                    self._bad = (step, kind, value)
            if self._light.found is not None:
                if self._has_told and self._holds_nan() is False:
                    self._light.found = None  # the program has put good weights back
            elif self._bad is not None and self._light.steps.taken >= self._bad[0]:
                bad, self._bad = self._bad, None
                if self._holds_nan():
                    self._light.found, self._has_told = self._fact(*bad), True
            elif at_end and self._light.steps.taken > self._late.step and self._holds_nan():
                self._light.found = self._since_last_look()
        except DeviceAssertError:
            if not at_end:  # the guard's, met when the weights were looked at
                raise
        except Exception as error:  # a context that is lost
            debug(f"watch: {error!r}")

    def _holds_nan(self) -> Optional[bool]:
        optimizers = list(self._light.steps.tallies)
        return self._late.hold_nan([p for optimizer in optimizers for p in parameters_of(optimizer)])

    def _since_last_look(self) -> Optional[dict[str, Any]]:
        """Weights that turned NaN in steps that were only counted. What is NaN on purpose has no such
        gradient, nor has an optimizer made anything of it.
        """
        programs = vars(sys.modules.get("__main__", sys)).values()  # its functions may be over
        modules = [one for one in [*self._light.roots.known, *programs] if isinstance(one, torch.nn.Module)]
        for optimizer in list(self._light.steps.tallies):
            for parameter in parameters_of(optimizer):
                state = optimizer.state.get(parameter)
                made = [parameter.grad, *(state.values() if isinstance(state, dict) else ())]
                if _has_nan([parameter]) and _has_nan(made):
                    at = {"step": self._light.steps.taken, "unit": "step", "or_before": True}
                    return {"what": "nan", "kind": "optimizer", **name_of(parameter, modules), **at}
        return None

    def _fact(self, step: int, kind: str, value: float) -> dict[str, Any]:
        ring = self._light.ring
        fact = {
            "what": "nan" if math.isnan(value) else "inf",
            "kind": kind,
            "looked": False,
            "step": step,
            "unit": "step",
            "last_steps": ring.facts(step + 1, None, None),
            **self._data_of(step),
        }
        growth = ring.until(step).growth()
        return fact if growth is None else {**fact, "growth": growth}

    def _data_of(self, step: int) -> dict[str, Any]:
        """What the batches of a step hold that is not finite, as far as they are kept in host memory: those
        that were the newest at its losses. Those of other steps are not to blame, whatever they hold.
        """
        serials = {serial for other, serial in self._drawn if other == step}
        for batch in batches.newest_first() if serials else ():
            located = not_finite(batch) if batch.serial in serials else None
            if located is not None:
                sample = samples.sample_facts(located)
                return {"kind": "input", "looked": True, "late": True, "sample": sample}
        return {}

    def forgets(self) -> None:
        """After a fork."""
        self._late.forgets()
        self._bad = None


def _has_nan(values: list[Any]) -> bool:
    """Waits for the device."""
    known = [one.detach() for one in values if isinstance(one, torch.Tensor) and one.is_floating_point()]
    return any(one.layout is torch.strided and bool(one.isnan().any()) for one in known)
