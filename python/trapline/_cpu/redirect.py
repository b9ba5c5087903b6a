"""``trapline run --cpu``: a script that hard-codes ``"cuda"`` runs on the CPU, unmodified, GPU or not.

Where it can be had, a CUDA device made of the CPU is put into torch (see `backend`), and mistakes of
devices show. What follows is the other way, for builds of torch that it does not fit and machines without a
compiler: there is no such device, and every one that a script names is the CPU.

Mechanism: the places where Python code names a device are replaced once, after ``import torch``; nothing
is installed per thread or per operation, so threads, DataLoader workers and child processes behave alike
and tensor arithmetic costs nothing more. Replaced are: ``torch.device`` and ``torch.Generator`` (by
classes whose instances are the real ones, so ``isinstance`` keeps working), the factory functions'
``device=`` and ``pin_memory=``, ``Tensor.to/cuda/pin_memory/type/new_*``, ``Module.to/cuda/to_empty``,
``torch.load(map_location=)``, autocast and GradScaler, ``set_default_device``, DataLoader's
``pin_memory``, DataParallel, DistributedDataParallel, the backend of ``init_process_group`` (NCCL
becomes gloo), and ``torch.cuda`` (see `cuda`), which claims one device.

What cannot be faithful:
- every tensor really is on the CPU: ``x.is_cuda`` is False, ``x.device.type`` and
  ``torch.device("cuda").type`` are ``"cpu"``; a program that asserts the opposite, or chooses another
  code path by them, sees the CPU;
- mistakes of mixing devices cannot show: all devices are one;
- Triton kernels, custom CUDA operators, ``load_inline`` of CUDA sources, CUDA graphs, IPC handles and
  ``torch._C._cuda_*`` functions do not exist;
- memory figures are 0, timings of CUDA events are the host's, streams do nothing;
- random numbers come from the CPU's generator; autocast to float16 computes in bfloat16;
- gloo lacks ``ReduceOp.AVG`` and a few collectives of NCCL.
"""

from __future__ import annotations

import functools
import os
from typing import Any, Callable

from trapline._cpu import comm
from trapline._library import options
from trapline._library.say import say

_replaced: list[tuple[Any, str, Any, bool]] = []
_FACTORIES = (
    "arange",
    "as_tensor",
    "asarray",
    "bartlett_window",
    "blackman_window",
    "empty",
    "empty_like",
    "empty_permuted",
    "empty_strided",
    "eye",
    "from_file",
    "full",
    "full_like",
    "hamming_window",
    "hann_window",
    "kaiser_window",
    "linspace",
    "logspace",
    "normal",
    "ones",
    "ones_like",
    "rand",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "randperm",
    "range",
    "scalar_tensor",
    "sparse_bsc_tensor",
    "sparse_bsr_tensor",
    "sparse_compressed_tensor",
    "sparse_coo_tensor",
    "sparse_csc_tensor",
    "sparse_csr_tensor",
    "tensor",
    "tril_indices",
    "triu_indices",
    "zeros",
    "zeros_like",
)
_NEW = ("new_empty", "new_empty_strided", "new_full", "new_ones", "new_tensor", "new_zeros")


def install() -> None:
    """Makes this process take the CPU for every CUDA device."""
    if _replaced:
        return
    import torch

    from trapline._cpu import backend

    if backend.device is not None:
        from trapline._cpu import bindings

        bindings.complete(backend.device)
        return
    _say_what_is_not_seen(backend.notes)
    os.environ["CUDA_VISIBLE_DEVICES"] = ""  # a GPU that exists is not touched, here and in children
    from trapline._cpu import cuda

    _devices(torch)
    _tensors(torch)
    _modules(torch)
    _autocast(torch)
    _loading(torch)
    _distributed(torch)
    cuda.install(torch, replace)


def _say_what_is_not_seen(notes: list[str]) -> None:
    """Once for a run, not in each of its processes."""
    if notes and options.say_once_for_cpu():
        for note in notes:
            say(f"--cpu: {note}")


def uninstall() -> None:
    """Puts everything back, in the opposite order."""
    while _replaced:
        owner, name, original, existed = _replaced.pop()
        if existed:
            setattr(owner, name, original)
        else:
            delattr(owner, name)


def replace(owner: Any, name: str, value: Any) -> None:
    """Sets an attribute of a torch module or class, remembering what was there."""
    # What a class inherits must be deleted on the way back, not copied down.
    existed = name in vars(owner)
    _replaced.append((owner, name, vars(owner).get(name), existed))
    setattr(owner, name, value)


