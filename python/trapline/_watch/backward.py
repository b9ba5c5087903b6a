"""Which operation's derivative made the numbers of a gradient that are not finite.

In a step whose gradients are looked at (:mod:`trapline._watch.light`), two things are noted while `backward`
runs: what arrived at the outputs of outermost modules, and the first operation between these and the loss
that was given finite gradients and handed on others. Where what arrived was finite, the module runs again and
its own operations are followed backward in the same way, with the lines that PyTorch's anomaly mode notes.

Nothing but an operation that was seen so is named.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections import deque
from collections.abc import Iterable
from functools import partial
from typing import Any, Optional

import torch

from trapline._fault.model.autograd import name_of
from trapline._fault.program import places, source
from trapline._watch.quiet import quietly
from trapline._watch.rows import sample_of
from trapline._watch.suspect import may_look, modes

_MARK = "trapline"  # in the metadata of the node that made an output
_MAX_OUTPUTS = 8
_MAX_LOSS = 64  # operations between the outputs and the loss that are watched
_MAX_NODES = 20_000
_BY_STRUCTURE = ("linalg.eigh", "linalg.eig", "linalg.svd")
_MAX_VIEWS = 4  # of a weight, before an operation
_MAX_KEPT = 1 << 24  # elements of a gradient that is kept until the step

_RUN_AGAIN = [
    os.path.join(os.path.dirname(__file__), name) for name in ("place.py", "forward.py", "replayed.py")
]
_FRAME = re.compile(r'\s*File "(?P<file>.+)", line (?P<line>\d+), in (?P<function>.+)')


class Arrived:
    """What arrives at the outputs of one call, in the order of its tensors."""

    def __init__(self, tensors: Iterable[Any]) -> None:
        self.gradients: dict[int, Any] = {}
        self.too_large = False
        if _is_compiled_autograd():
            return
        for at, tensor in enumerate(tensors):
            node = tensor.grad_fn
            if at >= _MAX_OUTPUTS or node is None:
                break
            node.metadata[_MARK] = True
            # Nothing here holds the graph; the graph holds this.
            node.register_prehook(partial(self._sees, at, tensor.output_nr))

    @quietly
    def _sees(self, at: int, output: int, gradients: Any) -> None:
        gradient = gradients[output] if output < len(gradients) else None
        if gradient is None or modes() or not may_look(gradient):
            return
        if gradient.numel() > _MAX_KEPT:
            self.too_large = True
        else:
            self.gradients[at] = gradient.detach()  # or it may hold the graph that holds this

    @classmethod
    def ones(cls, tensors: Iterable[Any]) -> Arrived:
        """What may have arrived where that was not noted."""
        arrived = cls(())
        known = [tensor for tensor in tensors if tensor.grad_fn is not None]
        arrived.gradients = {at: torch.ones_like(tensor) for at, tensor in enumerate(known)}
        return arrived

    def finite(self) -> dict[int, Any]:
        """Without the others: one output may be made of another, and hand on what a derivative made."""
        return {at: gradient for at, gradient in self.gradients.items() if _finite(gradient)}

    def is_finite(self) -> bool:
        return not self.too_large and bool(self.finite())

    def is_bad(self) -> bool:
        return not all(map(_finite, self.gradients.values()))


class Culprit:
    """The first operation whose derivative made numbers that are not finite."""

    def __init__(self) -> None:
        self.node: Any = None
        self.bad: Any = None  # where the gradient that it made is not finite
        self.at = 0  # of which of its inputs
        self.nodes: list[Any] = []  # that it watches, of a graph of our own
        self.inputs: set[int] = set()  # leaves of it that are no weights
        self.intervals: list[Any] = []  # of its operations, by the calls of modules
        self.spent = 0.0  # seconds
        self._bad = False

    def watches(self, node: Any) -> None:
        node.register_hook(partial(self._after, name_of(node), node.metadata))

    @quietly
    def _after(self, name: str, metadata: Any, made: Any, given: Any) -> None:
        if self._bad or modes():
            return
        began = time.perf_counter()
        if not all(map(_finite, made)):
            self._bad = True
            # Else it came from elsewhere, or may have.
            if all(one is None or (may_look(one) and _finite(one)) for one in given):
                self.node = (name, metadata)
                self.at = next(at for at, one in enumerate(made) if not _finite(one))
                self.bad = ~made[self.at].detach().isfinite()
        self.spent += time.perf_counter() - began

    def is_fine(self) -> bool:
        return not self._bad

    def op(self) -> str:
        return str(self.node[0])

    def sample(self, parameters: Iterable[Any]) -> dict[str, Any]:
        """Whose row the bad gradient is in."""
        mine = self._mine()
        if mine:  # the graph tells whether it is a weight's
            return {} if self._is_of_weight(mine[0]) else sample_of(self.bad, learned=self.is_learned())
        return sample_of(self.bad, parameters)

    def _is_of_weight(self, node: Any) -> bool:
        following = node.next_functions[self.at][0] if self.at < len(node.next_functions) else None
        for _ in range(_MAX_VIEWS):
            if following is None or hasattr(following, "variable"):
                break
            if len(following.next_functions) != 1:
                return False
            following = following.next_functions[0][0]
        variable = getattr(following, "variable", None)
        return (
            variable is not None
            and id(variable) not in self.inputs
            and isinstance(variable, torch.nn.Parameter)
        )

    def _mine(self) -> list[Any]:
        """The operation, in a graph of our own."""
        number = self.node[1].get(_MARK + "_nr", -1)
        return [one for one in self.nodes if one.metadata.get(_MARK + "_nr") == number]

    def is_learned(self) -> bool:
        """What the operation was given is made of weights; two eigenvalues that are the same are so by the
        data."""
        if self.op() in _BY_STRUCTURE:
            return False
        mine = self._mine()
        leaves = (node.variable for node in _nodes(mine) if hasattr(node, "variable"))
        return not mine or any(id(leaf) not in self.inputs for leaf in leaves)

    def line(self) -> tuple[Optional[dict[str, Any]], int]:
        _, metadata = self.node
        return frame_of(metadata.get("traceback_") or []), metadata.get(_MARK + "_nr", -1)


def watch_loss(loss: Any) -> Culprit:
    """Watches the operations between the loss and the outputs of outermost modules."""
    culprit = Culprit()
    if loss.grad_fn is None or _is_compiled_autograd():
        return culprit
    seen, queue = {loss.grad_fn}, deque([loss.grad_fn])
    while queue and len(seen) < _MAX_LOSS:
        node = queue.popleft()
        if hasattr(node, "variable") or _MARK in node.metadata:
            continue
        culprit.watches(node)
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                queue.append(following)
    return culprit


def may_run(module: Any) -> bool:
    """Hooks on gradients are the program's: they are not called twice."""
    if any(parameter._backward_hooks for parameter in module.parameters()):
        return False
    return not any(m._backward_hooks or m._backward_pre_hooks for m in module.modules())


