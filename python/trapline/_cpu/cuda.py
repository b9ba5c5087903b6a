"""``torch.cuda`` for ``trapline run --cpu``: one device that is the CPU (see `redirect`)."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any, Callable

from trapline._cpu.settings import NAME, properties, total_memory

# Functions that have nothing to do.
_NOTHING = (
    "set_device",
    "synchronize",
    "empty_cache",
    "ipc_collect",
    "init",
    "reset_peak_memory_stats",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_accumulated_memory_stats",
    "set_per_process_memory_fraction",
    "set_stream",
    "set_sync_debug_mode",
)
_ZERO = (
    "current_device",
    "memory_allocated",
    "max_memory_allocated",
    "memory_reserved",
    "max_memory_reserved",
    "memory_cached",
    "max_memory_cached",
    "utilization",
    "memory_usage",
    "temperature",
    "power_draw",
    "get_sync_debug_mode",
)


def _constant(value: Any) -> Callable[..., Any]:
    return lambda *args, **kwargs: value


class Stream:
    """A stream on which everything has happened already."""

    device_index = 0
    stream_id = 0
    cuda_stream = 0

    def __init__(self, device: Any = None, priority: int = 0, **kwargs: Any) -> None:
        self.priority = priority

    def wait_event(self, event: Any) -> None: ...

    def wait_stream(self, stream: Any) -> None: ...

    def synchronize(self) -> None: ...

    def query(self) -> bool:
        return True

    def record_event(self, event: Any = None) -> Any:
        event = Event() if event is None else event
        event.record(self)
        return event

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *exception: Any) -> None: ...


class Event:
    """An event that remembers the host's time."""

    def __init__(
        self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False, **_: Any
    ) -> None:
        self._time = 0.0

    def record(self, stream: Any = None) -> None:
        self._time = time.perf_counter()

    def wait(self, stream: Any = None) -> None: ...

    def synchronize(self) -> None: ...

    def query(self) -> bool:
        return True

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds between two events."""
        return (end_event._time - self._time) * 1000.0


class device:
    """Context manager ``torch.cuda.device``."""

    def __init__(self, device: Any = None) -> None:
        self.idx = 0

    def __enter__(self) -> None: ...

    def __exit__(self, *exception: Any) -> bool:
        return False


@contextlib.contextmanager
def _nothing_in_between(*args: Any, **kwargs: Any) -> Iterator[Any]:
    yield args[0] if args else None


def install(torch: Any, replace: Callable[[Any, str, Any], None]) -> None:
    """Replaces the functions of torch.cuda that exist in this torch."""
    current = Stream()
    cuda = torch.cuda

    def seed(number: int) -> None:
        torch.default_generator.manual_seed(int(number))

    replacements = {
        "is_available": _constant(True),
        "device_count": _constant(1),
        "get_device_name": _constant(NAME),
        "get_device_capability": _constant((8, 0)),
        "get_device_properties": lambda *args, **kwargs: properties(),
        "mem_get_info": lambda *args, **kwargs: (total_memory(), total_memory()),
        "memory_stats": lambda *args, **kwargs: {},
        "memory_stats_as_nested_dict": lambda *args, **kwargs: {},
        "memory_snapshot": lambda *args, **kwargs: [],
        "memory_summary": _constant(""),
        "list_gpu_processes": _constant(""),
        "is_bf16_supported": _constant(True),
        "is_current_stream_capturing": _constant(False),
        "can_device_access_peer": _constant(False),
        "get_arch_list": lambda: [],
        "manual_seed": seed,
        "manual_seed_all": seed,
        # Functions of their own: torch.compile knows the generator's methods by identity.
        "seed": lambda: torch.default_generator.seed(),  # noqa: PLW0108
        "seed_all": lambda: torch.default_generator.seed(),  # noqa: PLW0108
        "initial_seed": lambda: torch.default_generator.initial_seed(),  # noqa: PLW0108
        "get_rng_state": lambda *args, **kwargs: torch.get_rng_state(),
        "get_rng_state_all": lambda: [torch.get_rng_state()],
        "set_rng_state": lambda state, *args, **kwargs: torch.set_rng_state(state),
        "set_rng_state_all": lambda states: torch.set_rng_state(states[0]),
        "Stream": Stream,
        "Event": Event,
        "stream": _nothing_in_between,
        "current_stream": _constant(current),
        "default_stream": _constant(current),
        "device": device,
        "device_of": device,
        **{name: _constant(None) for name in _NOTHING},
        **{name: _constant(0) for name in _ZERO},
    }
    for module in (cuda, cuda.memory, cuda.random, cuda.streams):
        for name, value in replacements.items():
            if hasattr(module, name) and not (module is not cuda and name == "device"):
                replace(module, name, value)
    for name in ("range_push", "range_pop", "range_start", "range_end", "mark"):
        if hasattr(cuda.nvtx, name):
            replace(cuda.nvtx, name, _constant(0))
    replace(cuda.nvtx, "range", _nothing_in_between)
    for name in ("start", "stop", "init"):
        if hasattr(cuda.profiler, name):
            replace(cuda.profiler, name, _constant(None))
    replace(cuda.profiler, "profile", _nothing_in_between)
