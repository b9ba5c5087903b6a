"""One run of statements of the program, after which all is as it was.

What they are given is copied; modules are put back; nothing is written into a tensor that was not made here.
"""

from __future__ import annotations

import collections
import copy
import functools
import random
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from types import FunctionType, MethodType
from typing import Any, Callable, Optional

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from trapline._fault.data import fetched
from trapline._fault.data.without import Without
from trapline._fault.program.owners import is_module
from trapline._fault.replay import rewind, rewrite
from trapline._fault.replay.may_call import Callables, Own, computes
from trapline._fault.replay.rewrite import CannotRun
from trapline._library import aside

_SECONDS = 4.0
_MAX_COPIED = 1 << 26  # elements
_DEPTH = 4
_MAX_ENTRIES = 1 << 16  # of all lists and mappings that may be written into
CONTAINERS = (list, dict, set, collections.defaultdict, collections.OrderedDict, collections.Counter)
CONTAINERS += (collections.deque,)


class Session:
    """`around_module(module, stack)`: enters what puts a module back, and gives what is to be called.
    `is_learned` is told of copies of what was made of weights.

    `without`: a row that is left out of whatever has one for each sample. `drew`: what an earlier
    run drew (:attr:`drew`): this one draws the numbers that the program did.
    """

    def __init__(
        self,
        around_module: Callable[[Any, ExitStack], Any],
        is_learned: Callable[[Any], None],
        without: Optional[Without] = None,
        trained: bool = False,
        drew: Optional[dict[int, Any]] = None,
    ) -> None:
        self._around_module, self._is_learned = around_module, is_learned
        self._without, self._trained = without, trained
        self.own = Own()
        self._callables = Callables(self._rewritten, self._module, self.own)
        self._functions: dict[Any, FunctionType] = {}
        self._modules: dict[int, Any] = {}
        self._overlay: dict[tuple[int, str], Any] = {}
        self._containers: dict[int, tuple[Any, Any]] = {}  # (what was copied, its copy)
        self._copied: dict[int, tuple[Any, Any]] = {}  # (what was copied, its copy)
        self._elements = self._entries = 0
        self._wound_back = drew or {}
        self.drew: dict[int, Any] = {}  # by generator, 0 for PyTorch's own: its state before the program drew
        self._stack = ExitStack()
        self.helpers = {
            rewrite.CALL: self._call,
            rewrite.WITH: self._with,
            rewrite.TICK: self._tick,
            rewrite.SET: self._set,
            rewrite.FILL: self._fill,
            rewrite.GET: self._get,
            rewrite.KEEP: self._keep,
        }

    @contextmanager
    def running(self, mode: Any) -> Iterator[None]:
        """`mode`: a mode that sees the operations, or None."""
        self._ends = time.monotonic() + _SECONDS
        self._random = fetched.RandomState()
        self._writes = Writes()
        seen = mode if mode is not None else nullcontext()
        gradients = torch.set_grad_enabled(self._trained)
        with aside.running(), self._random, self._stack, gradients:
            before = torch.get_rng_state()
            if 0 in self._wound_back:
                torch.set_rng_state(self._wound_back[0])
            with self._writes, seen:
                yield
            self._looks_what_was_drawn(before)

    def _looks_what_was_drawn(self, before: Any) -> None:
        drawn = {0: (before, torch.get_rng_state())}
        for known, made in self._copied.values():
            if isinstance(known, torch.Generator) and known.device.type == "cpu":
                drawn[id(known)] = (known.get_state(), made.get_state())
        states = {key: rewind.rewound(*pair) for key, pair in drawn.items()}
        self.drew = {key: state for key, state in states.items() if state is not None}

    def run(self, node: Any, code: Any, owns: set[str], variables: dict[str, Any]) -> dict[str, Any]:
        """Runs a statement of a function; gives its variables."""
        exec(rewrite.statement(node, code, owns), variables)
        return variables

    # What the rewritten text calls -------------------------------------------------------------

    def _call(self, value: Any) -> Any:
        self._tick()
        made = self._callables.of(value)
        its_own = is_module(value) or _is_made_here(made)
        return made if its_own else functools.partial(self._given, made)

    def _given(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        """A library's function, which may call what it is given: `checkpoint(block, x)`, `map(f, rows)`."""
        quiet = {name: self._quiet(value) for name, value in kwargs.items()}
        return function(*map(self._quiet, args), **quiet)

    def _quiet(self, value: Any) -> Any:
        if is_module(value):
            self._module(value)  # what it holds is put back
        is_function = isinstance(value, (FunctionType, MethodType, functools.partial))
        return self._callables.of(value) if is_function and not _is_made_here(value) else value

    def _tick(self) -> None:
        if time.monotonic() > self._ends:
            raise CannotRun("it takes too long")

    def _with(self, make: Callable[[], Any]) -> Any:
        try:
            context = make()
        except CannotRun:  # a name for what is below, a lock, a timer
            return nullcontext()
        kind = type(context).__module__
        known = computes(kind) and not kind.startswith(("torch.profiler", "torch.autograd.profiler"))
        return context if known and kind != "contextlib" else nullcontext(context)

    def _set(self, holder: Any, key: Any, value: Any, own: bool) -> None:
        is_own = type(holder) in CONTAINERS and self.own.has(holder)
        if not (own or is_own or isinstance(holder, torch.Tensor)):
            raise CannotRun("it writes into what it was given")
        holder[key] = value

    def _fill(self, find: Callable[[], Any], name: str, give: Callable[[], Any]) -> None:
        """`self.losses.append(loss)`: into a copy, or nowhere."""
        try:
            holder = find()
            if type(holder) in CONTAINERS and self.own.has(holder):
                getattr(holder, name)(*give())
        except CannotRun:  # what nobody takes is left out
            return

    def _get(self, holder: Any, name: str) -> Any:
        kept = self._overlay.get((id(holder), name))
        value = kept[1] if kept is not None else getattr(holder, name)
        if type(value) in CONTAINERS:
            return self._container(value)
        if is_generator(value) or is_used_up(value):
            return self.copy(value)
        # What the program computed belongs to its graph.
        is_its_own = isinstance(value, torch.Tensor) and value.grad_fn is not None
        return self.copy(value) if is_its_own and not self._writes.has_made(value) else value

    def _container(self, value: Any) -> Any:
        """A copy, the same one each time, which may be written into."""
        known = self._containers.get(id(value))
        if known is not None or self.own.has(value):
            return value if known is None else known[1]
        self._entries += len(value)
        if self._entries > _MAX_ENTRIES:
            return value
        made = self.own.takes(copy.copy(value))
        self._containers[id(value)] = (value, made)  # it may be in itself
        if isinstance(made, dict):
            made.update({key: self._item(item) for key, item in value.items()})
        elif isinstance(made, (list, collections.deque)):
            for at, item in enumerate(value):
                made[at] = self._item(item)
        return made

    def _item(self, item: Any) -> Any:
        if type(item) in CONTAINERS:
            return self._container(item)
        of_program = isinstance(item, torch.Tensor) and item.grad_fn is not None
        if not of_program or self._writes.has_made(item):
            return item
        try:
            return self.copy(item)
        except CannotRun:  # of a device: nobody may ask for it
            return item

    def _keep(self, holder: Any, name: str, value: Any) -> None:
        if self.own.has(holder):  # an object that was made here
            setattr(holder, name, value)
            return
        self._overlay[(id(holder), name)] = (holder, value)

    def _rewritten(self, function: Any) -> FunctionType:
        known = self._functions.get(function)
        if known is None:
            known = self._functions[function] = rewrite.again(function, self.helpers, self._outside)
        return known

    def _outside(self, value: Any) -> Any:
        """What a function reads that is neither its own nor given to it."""
        if type(value) in CONTAINERS:
            return self._container(value)
        return self.copy(value) if is_generator(value) or is_used_up(value) else value

    def _generator(self, value: Any) -> Any:
        """Draws from what is drawn from next, and leaves that as it is."""
        known = self._copied.get(id(value))
        if known is None:
            if isinstance(value, torch.Generator):
                state = self._wound_back.get(id(value), value.get_state())
                made = torch.Generator(value.device).set_state(state)
            else:
                made = copy.deepcopy(value)
            known = self._copied[id(value)] = (value, made)
        return known[1]

    def _module(self, module: Any) -> Any:
        known = self._modules.get(id(module))
        if known is None:
            if any(p.device.type != "cpu" for p in module.parameters()):
                raise CannotRun("a device")
            known = self._modules[id(module)] = self._around_module(module, self._stack)
            self._writes.allows([*module.buffers()])
        return known

    # What goes in ------------------------------------------------------------------------------

    def copy(self, value: Any, depth: int = _DEPTH) -> Any:
        """A value of the program's, as the statements are given it."""
        if is_used_up(value):
            raise CannotRun("what it reads would be used up")
        if is_generator(value):
            return self._generator(value)
        if type(value) in (torch.Tensor, torch.nn.Parameter):
            return self._tensor(value)
        if depth > 0 and type(value) is dict:
            return self.own.takes({key: self.copy(item, depth - 1) for key, item in value.items()})
        if depth > 0 and type(value) in (list, tuple):
            cut = self._without if type(value) is list else None
            items = value if cut is None else cut.items(value)
            return self.own.takes(type(value)(self.copy(item, depth - 1) for item in items))
        return value

    def _tensor(self, value: Any) -> Any:
        if value.device.type != "cpu" or value.layout is not torch.strided:
            raise CannotRun("a device, or a sparse tensor")
        if isinstance(value, torch.nn.Parameter):
            return value
        known = self._copied.get(id(value))
        if known is not None:
            return known[1]
        self._elements += value.numel()
        if self._elements > _MAX_COPIED:
            raise CannotRun("too large")
        made = value.detach().clone()
        if self._without is not None:
            made = self._without.cut(made)
        made = made.requires_grad_(self._trained and value.requires_grad)
        if value.requires_grad:
            self._is_learned(made)
        self._writes.allows([made])
        self._copied[id(value)] = (value, made)
        return made


def is_generator(value: Any) -> bool:
    """Of random numbers, with a state of its own."""
    kind = type(value)
    of_numpy = kind.__module__.startswith("numpy.random") and kind.__name__ in ("Generator", "RandomState")
    return isinstance(value, (torch.Generator, random.Random)) or of_numpy


def is_used_up(value: Any) -> bool:
    """Whoever reads of it takes from it: an iterator, a loader."""
    if isinstance(value, torch.Tensor):
        return False
    return hasattr(type(value), "__next__") or type(value).__module__.startswith(
        "torch.utils.data.dataloader"
    )


class Writes(TorchDispatchMode):
    """Nothing is written into what was there before."""

    def __init__(self) -> None:
        super().__init__()
        self._fresh = {0}  # of tensors without elements
        self._alive: list[Any] = []

    def allows(self, tensors: Any) -> None:
        for tensor in tensors:
            self._alive.append(tensor)
            self._fresh.add(_storage(tensor))

    def has_made(self, tensor: Any) -> bool:
        return tensor.layout is not torch.strided or _storage(tensor) in self._fresh

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        del types
        schema = func._schema
        if schema.is_mutable:
            for at, argument in enumerate(schema.arguments):
                if argument.alias_info is None or not argument.alias_info.is_write:
                    continue
                given = args[at] if at < len(args) else (kwargs or {}).get(argument.name)
                for tensor in given if isinstance(given, (list, tuple)) else [given]:
                    if isinstance(tensor, torch.Tensor) and _storage(tensor) not in self._fresh:
                        raise CannotRun("it writes into a tensor of the program's")
        out = func(*args, **(kwargs or {}))
        if not schema.is_mutable:
            own = {_storage(a) for a in _flat([args, kwargs])}
            for tensor in _flat(out):
                if _storage(tensor) not in own:  # else it is a view of what was given
                    self.allows([tensor])
        return out


def _flat(value: Any, depth: int = 3) -> Iterator[Any]:
    if isinstance(value, torch.Tensor):
        if value.layout is torch.strided:
            yield value
    elif depth > 0 and isinstance(value, (list, tuple, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _flat(item, depth - 1)


def _storage(tensor: Any) -> int:
    return int(tensor.untyped_storage().data_ptr())


def _is_made_here(function: Any) -> bool:
    """It asks for what it calls already."""
    return rewrite.CALL in getattr(getattr(function, "__func__", function), "__globals__", ())