def on_cpu(device: Any) -> Any:
    """A device argument with every CUDA device (and every bare number) turned into the CPU."""
    if isinstance(device, str):
        return "cpu" if device == "cuda" or device.startswith("cuda:") else device
    if isinstance(device, int) and not isinstance(device, bool):
        return "cpu"
    return "cpu" if getattr(device, "type", None) == "cuda" else device


def _wrap(
    owner: Any, name: str, change: Callable[[tuple, dict[str, Any]], tuple[tuple, dict[str, Any]]]
) -> Any:
    """Replaces a function or method by one that changes its arguments first."""
    original = getattr(owner, name, None)
    if original is None:  # this torch has none
        return None

    @functools.wraps(original)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = change(args, kwargs)
        return original(*args, **kwargs)

    replace(owner, name, wrapper)
    return wrapper


def _keywords(args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
    """For functions that take a device by keyword only."""
    if "device" in kwargs:
        kwargs["device"] = on_cpu(kwargs["device"])
    if kwargs.get("pin_memory"):
        kwargs["pin_memory"] = False
    return args, kwargs


def _first(position: int) -> Callable[[tuple, dict[str, Any]], tuple[tuple, dict[str, Any]]]:
    """For functions whose argument at `position` may be a device."""

    def change(args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
        if len(args) > position:
            args = (*args[:position], on_cpu(args[position]), *args[position + 1 :])
        return _keywords(args, kwargs)

    return change


def _devices(torch: Any) -> None:
    replace(torch, "device", _stand_in(torch.device, "device", _make_device))
    replace(torch, "Generator", _stand_in(torch.Generator, "Generator", _make_generator))
    _wrap(torch, "set_default_device", _first(0))

    def tensor_type(args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
        return tuple(_type_on_cpu(arg) for arg in args), {
            key: _type_on_cpu(arg) for key, arg in kwargs.items()
        }

    _wrap(torch, "set_default_tensor_type", tensor_type)
    _wrap(torch.Tensor, "type", tensor_type)
    for name in ("Float", "Double", "Half", "BFloat16", "Long", "Int", "Short", "Char", "Byte", "Bool"):
        if hasattr(torch.cuda, f"{name}Tensor"):
            replace(torch.cuda, f"{name}Tensor", getattr(torch, f"{name}Tensor"))


def _type_on_cpu(kind: Any) -> Any:
    return kind.replace("torch.cuda.", "torch.") if isinstance(kind, str) else kind


def _stand_in(real: Any, name: str, make: Callable[..., Any]) -> Any:
    """A class whose calls return instances of `real`, and whose instances those are."""

    class Meta(type):
        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            return make(real, *args, **kwargs)

        def __instancecheck__(cls, instance: Any) -> bool:
            return isinstance(instance, real)

        def __subclasscheck__(cls, subclass: Any) -> bool:
            return issubclass(subclass, real)

        def __eq__(cls, other: Any) -> bool:  # type(x) == torch.device
            return other is cls or other is real

        def __hash__(cls) -> int:
            return hash(real)

    return Meta(name, (), {"__doc__": real.__doc__, "__module__": "torch", "__slots__": ()})


def _make_device(real: Any, *args: Any, **kwargs: Any) -> Any:
    kind = args[0] if args else kwargs.get("type", kwargs.get("device"))
    if on_cpu(kind) is not kind:
        return real("cpu")
    return real(*args, **kwargs)


def _make_generator(real: Any, *args: Any, **kwargs: Any) -> Any:
    args, kwargs = _first(0)(args, kwargs)
    return real(*args, **kwargs)


def _tensors(torch: Any) -> None:
    for name in _FACTORIES:
        original = getattr(torch, name, None)
        wrapper = _wrap(torch, name, _keywords)
        _keep_scriptable(torch, original, wrapper)
    for name in ("fftfreq", "rfftfreq"):
        _wrap(torch.fft, name, _keywords)
    for name in _NEW:
        _wrap(torch.Tensor, name, _keywords)
    _wrap(torch.Tensor, "to", _first(1))
    replace(torch.Tensor, "cuda", _copy_or_self)
    replace(torch.Tensor, "pin_memory", lambda self, device=None: self)
    replace(torch.Tensor, "record_stream", lambda self, stream: None)
    for storage in ("UntypedStorage", "TypedStorage"):
        if hasattr(torch, storage):
            replace(getattr(torch, storage), "cuda", lambda self, *args, **kwargs: self)
            replace(getattr(torch, storage), "pin_memory", lambda self, *args, **kwargs: self)


def _copy_or_self(
    self: Any, device: Any = None, non_blocking: bool = False, memory_format: Any = None
) -> Any:
    """Tensor.cuda: on the CPU already."""
    return self if memory_format is None else self.contiguous(memory_format=memory_format)


def _keep_scriptable(torch: Any, original: Any, wrapper: Any) -> None:
    """torch.jit.script knows built-in functions by identity."""
    try:
        table = torch.jit._builtins._get_builtin_table()
        if wrapper is not None and id(original) in table:
            table[id(wrapper)] = table[id(original)]
    except AttributeError:
        pass


def _modules(torch: Any) -> None:
    module = torch.nn.Module
    _wrap(module, "to", _first(1))
    _wrap(module, "to_empty", _first(1))
    replace(module, "cuda", lambda self, device=None: self)
    original = torch.nn.DataParallel.__init__

    @functools.wraps(original)
    def data_parallel(
        self: Any, wrapped: Any, device_ids: Any = None, output_device: Any = None, dim: int = 0
    ) -> None:
        original(self, wrapped, [0], 0, dim)
        self.device_ids = []  # forward() then calls the module itself

    replace(torch.nn.DataParallel, "__init__", data_parallel)


def _autocast(torch: Any) -> None:
    def device_type(args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
        kind = args[1] if len(args) > 1 else kwargs.get("device_type")
        if kind == "cuda":
            args = (args[0], "cpu", *args[2:])
            kwargs.pop("device_type", None)
            # CUDA's default is float16, for which many CPUs have no recurrent kernels.
            if len(args) > 2 and args[2] in (None, torch.float16):
                args = (args[0], args[1], torch.bfloat16, *args[3:])
            elif len(args) < 3 and kwargs.get("dtype") in (None, torch.float16):
                kwargs["dtype"] = torch.bfloat16
        return args, kwargs

    _wrap(torch.amp.autocast_mode.autocast, "__init__", device_type)
    scaler = getattr(getattr(torch.amp, "grad_scaler", None), "GradScaler", None)
    if scaler is not None:
        _wrap(scaler, "__init__", _scaler_device)
    for name in ("is_autocast_enabled", "get_autocast_dtype", "set_autocast_enabled", "set_autocast_dtype"):
        _wrap(torch, name, _first(0))


def _scaler_device(args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
    if len(args) < 2:
        kwargs["device"] = on_cpu(kwargs.get("device", "cuda"))
        return args, kwargs
    return (args[0], on_cpu(args[1]), *args[2:]), kwargs


def _loading(torch: Any) -> None:
    def location(args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
        given = args[1] if len(args) > 1 else kwargs.get("map_location")
        wanted = "cpu" if given is None else on_cpu(given)
        if isinstance(given, dict):
            wanted = {source: on_cpu(goal) for source, goal in given.items()}
        if len(args) > 1:
            return (args[0], wanted, *args[2:]), kwargs
        kwargs["map_location"] = wanted
        return args, kwargs

    _wrap(torch, "load", location)
    loader = torch.utils.data.DataLoader
    original = loader.__init__

    @functools.wraps(original)
    def data_loader(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        self.pin_memory = False

    replace(loader, "__init__", data_loader)


def _distributed(torch: Any) -> None:
    if not torch.distributed.is_available():
        return

    def backend(args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
        kwargs.pop("device_id", None)
        if args:
            return (comm.gloo(args[0]), *args[1:]), kwargs
        kwargs["backend"] = comm.gloo(kwargs.get("backend"))
        return args, kwargs

    def group_backend(args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
        if kwargs.get("backend"):
            kwargs["backend"] = comm.gloo(kwargs["backend"])
        return args, kwargs

    for module in (torch.distributed, torch.distributed.distributed_c10d):
        _wrap(module, "init_process_group", backend)
        _wrap(module, "new_group", group_backend)

    def no_device_ids(args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
        kwargs.pop("device_ids", None)
        kwargs.pop("output_device", None)
        return (*args[:2], *(None for _ in args[2:4]), *args[4:]), kwargs

    _wrap(torch.nn.parallel.DistributedDataParallel, "__init__", no_device_ids)
