"""Which operation made the NaN or Inf that reaches a model's output."""

from __future__ import annotations

import math
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Optional

from torch.utils._python_dispatch import TorchDispatchMode

from trapline._fault.program import frames, places

_LOOPS = ("<listcomp>", "<genexpr>", "<dictcomp>", "<setcomp>")  # whose variables a record is in
_MAX_GIVEN = 16
_DEPTH = 5  # a graph in a list of arguments: its tensors are in a mapping of its storage
# What makes an infinity on purpose, or hands on one that was made on purpose: whole names, without the "_" of
# what works in place.
_MASKS = frozenset(
    (
        "masked_fill",
        "where",
        "full",
        "full_like",
        "fill",
        "triu",
        "tril",
        "scalar_tensor",
        "lift",
        "lift_fresh",
        "lift_fresh_copy",
        "clone",
        "neg",
        "new_full",
        "new_zeros",
        "new_ones",
        "index_put",
        "_index_put_impl",
        "scatter",
        "scatter_add",
        "scatter_reduce",
        "masked_scatter",
        "index_fill",
        "index_copy",
        "cat",
        "stack",
        "constant_pad_nd",
    )
)
# A number of Python's as a tensor: what is done with that puts it somewhere.
_NUMBERS = frozenset(("lift", "lift_fresh", "lift_fresh_copy", "scalar_tensor", "clone"))
# What PyTorch takes apart before it comes here, and makes NaN of by a number: the names it is called by.
_TAKEN_APART = ("logdet",)
# So only where one of their operands is infinite: a number, as a tensor that is infinite is seen anyhow.
_SUMS = frozenset(("add", "sub", "rsub", "mul"))
# What takes single numbers out of others, into a tensor of their own.
_PICKS = frozenset(
    ("gather", "index", "index_select", "take", "masked_select", "nll_loss_forward", "nll_loss2d_forward")
)
# What gives an infinity of a mask only where a whole row is one: nothing is left of it.
_REDUCES = frozenset(("amax", "amin", "max", "min", "logsumexp", "max_pool2d_with_indices"))
# What makes a finite number of an infinity.
_HIDING = frozenset(("div", "true_divide", "reciprocal", "rsqrt"))
# What multiplies what it is given with a gradient: 0 times Inf, where the output hides the Inf.
WEIGHED = frozenset(
    ("mm", "addmm", "bmm", "baddbmm", "mv", "dot", "convolution", "mkldnn_convolution", "linear", "mul",
     "mkldnn_rnn_layer", "lstm", "gru", "native_layer_norm", "native_group_norm", "native_batch_norm",
     "nativelayernorm", "nativegroupnorm", "nativebatchnorm")  # as graphs call them
)  # fmt: skip


def _is_mask(name: str, args: Any) -> bool:
    name = name.rstrip("_")
    if name in _SUMS:
        return any(isinstance(number, float) and not math.isfinite(number) for number in args)
    return name in _MASKS


def tensors(value: Any, depth: int = _DEPTH, trained: bool = False) -> Iterator[Any]:
    """The floating and complex tensors in tuples, lists, mappings, and those that an object holds itself.

    Detached, but where `trained` asks for them as they are.
    """
    import torch

    if isinstance(value, torch.Tensor):
        of_numbers = value.dtype.is_floating_point or value.dtype.is_complex
        if of_numbers and value.layout is torch.strided and value.device.type != "meta":
            yield value if trained else value.detach()
    elif depth > 0:
        for item in parts(value):
            yield from tensors(item, depth - 1, trained)


def parts(value: Any) -> list[Any]:
    """What a value is made of: items, or the tensors and mappings among the members of an object (a
    distribution, a graph of PyTorch Geometric's).
    """
    import torch

    if isinstance(value, Mapping):
        return list(value.values())
    if isinstance(value, (tuple, list)):
        return list(value)
    if isinstance(value, (torch.nn.Module, torch.Tensor, type)):
        return []
    members = getattr(value, "__dict__", {}).values()
    return [item for item in members if isinstance(item, (torch.Tensor, Mapping))]


class Made(NamedTuple):
    """An operation; or, with `given`, what was so before: ("input", type), ("weights", name)."""

    op: str = ""
    module: Any = None
    frame: Any = None
    infinite: Optional[Made] = None  # what made the infinity that became NaN
    given: Optional[tuple[str, str]] = None
    finite: bool = False  # what the operation was given
    only_inf: bool = False  # what was given holds no NaN
    derivative: Any = None  # the operation of the graph that it is the derivative of
    own: bool = False  # it was given the module's weights and buffers alone, or what is made of them
    learned: bool = True  # it was given the weights, or what is made of them
    order: int = 0  # of what was made so far
    bad: Any = None  # where the result is not finite
    given_to: tuple[Any, ...] = ()  # what the user's functions that run were given, innermost first
    nan: Any = None  # where it is NaN, of an operation that made both
    met: Optional[tuple[Made, Any]] = None  # who put an infinity there on purpose, and where it was given


