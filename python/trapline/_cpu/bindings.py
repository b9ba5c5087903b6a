"""The functions and classes of ``torch._C`` that ``torch.cuda`` is made of, for the device of `backend`.

They are put there before ``torch.cuda`` is imported, which then takes them for those of a CUDA build: its
Python code runs as it is. What a script can ask of a GPU and this device has not, says so by name.
"""

from __future__ import annotations

import atexit
import functools
import glob
import itertools
import os
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from trapline._cpu import comm, settings
from trapline._cpu.settings import absent, constant, nothing

if TYPE_CHECKING:
    from types import ModuleType
    from typing import Callable

_CUDA = 1  # c10::DeviceType::CUDA


def install(device: ModuleType) -> None:
    """Before ``torch.cuda`` is imported, while ``torch._C`` is."""
    import torch

    for name, value in (
        _devices(device)
        | _memory(device)
        | _streams(device)
        | _graphs(device)
        | settings.functions()
        | comm.functions()
    ).items():
        setattr(torch._C, name, value)
    torch._C._cudart = _runtime(device)
    torch._C._has_cuda = True


def complete(device: ModuleType) -> None:
    """After torch is imported: what is decided by the build of torch and not by what it finds."""
    import torch

    torch.cuda._device_count_nvml = lambda: -1
    torch.cuda._get_device_properties = settings.properties
    torch.cuda.default_generators = tuple(
        device.default_generator(index) for index in range(device.device_count())
    )
    torch.cuda.random._lazy_call = _seed_at_once(torch.cuda._lazy_call)
    torch.cuda.nccl.is_available = constant(False)  # without a warning: copies between devices do
    torch.backends.cudnn.is_acceptable = constant(False)  # likewise
    comm.use_gloo(torch)
    _keep_threads()
    _formulas_of_the_cpu()
    _compile_without_kernels(torch)
    _storages(torch, device)
    _tensor_types(torch)


def _seed_at_once(later: Callable[..., None]) -> Callable[..., None]:
    """A seed is not put off until CUDA is used: the generator is the CPU's and has drawn numbers by then."""

    def call(function: Callable[[], None], **kwargs: Any) -> None:
        if kwargs.get("seed") or kwargs.get("seed_all"):
            function()
        else:
            later(function, **kwargs)

    return call


def _devices(device: ModuleType) -> dict[str, Any]:
    initialized_in: list[int] = []

    def init() -> None:
        initialized_in[:] = [os.getpid()]
        device.watch_forks()

    def in_bad_fork() -> bool:
        return bool(initialized_in) and initialized_in[0] != os.getpid()

    def exchange(index: int) -> int:
        return -1 if index < 0 else device.exchange_device(index)

    def maybe_exchange(index: int) -> int:  # another function: Dynamo tells them apart by identity
        return exchange(index)

    def synchronize(*args: Any) -> None:
        device.synchronize()

    return {
        "_cuda_init": init,
        "_cuda_isInBadFork": in_bad_fork,
        "_cuda_getDeviceCount": device.device_count,
        "_cuda_getDevice": device.current_device,
        "_cuda_setDevice": device.exchange_device,
        "_cuda_exchangeDevice": exchange,
        "_cuda_maybeExchangeDevice": maybe_exchange,
        "_cuda_synchronize": synchronize,
        "_cuda_canDeviceAccessPeer": constant(True),
        "_cuda_getArchFlags": constant("sm_80"),
        "_cuda_getCompiledVersion": constant(12040),
        "_CudaDeviceProperties": SimpleNamespace,
    }


def _memory(device: ModuleType) -> dict[str, Any]:
    def stats(index: int) -> dict[str, Any]:
        use = device.memory(index)
        live = use["allocations"] - use["freed"]

        def kind(now: int, peak: int, made: int = 0, freed: int = 0) -> dict[str, Any]:
            all_ = {"current": now, "peak": peak, "allocated": made, "freed": freed}
            return {"all": all_, "small_pool": dict.fromkeys(all_, 0), "large_pool": dict(all_)}

        in_bytes = kind(use["allocated"], use["peak"])
        blocks = kind(live, use["peak_count"], use["allocations"], use["freed"])
        names = ("allocated_bytes", "reserved_bytes", "active_bytes", "requested_bytes")
        return {
            **dict.fromkeys(names, in_bytes),
            **dict.fromkeys(("allocation", "active", "segment"), blocks),
            "inactive_split": kind(0, 0),
            "inactive_split_bytes": kind(0, 0),
            "oversize_allocations": kind(0, 0)["all"],
            "oversize_segments": kind(0, 0)["all"],
            **dict.fromkeys(("num_alloc_retries", "num_ooms", "num_sync_all_streams", "max_split_size"), 0),
            **dict.fromkeys(("num_device_alloc", "num_device_free"), 0),
        }

    return {
        "_cuda_memoryStats": stats,
        "_cuda_resetPeakMemoryStats": device.reset_peak,
        "_cuda_resetAccumulatedMemoryStats": nothing,
        "_cuda_hostMemoryStats": constant({}),
        "_cuda_resetPeakHostMemoryStats": nothing,
        "_cuda_resetAccumulatedHostMemoryStats": nothing,
        "_cuda_memorySnapshot": constant({"segments": [], "device_traces": [], "allocator_settings": {}}),
        "_cuda_record_memory_history": nothing,
        "_cuda_record_memory_history_legacy": nothing,
        "_cuda_emptyCache": nothing,
        "_cuda_ipc_collect": nothing,
        "_cuda_getAllocatorBackend": constant("native"),
        "_cuda_cudaCachingAllocator_is_enabled": constant(True),
        "_cuda_cudaCachingAllocator_enable": nothing,
        "_cuda_setCheckpointPoolState": nothing,
    }