def culprit_of(
    module: Any,
    outputs: list[Any],
    arguments: list[Any],
    arrived: Arrived,
    intervals: list[Any],
    spoiled: Optional[set[int]] = None,
) -> Optional[dict[str, Any]]:
    """The operation of a module that ran again, under anomaly mode: its line, and the module it is in.

    With `spoiled`, only where the gradients of just these parameters (by id) are not finite then.
    """
    pairs = [(outputs[at], g) for at, g in arrived.finite().items() if at < len(outputs)]
    if not pairs or any(tensor.shape != gradient.shape for tensor, gradient in pairs):
        return None
    culprit = _watching([tensor.grad_fn for tensor, _ in pairs])
    culprit.inputs = set(map(id, arguments))
    leaves = [p for p in module.parameters() if p.requires_grad]
    leaves += [tensor for tensor in arguments if tensor.requires_grad and tensor.grad_fn is None]
    made = torch.autograd.grad([t for t, _ in pairs], leaves, [g for _, g in pairs], allow_unused=True)
    mine = {id(p) for p in module.parameters()}
    bad = {id(leaf) for leaf, gradient in zip(leaves, made) if not _finite(gradient)} & mine
    if culprit.node is None or (spoiled is not None and bad != spoiled & mine):
        return None
    culprit.intervals = intervals
    frame, _ = culprit.line()
    found: dict[str, Any] = {"op": culprit.op(), "backward": inside(culprit, [module])}
    found |= culprit.sample(module.parameters())
    if frame is not None:
        found["origin"] = frame
    return found


