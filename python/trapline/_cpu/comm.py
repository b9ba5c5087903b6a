"""What goes between devices and processes of `backend`.

Copies between several devices, as DataParallel and ``torch.cuda.comm`` ask for them; and NCCL, which is gloo,
on the memory of the device's tensors (``collectives.cpp``).
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import Callable


def functions() -> dict[str, Any]:
    """What a CUDA build has of it in ``torch._C``."""
    return {
        "_broadcast": _broadcast,
        "_broadcast_out": _copy_to_all,
        "_broadcast_coalesced": lambda tensors, devices, size: [
            tensors if index == 0 else [tensor.to(_cuda(device)) for tensor in tensors]
            for index, device in enumerate(devices)
        ],
        "_scatter": _scatter,
        "_scatter_out": _scatter_out,
        "_gather": _gather,
        "_gather_out": _gather_out,
    }


def _cuda(index: Any) -> Any:
    import torch

    return torch.device("cpu") if index == -1 else torch.device("cuda", index)


def _broadcast(tensor: Any, devices: Any) -> list[Any]:
    return [tensor.to(_cuda(device)) for device in devices]


def _copy_to_all(tensor: Any, out: Any) -> Any:
    for one in out:
        one.copy_(tensor)
    return out


def _pieces(tensor: Any, count: int, sizes: Any, dim: int) -> Any:
    return tensor.split(list(sizes), dim) if sizes is not None else tensor.chunk(count, dim)


def _scatter(tensor: Any, devices: Any, sizes: Any = None, dim: int = 0, streams: Any = None) -> Any:
    pieces = _pieces(tensor, len(devices), sizes, dim)
    return tuple(piece.to(_cuda(device)) for piece, device in zip(pieces, devices))


def _scatter_out(tensor: Any, out: Any, dim: int = 0, streams: Any = None) -> Any:
    for one, piece in zip(out, tensor.split([one.size(dim) for one in out], dim)):
        one.copy_(piece)
    return out


def _gather(tensors: Any, dim: int, destination: Any = None) -> Any:
    import torch

    where = _cuda(torch.cuda.current_device() if destination is None else destination)
    return torch.cat([tensor.to(where) for tensor in tensors], dim)


def _gather_out(tensors: Any, out: Any, dim: int) -> Any:
    import torch

    return torch.cat([tensor.to(out.device) for tensor in tensors], dim, out=out)


def use_gloo(torch: Any) -> None:
    """``init_process_group("nccl")`` and its kin."""
    distributed = torch.distributed
    if not distributed.is_available():
        return
    core = distributed.distributed_c10d
    core.is_nccl_available = distributed.is_nccl_available = lambda: True
    asked: list[str] = []  # the backends that were named for groups, in order

    def without(name: str, *dropped: str) -> None:
        original = getattr(core, name)

        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> Any:
            for key in dropped:
                kwargs.pop(key, None)
            if name == "init_process_group":
                asked.append(str(args[0] if args else kwargs.get("backend")))
                if args:
                    args = (gloo(args[0]), *args[1:])
                else:
                    kwargs["backend"] = gloo(kwargs.get("backend"))
            elif kwargs.get("backend"):
                asked.append(str(kwargs["backend"]))
                kwargs["backend"] = gloo(kwargs["backend"])
            return original(*args, **kwargs)

        setattr(core, name, call)
        setattr(distributed, name, call)

    without("init_process_group", "device_id", "pg_options")
    without("new_group", "device_id", "pg_options")
    without("barrier", "device_ids")
    _refuse_host_tensors(torch, core, lambda: bool(asked) and all(one == "nccl" for one in asked))


def _refuse_host_tensors(torch: Any, core: Any, only_nccl: Callable[[], bool]) -> None:
    """NCCL has no collective for tensors of the CPU; gloo has."""
    check_one, check_list, device_of = (
        core._check_single_tensor,
        core._check_tensor_list,
        core._get_object_coll_device,
    )

    def refuse(tensors: Any) -> None:
        if only_nccl() and any(
            isinstance(tensor, torch.Tensor) and tensor.device.type == "cpu" for tensor in tensors
        ):
            raise RuntimeError("No backend type associated with device type cpu")

    def check_single_tensor(param: Any, param_name: str) -> None:
        check_one(param, param_name)
        refuse([param])

    def check_tensor_list(param: Any, param_name: str) -> None:
        check_list(param, param_name)
        refuse(param)

    def object_device(group: Any = None) -> str:
        return "cuda" if only_nccl() else device_of(group)

    core._check_single_tensor = check_single_tensor
    core._check_tensor_list = check_tensor_list
    core._get_object_coll_device = object_device


def gloo(backend: Any) -> Any:
    """The backend that stands in for the one that was asked for."""
    return "gloo" if backend is None or "nccl" in str(backend).lower() else backend
