"""A parameter that is found again by its place. `torch.utils.swap_tensors`, which `Module.to` uses for
subclasses of tensors, refuses one that a weak reference points to.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any, Callable

Held = Callable[[], Any]  # the parameter; None where its owner is gone


def in_optimizer(optimizer: Any, group: int, at: int) -> Held:
    alive = weakref.ref(optimizer)

    def parameter() -> Any:
        owner = alive()
        try:
            return None if owner is None else owner.param_groups[group]["params"][at]
        except (IndexError, KeyError):
            return None

    return parameter


def in_module(modules: Iterable[Any], parameter: Any) -> Held:
    """Of one that a module below these has; else nothing."""
    for root in modules:
        for module in root.modules():
            for name, one in module._parameters.items():
                if one is parameter:
                    return _in(module, name)
    return _nobody


def _in(module: Any, name: str) -> Held:
    alive = weakref.ref(module)

    def parameter() -> Any:
        owner = alive()
        return None if owner is None else owner._parameters.get(name)

    return parameter


def _nobody() -> None:
    return None
