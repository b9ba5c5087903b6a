"""Running statistics that a batch with NaN went into: where its step is left out they go back, too.

They are copied before a module's first forward pass, and in good steps that are looked at.
"""

from __future__ import annotations

import weakref
from typing import Any

import torch

_MAX = 8192  # elements of one


class Buffers:
    def __init__(self) -> None:
        # Outermost modules: their buffers, by name.
        self._kept: weakref.WeakKeyDictionary[Any, dict[str, Any]] = weakref.WeakKeyDictionary()

    def begins(self, module: Any) -> None:
        kept = _small(module)
        if kept:
            self._kept[module] = kept

    def keep(self) -> None:
        """As they are now."""
        for module in list(self._kept):
            self._kept[module] = _small(module)

    def put_back(self) -> None:
        """Those that were finite and are not."""
        for module, kept in list(self._kept.items()):
            for name, buffer in module.named_buffers():
                value = kept.get(name)
                if value is None or value.shape != buffer.shape or value.dtype != buffer.dtype:
                    continue
                if bool(value.isfinite().all()) and not bool(buffer.isfinite().all()):
                    buffer.data.copy_(value)


def _small(module: Any) -> dict[str, Any]:
    return {
        name: buffer.detach().clone()
        for name, buffer in module.named_buffers()
        if type(buffer) is torch.Tensor
        and buffer.is_cpu
        and buffer.is_floating_point()
        and buffer.layout is torch.strided
        and 0 < buffer.numel() <= _MAX
    }
