"""Copies between several devices of `_cpu_backend`, as DataParallel and ``torch.cuda.comm`` ask for them."""

from __future__ import annotations

from typing import Any


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
