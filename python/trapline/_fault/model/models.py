"""What the models in reach say about a fault: tables that resize, parameters that are NaN already."""

from __future__ import annotations

import re
from typing import Any, Optional

from trapline._fault.program import creations, owners, scope

# Above it float32 has no halves, then no odd numbers: no update of a healthy step changes it.
_GROWN = 2.0**24


def resizable(table: Any) -> Optional[str]:
    """The model whose ``resize_token_embeddings`` reaches the table, as Hugging Face models have it: another
    table of the model, such as that of a decoder with a vocabulary of its own, keeps its size."""
    for name, root in owners.roots():
        for path, module in root.named_modules():
            if callable(getattr(type(module), "resize_token_embeddings", None)) and _resizes(module, table):
                base = "model" if name == "self" and not path else name
                return f"{base}.{owners.clean_name(path)}".rstrip(".")
    return None


def is_input_table(table: Any) -> bool:
    """True for the table of token ids, by the model's own word."""
    return role(table) == "input"


def role(table: Any) -> Optional[str]:
    """ "input": the table of token ids of a model that resizes it; "other": another table of such a model."""
    found = None
    for _, root in owners.roots():
        for module in root.modules():
            if not callable(getattr(type(module), "resize_token_embeddings", None)) or not _holds(
                module, table
            ):
                continue
            found = "other"
            if _resizes(module, table):
                return "input"
    return found


def _resizes(model: Any, table: Any) -> bool:
    try:
        inputs = model.get_input_embeddings()
    except Exception:  # not every model has one
        return False
    return owners.is_module(inputs) and _holds(inputs, table)


_NO_WORDS = frozenset(("embed", "embedding", "embeddings", "embedder", "embedders", "weight", "size", "sizes",
                       "max", "num", "n", "len", "length", "vocab", "model", "config"))  # fmt: skip
_SAME = {"ep": "time", "episode": "time", "timestep": "time", "timesteps": "time", "steps": "time",
         "pos": "position", "positions": "position", "wpe": "position", "ctx": "position",
         "types": "type", "segment": "type", "cardinality": "category", "cat": "category"}  # fmt: skip


def _words(name: str) -> set[str]:
    words = {_SAME.get(word, word) for word in re.split(r"[^a-z]+", name.lower())}
    return {word for word in words if word and word not in _NO_WORDS}


def table_setting(table: Any, name: str, most: Any = None) -> Optional[dict[str, Any]]:
    """The one field of the configuration around the table that is as large and is called like it. `most`: the
    highest of the ids."""
    rows = int(table.shape[0])
    wanted = _words(name.rpartition(".")[2] or name)
    number = re.search(r"[._](\d+)$", name)
    for _, root in owners.roots():
        for module in root.modules():
            held = scope.members(module.__dict__.get("config"))
            if not held or not _holds(module, table):
                continue
            found = []
            for field, value in held.items():
                if field.endswith("_id") or not wanted & _words(field):
                    continue
                if type(value) is int and value == rows:
                    found.append(field)
                elif type(value) is list and number and value[int(number[1]) :][:1] == [rows]:
                    found.append(f"{field}[{number[1]}]")
            if len(found) == 1:
                return _setting(found[0], rows, held, most)
    return None


def _setting(name: str, rows: int, held: dict[str, Any], most: Any) -> dict[str, Any]:
    facts: dict[str, Any] = {"name": name, "value": rows}
    if held.get("_name_or_path") == "":  # from_pretrained() writes its own there
        facts["fresh"] = True
        made = creations.keyword(name)
        facts.update({"made": made} if made else {})
        kind = re.search(r"_[a-z]+_[a-z]+$", f"_{name}")
        ending = kind[0] if kind is not None else ""
        beside = [
            (field, value)
            for field, value in held.items()
            if ending and field != name and field.endswith(ending) and type(value) is int
        ]
        room = [(field, value) for field, value in beside if type(most) is int and value > most]
        if len(room) == 1:
            facts["other"] = {"name": room[0][0], "value": room[0][1]}
    return facts


def virtual_tokens() -> Optional[int]:
    """How many tokens PEFT's prompt tuning puts before each text."""
    for _, root in owners.roots():
        configs = root.__dict__.get("peft_config", root.__dict__.get("_peft_config"))
        active = root.__dict__.get("active_adapter")
        if type(configs) is dict and len(configs) == 1:
            active = next(iter(configs))
        if type(configs) is dict and type(active) is str and active in configs:
            number = scope.members(configs[active]).get("num_virtual_tokens")
            if type(number) is int and number > 0:
                return number
    return None


def _holds(module: Any, table: Any) -> bool:
    pointer = owners.data_pointer(table)
    return any(
        parameter is table or (pointer and owners.data_pointer(parameter) == pointer)
        for parameter in module.parameters()
    )


def bad_weights(reachable: bool = False) -> Optional[dict[str, Any]]:
    """The first parameter that holds NaN or Inf, how many do, and of how many; None: none was looked at.

    `reachable`: the context of the device is alive, so that parameters there can be looked at as well.
    """
    first, bad, total = "", 0, 0
    highest, of = _GROWN, ""
    for variable, module in owners.roots():
        for name, parameter in module.named_parameters():
            if not parameter.dtype.is_floating_point or parameter.device.type == "meta":
                continue
            if not reachable and not scope.is_at_hand(parameter):
                continue
            total += 1
            if bool(parameter.detach().isfinite().all()):
                trained = parameter.requires_grad and parameter.numel()
                high = float(parameter.detach().abs().max()) if trained else 0.0
                if high > highest:
                    highest, of = high, _parameter(variable, owners.clean_name(name))
                continue
            bad += 1
            first = first or _parameter(variable, owners.clean_name(name))
    if not total:
        return None
    if not bad:
        buffer = _bad_buffer(reachable)
        if buffer:
            return {"name": "", "bad": 0, "total": total, "buffer": buffer}
    grown = {"grown": {"name": of, "value": highest}} if of and not bad else {}
    return {"name": first, "bad": bad, "total": total, **grown}


def _bad_buffer(reachable: bool) -> str:
    """The first buffer that holds NaN: a running statistic. Infinities stand there on purpose (masks)."""
    for variable, module in owners.roots():
        for name, buffer in module.named_buffers():
            if not buffer.dtype.is_floating_point or buffer.device.type == "meta" or not buffer.numel():
                continue
            if (reachable or scope.is_at_hand(buffer)) and bool(buffer.detach().isnan().any()):
                return _parameter(variable, owners.clean_name(name))
    return ""


def _parameter(variable: str, path: str) -> str:
    name = owners.written(variable, path)
    return name if name != path else f"{variable}.{path}"
