"""``trapline run --watch nan``: where the numbers of a training first turned NaN or Inf.

Hooks on every module's forward, on ``backward`` and on ``Optimizer.step`` take the largest absolute value of
each output, of the loss and of each gradient: one reduction on the tensor's own device, enqueued and not
waited for. At the end of a step these numbers are copied to the host together, and looked at when the copy
has arrived, so the device is never made to wait. When a NaN has been seen the hooks are removed: from then on
the watch costs nothing.

What was seen is told in two places: with a later fault that NaN can cause (:func:`facts`), and, when the
program ends without one, in a finding of its own.

Not watched: what runs inside ``torch.compile``, a traced or a captured graph, or a functorch transform;
sparse gradients; tensor subclasses.
"""

from __future__ import annotations

import atexit
import functools
import math
import sys
import threading
import weakref
from collections import deque
from collections.abc import Iterator
from typing import Any, Callable, NamedTuple, Optional

from trapline._fault.data import recorded
from trapline._library import capi, forks
from trapline._library.say import debug, say
from trapline._library.standin import known_to_script
from trapline._watch.patches import Patches

# A forward without end must not fill memory: so many values are looked at before the step's end.
_MAX_PENDING = 4096
_DEPTH = 3  # of tuples, lists and dicts in an output

_watch: Optional[Watch] = None


def install(stops: bool = False) -> None:
    """Watch this process; `stops`: end it at the first NaN. Calling it again changes nothing."""
    global _watch
    if _watch is not None:
        return
    watch = Watch(stops)
    try:
        watch.start()
    except TypeError:  # hooks that are called for a forward that raises came with 2.0
        watch.stop()
        say("watch: this torch is older than 2.0: nothing is watched")
        return
    _watch = watch
    recorded.by_watch(facts)
    atexit.register(_at_exit)


def uninstall() -> None:
    """Stop watching; what was seen is forgotten."""
    global _watch
    if _watch is not None:
        _watch.stop()
        _watch = None
        recorded.by_watch(None)
        atexit.unregister(_at_exit)


def is_installed() -> bool:
    """True while something is watched."""
    return _watch is not None


def follows_capture() -> None:
    """Dynamo is there."""
    if _watch is not None:
        _watch.follows_capture()


def facts() -> Optional[dict[str, Any]]:
    """The first NaN, else the first Inf, as facts of a fault; None when none was seen or nothing watches.

    Looks at everything that was enqueued so far, so it waits for the device: call it only when there is a
    fault.
    """
    if _watch is None:
        return None
    _watch.finish()
    return _watch.facts()


class Place(NamedTuple):
    """What a number was taken of."""

    kind: str  # "output", "loss", "gradient"
    owner: Any  # weak reference to the module or the parameter; None for the loss
    root: Any  # weak reference to the outermost module that was running; None when there was none


class _Batch(NamedTuple):
    """The numbers of one step on their way to the host."""

    step: int
    unit: str
    places: list[Place]
    values: Any  # host tensor, one number a place
    arrived: Optional[Any]  # event; None: they are there


