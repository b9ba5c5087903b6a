"""The watch that every guarded run has: loss and gradients, and the place only when they are not finite.

Stage one looks at the loss that ``backward`` starts from, in each step, and at the gradients before
``Optimizer.step``, in each of the first steps and then as often as costs a hundredth of the run's time. A
step whose gradients were not looked at is found by the next loss: the weights are bad by then.

Stage two (:mod:`trapline._watch_place`) runs before the optimizer has changed the weights, at most three
times.

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

from trapline import _watch_place as place
from trapline._fault.data import recorded
from trapline._library.say import debug

_KEPT = 50  # steps whose loss and gradient norm are remembered
_LEARN = 2  # steps in which the outermost modules are found
_ALWAYS = 64  # steps whose gradients are looked at whatever it costs
_SHARE = 0.01  # of the time since the first step, from then on
_LASTING = 5  # losses in a row that are NaN up to the end of the program
_MAX_PLACES = 3  # times that stage two is tried: a program may leave out bad steps for ever
_MAX_ROOTS = 64

_light: Optional[Light] = None


def install() -> None:
    """Watch this process. Calling it again changes nothing."""
    global _light
    if _light is not None:
        return
    light = Light()
    light.start()
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
    return _light.found or _light.suspect


def recent() -> list[tuple[int, Optional[float], Optional[float]]]:
    """Step, loss and gradient norm of the last steps, oldest first."""
    return [] if _light is None else list(_light.ring)


class Light:
    def __init__(self) -> None:
        self.found: Optional[dict[str, Any]] = None  # by the rule, a fault
        self.suspect: Optional[dict[str, Any]] = None  # of the step that is not finished
        self.ring: deque[tuple[int, Optional[float], Optional[float]]] = deque(maxlen=_KEPT)
        self.lasting = 0
        self.lasting_first: Optional[dict[str, Any]] = None
        self.calls: list[place.Call] = []  # of outermost modules, in this step
        self._steps = 0
        self._loss: Optional[float] = None
        self._places = 0
        self._spent, self._began = 0.0, 0.0
        self._unharmed = False  # a loss was NaN, and the gradients it gave are finite all the same
        self._depth = 0
        self._busy = False
        self._roots: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        self._learning: list[Any] = []
        self._handles: list[Any] = []
        self._torch: Any = None
        self._restore: Optional[Callable[[], None]] = None

    def start(self) -> None:
        import torch
        from torch.nn.modules import module as modules
        from torch.optim import optimizer as optimizers

        self._torch = torch
        self._learning = [
            modules.register_module_forward_pre_hook(self._enters),
            modules.register_module_forward_hook(self._leaves, always_call=True),
        ]
        self._handles = [
            optimizers.register_optimizer_step_pre_hook(self._before_step),
            optimizers.register_optimizer_step_post_hook(self._after_step),
        ]
        original = torch.autograd.backward

        def backward(tensors: Any, *args: Any, **kwargs: Any) -> Any:
            if self.found is None and not self._busy:
                try:
                    self._of_loss(tensors)
                except Exception as error:
                    debug(f"watch: {error!r}")
            result = original(tensors, *args, **kwargs)
            if self._unharmed and self.found is None:
                self._unharmed = not self._harmed()
            return result

        backward.__wrapped__ = original  # type: ignore[attr-defined]
        torch.autograd.backward = backward

        def restore() -> None:
            if torch.autograd.backward is backward:
                torch.autograd.backward = original

        self._restore = restore

    def stop(self) -> None:
        for handle in [*self._learning, *self._handles, *self._roots.values()]:
            handle.remove()
        if self._restore is not None:
            self._restore()
        self._learning, self._handles, self._restore = [], [], None
        self._roots.clear()
        self.calls = []

    # The outermost modules ---------------------------------------------------------------------

    def _enters(self, module: Any, args: Any) -> None:
        if _is_traced():
            return
        if type(module).__name__ == "OptimizedModule":
            self._end_learning()  # before it is compiled: its guards count global hooks
        self._depth += 1
        is_root = self._depth == 1 and not self._busy and module not in self._roots
        if is_root and len(self._roots) < _MAX_ROOTS and not _is_script(module):
            self._roots[module] = module.register_forward_pre_hook(self._root_runs, with_kwargs=True)
            # This call has collected its hooks already, and a global one is not given the keywords.
            kwargs = sys._getframe(1).f_locals.get("kwargs")
            self._root_runs(module, args, kwargs if isinstance(kwargs, dict) else {})

    def _end_learning(self) -> None:
        learning, self._learning = self._learning, []
        for handle in learning:
            handle.remove()

    def _leaves(self, _module: Any, _args: Any, _output: Any) -> None:
        if self._depth > 0 and not _is_traced():
            self._depth -= 1

    def _root_runs(self, module: Any, args: Any, kwargs: Any) -> None:
        torch = self._torch
        if (
            self._busy
            or self.found is not None
            or not torch.is_grad_enabled()
            or torch.compiler.is_compiling()
        ):
            return
        if len(self.calls) < _MAX_ROOTS:
            on = torch.is_autocast_enabled
            self.calls.append(place.Call(module, args, kwargs, (on("cpu"), on("cuda"))))

    # Numbers -----------------------------------------------------------------------------------

    def _of_loss(self, tensors: Any) -> None:
        import torch

        loss = tensors if isinstance(tensors, torch.Tensor) else next(iter(tensors or ()), None)
        # A device is not waited for: there the gradients' step and the weights tell.
        if loss is None or loss.device.type != "cpu" or loss.numel() != 1 or loss.is_complex():
            return
        value = self._loss = loss.item()
        if math.isfinite(value):
            self.lasting, self.lasting_first = 0, None
            return
        nan = math.isnan(value)
        if self.suspect is None and self._places < _MAX_PLACES:
            self._places += 1
            self.suspect = self._located(lambda: place.of_loss(self.calls, loss), "nan" if nan else "inf")
            self.lasting_first = self.lasting_first or self.suspect
        self.lasting = self.lasting + 1 if nan else 0
        self._unharmed = nan and self.suspect is not None

    def _harmed(self) -> bool:
        modules = [module for module in (call.module() for call in self.calls) if module is not None]
        gradients = [p.grad for module in modules for p in module.parameters() if p.grad is not None]
        return not gradients or any(not bool(place.values(g).isfinite().all()) for g in gradients)

    def _located(self, look: Callable[[], dict[str, Any]], what: str) -> dict[str, Any]:
        self._busy = True
        try:
            found = look()
        except Exception as error:
            debug(f"watch: {error!r}")
            found = {"kind": "loss"}
        finally:
            self._busy = False
        step = self._steps + 1
        if found["kind"] == "weights" and self._steps:
            found["kind"], step = "optimizer", self._steps
        out = {"what": what, "step": step, "unit": "step", **found}
        if "inf_before" in out:
            out["inf_before"] = {"step": step, "unit": "step", **out["inf_before"]}
        growth = self._growth()
        if growth is not None:
            out["growth"] = growth
        return out

    def _growth(self) -> Optional[dict[str, Any]]:
        """The gradient norm, or else the loss, that is a hundred times what it was in the steps before."""
        for at, name in ((2, "gradient norm"), (1, "loss")):
            known = [(row[0], row[at]) for row in list(self.ring)[-20:] if row[at] is not None]
            values = [abs(value) for _, value in known if math.isfinite(value)]
            if len(values) >= 3 and min(values[:-1]) > 0 and values[-1] > 100 * min(values[:-1]):
                return {"of": name, "low": min(values[:-1]), "high": values[-1], "steps": len(values)}
        return None

    def _before_step(self, optimizer: Any, _args: Any, _kwargs: Any) -> None:
        if self.found is not None:
            return
        try:
            began = time.perf_counter()
            if not self._began:
                self._began = began
            if self._steps >= _ALWAYS and self._spent > _SHARE * (began - self._began):
                return
            norm = _norm(optimizer)
            self._spent += time.perf_counter() - began
            self.ring.append((self._steps + 1, self._loss, norm))
            if norm is None or math.isfinite(norm):
                return
            bad = place.bad_gradients(optimizer)
            if not bad:  # the sum overflowed, the elements did not
                return
            if self.suspect is None and self._places < _MAX_PLACES:
                self._places += 1
                what = "nan" if any(gradient.isnan().any() for _, gradient in bad) else "inf"
                self.suspect = self._located(lambda: place.of_gradients(self.calls, bad), what)
        except Exception as error:
            debug(f"watch: {error!r}")

    def _after_step(self, optimizer: Any, *_: Any) -> None:
        if self.found is not None:
            return
        try:
            self._steps += 1
            if self.suspect is not None and (self._unharmed or place.bad_weights(optimizer)):
                self.found = self.suspect
            self.suspect, self._unharmed, self._loss = None, False, None
            self.calls = []
            self._depth = 0
            if self._learning and self._steps >= _LEARN:
                self._end_learning()
        except Exception as error:
            debug(f"watch: {error!r}")

    def finish(self) -> None:
        """At the end of the program: losses that stayed NaN, under a scaler that left out every step."""
        if self.found is None and self.lasting >= _LASTING and self.lasting_first is not None:
            self.found = self.lasting_first


def _norm(optimizer: Any) -> Optional[float]:
    """The norm of all gradients in host memory."""
    import torch

    gradients = []
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            gradient = parameter.grad
            if gradient is None:
                continue
            if gradient.layout is not torch.strided:
                gradient = gradient._values() if gradient.is_sparse else None
            if gradient is not None and gradient.device.type == "cpu" and gradient.numel():
                gradients.append(gradient.detach())
    if not gradients or any(type(gradient) is not torch.Tensor for gradient in gradients):
        return None
    with torch.no_grad():
        norms = torch._foreach_norm(gradients)
        return (
            math.sqrt(math.fsum(norm.item() ** 2 for norm in norms))
            if all(norm.isfinite() for norm in norms)
            else math.nan
        )


def _is_traced() -> bool:
    import torch

    return torch.compiler.is_compiling() or torch.jit.is_tracing()


def _is_script(module: Any) -> bool:
    import torch

    return isinstance(module, torch.jit.ScriptModule)


def _at_exit() -> None:
    """The finding of a program that met no fault but whose weights went bad."""
    if _light is None:
        return
    try:
        _light.finish()
        if _light.found is None:
            return
        from trapline._fault import write
        from trapline._library import diagnose

        if write.was_written():
            return  # a fault of this process tells it already
        finding = diagnose.diagnose(
            {"kind": "watch", "watch": _light.found, "process": write.process_facts()}
        )
        if finding is not None:
            write.write_finding(finding, [])
    except Exception as error:
        debug(f"watch: {error!r}")
