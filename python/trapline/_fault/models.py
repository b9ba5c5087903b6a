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
    """The first parameter that holds NaN or Inf, how many do, and of how many; None: none was looked at."""
    first, bad, total = "", 0, 0
    for variable, module in owners.roots():
        for name, parameter in module.named_parameters():
            if parameter.device.type != "cpu" or not parameter.dtype.is_floating_point:
                continue
            total += 1
            if bool(parameter.detach().isfinite().all()):
                continue
            bad += 1
            first = first or _parameter(variable, owners.clean_name(name))
    return {"name": first, "bad": bad, "total": total} if total else None


def _parameter(variable: str, path: str) -> str:
    name = owners.written(variable, path)
    return name if name != path else f"{variable}.{path}"