class Watch:
    def __init__(self, stops: bool = False) -> None:
        self._stops = stops
        # The first of each: kind, step, unit ("step", or "forward call" without an optimizer), name, type.
        self.nan: Optional[dict[str, Any]] = None
        self.inf: Optional[dict[str, Any]] = None
        self._lock = threading.RLock()
        self._running = threading.local()
        self._handles: list[Any] = []
        self._step_handles: list[Any] = []  # removed last: see _rest
        self._captures: set[str] = set()  # modules of Dynamo's that tell of them
        self._restore: list[Callable[[], None]] = []
        self._pending: list[tuple[Place, Any]] = []
        self._batches: deque[_Batch] = deque()
        self._roots: list[Any] = []  # weak references, for the names
        self._steps = 0
        self._forwards = 0

    # Hooks ------------------------------------------------------------------------------------

    def start(self) -> None:
        import torch
        from torch.optim import optimizer as optimizers

        self._hook()
        self._step_handles = [
            optimizers.register_optimizer_step_pre_hook(self._before_step),
            optimizers.register_optimizer_step_post_hook(self._after_step),
        ]
        original = torch.autograd.backward

        @functools.wraps(original)
        def backward(tensors: Any, *args: Any, **kwargs: Any) -> Any:
            for tensor in [tensors] if isinstance(tensors, torch.Tensor) else list(tensors or ()):
                self._take(Place("loss", None, None), tensor)
            return original(tensors, *args, **kwargs)

        torch.autograd.backward = backward
        unknown = known_to_script(backward, original)

        def restore() -> None:
            if torch.autograd.backward is backward:
                torch.autograd.backward = original
                unknown()

        self._restore = [restore]
        self.follows_capture()
        forks.in_child(self._in_child)

    def _hook(self) -> None:
        from torch.nn.modules import module as modules

        self._handles = [
            modules.register_module_forward_pre_hook(self._before_forward),
            # Called for a forward that raises too: the stack of running modules must stay right.
            modules.register_module_forward_hook(self._after_forward, always_call=True),
        ]

    def _unhook(self) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def follows_capture(self) -> None:
        """Of a whole graph (strict export): of modules with hooks Dynamo takes a frame that it refuses."""
        for module in ("convert_frame", "functional_export"):
            dynamo = sys.modules.get(f"torch._dynamo.{module}")
            if self._handles and module not in self._captures and hasattr(dynamo, "get_traced_fn"):
                self._captures.add(module)
                patches = Patches()
                patches.wrap(dynamo, "get_traced_fn", self._around_frame)
                self._restore.append(patches.undo)

    def _around_frame(self, original: Any) -> Any:
        def get_traced_fn(*args: Any, **kwargs: Any) -> Any:
            self._unhook()  # until the next step: what follows looks at the hooks, too
            return original(*args, **kwargs)

        return get_traced_fn

    def stop(self) -> None:
        self._rest()
        for handle in self._step_handles:
            handle.remove()
        self._step_handles = []

    def _rest(self) -> None:
        """Take nothing any more. The hooks around steps stay and return at once: this may be called from one,
        while PyTorch goes through all of them.
        """
        self._unhook()
        for restore in self._restore:
            restore()
        self._restore, self._pending = [], []

    def _in_child(self) -> None:
        """A forked child owns neither the lock nor the device's memory."""
        self._lock = threading.RLock()
        self._pending, self._batches = [], deque()

    def _stack(self) -> list[Any]:
        stack = getattr(self._running, "stack", None)
        if stack is None:
            stack = self._running.stack = []
        return stack

    def _before_forward(self, module: Any, _args: Any) -> None:
        if _is_traced():
            return
        self._stack().append(module)

    def _after_forward(self, module: Any, _args: Any, output: Any) -> None:
        if _is_traced():
            return
        stack = self._stack()
        if not any(module is running for running in stack):  # modules may define ==
            return
        root = stack[0]
        while stack and stack.pop() is not module:
            pass
        place = Place("output", weakref.ref(module), weakref.ref(root))
        for tensor in _tensors(output, _DEPTH):
            self._take(place, tensor)
        if not stack:
            self._end_of_root(root)

    def _end_of_root(self, root: Any) -> None:
        import torch

        with self._lock:
            if all(known() is not root for known in self._roots):
                self._roots.append(weakref.ref(root))
            self._forwards += 1
            # In a training step the numbers wait for the loss and the gradients.
            if not torch.is_grad_enabled() or len(self._pending) > _MAX_PENDING:
                self._flush()

    def _before_step(self, optimizer: Any, _args: Any, _kwargs: Any) -> None:
        if _is_traced():
            return
        if not self._handles and self._restore:  # a graph was captured
            self._hook()
        if not self._handles:
            return
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._take(Place("gradient", weakref.ref(parameter), None), parameter.grad)

    def _after_step(self, *_: Any) -> None:
        if not self._handles or _is_traced():
            return
        with self._lock:
            self._steps += 1
            self._flush(step=self._steps)
            stops = self._stops and self.nan is not None
        if stops:
            self._stops = False  # a program that catches it goes on
            say(f"stopped at the first NaN, after step {self._steps} (--watch nan:stop)")
            raise SystemExit(capi.EXIT_STOPPED)

    # Numbers ----------------------------------------------------------------------------------

    def _take(self, place: Place, tensor: Any) -> None:
        import torch

        if not _is_plain(tensor):
            return
        try:
            with torch.no_grad():
                largest = torch.linalg.vector_norm(tensor.detach(), math.inf)
        except RuntimeError:  # a dtype without the reduction on this device: not watched
            return
        with self._lock:
            self._pending.append((place, largest))

    def _flush(self, step: Optional[int] = None) -> None:
        """Send what was collected to the host, and look at what has arrived."""
        import torch

        pending, self._pending = self._pending, []
        unit = "step" if self._steps else "forward call"
        number = step or (self._steps + 1 if self._steps else max(self._forwards, 1))
        groups: dict[Any, list[tuple[Place, Any]]] = {}
        for place, value in pending:
            groups.setdefault((value.device, value.dtype), []).append((place, value))
        for (device, _), items in groups.items():
            with torch.no_grad():
                stacked = torch.stack([value for _, value in items])
                arrived = None
                if device.type == "cuda":
                    host = torch.empty(stacked.shape, dtype=stacked.dtype, pin_memory=True)
                    stacked = host.copy_(stacked, non_blocking=True)
                    arrived = torch.cuda.Event()
                    arrived.record(torch.cuda.current_stream(device))
            self._batches.append(_Batch(number, unit, [place for place, _ in items], stacked, arrived))
        self._look(wait=False)

    def _look(self, wait: bool) -> None:
        while self._batches:
            batch = self._batches[0]
            if batch.arrived is not None and not wait and not batch.arrived.query():
                return
            if batch.arrived is not None and wait:
                batch.arrived.synchronize()
            self._batches.popleft()
            self._judge(batch)
        if self.nan is not None and self._handles:
            self._rest()

    def _judge(self, batch: _Batch) -> None:
        for place, value in zip(batch.places, batch.values.tolist()):
            if math.isfinite(value):
                continue
            # Named at once: a temporary model may be gone when somebody asks.
            if math.isnan(value) and self.nan is None:
                self.nan = self._describe(place, batch)
            elif math.isinf(value) and self.inf is None:
                self.inf = self._describe(place, batch)

    def finish(self) -> None:
        """Look at everything, waiting for the device; a device that is lost ends the watch."""
        with self._lock:
            try:
                self._flush(step=self._steps + 1 if self._steps else None)
                self._look(wait=True)
            except RuntimeError:
                self._batches.clear()

    # Words ------------------------------------------------------------------------------------

    def facts(self) -> Optional[dict[str, Any]]:
        first = self.nan or self.inf
        if first is None:
            return None
        out: dict[str, Any] = {"what": "nan" if self.nan is not None else "inf", **first}
        if self.nan is not None and self.inf is not None:
            out["inf_before"] = self.inf
        return out

    def is_a_fault(self) -> bool:
        """A NaN is one anywhere; an infinity in a loss or a gradient. Masks make infinite outputs on
        purpose.
        """
        return self.nan is not None or (self.inf is not None and self.inf["kind"] != "output")

    def _describe(self, place: Place, batch: _Batch) -> dict[str, Any]:
        out: dict[str, Any] = {"kind": place.kind, "step": batch.step, "unit": batch.unit}
        owner = place.owner() if place.owner is not None else None
        if owner is None:
            return out
        if place.kind == "output":
            out["type"] = type(owner).__name__
        roots = [place.root] if place.root is not None else self._roots
        for root in filter(None, (reference() for reference in roots)):
            named = root.named_modules() if place.kind == "output" else root.named_parameters()
            for name, candidate in named:
                if candidate is owner:
                    out["name"] = name
                    return out
        return out


