"""Where a number that is not finite came from: stage two of the watch (:mod:`trapline._watch_light`).

The outermost modules of the step run again, without gradients, under a mode that looks at each operation.
What the first run left is put back: buffers, plain numbers in modules, random generators. What holds
collectives is not run again.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, Optional

from trapline._fault.data import batches, samples
from trapline._fault.data.match import Match
from trapline._fault.data.values import unravel
from trapline._fault.program import frames, places

_DEPTH = 3
_MAX_NODES = 20_000
# What makes an infinity on purpose, or hands on one that was made on purpose.
_MASKS = (
    "masked_fill",
    "where",
    "full",
    "fill",
    "triu",
    "tril",
    "scalar_tensor",
    "lift",
    "copy",
    "clone",
    "neg",
    "_to_copy",
    "empty",
    "new_",
    "index_put",
    "scatter",
    "cat",
    "add",
    "mul",
    "sub",
)
_COLLECTIVE = ("SyncBatchNorm", "FullyShardedDataParallel", "FSDPModule")


class Call:
    """One call of an outermost module."""

    __slots__ = ("args", "autocast", "kwargs", "module")

    def __init__(self, module: Any, args: Any, kwargs: Any, autocast: tuple[bool, bool]) -> None:
        self.module = weakref.ref(module)
        self.args, self.kwargs = args, kwargs
        self.autocast = autocast


def tensors(value: Any, depth: int = _DEPTH) -> Iterator[Any]:
    """The floating tensors in tuples, lists and dicts."""
    import torch

    if isinstance(value, torch.Tensor):
        if value.dtype.is_floating_point and value.layout is torch.strided and value.device.type != "meta":
            yield value.detach()
    elif depth > 0 and isinstance(value, dict):
        for item in value.values():
            yield from tensors(item, depth - 1)
    elif depth > 0 and isinstance(value, (tuple, list)):
        for item in value:
            yield from tensors(item, depth - 1)


def bad_gradients(optimizer: Any) -> list[tuple[Any, Any]]:
    """Parameters whose gradient has an element that is not finite."""
    return [(p, g) for p, g in _with_gradients(optimizer) if not bool(g.isfinite().all())]


def _with_gradients(optimizer: Any) -> Iterator[tuple[Any, Any]]:
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            if parameter.grad is not None:
                yield parameter, values(parameter.grad)


def values(gradient: Any) -> Any:
    """What a gradient holds; of a sparse one without the indices."""
    gradient = gradient.detach()
    return gradient._values() if gradient.is_sparse else gradient


def bad_weights(optimizer: Any) -> bool:
    """A parameter of this optimizer is not finite."""
    return any(
        not bool(parameter.detach().isfinite().all())
        for group in optimizer.param_groups
        for parameter in group["params"]
    )


def of_loss(calls: list[Call], loss: Any) -> dict[str, Any]:
    """For a loss that is not finite, before `backward` has used up the graph."""
    # Weights first: once they are bad, everything after them is.
    for call in calls:
        for name, parameter in _inner(call).named_parameters() if call.module() is not None else ():
            if not bool(parameter.detach().isfinite().all()):
                return {"kind": "weights", "name": name}
    for call in calls[:1]:  # what goes into a later one may be the first one's output
        for tensor in tensors([call.args, call.kwargs]):
            if bool(tensor.isnan().any()):
                return {"kind": "input", **_sample()}
    bad = _run_again(calls)
    if bad is not None:
        return bad
    return {"kind": "loss", **_in_graph(loss.grad_fn, _is_bad_value)}


def of_gradients(calls: list[Call], bad: list[tuple[Any, Any]]) -> dict[str, Any]:
    """For gradients that are not finite after a loss that was: the last parameter in forward order, which
    backward reaches first, and an operation of the modules without a finite derivative.
    """
    import torch

    found: dict[str, Any] = {"kind": "gradient"}
    owned = {id(parameter) for parameter, _ in bad}
    for call in calls:
        module = call.module()
        for name, parameter in module.named_parameters() if module is not None else ():
            if id(parameter) in owned:
                found["name"] = name
    for call in calls:
        if call.module() is None or _has_collectives(call):
            continue
        with _Kept(_inner(call)), torch.enable_grad(), _autocast(call):
            output = _inner(call)(*call.args, **call.kwargs)
        for tensor in _outputs(output):
            node = _in_graph(tensor.grad_fn, _is_bad_slope)
            if node:
                return {**found, **node}
    return found


def _outputs(value: Any, depth: int = _DEPTH) -> Iterator[Any]:
    if hasattr(value, "grad_fn"):
        yield value
    elif depth > 0 and isinstance(value, (tuple, list, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _outputs(item, depth - 1)


def _sample() -> dict[str, Any]:
    """The sample of the newest batch that holds a NaN."""
    for batch in batches.newest_first()[:2]:
        for tensor in batch.tensors():
            if not tensor.dtype.is_floating_point or not bool(tensor.isnan().any()):
                continue
            at = unravel(int(tensor.detach().isnan().reshape(-1).int().argmax()), tensor.shape)
            located = samples.Located(batch, tensor, Match(at, None, 0, True))
            return {"sample": samples.sample_facts(located)}
    return {}


# The forward pass, again -------------------------------------------------------------------------


def _inner(call: Call) -> Any:
    """What computes: below DistributedDataParallel and torch.compile, which are not run again."""
    module = call.module()
    for _ in range(4):
        kind = type(module).__name__
        if kind == "OptimizedModule":
            module = module._orig_mod
        elif kind in ("DistributedDataParallel", "DataParallel"):
            module = module.module
    return module


def _has_collectives(call: Call) -> bool:
    return any(
        base.__name__ in _COLLECTIVE for module in _inner(call).modules() for base in type(module).__mro__
    )


def _autocast(call: Call) -> Any:
    import torch

    stack = ExitStack()
    for device, on in zip(("cpu", "cuda"), call.autocast):
        if on or torch.is_autocast_enabled(device):
            stack.enter_context(torch.autocast(device, enabled=on))
    return stack


class _Kept:
    """Puts back what a forward pass changes."""

    def __init__(self, module: Any) -> None:
        self.module = module

    def __enter__(self) -> None:
        import torch

        self._random = samples.RandomState()
        self._random.__enter__()
        self._cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []
        self._buffers = [(b, b.detach().clone()) for b in self.module.buffers()]
        self._plain = [
            (m, {k: v for k, v in vars(m).items() if type(v) in (int, float, bool, str, type(None))})
            for m in self.module.modules()
        ]

    def __exit__(self, *_: object) -> None:
        import torch

        self._random.__exit__()
        if self._cuda:
            torch.cuda.set_rng_state_all(self._cuda)
        with torch.no_grad():
            for buffer, value in self._buffers:
                # Not through the buffer itself: its version counts changes, and a graph may have saved it.
                buffer.data.copy_(value)
        for module, values in self._plain:
            vars(module).update(values)


def _run_again(calls: list[Call]) -> Optional[dict[str, Any]]:
    import torch

    for call in calls:
        if call.module() is None or _has_collectives(call):
            continue
        mode = _mode()
        with _Kept(_inner(call)), torch.no_grad(), _autocast(call), mode:
            _inner(call)(*call.args, **call.kwargs)
        seen = mode.nan or mode.inf
        if seen is None:
            continue
        found = _named(seen, _inner(call))
        if mode.nan is not None and mode.inf is not None and mode.inf is not mode.nan:
            before = _named(mode.inf, _inner(call))
            found["inf_before"] = {**{k: v for k, v in before.items() if k != "origin"}}
        return found
    return None


def _named(seen: tuple[str, Any, Any], root: Any) -> dict[str, Any]:
    op, module, frame = seen
    found: dict[str, Any] = {"kind": "output", "op": op}
    if module is not None:
        found["type"] = type(module).__name__
        found["name"] = next((name for name, part in root.named_modules() if part is module), "")
    if frame is not None:
        found["origin"] = frame
    return found


def _mode() -> Any:
    from torch.utils._python_dispatch import TorchDispatchMode

    class Mode(TorchDispatchMode):
        """The first operation that made NaN of none, and the first that made Inf of finite numbers."""

        nan: Optional[tuple[str, Any, Any]] = None
        inf: Optional[tuple[str, Any, Any]] = None

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            del types
            given = [] if self.nan else list(tensors([args, kwargs]))
            had_nan = any(bool(t.isnan().any()) for t in given)
            had_inf = any(bool(t.isinf().any()) for t in given)
            output = func(*args, **(kwargs or {}))
            if self.nan is None:
                made = list(tensors(output))
                name = func._schema.name.split("::")[-1]
                if name.startswith("empty") or name.startswith("new_empty"):
                    return output
                if not had_nan and any(bool(t.isnan().any()) for t in made):
                    self.nan = (name, *_here())
                elif (
                    self.inf is None
                    and not had_inf
                    and not name.startswith(_MASKS)
                    and any(bool(t.isinf().any()) for t in made)
                ):
                    self.inf = (name, *_here())
            return output

    return Mode()


def _here() -> tuple[Any, Any]:
    """The innermost module that is running, and the user's line."""
    import torch

    module = origin = None
    frame = sys._getframe(2)
    while frame is not None:
        code = frame.f_code
        if origin is None and places.is_user(code) and not places.is_own(code.co_filename):
            origin = frames.make_frame((code, frame.f_lasti))
        if module is None and code.co_name == "forward":
            candidate = frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None
            module = candidate if isinstance(candidate, torch.nn.Module) else None
        frame = frame.f_back  # type: ignore[assignment]
    return module, origin


