"""`--watch light`: loss and gradients, and the place only when they are not finite.

Stage one looks at the loss that ``backward`` starts from, in each step, and at the gradients before
``Optimizer.step``, in each of the first steps and then as often as costs a hundredth of the run's time. A
step whose gradients were not looked at is found by the next loss: the weights are bad by then.

Stage two (:mod:`trapline._watch.place`) runs before the optimizer has changed the weights, at most three
times. What it finds is a suspect until the optimizer that has the bad gradients has stepped
(:mod:`trapline._watch.suspect`).

The rule for a finding is in docs/watch.md. Numbers on a device are not looked at: nothing waits for it.
"""

from __future__ import annotations

import atexit
import math
import sys
import time
import weakref
from collections import deque
from typing import Any, Callable, Optional

from trapline._fault.data import recorded
from trapline._library import forks
from trapline._library.say import debug
from trapline._watch import place
from trapline._watch.roots import Root, around_replicas, is_watched
from trapline._watch.suspect import Suspect, are_finite, parameters_of

_KEPT = 50  # steps whose loss and gradient norm are remembered
_LEARN = 2  # steps in which the outermost modules are found
ALWAYS = 64  # steps whose gradients are looked at whatever it costs
_SHARE = 0.005  # of the time since the first step, from then on
LASTING = 5  # losses in a row that are NaN, and whose step a scaler left out
_MAX_PLACES = 3  # times that stage two is tried: a program may leave out bad steps for ever
_MAX_CALLS = 16  # calls of outermost modules whose arguments are kept, until the step is over
_MAX_ROOTS = 64

_light: Optional[Light] = None


def install() -> None:
    """Watch this process. Calling it again changes nothing."""
    global _light
    if _light is not None:
        return
    light = Light()
    try:
        light.start()
    except TypeError:  # hooks that are called for a forward that raises came with 2.0
        light.stop()
        return
    _light = light
    recorded.by_watch(facts, thorough=False)
    atexit.register(_at_exit)


def uninstall() -> None:
    """Stop watching; what was seen is forgotten."""
    global _light
    if _light is not None:
        _light.stop()
        _light = None
        recorded.by_watch(None)
        atexit.unregister(_at_exit)


def facts() -> Optional[dict[str, Any]]:
    """What went bad first, as facts of a fault; None where nothing did."""
    if _light is None:
        return None
    return _light.found or (_light.suspect.fact if _light.suspect is not None else None)


def verdict() -> Optional[dict[str, Any]]:
    """The same by the rule for a finding of its own, at the end of the program."""
    if _light is None:
        return None
    _light.finish()
    return _light.found


def recent() -> list[tuple[int, Optional[float], Optional[float]]]:
    """Step, loss and gradient norm (None: not looked at) of the last steps, oldest first."""
    return [] if _light is None else list(_light.ring)


class Tally:
    """Of one optimizer: its steps, and when it took the last one."""

    __slots__ = ("count", "turn")

    def __init__(self) -> None:
        self.count = self.turn = 0