def _is_traced() -> bool:
    import torch

    if torch.compiler.is_compiling() or torch.jit.is_tracing():
        return True
    return torch.cuda.is_available() and torch.cuda.is_current_stream_capturing()


def _is_plain(tensor: Any) -> bool:
    import torch

    if type(tensor) not in (torch.Tensor, torch.nn.Parameter):
        return False
    if tensor.layout is not torch.strided or tensor.numel() == 0 or tensor.device.type == "meta":
        return False
    if not (tensor.dtype.is_floating_point or tensor.dtype.is_complex) or tensor.is_quantized:
        return False
    wrapped = getattr(torch._C._functorch, "is_functorch_wrapped_tensor", None)
    return wrapped is None or not wrapped(tensor)


def _tensors(value: Any, depth: int) -> Iterator[Any]:
    import torch

    if isinstance(value, torch.Tensor):
        yield value
    elif depth > 0 and isinstance(value, dict):
        for item in value.values():
            yield from _tensors(item, depth - 1)
    elif depth > 0 and isinstance(value, (tuple, list)):
        for item in value:
            yield from _tensors(item, depth - 1)


def _at_exit() -> None:
    """The finding of a program that met no fault but whose numbers went bad."""
    if _watch is None:
        return
    try:
        _watch.finish()
        if not _watch.is_a_fault():
            return
        from trapline._fault import write
        from trapline._library import diagnose

        if write.was_written():
            return  # a fault of this process tells it already
        finding = diagnose.diagnose(
            {"kind": "watch", "watch": _watch.facts(), "process": write.process_facts()}
        )
        if finding is not None:
            write.write_finding(finding, [])
    except Exception as error:
        debug(f"watch: {error!r}")
