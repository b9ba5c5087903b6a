"""What `--watch light` sees of a training, and what it makes of it (:mod:`trapline._watch.light`)."""

from __future__ import annotations

import math
import sys
import time
import warnings
import weakref
from collections import deque
from functools import partial
from typing import Any, Callable, Optional

from trapline._fault.program import warned, written
from trapline._library import forks
from trapline._library.errors import DeviceAssertError
from trapline._library.say import debug
from trapline._watch import backward, candidates, place, state, weights
from trapline._watch.again import MAX_CALLS, Call, norm_of
from trapline._watch.behind import Behind
from trapline._watch.budget import Budget
from trapline._watch.device import Device
from trapline._watch.early import Early
from trapline._watch.history import History
from trapline._watch.holding import Holding
from trapline._watch.hot import Hot, holds_finite, idle, is_own, place_of_probe, probe_is_finite, probe_of
from trapline._watch.patches import Patches
from trapline._watch.quiet import quietly
from trapline._watch.roots import Roots, around_replicas
from trapline._watch.second import Second
from trapline._watch.slopes import Slopes
from trapline._watch.steps import Steps, is_inner
from trapline._watch.suspect import (
    Began,
    Suspect,
    are_finite,
    are_mended,
    bad_gradients,
    is_bad_on_host,
    modes,
    parameters_of,
    skips,
)
from trapline._watch.updates import Updates, around_added, around_load
from trapline._watch.withheld import Streak, around_scaler

_TRAINED = 16  # backward passes of a program without an optimizer, as many as are no test of a function
ALWAYS = 32  # steps whose gradients are looked at whatever it costs


