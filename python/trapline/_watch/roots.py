"""How the calls of outermost modules are noted."""

from __future__ import annotations

import weakref
from typing import Any

import torch

from trapline._watch.place import Call

_grad_enabled, _autocast_enabled = torch.is_grad_enabled, torch.is_autocast_enabled
_is_compiling = torch.compiler.is_dynamo_compiling


class Root:
    """An outermost module, and what its calls go through: where `Module.compile` puts what it has compiled.

    A hook would go with the module into a file or a copy; this place stays empty there, and costs less.
    """

    __slots__ = ("_light", "_trained", "draws", "module")

    def __init__(self, module: Any, light: Any) -> None:
        self.module = weakref.ref(module)
        self._light = light
        self._trained = False
        self.draws = False  # its forward takes random numbers

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        # On the path of every step: as little as can be, and no call of Python's that is not needed.
        module = self.module()
        light = self._light
        training = module.training
        if light.notes and (training or not self._trained) and _grad_enabled() and not _is_compiling():
            autocast = torch.get_autocast_dtype("cpu") if _autocast_enabled("cpu") else None
            random = torch.get_rng_state() if self.draws else None
            light.calls.append(Call((self.module, args, kwargs, light.steps, autocast, random)))
            self._trained = self._trained or training  # from then on what is not training is evaluation
        return module._call_impl(*args, **kwargs)

    def notes(self, module: Any, args: Any, kwargs: Any) -> None:
        """The call that was on its way when the module was found."""
        if self._light.notes and _grad_enabled():
            autocast = torch.get_autocast_dtype("cpu") if _autocast_enabled("cpu") else None
            self._light.calls.append(Call((self.module, args, kwargs, self._light.steps, autocast, None)))
            self._trained = module.training

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
    # Taken, where Module.compile was called, and unknown before 2.1.
    if isinstance(module, torch.jit.ScriptModule) or getattr(module, "_compiled_call_impl", 0) is not None:
        return False
    parameter = next(module.parameters(), None)
    return parameter is None or parameter.device.type == "cpu"