class Flow(TorchDispatchMode):
    """Follows NaN and infinities by the storage that holds them."""

    def __init__(self) -> None:
        super().__init__()
        self.half = False  # something was float16
        self.weighed: Optional[Made] = None  # what was given, and is multiplied with a gradient
        self.hidden: Optional[Made] = None  # the same of what an operation made
        self.hidden_inf = False
        self._outside: Any = None  # the frame that runs the module: what called it is not of the module
        self._own: set[int] = set()  # storages of weights and buffers, and of what is made of them alone
        self._learned: set[int] = set()  # storages of weights, and of all that is made of them
        self._nan: dict[int, Made] = {}
        self._inf: dict[int, Made] = {}
        self._picked: dict[int, Made] = {}  # infinities that were made on purpose, and what took them out
        self._put: dict[int, Made] = {}  # infinities that were made on purpose, and what made them
        self._hiding: dict[int, Made] = {}  # finite numbers that were divided by an infinity: 0
        self._count = 0
        self._alive: list[Any] = []  # or another tensor would take the address of one that is gone
        self._given: list[tuple[list[Any], tuple[str, str]]] = []

    def __enter__(self) -> Flow:
        self._outside = sys._getframe(1)
        return super().__enter__()  # type: ignore[no-any-return]

    def __exit__(self, *error: Any) -> None:
        self._outside = None
        super().__exit__(*error)

    def names(self, given: list[Any], what: tuple[str, str]) -> None:
        """What goes in; told by its values, as copies of it go in."""
        self._given.append(([t for t in given if not bool(t.isfinite().all())], what))

    def owns(self, weights: Iterable[Any]) -> None:
        known = [_address(tensor) for tensor in tensors(list(weights))]
        self._own.update(known)
        self._learned.update(known)

    def learned(self, tensor: Any) -> None:
        """It was made of weights."""
        self._alive.append(tensor)
        self._learned.add(_address(tensor))

    def origin_of(self, output: Any) -> Optional[Made]:
        """What made the NaN, or else the Inf, in `output`."""
        made = list(tensors(output))
        for tensor in made:
            if bool(tensor.isnan().any()):
                origin = self._nan.get(_address(tensor)) or self._from_outside(tensor)
                if origin is not None:
                    return origin
        for tensor in made:
            if bool(tensor.isinf().any()):
                origin = self._inf.get(_address(tensor)) or self._from_outside(tensor)
                if origin is not None:
                    return origin
        picked = next(filter(None, (self._picked.get(_address(tensor)) for tensor in made)), None)
        return picked or next(filter(None, map(self._put_into, made)), None)

    def _put_into(self, tensor: Any) -> Optional[Made]:
        """Of one number alone, a loss, which no infinity is meant for."""
        is_loss = tensor.numel() == 1 and bool(tensor.isinf().all())
        return self._put.get(_address(tensor)) if is_loss else None

    def _from_outside(self, tensor: Any) -> Optional[Made]:
        for given, what in self._given:
            for known in given:
                same = known.shape == tensor.shape and known.dtype == tensor.dtype
                if _address(known) == _address(tensor) or (same and _are_equal(known, tensor)):
                    return Made(given=what, only_inf=not bool(known.isnan().any()))
        return None

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        del types
        given = list(tensors([args, kwargs]))
        had_nan = [t for t in given if bool(t.isnan().any())]
        had_inf = [t for t in given if bool(t.isinf().any())]
        nan_of, inf_of = self._first(self._nan, had_nan), self._first(self._inf, had_inf)
        output = func(*args, **(kwargs or {}))
        name = func._schema.name.split("::")[-1]
        if output is None and func._schema.is_mutable:  # `_foreach_addcdiv_`
            output = args[0]
        if name.startswith(("empty", "new_empty")):
            return output
        outside = next((made for made in (nan_of, inf_of) if made is not None and made.given), None)
        if name in WEIGHED:
            self.weighed = self.weighed or outside
            self.hidden = self.hidden or nan_of or inf_of
            self.hidden_inf |= self.hidden is not None and self.hidden is inf_of
        own = bool(given) and all(map(self._is_own, _all_tensors([args, kwargs])))
        learned = any(_address(tensor) in self._learned for tensor in given)
        for tensor in tensors(output):  # another one may have had its address
            (self._own.add if own else self._own.discard)(_address(tensor))
            (self._learned.add if learned else self._learned.discard)(_address(tensor))
        hidden = self._first(self._hiding, given)
        picked = self._first(self._picked, had_inf)
        if picked is None and had_inf and inf_of is None and name in _PICKS | _REDUCES:
            bad = next((~tensor.isfinite() for tensor in tensors(output)), None)
            picked = self._made(name, None, False, (own, learned), bad)
        if had_inf and inf_of is not None and name.rstrip("_") in _HIDING:
            for tensor in tensors(output):
                self._keep(self._hiding, tensor, inf_of)
        put = self._first(self._put, had_inf)
        numbers = [number for number in args if isinstance(number, float)]
        finite = not had_nan and not had_inf and all(map(math.isfinite, numbers))
        for tensor in tensors(output):
            self.half |= str(tensor.dtype) == "torch.float16"
            if bool(tensor.isnan().any()):
                if not had_nan:
                    # Inf that was given (data, weights) is told as what it is.
                    nan_of = (
                        inf_of
                        if inf_of is not None and inf_of.given
                        else self._made(
                            name,
                            inf_of or hidden or picked,
                            finite,
                            (own, learned),
                            tensor.isnan() if had_inf else ~tensor.isfinite(),
                        )
                    )
                    if nan_of.given is None and bool(tensor.isinf().any()):
                        nan_of = nan_of._replace(nan=tensor.isnan())
                    if put is not None and nan_of.given is None and nan_of.infinite is None:
                        nan_of = nan_of._replace(met=(put, had_inf[0].isinf()))
                if nan_of is not None:
                    self._keep(self._nan, tensor, nan_of)
            if bool(tensor.isinf().any()):
                if not had_inf and not _is_mask(name, args):
                    inf_of = self._made(name, hidden, finite, (own, learned), tensor.isinf())
                if inf_of is not None:
                    self._keep(self._inf, tensor, inf_of)
                elif picked is not None:
                    self._keep(self._picked, tensor, picked)
                is_put = _is_mask(name, args) and all(one.dim() == 0 for one in had_inf)
                if put is None and is_put and name not in _NUMBERS:
                    put = self._made(name, None, True, (own, learned), tensor.isinf())
                if put is not None:
                    self._keep(self._put, tensor, put)
        return output

    def _is_own(self, tensor: Any) -> bool:
        import torch

        is_dense = tensor.layout is torch.strided and tensor.device.type != "meta"
        return is_dense and _address(tensor) in self._own

    def _first(self, origins: dict[int, Made], given: list[Any]) -> Optional[Made]:
        """What came first of what made them."""
        known = (origins.get(_address(tensor)) or self._from_outside(tensor) for tensor in given)
        return min((made for made in known if made is not None), key=lambda made: made.order, default=None)

    def _made(
        self, name: str, infinite: Optional[Made], finite: bool, of_weights: tuple[bool, bool], bad: Any
    ) -> Made:
        self._count += 1
        *here, given = _here(self._outside)
        name, finite = _as_called(name, finite, here[1])
        node = _node_that_runs()  # of an `autograd.grad` inside the module
        return Made(name, *here, infinite, None, finite, False, node, *of_weights, self._count, bad, given)

    def _keep(self, origins: dict[int, Made], tensor: Any, made: Made) -> None:
        self._alive.append(tensor)
        origins[_address(tensor)] = made


