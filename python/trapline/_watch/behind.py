"""What is seen right behind `backward`, while the functions that made the loss may still run."""

from __future__ import annotations

import math
import time
from typing import Any, Callable, Optional

from trapline._library.say import debug
from trapline._watch import held, place, replayed
from trapline._watch.again import is_plain, norm_of
from trapline._watch.hot import MAX_PROBE
from trapline._watch.suspect import are_finite, bad_gradients, values

_MAX_TRIES = 8  # a scaler may find gradients that overflow for ever


class Behind:
    def __init__(self, light: Any) -> None:
        self._light = light
        self._tries = 0
        self._probe: Optional[Callable[[], Any]] = None  # a parameter of a program without an optimizer
        self.facts: dict[str, Any] = {}  # of the operation whose derivative was not finite, in this step
        self.is_bad = False  # a gradient of this step is
        self.was_called = False  # `backward`, in this step
        self.was_fine = False  # after the last `backward` of a program without an optimizer, by one gradient

    def forgets(self) -> None:
        self.facts, self.is_bad, self.was_called = {}, False, False

    def is_without(self, optimizer: Any) -> bool:
        """No `backward` has made the gradients of its step: the program has written them. Of several
        optimizers another one's step may have used the loss.
        """
        light = self._light
        called = self.was_called or light.backwards > 0 or light.device.is_used
        return not called and optimizer is light.steps.only()

    def comes(self, loss: Any) -> None:
        """After `backward`: of a step that is looked at, and where no optimizer will ask, by one gradient."""
        light = self._light
        if light.steps.tallies:
            self.was_fine = False
        else:
            self.was_fine = self._is_fine()
        if light.looks or (not light.steps.tallies and not self.was_fine):
            self.sees(loss)

    def is_by_update(self) -> bool:
        """That parameter is not finite now, and its gradient was."""
        probe = None if self._probe is None else self._probe()
        return self.was_fine and probe is not None and not are_finite([probe])

    def _is_fine(self) -> bool:
        probe = None if self._probe is None else self._probe()
        gradient = None if probe is None else probe.grad
        return gradient is None or not is_plain(gradient) or are_finite([values(gradient)])

    def sees(self, loss: Any) -> None:
        """A finite loss, whose gradients are there now."""
        light = self._light
        if self.facts or self._tries == _MAX_TRIES or light.suspect is not None or not light.notes:
            return
        if not is_plain(loss) or loss.grad_fn is None or loss.numel() != 1:
            return
        began = time.perf_counter()
        try:
            self._looks(loss)
        except Exception as error:
            debug(f"watch: {error!r}")
        finally:
            light.budget.spends(began)

    def _looks(self, loss: Any) -> None:
        light = self._light
        reached = place.reached(loss)
        if self._probe is None and not light.steps.tallies:  # what backward reaches last
            small = [p for p in reached.values() if p.is_cpu and p.numel() <= MAX_PROBE]
            self._probe = held.in_module(light.roots.known, small[-1]) if small else None
        norm = norm_of(p.grad for p in reached.values())
        if norm is None or math.isfinite(norm):
            return
        self.is_bad = True
        self._tries += 1
        with light.second.running():
            self.facts = replayed.of_gradients(loss, list(light.calls))
        if not light.steps.tallies:  # no step will ask
            self.suspects(bad_gradients(reached.values()))

    def suspects(self, bad: list[tuple[Any, Any]]) -> None:
        """`bad`: parameters, and their gradients that are not finite."""
        light, again = self._light, self.facts
        if not bad:
            return
        what = "nan" if any(gradient.isnan().any() for _, gradient in bad) else "inf"
        mine = {id(parameter): parameter for parameter, _ in bad}
        calls, in_loss, between = list(light.calls), light.in_loss, light.slopes.take_between()
        modules = list(light.roots.known)
        optimizer = light.steps.only()
        written = optimizer is not None and self.is_without(optimizer)
        light.second.suspects(
            lambda: (
                light.updates.of_weights(mine)
                or (replayed.of_written(calls) if written else {})
                or place.of_gradients(calls, bad, in_loss, between, modules, again)
            ),
            what,
            "gradient",
            mine,
        )
        if light.suspect is not None:
            light.suspect.sees_gradients([parameter for parameter, _ in bad])
