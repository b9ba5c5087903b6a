"""The position table of the module that ran, and how long the sequence is: by the modules, not by messages.

Used at a violation (an id beyond the table) and at a host error (a buffer as long as the table that does not
fit the text).
"""

from __future__ import annotations

import re
from types import FrameType
from typing import Any, Optional

from trapline._fault.model.tables import POSITION
from trapline._fault.program import limits, made, owners, places, scope

_SETTINGS = ("max_position_embeddings", "n_positions", "max_target_positions", "max_source_positions",
             "block_size", "max_seq_len", "max_seq_length", "seq_len", "context_length", "n_ctx")  # fmt: skip
_TEXT = re.compile(r"(?:^|_)(?:ids|idx|tokens|input|inputs|x|text|mask)$")
_IDS = re.compile(r"(?:^|_)(?:ids|idx|tokens|input_ids|text|words)$")
_MAX_MODULES = 3
_MAX_LAYERS = 256
_MAX_ELEMENTS = 1 << 24
Position = dict[str, Any]


def position_facts(
    frames: list[FrameType], rows: Optional[int] = None, weight: Any = None
) -> Optional[Position]:
    """Frames innermost first. With `rows` the table of that size, with `weight` the one that keeps it;
    without, one that a text goes beyond."""
    running: list[Any] = []
    for frame in frames:
        module = frame.f_locals.get("self")
        if not owners.is_module(module) or any(module is known for known in running):
            continue
        running.append(module)
    for module in running[:_MAX_MODULES]:
        for path, table in _keeping(module, weight):
            length = _text_length(frames, module)
            size = _rows(table)
            setting, value = _made_by(module, path, size) or _setting(running, size, _offset(table))
            offset = max(_offset(table), size - value)  # Nystromformer: two rows more than the setting
            if rows is not None and size != rows:
                continue
            if rows is None and (length is None or length <= size - offset):
                continue
            facts: Position = {"rows": size, "offset": offset, "name": _name(table, running, path)}
            if scope.is_tensor(table):
                facts["parameter"] = True
            if length is not None:
                facts["length"] = length
            if setting:
                facts["setting"] = setting
                facts["value"] = value
                limit = limits.limit_facts(setting)
                if limit is not None:
                    facts["limit"] = limit
            return facts
    return None


def _tables(module: Any) -> list[tuple[str, Any]]:
    """Embeddings, and parameters [positions, features] that a forward adds a slice of."""
    found = [
        (path, part)
        for path, part in module.named_modules()
        if type(getattr(part, "num_embeddings", None)) is int and POSITION.search(path)
    ]
    inside = {id(parameter) for _, table in found for parameter in table.parameters()}
    return found + [
        (path, parameter)
        for path, parameter in module.named_parameters()
        if parameter.dim() == 2 and POSITION.search(path) and id(parameter) not in inside
    ]


def _keeping(module: Any, weight: Any) -> list[tuple[str, Any]]:
    """The tables of positions; of two that are as large the one whose rows were asked for, by any name."""
    for path, part in module.named_modules() if scope.is_tensor(weight) else ():
        table = path and type(getattr(part, "num_embeddings", None)) is int
        if table and any(parameter is weight for parameter in part.parameters()):
            return [(path, part)]
    return _tables(module)


def _rows(table: Any) -> int:
    return int(table.shape[0] if scope.is_tensor(table) else table.num_embeddings)


def _offset(table: Any) -> int:
    """Rows before the first position: BART's `offset`; RoBERTa's positions begin behind the padding's."""
    if scope.is_tensor(table):
        return 0
    offset = table.__dict__.get("offset")
    if type(offset) is int and 0 <= offset < table.num_embeddings:
        return offset
    padding = getattr(table, "padding_idx", None)
    return padding + 1 if type(padding) is int and 0 <= padding < table.num_embeddings - 1 else 0


def _text_length(frames: list[FrameType], module: Any) -> Optional[int]:
    """The length of the rows of ids that this module was called with."""
    for frame in frames:
        if frame.f_locals.get("self") is not module:
            continue
        for name, value in list(frame.f_locals.items()):
            if not scope.is_tensor(value) or value.is_nested or value.dim() < 2 or not _TEXT.search(name):
                continue
            if not value.dtype.is_floating_point and value.dim() == 2 and not name.startswith("position"):
                return int(value.shape[-1])
    return None


def _setting(running: list[Any], rows: int, offset: int) -> tuple[str, int]:
    """The configuration's word for the rows, and what it says; ("", rows) when it has none."""
    for module in running:
        held = scope.members(module.__dict__.get("config"))
        for name in _SETTINGS:
            if type(held.get(name)) is int and held[name] in (rows, rows - offset, rows - 1, rows - 2):
                return name, held[name]
    return "", rows


def _made_by(module: Any, path: str, rows: int) -> Optional[tuple[str, int]]:
    """The setting that the source of the table's class names."""
    around, _, attribute = path.rpartition(".")
    holder = dict(module.named_modules()).get(around)
    name = made.setting(holder, attribute, rows) if holder is not None else None
    return (name, rows) if name is not None else None


def _name(table: Any, running: list[Any], path: str) -> str:
    root = running[-1]
    for path_in_root, part in root.named_parameters() if scope.is_tensor(table) else root.named_modules():
        if part is table:
            return owners.clean_name(path_in_root)
    return owners.clean_name(path)