class Light:
    def __init__(self) -> None:
        self.notes = True  # neither was anything found, nor is stage two running
        self._found: Optional[dict[str, Any]] = None
        self.suspect: Optional[Suspect] = None
        self.ring = History()
        self.calls: deque[Call] = deque(maxlen=MAX_CALLS)  # of outermost modules, in this step
        self.harmed: list[Any] = []  # weak references to the weights that `found` is about
        self.streak = Streak()
        self.second, self.steps = Second(self), Steps()
        self.began = Began()
        self.backwards = 0  # of losses, in this step
        self.in_loss: Optional[backward.Culprit] = None
        self.slopes = Slopes()
        self._several = False  # some step had not one of them, or there are several optimizers
        self.looks = True  # this step's gradients are looked at
        self.loss: Optional[float] = None
        self.norm: Optional[float] = None
        self.nan_loss = False  # since the last step, taken or left out
        self._mark = 0  # calls that an earlier backward of this step has done with
        self.budget, self.early = Budget(), Early()
        self.stepping = self._has_closures = False
        self._stepping: Callable[[], Any] = lambda: None  # the optimizer that steps
        self.asked: Any = None  # an optimizer about to step that `holding` has looked at
        self.roots, self.hot = Roots(self), Hot()
        self._handles: list[Any] = []
        self._patches = Patches()
        self.device = Device(self)
        self.holding = Holding(self)
        self.behind, self.updates = Behind(self), Updates(self)

    @property
    def found(self) -> Optional[dict[str, Any]]:  # by the rule, a fault
        return self._found

    @found.setter
    def found(self, fact: Optional[dict[str, Any]]) -> None:
        self._found = fact
        self.notes = fact is None

    def start(self) -> None:
        import torch
        from torch.optim import optimizer as optimizers

        self.is_compiling = torch.compiler.is_dynamo_compiling
        self.roots.start()
        self._handles = [
            optimizers.register_optimizer_step_pre_hook(self._before_step),
            optimizers.register_optimizer_step_post_hook(self._hook_after_step()),
        ]
        self._before = (self._handles[0].id, optimizers._global_optimizer_pre_hooks)
        self._patches.wrap(torch.autograd, "backward", self._around_backward)
        self._patches.wrap(torch.optim.Optimizer, "__init__", self.roots.around_init)
        self._patches.wrap(torch.optim.Optimizer, "add_param_group", partial(around_added, self))
        self._patches.wrap(torch.nn.Module, "_replicate_for_data_parallel", around_replicas)
        self._patches.wrap(torch.nn.Module, "load_state_dict", partial(around_load, self))
        if hasattr(warnings, "_showwarnmsg"):
            self._patches.wrap(warnings, "_showwarnmsg", warned.around_show)
        scaler = getattr(sys.modules.get("torch.amp.grad_scaler"), "GradScaler", None)
        if scaler is not None:
            self._patches.wrap(scaler, "step", partial(around_scaler, self))
        forks.in_child(self._in_child)

    def stop(self) -> None:
        self.hot.drain()
        self.roots.uninstall()
        for handle in self._handles:
            handle.remove()
        self._patches.undo()
        self._handles = []
        self.calls.clear()

    def _in_child(self) -> None:
        """What was seen before a fork is the parent's to tell."""
        self.catches_up()
        self.found = self.suspect = self.early.harmless = None
        self.streak.ends()
        self.calls.clear()
        self.device.forgets()
        self.holding.forgets()

    def now(self) -> Any:
        """The backward pass that is to come."""
        return self.steps.turn, self.backwards

    def _begins_training(self) -> None:
        for module in self.roots.take_new():
            self.began.notes(module.parameters(), self.steps)

    def _begins_with(self, optimizer: Any) -> None:
        if self.steps.is_new(optimizer):
            if self.steps.taken == 0:
                self.ring.clear()  # of backward passes
            self.began.notes(parameters_of(optimizer), self.steps)
            self.began.owned.update(map(id, parameters_of(optimizer)))
            self._several = self._several or len(self.steps.tallies) > 1

    def catches_up(self) -> None:
        """With the steps that were counted in C: they had one loss each, and were not looked at."""
        if not self.hot.armed:
            return
        key, hooks = self._before
        hooks[key] = self._before_step
        count, losses, loss, calls, self.backwards = self.hot.drain()
        if count:
            self.steps.adds(count)
            first = self.steps.taken - len(losses) + 1
            self.ring.extend((step, known, None) for step, known in enumerate(losses, first))
            self.updates.probes(self.steps.only(), self.hot.place)
        self.loss = loss
        for module, args, kwargs, more in calls:
            self.calls.append(
                Call((module, args, kwargs or {}, self.steps.taken, *(more or (None, None)), None))
            )

    # The loss ----------------------------------------------------------------------------------

    def _around_backward(self, original: Any) -> Any:
        import torch

        plain, is_finite = torch.Tensor, math.isfinite
        passes, arrived, slopes = self.hot.passes, self.hot.arrived, self.slopes

        def backward(tensors: Any, *args: Any, **kwargs: Any) -> Any:
            if not skips() and passes(tensors):
                if slopes.knows:
                    slopes.holds(tensors)
                result = original(tensors, *args, **kwargs)
                if not arrived():
                    self.catches_up()
                    self.looks, slopes.graph = True, tensors.grad_fn  # before the optimizer steps
                    self.behind.sees(tensors)
                return result
            if modes() or skips():
                return original(tensors, *args, **kwargs)
            fresh = False
            try:
                self.catches_up()
                self.behind.was_called = True
                if self.roots.is_new:
                    self._begins_training()
                if (
                    type(tensors) is plain
                    and self.notes
                    and self.suspect is None
                    and tensors.is_cpu
                    and tensors.numel() == 1
                    and not tensors.is_complex()
                    and is_finite(value := tensors.item())
                ):
                    self.loss, self.early.fact = value, None
                    self.looks |= abs(value) > state.SQUARE_OVERFLOWS
                    self.backwards += 1
                    if self.looks or self._several:
                        self._keeps_last()
                        self._watches(tensors)
                    else:  # nobody will ask for them
                        self.calls.clear()
                        if not self.steps.tallies:  # else the step notes it
                            self.ring.append((self.backwards, value, None))
                elif not self.second.is_running:
                    fresh = self._sees_given(tensors, args, kwargs) or self._sees_loss(tensors)
            except DeviceAssertError as fault:  # met by a copy from the device: not where the watch makes it
                raise fault.with_traceback(None)  # noqa: B904 - it is the same one
            except Exception as error:
                debug(f"watch: {error!r}")
            result = original(tensors, *args, **kwargs)
            self._was_fine = holds_finite(self.steps.only())
            if not self.looks and not self._was_fine:
                self.looks, slopes.graph = True, getattr(tensors, "grad_fn", None)
            if not fresh and type(tensors) is plain:
                self.behind.comes(tensors)
                self._sees_in_closure()
            if fresh:
                try:
                    self._after_backward()
                except Exception as error:
                    self.suspect = None
                    debug(f"watch: {error!r}")
            return result

        return backward

    def _watches(self, loss: Any) -> None:
        """Between the modules and a finite loss."""
        if not self.steps.tallies:  # no step says when that ends
            self.looks = self.backwards < ALWAYS
            self._several = self.backwards > ALWAYS
            self.ring.append((self.backwards, self.loss, None))
        if self.slopes.graph is not None:  # of an earlier loss of this step, which has made a bad gradient
            return
        if self.looks:
            began = time.perf_counter()
            self.in_loss = backward.watch_loss(loss)
            self.slopes.learns(loss)
            self.budget.spends(began)
        elif self.slopes.knows:
            self.slopes.holds(loss, more=self.backwards > 1)

    def _passes_by(self) -> None:
        """A backward pass of what is no loss, and no step that says when to stop looking."""
        self.backwards += 1
        self.looks = self.backwards < ALWAYS
        if not self.looks:
            self.calls.clear()

    def _keeps_last(self) -> None:
        """Of accumulation only the calls since the backward before this one."""
        while self._mark > 0 and self.calls:
            self.calls.popleft()
            self._mark -= 1
        self._mark = len(self.calls)

    def _sees_loss(self, tensors: Any) -> bool:
        """True where the loss is a new suspect."""
        loss = place.loss_of(tensors)
        if loss is None:
            self.device.sees_loss(tensors)
            self.backwards += self.device.is_used and bool(self.steps.tallies)
            if not self.steps.tallies and not self.device.is_used:
                self._passes_by()
            return False
        self.device.is_used = False
        value = self.loss = loss.item()
        finite = math.isfinite(value)
        if finite and self.found is not None and are_mended(self.harmed):
            self.found, self.harmed = None, []
        if self.suspect is not None and self._is_by_hand():
            self._by_hand()
        if self.found is not None:
            return False
        if self.suspect is not None and (finite if self.stepping else not self.suspect.is_pending()):
            # The program has left its step out; inside a step (a closure) the last loss counts.
            if not self.steps.tallies and self._trains_by_hand():
                self.early.harms_nothing(self.suspect.told(), "no weight was broken by it")
            self.suspect = None
        self.backwards += 1
        if finite:
            self.early.fact = None
            self._keeps_last()
            self._watches(loss)
            return False
        self.nan_loss |= math.isnan(value)
        if self.suspect is not None:
            return False
        reached = place.reached(loss)
        calls = [call for call in self.calls if place.is_of(call, reached)]
        earlier = list(self.calls)[: self._mark]
        own = [call for call in calls if all(call is not one for one in earlier)]
        self._mark = len(self.calls)
        what = "nan" if math.isnan(value) else "inf"
        good = self.began.good if self.backwards > 1 or self.steps.taken else set()
        known = self.updates.known(earlier, good)
        self.second.suspects(lambda: place.of_loss(calls, loss, known, own), what, "loss", reached, known)
        fact = self.suspect.fact if self.suspect is not None else {}
        if fact.get("kind") == "optimizer" and "gradients_finite" not in fact:
            if not self.steps.tallies and self.behind.is_by_update():
                fact |= {"gradients_finite": True, **written.weights("loss", fact.get("name", ""))}
            fact |= candidates.of_step_before(loss, self.slopes.held, self.steps.tallies, reached.values())
            candidates.doubt(fact)
        return True

    def _sees_given(self, tensors: Any, args: Any, kwargs: Any) -> bool:
        """A gradient that the program hands to `backward`, and that is not finite."""
        given = args[0] if args else kwargs.get("grad_tensors")
        several = isinstance(given, (list, tuple))
        bad = [one for one in (given if several else [given]) if one is not None and is_bad_on_host(one)]
        if not bad or not self.notes or self.suspect is not None:
            return False
        outputs = tensors if isinstance(tensors, (list, tuple)) else [tensors]
        reached: dict[int, Any] = {}
        for one in outputs:
            reached |= place.reached(one) if one.grad_fn is not None else {}
        what = "nan" if any(bool(one.isnan().any()) for one in bad) else "inf"
        self.backwards += 1
        self.second.suspects(lambda: place.of_given(bad[0]), what, "gradient", reached)
        return self.suspect is not None

    def _after_backward(self) -> None:
        if self.suspect is None:
            return
        if not self.suspect.sees_gradients([*self.second.parameters()]):
            self.early.notes(self.suspect.fact, bool(self.steps.tallies) or self._trains_by_hand())
            self.suspect = None  # nothing can come of it
            self.second.returns()

    def _is_by_hand(self) -> bool:
        """No optimizer has the weights: the program updates them, perhaps from copies that one has."""
        owned = {id(p) for optimizer in list(self.steps.tallies) for p in parameters_of(optimizer)}
        return not owned or (self.suspect is not None and not self.suspect.depends_on(owned))

    def _trains_by_hand(self) -> bool:
        """Without an optimizer of PyTorch's: the weights of a model, for a while, or between two of them."""
        is_model = self.suspect is not None and self.suspect.depends_on(self.began.good)
        return is_model and (self.backwards > _TRAINED or self.steps.taken > 0)

    def _by_hand(self, at_end: bool = False) -> None:
        """The verdict where there is no optimizer: the weights are bad that were not, or are so still."""
        if self.suspect is not None:
            harmed = self.suspect.by_hand(at_end)
            if harmed:
                self.found, self.harmed, self.suspect = self.suspect.told(), harmed, None

    # The step ----------------------------------------------------------------------------------

    def _before_step(self, optimizer: Any, _args: Any, _kwargs: Any) -> None:
        asked, self.asked = self.asked, None
        if asked is not optimizer and not self.is_compiling() and self.notes and not modes():
            self.looks_before(optimizer)

    def looks_before(self, optimizer: Any) -> None:
        self.stepping, self._stepping = True, weakref.ref(optimizer)
        if self.device.is_used:
            self.device.sees_gradients(optimizer)
        if not self.looks and self.suspect is None and optimizer is self.steps.only():
            return
        try:
            self.catches_up()
            self._begins_with(optimizer)
            began = time.perf_counter()
            self.budget.begins(began)
            norm = self.norm = norm_of(p.grad for p in parameters_of(optimizer))
            self.budget.spends(began - (self.in_loss.spent if self.in_loss is not None else 0.0))
            if norm is None or math.isfinite(norm) or self.suspect is not None:
                return
            self.sees_gradients(optimizer)
        except Exception as error:
            debug(f"watch: {error!r}")

    @quietly
    def _sees_in_closure(self) -> None:
        """What a step's own call of `backward` made: nobody asks before the optimizer updates by it."""
        optimizer = self._stepping()
        if self.stepping and self.behind.is_bad and self.suspect is None and optimizer is not None:
            self.sees_gradients(optimizer)

    def sees_gradients(self, optimizer: Any) -> None:
        bad = bad_gradients(parameters_of(optimizer))
        if not bad:  # the sum overflowed, the elements did not
            self.norm = state.largest(optimizer)
            return
        self.behind.suspects(bad)
        if self.suspect is not None:
            was_fine = self._was_fine and id(probe_of(optimizer)) in {id(parameter) for parameter, _ in bad}
            if was_fine and self.suspect.fact["kind"] == "gradient" and "op" not in self.suspect.fact:
                self.suspect.fact |= weights.changed()

    def _hook_after_step(self) -> Any:
        is_compiling, stepped, after = self.is_compiling, self.hot.stepped, self._after_step

        def hook(optimizer: Any, args: Any, kwargs: Any) -> None:
            if not is_compiling() and not stepped(optimizer):
                after(optimizer, len(args) > 1 or bool(kwargs))

        return hook

    def _after_step(self, optimizer: Any, has_closure: bool) -> None:
        if not self.notes or modes() or (self.steps.nest and is_inner(optimizer, sys._getframe(2))):
            return
        self.stepping = False
        self._has_closures |= has_closure  # the loss is made inside the step
        try:
            self.catches_up()
            well = self.looks and self.suspect is None and self.norm is not None
            well = well and math.isfinite(self.norm)  # type: ignore[arg-type]
            by_hand = self.behind.is_without(optimizer)
            self.counts_step(optimizer)
            if well or (
                self.suspect is None and not probe_is_finite(optimizer, by_hand or is_own(optimizer))
            ):
                self.found = self.updates.sees(optimizer, by_hand)
            elif self.suspect is None:
                self.updates.probes(optimizer, place_of_probe(optimizer))
            if self.suspect is not None:
                harmed = self.suspect.verdict(parameters_of(optimizer))
                if harmed:
                    step = self.steps.number_of(optimizer, self.suspect.fact["step"])
                    self.found = self.early.before(self.suspect.numbered(step))
                    self.harmed = [weak for weak in harmed if not are_finite([weak()])]
                elif harmed is not None:
                    self.early.harms_nothing(self.suspect.told(), "no weight was broken by its step")
                if harmed is not None:
                    self.suspect = None
            self.streak.ends()
            self._arms()
        except Exception as error:
            debug(f"watch: {error!r}")
        self.device.reads()

    def counts_step(self, optimizer: Any) -> None:
        self._begins_with(optimizer)
        self.steps.counts(optimizer)
        if optimizer is self.steps.only():
            self.calls.clear()  # what was called with weights that have changed cannot be run again
        else:
            owned = {id(parameter) for parameter in parameters_of(optimizer)}
            kept = [
                call
                for call in self.calls
                if call.step >= self.steps.taken - 1 and not call.has_one_of(owned)
            ]
            self.calls.clear()
            self.calls.extend(kept)
        self.ring.append((self.steps.taken, self.loss, self.norm))
        self.loss, self.norm, self.nan_loss = None, None, False
        if self.backwards != 1 and self.steps.taken > 1:
            self._several = True
        self.backwards, self.in_loss, self.slopes.graph, self._was_fine = 0, None, None, False
        self.behind.forgets()
        self._mark = len(self.calls)
        # Of all optimizers: a program may make one for each step.
        always = ALWAYS * max(1, len(self.steps.tallies))
        # Gradients on a device are not looked at here.
        self.looks = self.steps.turn < max(always, self.budget.until) or (
            not self.device.is_used and self.budget.is_due()
        )
        if self.roots.learning:
            self.roots.steps(self.steps.turn)

    def _arms(self) -> None:
        """The next steps are like this one."""
        optimizer = self.steps.only()
        plain = self.notes and self.suspect is None and self.early.fact is None
        plain = plain and not self.looks and not self._several and not self.steps.nest
        if (
            plain
            and optimizer is not None
            and not self._has_closures
            and not self.roots.learning
            and len(self.calls) == 0
        ):
            following = self.device.idle_until() if self.device.is_used else self.budget.next
            if following is None:
                return
            self.hot.arm(optimizer, following, self.device.is_used)
            key, hooks = self._before
            hooks[key] = idle  # not removed: hooks may be running

    def finish(self) -> None:
        """At the end of the program."""
        self.catches_up()
        self.device.reads(at_end=True)
        if self._is_by_hand():
            self._by_hand(at_end=True)
        if self.found is not None and are_mended(self.harmed):
            self.early.harms_nothing(self.found, "the program has put good weights back since")
            self.found = None
        if self.found is None:
            self.found = self.streak.verdict(len(self.steps.tallies))