def inside(culprit: Culprit, roots: Iterable[Any]) -> dict[str, Any]:
    """The innermost module whose call made the operation; {}: none did."""
    _, number = culprit.line()
    around = [(last - first, part) for part, first, last in culprit.intervals if first <= number < last]
    if not around:
        return {}
    part = min(around, key=lambda pair: pair[0])[1]
    named = (name for root in roots for name, one in root.named_modules() if one is part)
    return {"name": next(named, ""), "type": type(part).__name__}


def run(loss: Any) -> Optional[Culprit]:
    """Of a finite loss whose graph notes its lines: what its gradients run into."""
    leaves = [node.variable for node in _nodes([loss.grad_fn]) if hasattr(node, "variable")]
    if not leaves or any(leaf._backward_hooks for leaf in leaves):
        return None
    culprit = _watching([loss.grad_fn])
    torch.autograd.grad(loss, leaves, allow_unused=True)
    return culprit


def _watching(roots: list[Any]) -> Culprit:
    culprit = Culprit()
    for node in _nodes(roots):
        if not hasattr(node, "variable"):
            node.metadata[_MARK + "_nr"] = node._sequence_nr()
            culprit.nodes.append(node)
            culprit.watches(node)
    return culprit


def _nodes(roots: list[Any]) -> list[Any]:
    queue = deque(node for node in roots if node is not None)
    seen = dict.fromkeys(queue)
    while queue and len(seen) < _MAX_NODES:
        for following, _ in queue.popleft().next_functions:
            if following is not None and following not in seen:
                seen[following] = None
                queue.append(following)
    return list(seen)


class Intervals:
    """Which numbers of the graph's operations belong to which call of a module."""

    def __enter__(self) -> list[Any]:
        from torch.nn.modules import module as modules

        self.known: list[Any] = []
        running: list[tuple[Any, int]] = []

        def enters(module: Any, _args: Any) -> None:
            running.append((module, _number()))

        def leaves(module: Any, _args: Any, _output: Any) -> None:
            while running:
                entered, first = running.pop()
                self.known.append((entered, first, _number()))
                if entered is module:
                    break

        self._handles = [
            modules.register_module_forward_pre_hook(enters),
            modules.register_module_forward_hook(leaves, always_call=True),
        ]
        return self.known

    def __exit__(self, *_: object) -> None:
        for handle in self._handles:
            handle.remove()


def anomaly() -> Any:
    """Notes the line of each operation."""
    return torch.autograd.set_detect_anomaly(True, check_nan=False)


def _number() -> int:
    return int(torch.autograd._get_sequence_nr())


def _finite(tensor: Any) -> bool:
    if tensor is None or not may_look(tensor) or tensor.layout is not torch.strided:
        return True
    return not tensor.is_floating_point() or bool(tensor.detach().isfinite().all())


def frame_of(lines: list[str]) -> Optional[dict[str, Any]]:
    for text in reversed(lines):
        match = _FRAME.match(text)
        if match is not None and match["file"] in _RUN_AGAIN:  # what called that is not of the module
            return None
        if match is None or places.is_library_file(match["file"]) or places.is_own(match["file"]):
            continue
        line = int(match["line"])
        return {
            "file": match["file"],
            "line": line,
            "function": match["function"],
            "code": source.line_text(match["file"], line),
            "user": True,
        }
    return None


def _is_compiled_autograd() -> bool:
    module = sys.modules.get("torch._dynamo.compiled_autograd")
    return bool(getattr(module, "compiled_autograd_enabled", False))