def counts_from(tensor: Any, first: int) -> Optional[int]:
    """Where the run of positions begins that the bad element is in: 0 for a sequence from its beginning."""
    if tensor.dtype.is_floating_point or not tensor.dim() or first < 0 or tensor.numel() > _MAX_ELEMENTS:
        return None
    width = int(tensor.shape[-1])
    if width < 2:
        return None
    row = tensor.detach().reshape(-1, width)[first // width][: first % width + 1].cpu()
    steps = (row[1:] - row[:-1] != 1).nonzero().reshape(-1)
    return int(row[int(steps[-1]) + 1 if steps.numel() else 0])


def is_text() -> bool:
    """True when token ids or a tokenizer are in reach."""
    for frame in scope.live_frames():
        for name, value in list(frame.f_locals.items()):
            if _IDS.search(name) and scope.is_tensor(value) and not value.dtype.is_floating_point:
                return True
            if "Tokenizer" in type(value).__name__ and not isinstance(value, type):
                return True
            if type(value) is dict and scope.is_tensor(value.get("input_ids")):
                return True
    return False


def sequence_name(width: int) -> Optional[str]:
    """The user's own variable of token ids, [batch, width]."""
    for frame in scope.live_frames():
        if not places.is_user(frame.f_code):
            continue
        for name, value in scope.variables(frame):
            if not scope.is_tensor(value) or value.is_nested or value.dtype.is_floating_point:
                continue
            if _IDS.search(name) and value.dim() == 2 and value.shape[1] == width:
                return name
    return None


def longest_sample(frames: list[FrameType], limit: int) -> Optional[dict[str, Any]]:
    """The sample of the text that is too long, where the batch in hand tells."""
    try:
        from trapline._fault.data.lengths import too_long
    except ImportError:
        return None
    sample: Optional[dict[str, Any]] = too_long(limit, frames=frames)
    return sample


_SEQ2SEQ = "transformers.trainer_seq2seq"


def generation_facts() -> Optional[dict[str, Any]]:
    """The prompt of transformers' generate(), when it is running."""
    for frame in scope.live_frames():
        if (
            frame.f_code.co_name != "generate"
            or frame.f_globals.get("__name__") != "transformers.generation.utils"
        ):
            continue
        facts: dict[str, Any] = {}
        prompt = frame.f_locals.get("input_ids_length")
        ids = frame.f_locals.get("input_ids")
        if type(prompt) is not int and scope.is_tensor(ids) and ids.dim() == 2:
            prompt = int(ids.shape[1])
        if type(prompt) is int:
            facts["prompt"] = prompt
        config = frame.f_locals.get("generation_config")
        wanted, most = (getattr(config, name, None) for name in ("max_new_tokens", "max_length"))
        if type(wanted) is int:
            facts["wanted"] = wanted
        elif type(most) is int:
            facts["length"] = most
        if any(outer.f_globals.get("__name__") == _SEQ2SEQ for outer in scope.live_frames()):
            facts["trainer"] = True
        return facts
    return None


def kept(tensor: Any, position: int) -> Optional[dict[str, Any]]:
    """Where one position is asked for, and the keys and values in reach of the tokens before it are fewer:
    `name` of the variable that has them, and `tokens`, how many they can be at most."""
    shorter: Optional[dict[str, Any]] = None
    if tensor.numel() != (tensor.shape[0] if tensor.dim() else 1):
        return None
    for frame in scope.live_frames():
        for name, value in scope.variables(frame):
            tokens = _tokens_in(value)
            if tokens is not None and tokens >= position:
                return None
            if tokens is not None and shorter is None:
                shorter = {"name": name, "tokens": tokens}
    return shorter


def _tokens_in(value: Any) -> Optional[int]:
    """Of a cache of keys and values, [batch, heads, tokens, features] or with `tokens` before `heads`, all of
    one shape: a pair for each layer, or an object that has them in lists. Which of the two sizes it is,
    nothing says: the larger."""
    parts: list[Any] = []
    if type(value) in (list, tuple):
        pairs = all(type(layer) in (list, tuple) and len(layer) == 2 for layer in value)
        parts = [part for layer in value[:_MAX_LAYERS] for part in layer] if pairs else []
    elif not owners.is_module(value) and not scope.is_tensor(value):
        parts = _in_lists(value)
    if len(parts) < 2 or not all(scope.is_tensor(part) and part.dim() == 4 for part in parts):
        return None
    shapes = {tuple(part.shape) for part in parts}
    floating = all(part.dtype.is_floating_point for part in parts)
    return max(next(iter(shapes))[1:3]) if floating and len(shapes) == 1 else None


def _in_lists(value: Any) -> list[Any]:
    """What an object's lists hold, or the objects in these (transformers' layers of a cache) themselves."""
    found: list[Any] = []
    for held in list(scope.members(value).values()):
        for item in held[:_MAX_LAYERS] if type(held) in (list, tuple) else ():
            inner = [] if scope.is_tensor(item) or owners.is_module(item) else scope.members(item).values()
            found += [part for part in (item, *inner) if scope.is_tensor(part)]
    return found


def grows(shape: list[int], calls: list[dict[str, Any]]) -> bool:
    """A loop that generates: calls before this one had the same argument, one and two shorter."""
    if not shape or shape[-1] <= 2:  # nothing is two shorter
        return False
    seen = {tuple(argument.get("shape") or ()) for call in calls for argument in call.get("args") or ()}
    return all((*shape[:-1], shape[-1] - step) in seen for step in (1, 2))