def _as_called(name: str, finite: bool, frame: Any) -> tuple[str, bool]:
    """The operation, and whether it was given finite numbers: of a number that one of `_TAKEN_APART` puts
    there, that one."""
    if name not in _NUMBERS or frame is None:
        return name, finite
    text = frame["code"]
    if "column" in frame:
        text = text[frame["column"] - 1 : frame["end_column"] - 1]
    called = [one for one in _TAKEN_APART if re.search(rf"\b{one}\(", text)]
    return (called[0], True) if len(called) == 1 else (name, finite)


def _all_tensors(value: Any, depth: int = _DEPTH) -> Iterator[Any]:
    """Also of ids: what is read by them is no longer the weights' alone."""
    import torch

    if isinstance(value, torch.Tensor):
        yield value
    elif depth > 0 and isinstance(value, (Mapping, tuple, list)):
        for item in parts(value):
            yield from _all_tensors(item, depth - 1)


def _node_that_runs() -> Any:
    import torch

    running = getattr(torch._C, "_current_autograd_node", None)
    return None if running is None else running()


def _address(tensor: Any) -> int:
    return int(tensor.untyped_storage().data_ptr())


def _are_equal(one: Any, other: Any) -> bool:
    return bool(((one == other) | (one.isnan() & other.isnan())).all())


def _here(outside: Any) -> tuple[Any, Any, tuple[Any, ...]]:
    """The innermost module that is running, the user's line, both inside the frame `outside`, and what the
    user's functions in it were given. Where no line is the user's, that of the library which has the
    module."""
    import torch

    module = origin = library = None
    given: list[Any] = []
    frame = sys._getframe(3)
    while frame is not None and frame is not outside:
        code = frame.f_code
        if origin is None and places.is_user(code) and not places.is_own(code.co_filename):
            origin = frames.make_frame((code, frame.f_lasti))
        elif library is None and not places.is_own(code.co_filename) and not _is_torch(code.co_filename):
            library = frames.make_frame((code, frame.f_lasti))
        if places.is_user(code):
            names = code.co_varnames if code.co_name in _LOOPS else code.co_varnames[: code.co_argcount]
            given += [frame.f_locals[name] for name in names if name in frame.f_locals]
        if module is None and code.co_name == "forward":
            candidate = frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None
            module = candidate if isinstance(candidate, torch.nn.Module) else None
        frame = frame.f_back  # type: ignore[assignment]
    return module, origin or library, tuple(given[:_MAX_GIVEN])


def _is_torch(filename: str) -> bool:
    import torch

    return filename.startswith((os.path.dirname(torch.__file__) + os.sep, "<frozen", "<string>"))
