"""What a script may set of a GPU, and what it can ask of a GPU only: the rest of what `bindings` puts into
``torch._C``. A setting is kept and read again; what cannot be says so by name.
"""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import Callable


NAME = "CPU in place of CUDA (trapline run --cpu)"


def nothing(*args: Any, **kwargs: Any) -> None: ...


def constant(value: Any) -> Callable[..., Any]:
    return lambda *args, **kwargs: value


def absent(what: str) -> Callable[..., Any]:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(
            f"trapline: --cpu: {what} cannot be used: it exists on a GPU only: leave it out here"
        )

    return refuse


# What a script may set and read again, with what a GPU has at first.
_SETTINGS = {
    "_cuda_{}et_cudnn_benchmark_limit": 10,
    "_cuda_{}etCublasWorkspaceSize": 8519680,
    "_cuda_{}etCublasLtWorkspaceSize": 1048576,
    "_cuda_{}etMemoryMetadata": "",
    "_cuda_{}etMemoryFraction": 1.0,
    "_cuda_{}et_sync_debug_mode": 0,
}
# What is there on a GPU only, by the names of torch._C, and in words.
_ABSENT = {
    "a kernel of CUDA C++ (jiterator)": ["_cuda_jiterator_compile_and_launch_kernel"],
    "memory without a tensor": [
        "_cuda_cudaCachingAllocator_raw_alloc",
        "_cuda_cudaCachingAllocator_raw_delete",
        "_cuda_cudaHostAllocator",
    ],
    "another allocator": [
        "_cuda_changeCurrentAllocator",
        "_cuda_customAllocator",
        "_cuda_getAllocator",
        "_cuda_beginAllocateCurrentStreamToPool",
        "_cuda_getCheckpointState",
        "_cuda_checkPoolLiveAllocations",
        "_cuda_allocationTraceback",
    ],
    "a handle of cuSOLVER": ["_cuda_getCurrentSolverHandle"],
    "NCCL without torch.distributed": [
        "_nccl_all_gather",
        "_nccl_all_reduce",
        "_nccl_broadcast",
        "_nccl_init_rank",
        "_nccl_reduce",
        "_nccl_reduce_scatter",
        "_nccl_unique_id",
    ],
    "tuning of kernels (TunableOp)": [
        "_cuda_record_untuned_enable",
        "_cuda_record_untuned_is_enabled",
        "_cuda_tunableop_get_filename",
        "_cuda_tunableop_get_max_tuning_duration",
        "_cuda_tunableop_get_max_tuning_iterations",
        "_cuda_tunableop_get_results",
        "_cuda_tunableop_get_rotating_buffer_size",
        "_cuda_tunableop_get_validators",
        "_cuda_tunableop_read_file",
        "_cuda_tunableop_set_filename",
        "_cuda_tunableop_set_max_tuning_duration",
        "_cuda_tunableop_set_max_tuning_iterations",
        "_cuda_tunableop_set_numerical_check_tolerances",
        "_cuda_tunableop_set_rotating_buffer_size",
        "_cuda_tunableop_tuning_enable",
        "_cuda_tunableop_tuning_is_enabled",
    ],
}


def functions() -> dict[str, Any]:
    """By their names in ``torch._C``."""
    out = {name: absent(what) for what, names in _ABSENT.items() for name in names}
    for name, first in _SETTINGS.items():
        out[name.format("g")], out[name.format("s")] = _setting(first)
    return out | {
        "_cuda_getCurrentBlasHandle": constant(0),
        "_cuda_clearCublasWorkspaces": nothing,
        "_cuda_hasPrimaryContext": constant(True),
        "_cuda_isHistoryEnabled": constant(False),
        "_cuda_tunableop_is_enabled": constant(False),
        "_cuda_tunableop_enable": nothing,
        "_cuda_attach_out_of_memory_observer": nothing,
        "_cuda_lock_mutex": nothing,
        "_cuda_unlock_mutex": nothing,
        "_cuda_CUDAAllocator_AllocatorState": type("AllocatorState", (), {}),
        "_host_emptyCache": nothing,
        "_nvtx": SimpleNamespace(
            rangePushA=nothing,
            rangePop=constant(0),
            rangeStartA=constant(0),
            rangeEnd=nothing,
            markA=nothing,
            deviceRangeStart=constant(0),
            deviceRangeEnd=nothing,
        ),
        "_nccl_version": constant(22105),
        "_nccl_version_suffix": constant(b""),
    }


def _setting(first: Any) -> tuple[Callable[..., Any], Callable[..., None]]:
    value = [first]

    def write(new: Any, *args: Any) -> None:
        value[0] = new

    return lambda *args: value[0], write


def properties(index: int = 0) -> Any:
    """What ``torch.cuda.get_device_properties`` gives."""
    return SimpleNamespace(
        name=NAME,
        major=8,
        minor=0,
        total_memory=total_memory(),
        multi_processor_count=1,
        max_threads_per_multi_processor=1024,
        regs_per_multiprocessor=65536,
        shared_memory_per_block=49152,
        shared_memory_per_multiprocessor=102400,
        warp_size=32,
        is_integrated=0,
        is_multi_gpu_board=0,
        gcnArchName="",
        L2_cache_size=4 << 20,
        uuid=f"00000000-0000-0000-0000-{index:012d}",
    )


def total_memory() -> int:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return 16 << 30