def _streams(device: ModuleType) -> dict[str, Any]:
    import torch

    class Stream(torch._C.Stream):
        """``torch.cuda.Stream`` without its Python part."""

        def __new__(cls, priority: int = 0, **given: Any) -> Any:
            given.pop("stream_ptr", None)
            if "stream_id" in given:
                return super().__new__(cls, **given)
            return super().__new__(cls, device=f"cuda:{device.current_device()}", priority=priority)

        def __init__(self, *args: Any, **kwargs: Any) -> None: ...

        @property
        def cuda_stream(self) -> int:
            return device.native_handle(self.stream_id)

        @property
        def priority(self) -> int:
            return 0

        @staticmethod
        def priority_range() -> tuple[int, int]:
            return (0, -5)

    class Event(torch._C.Event):
        """``torch.cuda.Event`` without its Python part."""

        def __new__(
            cls,
            enable_timing: bool = False,
            blocking: bool = False,
            interprocess: bool = False,
            external: bool = False,
        ) -> Any:
            where = f"cuda:{device.current_device()}"
            return super().__new__(cls, device=where, enable_timing=enable_timing, blocking=blocking)

        def __init__(self, *args: Any, **kwargs: Any) -> None: ...

        @property
        def cuda_event(self) -> int:
            return self.event_id

        def elapsed_time(self, end: Any) -> float:  # that of the class in C takes no subclass for `end`
            return device.elapsed_time(self.event_id, end.event_id)

        def ipc_handle(self) -> Any:
            return absent("an event of another process")()

    def triple(stream_id: Callable[[int], int]) -> Callable[[int], tuple[int, int, int]]:
        return lambda index: (stream_id(index), index if index >= 0 else device.current_device(), _CUDA)

    def set_stream(stream_id: int, device_index: int, device_type: int) -> None:
        device.set_stream(device_index, stream_id)
        device.exchange_device(device_index)

    return {
        "_CudaStreamBase": Stream,
        "_CudaEventBase": Event,
        "_cuda_getCurrentStream": triple(device.current_stream),
        "_cuda_getDefaultStream": triple(lambda index: 0),
        "_cuda_getCurrentRawStream": lambda index: device.native_handle(device.current_stream(index)),
        "_cuda_setStream": set_stream,
        "_cuda_getStreamFromExternal": absent("a stream of another library"),
        "_cuda_sleep": nothing,
    }


def _graphs(device: ModuleType) -> dict[str, Any]:
    pools = itertools.count(1)

    class Graph:
        """``torch.cuda.CUDAGraph`` without its Python part. Memory of a graph is its own always."""

        def __new__(cls, keep_graph: bool = False) -> Any:
            self = super().__new__(cls)
            self._graph, self._pool = device.Graph(), (0, next(pools))
            return self

        def capture_begin(self, pool: Any = None, capture_error_mode: str = "global") -> None:
            if pool is not None:
                self._pool = pool
            self._graph.begin()

        def capture_end(self) -> None:
            self._graph.end()

        def instantiate(self) -> None: ...

        def replay(self) -> None:
            self._graph.replay()

        def reset(self) -> None:
            self._graph.reset()

        def pool(self) -> Any:
            return self._pool

        def register_generator_state(self, generator: Any) -> None: ...

        enable_debug_mode = debug_dump = nothing
        raw_cuda_graph = raw_cuda_graph_exec = absent("a graph of the CUDA runtime")

    return {
        "_CUDAGraph": Graph,
        "_graph_pool_handle": lambda: (0, next(pools)),
        "_cuda_isCurrentStreamCapturing": device.is_capturing,
    }


def _runtime(device: ModuleType) -> Any:
    def memory_info(index: int) -> tuple[int, int]:
        total = settings.total_memory()
        return max(total - device.memory(index)["allocated"], 0), total

    return SimpleNamespace(
        cudaError=SimpleNamespace(success=0),
        cudaGetErrorString=lambda code: f"error {code}",
        cudaMemGetInfo=memory_info,
        cudaProfilerStart=constant(0),
        cudaProfilerStop=constant(0),
        cudaHostRegister=constant(0),
        cudaHostUnregister=constant(0),
        cudaDeviceSynchronize=device.synchronize,
    )