# The graph ---------------------------------------------------------------------------------------


def _in_graph(root: Any, is_bad: Any) -> dict[str, Any]:
    """The operation nearest to the inputs whose saved tensors show that it is the one."""
    seen, queue, hit = {root}, [root], None
    while queue and len(seen) < _MAX_NODES:
        node = queue.pop(0)
        if node is None:
            continue
        name = node.name().split("::")[-1]
        try:
            if is_bad(name, node):
                hit = name
        except (RuntimeError, AttributeError):  # saved nothing, or freed already
            pass
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                queue.append(following)
    return {} if hit is None else {"op": hit.rstrip("0123456789").removesuffix("Backward").lower()}


def _is_bad_value(name: str, node: Any) -> bool:
    if name.startswith(("LogBackward", "Log2Backward", "Log10Backward")):
        return _finite(node._saved_self) and bool((node._saved_self <= 0).any())
    if name.startswith("DivBackward"):
        other = node._saved_other
        return other is not None and _finite(other) and bool((other == 0).any())
    if name.startswith(("SqrtBackward", "ExpBackward", "ReciprocalBackward", "RsqrtBackward")):
        return not _finite(node._saved_result)
    if name.startswith("PowBackward"):
        base = node._saved_self
        return _finite(base) and not _finite(base**node._saved_exponent)
    return False


def _is_bad_slope(name: str, node: Any) -> bool:
    if name.startswith(("SqrtBackward", "NormBackward", "LinalgVectorNormBackward")):
        return bool((node._saved_result == 0).any())
    if name.startswith("PowBackward"):
        exponent = node._saved_exponent
        return isinstance(exponent, float) and exponent < 1 and bool((node._saved_self == 0).any())
    if name.startswith("LogBackward"):
        return bool((node._saved_self == 0).any())
    if name.startswith("DivBackward"):
        return node._saved_other is not None and bool((node._saved_other == 0).any())
    return False


def _finite(tensor: Any) -> bool:
    return tensor is not None and bool(tensor.isfinite().all())
