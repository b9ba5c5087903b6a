"""A number that was not finite, until it is known whether an optimizer has stepped with it."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, Optional

import torch

from trapline._watch.versions import Versions

_LARGE = 4096  # elements
PLAIN = (torch.Tensor, torch.nn.Parameter)


@lru_cache(maxsize=256)
def is_plain_class(kind: type) -> bool:
    """Of tensors that hold their own numbers and see no operation: PyTorch's own, and parameters of a class
    that only has something beside them (geoopt's)."""
    if kind in PLAIN:
        return True
    own = torch.nn.Parameter
    return (
        issubclass(kind, own)
        and kind.__torch_function__ is own.__torch_function__
        and kind.__torch_dispatch__ is own.__torch_dispatch__
        and not any("__getattribute__" in vars(one) for one in kind.__mro__[:-1])
    )


_of_operations = getattr(torch._C, "_len_torch_dispatch_stack", lambda: 0)
_of_functions = getattr(torch._C, "_len_torch_function_stack", lambda: 0)
# The call under way is not shown to a class of tensors that has been shown it. The next operation on such a
# tensor, ours too, uses that up.
skips = getattr(torch._C, "_peek_should_skip_torch_function", lambda: False)
# What a transform works on: it cannot be read, and does not know every operation.
_WRAPPED = [
    getattr(torch._C._functorch, name)
    for name in ("is_functorch_wrapped_tensor", "is_legacy_batchedtensor")
    if hasattr(getattr(torch._C, "_functorch", None), name)
]


guards = 0  # modes of the watch's own that refuse writes, where a module runs again


def modes() -> bool:
    """Modes of the program's are on, which would be shown the operations of the watch."""
    if _of_operations() > guards:
        return True
    count = _of_functions()
    return count > 0 and any(not _is_default_device(torch._C._get_function_stack_at(i)) for i in range(count))


def _is_default_device(mode: Any) -> bool:
    """``torch.set_default_device``: it only says where new tensors are made."""
    return type(mode).__name__ == "DeviceContext"


def may_look(tensor: Any) -> bool:
    """Inside the program's backward pass: numbers in host memory, which nobody is shown being looked at."""
    return (
        is_plain_class(type(tensor))
        and tensor.is_cpu
        and not tensor.is_nested
        and not any(is_wrapped(tensor) for is_wrapped in _WRAPPED)
    )


def parameters_of(optimizer: Any) -> Iterator[Any]:
    for group in optimizer.param_groups:
        yield from group["params"]


def is_bad_on_host(tensor: Any) -> bool:
    """One of PyTorch's own class in host memory, with numbers that are not finite."""
    return may_look(tensor) and tensor.is_floating_point() and not are_finite([tensor])


def values(gradient: Any) -> Any:
    """What a gradient holds; of a sparse one without the indices."""
    gradient = gradient.detach()
    return gradient._values() if gradient.is_sparse else gradient


def are_finite(tensors: Iterable[Any]) -> bool:
    return all(map(_is_finite, tensors))


def _is_finite(tensor: Any) -> bool:
    tensor = tensor.detach()
    if not isinstance(tensor, torch.Tensor):  # of a class that answers for one, and refuses most (hypll's)
        return True
    # A norm reads a large one once, and needs no room; it may overflow where no element does.
    is_large = tensor.numel() > _LARGE and tensor.is_floating_point() and tensor.layout is torch.strided
    if is_large and bool(torch.linalg.vector_norm(tensor).isfinite()):
        return True
    return bool(tensor.isfinite().all())


def bad_gradients(parameters: Iterable[Any]) -> list[tuple[Any, Any]]:
    """Parameters whose gradient has an element that is not finite."""
    gradients = [(p, values(p.grad)) for p in parameters if isinstance(p.grad, torch.Tensor)]
    return [(p, gradient) for p, gradient in gradients if not bool(gradient.isfinite().all())]


def are_mended(harmed: list[Any]) -> bool:
    """The program has put good weights back (a checkpoint), and goes on with them."""
    known = _alive(harmed)
    return bool(known) and are_finite(known)


class Began:
    """What the weights were before they were trained."""

    def __init__(self) -> None:
        self.bad: set[int] = set()  # ids of parameters that were not finite
        self.good: set[int] = set()
        self.late: set[int] = set()  # of the bad ones those that a training took up when it was on its way
        self.owned: set[int] = set()  # that some optimizer has, or had
        self.versions = Versions()
        self._entered: dict[int, Any] = {}  # that were finite before their module's first call; when

    def enters(self, parameters: Iterable[Any], now: Any) -> None:
        known = (p for p in parameters if p.is_cpu and not torch.nn.parameter.is_lazy(p))
        self._entered.update((id(p), now) for p in known if are_finite([p]))

    def entered(self, now: Any) -> set[int]:
        return {key for key, then in self._entered.items() if then == now}

    def notes(self, parameters: Iterable[Any], steps: Any) -> None:
        """`steps`: those that were taken before."""
        late, every = steps.taken > 0, list(parameters)
        self.versions.notes(every, steps.turn)
        for parameter in every:
            if not parameter.is_cpu:  # nothing waits for a device
                continue
            if are_finite([parameter]):
                self.good.add(id(parameter))
                self.bad.discard(id(parameter))  # of one that is gone
                self.late.discard(id(parameter))
            else:
                self.bad.add(id(parameter))
                self.late |= {id(parameter)} if late else set()
                self.good.discard(id(parameter))


class Suspect:
    """`fact` says what and where. The verdict is on the optimizer that has the gradients it spoiled."""

    def __init__(
        self, fact: dict[str, Any], is_nan: bool, parameters: list[Any], reached: dict[int, Any]
    ) -> None:
        self.fact = fact
        self._is_nan = is_nan  # the loss or the gradient: an Inf in the data may become one
        self._reached = {
            key: weakref.ref(p) for key, p in reached.items()
        }  # of the parameters that the loss depends on
        # A weight may be infinite on purpose: only those count that turn bad, or have more of it.
        self._before = {id(p): _how_bad(p) for p in parameters if not are_finite([p])}
        self._bad: list[Any] = []  # weak references to the parameters whose gradients it spoiled
        self._fine: list[Any] = []  # and to those with finite gradients of a loss that was NaN

    def sees_gradients(self, parameters: list[Any]) -> bool:
        """After `backward`. False: no gradient comes of it."""
        every = [*_alive(self._reached.values()), *parameters]
        given = list({id(p): p for p in every if p.grad is not None}.values())
        bad = [p for p in given if not are_finite([values(p.grad)])]
        # Reentrant checkpoints hide parameters from the graph.
        bad = [p for p in bad if id(p) in self._reached] or bad
        self._bad = [weakref.ref(p) for p in bad]
        if self._is_nan:
            spoiled = {id(p) for p in bad}
            fine = [p for p in given if id(p) in self._reached and id(p) not in spoiled]
            self._fine = [weakref.ref(p) for p in fine if bool(values(p.grad).any())]
        return bool(self._bad or self._fine or self._broken())

    def depends_on(self, owned: set[int]) -> bool:
        return any(key in owned for key in self._reached)

    def _broken(self) -> list[Any]:
        """Weights that an update has broken, or that were broken and made the loss so, are a fault whatever
        the gradients are.
        """
        if self.fact["kind"] not in ("optimizer", "weights") or self.fact.get("beside"):
            return []
        return [p for p in _alive(self._reached.values()) if not are_finite([p])]

    def is_pending(self) -> bool:
        """The gradients are still there: neither mended nor cleared without a step."""
        bad = [values(p.grad) for p in _alive(self._bad) if p.grad is not None]
        if self._broken():
            return True
        if any(not are_finite([gradient]) for gradient in bad):
            return True
        fine = [values(p.grad) for p in _alive(self._fine) if p.grad is not None]
        return any(bool(gradient.any()) for gradient in fine)

    def spoils(self, stepping: Iterable[Any]) -> bool:
        """Before a step of the optimizer of `stepping`: it would be taken with what this one spoiled."""
        owned = {id(p) for p in stepping}
        spoiled = [p for p in _alive(self._bad) if id(p) in owned]
        if any(p.grad is not None and not are_finite([values(p.grad)]) for p in spoiled):
            return True
        fine = [] if spoiled else [p for p in _alive(self._fine) if id(p) in owned]
        return any(p.grad is not None and bool(values(p.grad).any()) for p in fine)

    def numbered(self, step: int) -> dict[str, Any]:
        """The fact. Which step it was is known when an optimizer takes it."""
        if self.fact["kind"] != "optimizer":
            at = {"step": step, "unit": "step"}
            self.fact.update(at)
            if "inf_before" in self.fact:
                self.fact["inf_before"] = {**self.fact["inf_before"], **at}
        return self.told()

    def told(self) -> dict[str, Any]:
        """The fact, of an update whose gradients were seen to be bad as one of gradients."""
        if self.fact.pop("by_gradients", False):
            self.fact["kind"] = "gradient"
        return self.fact

    def dead(self) -> list[Any]:
        """Weak references to the weights that were not finite before: no step that is left out mends them."""
        given = self.fact["kind"] in ("weights", "optimizer")
        return [weakref.ref(p) for p in _alive(self._reached.values()) if given and not are_finite([p])]

    def verdict(self, stepped: Iterable[Any]) -> Optional[list[Any]]:
        """After a step of the optimizer of `stepped`: weak references to the weights that it is about. Empty:
        no harm was done; None: it was another optimizer's.
        """
        parameters = {id(p): p for p in stepped}
        spoiled = [p for p in _alive(self._bad) if id(p) in parameters]
        fine = [p for p in _alive(self._fine) if id(p) in parameters]
        broken = any(id(p) in parameters for p in self._broken())
        if not spoiled and not fine and not broken:
            return None
        given = self.fact["kind"] in ("weights", "optimizer")
        if not spoiled and not broken and not given:
            return [weakref.ref(p) for p in fine]
        bad = [p for p in parameters.values() if not are_finite([p])]
        return [weakref.ref(p) for p in bad if given or self._is_worse(p)]

    def _is_worse(self, parameter: Any) -> bool:
        before = self._before.get(id(parameter))
        return before is None or any(now > then for now, then in zip(_how_bad(parameter), before))

    def by_hand(self, at_end: bool) -> list[Any]:
        """Where no optimizer tells when it has stepped: weak references to the weights that are bad now. Of
        those that were so from the start only the end of the program tells that they were trained.
        """
        given = self.fact["kind"] == "optimizer" or (at_end and self.fact["kind"] == "weights")
        bad = [p for p in _alive(self._reached.values()) if not are_finite([p])]
        return [weakref.ref(p) for p in bad if given or self._is_worse(p)]


def _how_bad(parameter: Any) -> tuple[int, int]:
    """How many elements are NaN, and how many not finite."""
    held = parameter.detach()
    return int(held.isnan().sum()), int((~held.isfinite()).sum())


def _alive(references: Iterable[Any]) -> list[Any]:
    return [p for p in (reference() for reference in references) if p is not None]
