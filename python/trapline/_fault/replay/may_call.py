"""What a statement that runs again calls: a function itself, or what of it leaves nothing behind, or none."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import types
from typing import Any, Callable, Optional

from trapline._fault.program import owners, texts
from trapline._fault.replay.rewrite import CannotRun

# Of these packages the functions, methods and classes run as they are: they compute, and give what they made.
_COMPUTE = (
    "torch",
    "numpy",
    "math",
    "cmath",
    "operator",
    "_operator",
    "itertools",
    "functools",
    "_functools",
)
_COMPUTE += ("collections", "_collections", "copy", "statistics", "typing", "einops", "scipy", "enum", "abc")
# Libraries of functions: solvers of differential equations, optimal transport, sparse softmaxes, geometry.
_COMPUTE += ("torchdiffeq", "torchsde", "torchcde", "geomloss", "entmax", "kornia", "torch_scatter", "roma")
_COMPUTE += ("ot", "torchsurv", "auraloss", "pytorch_msssim")
_COMPUTE += ("random", "numbers", "fractions", "string", "re", "contextlib", "_abc", "opt_einsum")
# What belongs to them and does more.
_ACTS = (
    *("torch.optim", "torch.utils.data", "torch.distributed", "torch.hub", "torch.serialization"),
    *("torch.utils.tensorboard", "torch.multiprocessing", "torch.profiler", "torch.onnx", "torch.jit._trace"),
    "numpy.testing",
)
_DISTRIBUTIONS = "torch.distributions"
_NOT = {
    *("open", "input", "exec", "eval", "compile", "setattr", "delattr", "next", "__import__", "globals"),
    *("vars", "locals", "breakpoint", "exit", "quit", "backward", "save", "load", "manual_seed", "seed"),
    *("set_rng_state", "set_state", "setstate", "set_default_dtype", "step", "zero_grad", "load_state_dict"),
    *("register_hook", "register_forward_hook", "register_buffer", "register_parameter", "add_module", "to_"),
    *("share_memory_", "savetxt", "tofile", "memmap", "put", "copyto", "shuffle", "set_printoptions"),
    *("register_module", "train", "eval", "requires_grad_", "apply_", "map_"),
}
_FILLS = {
    *("append", "extend", "insert", "pop", "remove", "clear", "update", "setdefault", "add", "discard"),
    *("popitem", "sort", "reverse", "appendleft", "popleft", "write", "writelines", "send", "throw", "close"),
    *("rotate", "move_to_end", "fill", "resize", "itemset", "setflags", "__setitem__", "__delitem__"),
}
_BUILTIN = (types.BuiltinFunctionType, types.MethodWrapperType, types.WrapperDescriptorType)
_BUILTIN += (types.MethodDescriptorType, types.ClassMethodDescriptorType)


class Own:
    """Lists and mappings that were made in this run."""

    def __init__(self) -> None:
        self._made: dict[int, Any] = {}

    def takes(self, container: Any) -> Any:
        self._made[id(container)] = container
        return container

    def has(self, container: Any) -> bool:
        return id(container) in self._made

    def make(self, kind: type, *args: Any, **kwargs: Any) -> Any:
        return self.takes(kind(*args, **kwargs))


class Callables:
    """`rewritten`: of a function of Python its quiet version; `module`: of a module what calls it; `own`: the
    containers that were made here, and may be written into."""

    def __init__(self, rewritten: Callable[[Any], Any], module: Callable[[Any], Any], own: Own) -> None:
        self._rewritten, self._module, self._own = rewritten, module, own

    def of(self, value: Any) -> Any:
        name = getattr(value, "__name__", "")
        if name == "print" and isinstance(value, types.BuiltinFunctionType):
            return _nothing
        if isinstance(value, type):
            return self._class(value)
        if owners.is_module(value):
            return self._module(value)
        if isinstance(value, functools.partial):
            return functools.partial(self.of(value.func), *value.args, **value.keywords)
        # A tensor is made here, or a copy; a weight is the program's own.
        is_ours = name == "requires_grad_" and _is_plain_tensor(getattr(value, "__self__", None))
        if name in _NOT and not is_ours:
            raise CannotRun(name)
        if isinstance(value, types.FunctionType):
            return self._function(value)
        if isinstance(value, types.MethodType):
            return self._method(value)
        if isinstance(value, _BUILTIN):
            return self._builtin(value, name)
        if computes(type(value).__module__):  # ufuncs, operators of torch.ops, scripted functions
            return value
        called = _member(type(value), "__call__")
        if isinstance(called, types.FunctionType):
            return types.MethodType(self._function(called), value)
        raise CannotRun(name or type(value).__name__)

    def _function(self, function: Any) -> Any:
        inner = getattr(function, "_torchdynamo_orig_callable", None) or function
        if computes(getattr(inner, "__module__", None)) and not hasattr(inner, "__wrapped__"):
            return inner
        wrapped = inspect.unwrap(inner)
        if wrapped is not inner and computes_file(inner):  # torch.no_grad() and the like, around the user's
            inner = wrapped
        return inner if computes(getattr(inner, "__module__", None)) else self._rewritten(inner)

    def _method(self, method: Any) -> Any:
        function, owner = method.__func__, method.__self__
        if not isinstance(function, types.FunctionType):
            return self._builtin(function, getattr(function, "__name__", ""))
        made = self._function(function)
        if owners.is_module(owner):
            self._module(owner)  # what it holds is put back
        return method if made is function else types.MethodType(made, owner)

    def _builtin(self, value: Any, name: str) -> Any:
        owner = getattr(value, "__self__", None)
        of_container = isinstance(owner, (list, dict, set, bytearray)) or type(owner).__module__ != "torch"
        is_own = self._own.has(owner)
        if (
            name in _FILLS
            and not is_own
            and of_container
            and owner is not None
            and not isinstance(owner, types.ModuleType)
        ):
            raise CannotRun(name)
        module = getattr(value, "__module__", None)
        if module is None or module == "builtins":  # methods have none
            kind = type(owner).__module__
            if owner is None or isinstance(owner, types.ModuleType) or kind == "builtins" or computes(kind):
                return value
            if isinstance(owner, (dict, list, tuple, set, str, bytes)) or _is_tensor(owner):
                return value
            raise CannotRun(name)
        if computes(module) or module.startswith("torch"):
            return value
        raise CannotRun(name)

    def _class(self, kind: type) -> Any:
        if issubclass(kind, (list, dict, set)):
            return functools.partial(self._own.make, kind)
        known = kind.__module__ == "builtins" or computes(kind.__module__)
        plain = dataclasses.is_dataclass(kind) or issubclass(kind, (tuple, BaseException))
        plain = plain or any(base.__module__.startswith(_DISTRIBUTIONS) for base in kind.__mro__)
        if known or plain:
            return kind
        if _is_plain(kind):
            return functools.partial(self._made, kind)
        raise CannotRun(kind.__name__)

    def _made(self, kind: type, *args: Any, **kwargs: Any) -> Any:
        """An object of a class of the program's, as its constructor makes it."""
        one = self._own.takes(object.__new__(kind))
        start = _member(kind, "__init__")
        if isinstance(start, types.FunctionType):
            types.MethodType(self._function(start), one)(*args, **kwargs)
        return one


def _is_plain(kind: type) -> bool:
    """A class of the program's that nothing of another kind is behind: no module, no thread, no file."""
    bases = [base for base in kind.__mro__ if base is not object]
    return (
        type(kind) is type
        and all(texts.is_users_class(base) for base in bases)
        and not any(name in vars(base) for base in bases for name in ("__new__", "__del__", "__setattr__"))
    )


def _member(kind: type, name: str) -> Any:
    return next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), None)


def computes(module: Optional[str]) -> bool:
    if not isinstance(module, str):
        return False
    inside = any(module == name or module.startswith(name + ".") for name in _COMPUTE)
    return inside and not any(module == name or module.startswith(name + ".") for name in _ACTS)


def computes_file(function: Any) -> bool:
    return computes(function.__globals__.get("__name__"))


def _is_tensor(value: Any) -> bool:
    import torch

    return isinstance(value, torch.Tensor)


def _is_plain_tensor(value: Any) -> bool:
    import torch

    return type(value) is torch.Tensor


def _nothing(*_args: Any, **_kwargs: Any) -> None:
    return None