def _formulas_of_the_cpu() -> None:
    """Optimizers, clipping and averages choose another formula for CUDA when nobody names one."""
    from torch.nn.utils import clip_grad
    from torch.optim import optimizer, swa_utils
    from torch.utils import _foreach_utils

    supported = _foreach_utils._get_foreach_kernels_supported_devices

    def without_cuda() -> list[str]:
        return [kind for kind in supported() if kind != "cuda"]

    for module in (_foreach_utils, optimizer, swa_utils):
        if hasattr(module, "_get_foreach_kernels_supported_devices"):
            module._get_foreach_kernels_supported_devices = without_cuda
    clip_grad._device_has_foreach_support = constant(True)  # where it is asked for, it can be had


def _keep_threads() -> None:
    """Threads that PyTorch starts for a GPU, which a program on the CPU has not."""
    from torch.utils.data._utils import pin_memory

    class Torch:
        """torch, for the thread that pins: it would set the number of threads for all others, too."""

        set_num_threads = staticmethod(nothing)

        def __getattr__(self, name: str) -> Any:
            return getattr(torch, name)

    torch, pin_memory.torch = pin_memory.torch, Torch()
    atexit.register(_let_threads_come_to_rest)


def _let_threads_come_to_rest(longest: float = 1.0) -> None:
    """The thread of a backward call lets go of Python's objects after the call has returned.

    When Python ends in between, that thread ends the process, with SIGABRT.
    """
    calm, deadline = 0, time.monotonic() + longest
    while calm < 2 and time.monotonic() < deadline:
        time.sleep(0.002)  # without the GIL
        calm = calm + 1 if all(_sleeps(task) for task in glob.glob("/proc/self/task/*")) else 0


def _sleeps(task: str) -> bool:
    """Whether a thread of autograd's waits; True of any other."""
    try:
        with open(f"{task}/stat", encoding="utf-8") as file:
            name, _, rest = file.read().partition("(")[2].rpartition(")")
    except OSError:  # it has ended
        return True
    return not name.startswith("pt_autograd") or rest.split()[0] == "S"


def _compile_without_kernels(torch: ModuleType) -> None:
    """torch.compile traces as ever; its graphs run as they are: Inductor's kernels for CUDA need a GPU."""
    original = torch.compile

    @functools.wraps(original)
    def compile_(model: Any = None, **kwargs: Any) -> Any:
        if kwargs.get("backend", "inductor") in ("inductor", "cudagraphs"):
            kwargs = {key: value for key, value in kwargs.items() if key not in ("mode", "options")}
            kwargs["backend"] = "eager"
        return original(model, **kwargs)

    torch.compile = compile_


def _storages(torch: ModuleType, device: ModuleType) -> None:
    """``torch.UntypedStorage`` asks how torch was built; a tensor's storage does not."""
    storage = torch.UntypedStorage
    make, resize = storage.__new__, storage.resize_

    def new(cls: Any, *args: Any, **kwargs: Any) -> Any:
        where = kwargs.get("device")
        if where is None or torch.device(where).type != "cuda":
            return make(cls, *args, **kwargs)
        size = args[0] if args else kwargs.get("size", 0)
        if not isinstance(size, int):
            return torch.tensor(list(size), dtype=torch.uint8, device=where).untyped_storage()
        return torch.empty(size, dtype=torch.uint8, device=where).untyped_storage()

    def resize_(self: Any, size: int) -> Any:
        if self.device.type != "cuda":
            return resize(self, size)
        with torch.no_grad():
            device.resize_storage(torch.empty(0, dtype=torch.uint8, device=self.device).set_(self), size)
        return self

    storage.__new__ = new
    storage.resize_ = resize_


def _tensor_types(torch: ModuleType) -> None:
    """``torch.cuda.FloatTensor`` and its like, which a CPU build refuses to make."""

    class Meta(type):
        def __instancecheck__(cls, instance: Any) -> bool:
            return isinstance(instance, torch.Tensor) and instance.is_cuda and instance.dtype == cls.dtype

        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            return getattr(torch, cls.__name__.rpartition(".")[2])(*args, **kwargs).cuda()

    for name, dtype in _TYPES.items():
        fields = {"dtype": getattr(torch, dtype), "is_cuda": True, "__module__": "torch.cuda"}
        # Tensor.type() takes the class for what its name says.
        setattr(torch.cuda, f"{name}Tensor", Meta(f"torch.cuda.{name}Tensor", (), fields))
    set_default = torch.set_default_tensor_type

    @functools.wraps(set_default)
    def set_default_tensor_type(kind: Any) -> None:
        name = kind if isinstance(kind, str) else getattr(kind, "__name__", "")
        on_device = name.startswith("torch.cuda.")
        set_default(name.replace("torch.cuda.", "torch.") if on_device else kind)
        torch.set_default_device("cuda" if on_device else None)

    torch.set_default_tensor_type = set_default_tensor_type


_TYPES = {
    "Float": "float32",
    "Double": "float64",
    "Half": "float16",
    "BFloat16": "bfloat16",
    "Long": "int64",
    "Int": "int32",
    "Short": "int16",
    "Char": "int8",
    "Byte": "uint8",
    "Bool": "bool",
}
