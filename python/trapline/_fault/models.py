"""What the models in reach say about a fault: tables that resize, parameters that are NaN already."""

from __future__ import annotations

from typing import Any, Optional

from . import owners


def resizable() -> Optional[str]:
    """The variable of a model with ``resize_token_embeddings``, as Hugging Face models have it."""
    for name, module in owners.roots():
        if callable(getattr(type(module), "resize_token_embeddings", None)):
            return name
    return None


def bad_weights() -> Optional[dict[str, Any]]:
    """The first parameter that holds NaN or Inf, how many do, how many there are; None: none does."""
    first, bad, total = "", 0, 0
    for variable, module in owners.roots():
        for name, parameter in module.named_parameters():
            if parameter.device.type != "cpu" or not parameter.dtype.is_floating_point:
                continue
            total += 1
            if bool(parameter.detach().isfinite().all()):
                continue
            bad += 1
            first = first or owners.clean_name(f"{variable}.{name}")
    return {"name": first, "bad": bad, "total": total} if bad else None
