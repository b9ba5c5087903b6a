"""What the models in reach say about a fault: tables that resize, parameters that are NaN already."""

from __future__ import annotations

from typing import Any, Optional

from . import owners


def resizable(table: Any) -> Optional[str]:
    """The model with ``resize_token_embeddings`` that owns the table, as Hugging Face models have it."""
    for name, root in owners.roots():
        for path, module in root.named_modules():
            if callable(getattr(type(module), "resize_token_embeddings", None)) and _holds(module, table):
                base = "model" if name == "self" and not path else name
                return f"{base}.{owners.clean_name(path)}".rstrip(".")
    return None


def is_input_table(table: Any) -> bool:
    """True for the table of token ids, by the model's own word."""
    for _, root in owners.roots():
        for module in root.modules():
            if not callable(getattr(type(module), "resize_token_embeddings", None)) or not _holds(
                module, table
            ):
                continue
            try:
                inputs = module.get_input_embeddings()
            except NotImplementedError:  # a model without a vocabulary
                continue
            if owners.is_module(inputs) and _holds(inputs, table):
                return True
    return False


def _holds(module: Any, table: Any) -> bool:
    pointer = owners.data_pointer(table)
    return any(
        parameter is table or (pointer and owners.data_pointer(parameter) == pointer)
        for parameter in module.parameters()
    )


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