class Light:
    def __init__(self) -> None:
        self.notes = True  # neither was anything found, nor is stage two running
        self._found: Optional[dict[str, Any]] = None
        self.suspect: Optional[Suspect] = None
        self.ring: deque[tuple[int, Optional[float], Optional[float]]] = deque(maxlen=_KEPT)
        self.calls: deque[place.Call] = deque(maxlen=_MAX_CALLS)  # of outermost modules, in this step
        self.places = 0  # times that stage two ran
        self._harmed: list[Any] = []  # weak references to the weights that `found` is about
        self._lasting = 0
        self._lasting_first: Optional[dict[str, Any]] = None
        # Steps of each optimizer. A step of the training is one of the optimizer that steps most.
        self._tallies: weakref.WeakKeyDictionary[Any, Tally] = weakref.WeakKeyDictionary()
        self._only: Callable[[], Any] = _nobody  # the optimizer, where there is one
        self._tally = Tally()  # its own
        self._turn = 0
        self._began_bad: set[int] = set()  # parameters that were not finite before an optimizer's first step
        self.steps = 0
        self._backwards = 0  # of losses, in this step
        self._several = False  # some step had another number of them than one
        self.looks = True  # this step's gradients are looked at
        self._loss: Optional[float] = None
        self._norm: Optional[float] = None
        self._nan_loss = False  # since the last step, taken or left out
        self._mark = 0  # calls that an earlier backward of this step has done with
        self._spent, self._began, self._next = 0.0, 0.0, 0.0
        self._depth = 0
        self._before: Any = None  # the random state when the outermost forward began
        self._busy = False  # stage two is running
        self._stepping = False
        self._roots: weakref.WeakKeyDictionary[Any, Root] = weakref.WeakKeyDictionary()
        self._learning: list[Any] = []
        self._handles: list[Any] = []
        self._restore: list[Callable[[], None]] = []

    @property
    def found(self) -> Optional[dict[str, Any]]:
        """By the rule, a fault."""
        return self._found

    @found.setter
    def found(self, fact: Optional[dict[str, Any]]) -> None:
        self._found = fact
        self.notes = fact is None

    def start(self) -> None:
        import torch
        from torch.nn.modules import module as modules
        from torch.optim import optimizer as optimizers

        self._is_compiling = torch.compiler.is_dynamo_compiling
        self._learning = [
            modules.register_module_forward_pre_hook(self._enters),
            modules.register_module_forward_hook(self._leaves, always_call=True),
        ]
        self._handles = [
            optimizers.register_optimizer_step_pre_hook(self._before_step),
            optimizers.register_optimizer_step_post_hook(self._after_step),
        ]
        self._wrap(torch.autograd, "backward", self._around_backward)
        self._wrap(torch.nn.Module, "_replicate_for_data_parallel", around_replicas)
        scaler = getattr(sys.modules.get("torch.amp.grad_scaler"), "GradScaler", None)
        if scaler is not None:
            self._wrap(scaler, "step", self._around_scaler)
        forks.in_child(self._in_child)

    def _wrap(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        original = getattr(owner, name)
        wrapper = make(original)
        wrapper.__wrapped__ = original
        setattr(owner, name, wrapper)

        def restore() -> None:
            if getattr(owner, name) is wrapper:
                setattr(owner, name, original)

        self._restore.append(restore)

    def stop(self) -> None:
        for handle in [*self._learning, *self._handles, *self._roots.values()]:
            handle.remove()
        for restore in self._restore:
            restore()
        self._learning, self._handles, self._restore = [], [], []
        self._roots.clear()
        self.calls.clear()

    def _in_child(self) -> None:
        """What was seen before a fork is the parent's to tell."""
        self.found = self.suspect = self._lasting_first = None
        self._lasting = 0
        self.calls.clear()

    # The outermost modules ---------------------------------------------------------------------

    def _enters(self, module: Any, args: Any) -> None:
        if _is_traced():
            return
        if type(module).__name__ == "OptimizedModule":
            self._end_learning()  # before it is compiled: its guards count global hooks
        self._depth += 1
        if self._depth != 1 or self._busy:
            return
        import torch

        self._before = torch.get_rng_state()
        if module not in self._roots and len(self._roots) < _MAX_ROOTS and is_watched(module):
            root = self._roots[module] = Root(module, self)
            module.__dict__["_compiled_call_impl"] = root
            # This call is on its way already, and a global hook is not given the keywords.
            kwargs = sys._getframe(1).f_locals.get("kwargs")
            root.notes(module, args, kwargs if isinstance(kwargs, dict) else {})

    def _end_learning(self) -> None:
        learning, self._learning = self._learning, []
        for handle in learning:
            handle.remove()
        self._before = None

    def _leaves(self, module: Any, _args: Any, _output: Any) -> None:
        if self._depth <= 0 or _is_traced():
            return
        self._depth -= 1
        known = self._roots.get(module) if self._depth == 0 and not self._busy else None
        if known is None or known.draws or self._before is None:
            return
        import torch

        if not torch.equal(self._before, torch.get_rng_state()):
            known.draws = True
            if self.calls and self.calls[-1].module() is module:
                self.calls[-1].drew(self._before)

    # The loss ----------------------------------------------------------------------------------

    def _around_backward(self, original: Any) -> Any:
        import torch

        plain, is_finite = torch.Tensor, math.isfinite

        def backward(tensors: Any, *args: Any, **kwargs: Any) -> Any:
            fresh = False
            try:
                if (
                    type(tensors) is plain
                    and self.notes
                    and self.suspect is None
                    and tensors.is_cpu
                    and tensors.numel() == 1
                    and not tensors.is_complex()
                    and is_finite(value := tensors.item())
                ):
                    self._loss = value
                    self._backwards += 1
                    if self.looks or self._several:
                        self._keeps_last()
                    else:  # nobody will ask for them
                        self.calls.clear()
                elif not self._busy:
                    fresh = self._sees_loss(tensors)
            except Exception as error:
                debug(f"watch: {error!r}")
            result = original(tensors, *args, **kwargs)
            if fresh:
                try:
                    self._after_backward()
                except Exception as error:
                    self.suspect = None
                    debug(f"watch: {error!r}")
            return result

        return backward

    def _keeps_last(self) -> None:
        """Of accumulation only the calls since the backward before this one."""
        while self._mark > 0 and self.calls:
            self.calls.popleft()
            self._mark -= 1
        self._mark = len(self.calls)

    def _sees_loss(self, tensors: Any) -> bool:
        """True where the loss is a new suspect."""
        loss = _loss_of(tensors)
        if loss is None:
            return False
        value = self._loss = loss.item()
        finite = math.isfinite(value)
        if finite and self.found is not None and self._is_mended():
            self.found, self._harmed = None, []
        if self.found is not None:
            return False
        if self.suspect is not None and (finite if self._stepping else not self.suspect.is_pending()):
            # The program has left its step out; inside a step (a closure) the last loss counts.
            self.suspect = None
        self._backwards += 1
        if finite:
            self._keeps_last()
            return False
        self._nan_loss |= math.isnan(value)
        if self.suspect is not None:
            return False
        reached = place.reached(loss)
        calls = [call for call in self.calls if place.is_of(call, reached)]
        self._mark = len(self.calls)
        what = "nan" if math.isnan(value) else "inf"
        self._suspects(
            lambda: place.of_loss(calls, loss, self._tallies, self._began_bad), what, "loss", reached
        )
        return True

    def _after_backward(self) -> None:
        if self.suspect is None:
            return
        if not self.suspect.sees_gradients([*self._parameters()]):
            self.suspect = None  # nothing can come of it

    def _parameters(self) -> Any:
        for optimizer in list(self._tallies):
            yield from parameters_of(optimizer)
        for call in self.calls:
            module = call.module()
            if module is not None:
                yield from module.parameters()

    def _is_mended(self) -> bool:
        """The program has put good weights back (a checkpoint), and goes on with them."""
        known = [parameter for parameter in (weak() for weak in self._harmed) if parameter is not None]
        return bool(known) and are_finite(known)

    def _suspects(
        self, look: Callable[[], dict[str, Any]], what: str, kind: str, reached: dict[int, Any]
    ) -> None:
        found: dict[str, Any] = {"kind": kind, "looked": False}
        if self.places < _MAX_PLACES:
            self.places += 1
            self._busy, self.notes = True, False
            try:
                found = look()
            except Exception as error:
                debug(f"watch: {error!r}")
            finally:
                self._busy, self.notes = False, True
        out = {"what": what, "step": self._coming(), "unit": "step", **found}
        if found["kind"] == "optimizer":
            out["step"] = self.steps
            last = self.ring[-1][2] if self.ring and len(self._tallies) == 1 else None
            if last is not None and math.isfinite(last):
                out["gradients_finite"] = True
        growth = self._growth()
        if growth is not None:
            out["growth"] = growth
        self.suspect = Suspect(out, what == "nan", [*self._parameters()], reached)

    def _coming(self) -> int:
        """The number of the step that is being made: by the optimizer that has not stepped for longest."""
        if not self._tallies:
            return 1
        following = min(self._tallies.values(), key=lambda tally: tally.turn)
        return max(self.steps, following.count + 1)

    def _growth(self) -> Optional[dict[str, Any]]:
        """The gradient norm, or else the loss, that is a hundred times what it was in the steps before."""
        for at, name in ((2, "gradient norm"), (1, "loss")):
            known = [(row[0], row[at]) for row in list(self.ring)[-20:] if row[at] is not None]
            values = [abs(value) for _, value in known if math.isfinite(value)]
            if len(values) >= 3 and min(values[:-1]) > 0 and values[-1] > 100 * min(values[:-1]):
                return {"of": name, "low": min(values[:-1]), "high": values[-1], "steps": len(values)}
        return None

    # The step ----------------------------------------------------------------------------------

    def _before_step(self, optimizer: Any, _args: Any, _kwargs: Any) -> None:
        if self._is_compiling() or not self.notes:
            return
        self._stepping = True
        if not self.looks and self.suspect is None and optimizer is self._only():
            return
        try:
            if optimizer not in self._tallies:
                self._tally = self._tallies[optimizer] = Tally()
                self._only = weakref.ref(optimizer) if len(self._tallies) == 1 else _nobody
                self._began_bad |= {id(p) for p in parameters_of(optimizer) if not are_finite([p])}
            began = time.perf_counter()
            self._began = self._began or began
            norm = self._norm = place.norm(optimizer)
            ended = time.perf_counter()
            self._spent += ended - began
            self._next = max(ended, self._began + self._spent / _SHARE)
            if norm is None or math.isfinite(norm) or self.suspect is not None:
                return
            bad = place.bad_gradients(optimizer)
            if not bad:  # the sum overflowed, the elements did not
                return
            what = "nan" if any(gradient.isnan().any() for _, gradient in bad) else "inf"
            mine = {id(parameter): parameter for parameter, _ in bad}
            self._suspects(lambda: place.of_gradients(list(self.calls), bad), what, "gradient", mine)
            if self.suspect is not None:
                self.suspect.sees_gradients([parameter for parameter, _ in bad])
        except Exception as error:
            debug(f"watch: {error!r}")

    def _after_step(self, optimizer: Any, _args: Any, _kwargs: Any) -> None:
        if self._is_compiling() or not self.notes:
            return
        self._stepping = False
        try:
            self._counts_step(optimizer)
            if self.suspect is not None:
                harmed = self.suspect.verdict(parameters_of(optimizer))
                if harmed:
                    self.found = self._numbered(self.suspect)
                    self._harmed = [weak for weak in harmed if not are_finite([weak()])]
                if harmed is not None:
                    self.suspect = None
            self._lasting, self._lasting_first = 0, None
        except Exception as error:
            debug(f"watch: {error!r}")

    def _counts_step(self, optimizer: Any) -> None:
        self._turn += 1
        if optimizer is self._only():
            tally = self._tally
            self.calls.clear()  # what was called with weights that have changed cannot be run again
        else:
            tally = self._tallies.setdefault(optimizer, Tally())
            owned = {id(parameter) for parameter in parameters_of(optimizer)}
            kept = [
                call for call in self.calls if call.step >= self.steps - 1 and not call.has_one_of(owned)
            ]
            self.calls.clear()
            self.calls.extend(kept)
        tally.count += 1
        tally.turn = self._turn
        self.steps = max(self.steps, tally.count)
        self.ring.append((self.steps, self._loss, self._norm))
        self._loss = self._norm = None
        self._nan_loss = False
        if self._backwards != 1 and self.steps > 1:
            self._several = True
        self._backwards = 0
        self._mark = len(self.calls)
        self.looks = self.steps < ALWAYS or time.perf_counter() >= self._next
        if self._learning and self.steps >= _LEARN:
            self._end_learning()
        self._depth = 0

    def _numbered(self, suspect: Suspect) -> dict[str, Any]:
        """Which step it was is known when an optimizer has taken it."""
        fact = suspect.fact
        if fact["kind"] != "optimizer":
            fact["step"] = self.steps
            if "inf_before" in fact:
                fact["inf_before"] = {**fact["inf_before"], "step": self.steps, "unit": "step"}
        return fact

    def _around_scaler(self, original: Any) -> Any:
        def step(scaler: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            turn, bad = self._turn, self._nan_loss
            result = original(scaler, optimizer, *args, **kwargs)
            try:
                if self._turn == turn and self.found is None and optimizer is not None:
                    self._is_withheld(optimizer, bad)
            except Exception as error:
                debug(f"watch: {error!r}")
            return result

        return step

    def _is_withheld(self, optimizer: Any, nan_loss: bool) -> None:
        """A scaler has left the step out: no fault, unless it leaves out all of them because of the loss."""
        self._counts_step(optimizer)
        suspect, self.suspect = self.suspect, None
        if not nan_loss:
            self._lasting, self._lasting_first = 0, None
            return
        self._lasting += 1
        if self._lasting_first is None and suspect is not None:
            self._lasting_first = self._numbered(suspect)

    def finish(self) -> None:
        """At the end of the program."""
        if self.found is not None and self._is_mended():
            self.found = None
        if self.found is None and self._lasting >= LASTING * max(1, len(self._tallies)):
            self.found = self._lasting_first


def _nobody() -> None:
    return None


def _loss_of(tensors: Any) -> Any:
    """What `backward` starts from, where it is one number in host memory: a device is not waited for, there
    the gradients' step and the weights tell.
    """
    import torch

    loss = tensors[0] if type(tensors) in (list, tuple) and tensors else tensors
    if type(loss) not in (torch.Tensor, torch.nn.Parameter) or not loss.is_cpu:
        return None
    return None if loss.numel() != 1 or loss.is_complex() else loss


def _is_traced() -> bool:
    import torch

    return torch.compiler.is_compiling() or torch.jit.is_tracing()


def _at_exit() -> None:
    """The finding of a program that met no fault but whose weights went bad."""
    try:
        found = verdict()
        if found is None:
            return
        from trapline._fault import write
        from trapline._library import diagnose

        if write.was_written():
            return  # a fault of this process tells it already
        finding = diagnose.diagnose({"kind": "watch", "watch": found, "process": write.process_facts()})
        if finding is not None:
            write.write_finding(finding, [])
    except Exception as error:
        debug(f"watch: {error!r}")
