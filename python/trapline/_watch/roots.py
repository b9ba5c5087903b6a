"""How the calls of outermost modules are noted."""

from __future__ import annotations

import weakref
from typing import Any


class Root:
    """An outermost module, and what its calls go through: where `Module.compile` puts what it has compiled.

    A hook would go with the module into a file or a copy; this place stays empty there, and costs less.
    """

    __slots__ = ("_light", "draws", "module", "trained")

    def __init__(self, module: Any, light: Any) -> None:
        self.module = weakref.ref(module)
        self._light = light
        self.trained = False
        self.draws = False  # its forward takes random numbers

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        module = self.module()
        self._light.root_runs(self, module, args, kwargs)
        return module._call_impl(*args, **kwargs)

    def __reduce__(self) -> Any:
        return (type(None), ())

    def remove(self) -> None:
        module = self.module()
        if module is not None and module._compiled_call_impl is self:
            del module._compiled_call_impl


def around_replicas(original: Any) -> Any:
    def _replicate_for_data_parallel(module: Any) -> Any:
        replica = original(module)
        if type(replica._compiled_call_impl) is Root:  # it would call the module itself
            replica.__dict__.pop("_compiled_call_impl")
        return replica

    return _replicate_for_data_parallel


def is_watched(module: Any) -> bool:
    import torch

    # Taken, where Module.compile was called, and unknown before 2.1.
    if isinstance(module, torch.jit.ScriptModule) or getattr(module, "_compiled_call_impl", 0) is not None:
        return False
    parameter = next(module.parameters(), None)
    return parameter is None or parameter.device.type == "cpu"
