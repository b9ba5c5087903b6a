"""Position table or token table, and the special ids that are in reach at a fault."""

from __future__ import annotations

import re
from typing import Any, Optional

from trapline._fault.program import places, scope

POSITION = re.compile(
    r"(?:^|[._])(?:wpe|pos|pe|posemb)(?:$|[._])|position|pos_emb|embed_pos(?:$|[._]|ition)", re.IGNORECASE
)
_SURELY = re.compile(r"position|(?:^|[._])wpe(?:$|[._])", re.IGNORECASE)  # `pos` may be a part of speech
_RUN = 0.5  # of the steps of a row go up by 1: padding stands beside, or another text begins
_TOKEN = re.compile(
    r"(?:^|[._])(?:wte|tok|vocab)(?:$|[._])|token(?!_type)|word|tok_emb|embed_tok", re.IGNORECASE
)
_SEGMENT = re.compile(r"token_type|segment|(?:^|[._])seg(?:$|[._])", re.IGNORECASE)
_SPECIAL = re.compile(
    r"^(?:pad|eos|bos|unk|mask|cls|sep|sos|decoder_start)(?:_token)?_(?:id|idx|index)$", re.IGNORECASE
)
_SPECIAL_ATTRIBUTES = tuple(
    f"{name}_token_id" for name in ("pad", "eos", "bos", "unk", "mask", "cls", "sep", "decoder_start")
)
_MAX_SPECIAL = 16
_LEAST = 3  # numbers of a row that tell
_MOST = 1 << 24  # numbers that are looked at


def table_kind(name: str, indices: Any, role: Optional[str] = None) -> Optional[str]:
    """Position or token table by the model's word or the name, else position when the ids count upwards;
    "other" for another table of a model that knows its table of tokens; None: not known."""
    if role == "input":
        return "token"
    if POSITION.search(name):
        return "position" if _SURELY.search(name) or _runs(indices) else "other"
    if role != "other" and _TOKEN.search(name):
        return "token"
    if counts_upwards(indices):
        return "position"
    return "other" if role == "other" or _SEGMENT.search(name) else None


def is_positions(indices: Any) -> bool:
    """True when a module that runs calls this very tensor its position ids."""
    for frame in scope.live_frames():
        given = frame.f_locals.get("position_ids")
        if scope.is_tensor(given):
            return given is indices or (
                given.shape == indices.shape
                and given.device == indices.device
                and given.data_ptr() == indices.data_ptr()
            )
    return False


def counts_upwards(indices: Any) -> bool:
    """True when every row of the last dimension is start, start + 1, start + 2, ...; of a single row from 0,
    since one number for each sample of a batch that is in order counts upwards, too.
    """
    length = int(indices.shape[-1]) if indices.dim() else 0
    if length < _LEAST or indices.numel() > _MOST or indices.dtype.is_floating_point:
        return False
    if indices.dim() == 1 and int(indices[0]) != 0:
        return False
    return bool((indices[..., 1:] - indices[..., :-1] == 1).all())


def _runs(indices: Any) -> bool:
    """True where most numbers are 1 more than the one before, or there is too little to tell."""
    length = int(indices.shape[-1]) if indices.dim() else 0
    if length < _LEAST or indices.numel() > _MOST or indices.dtype.is_floating_point:
        return True
    steps = indices[..., 1:] - indices[..., :-1]
    return bool((steps == 1).double().mean() >= _RUN)


def special_ids() -> dict[str, int]:
    """pad_token_id and the like: variables of user frames, tokenizers and model configurations there."""
    found: dict[str, int] = {}
    for frame in scope.live_frames():
        if not places.is_user(frame.f_code):
            continue
        for name, value in scope.variables(frame):
            if type(value) is int and _SPECIAL.match(name):
                found.setdefault(name, value)
                continue
            for holder in (value, _configuration(value)):
                _from_holder(holder, found)
        if len(found) >= _MAX_SPECIAL:
            break
    return dict(list(found.items())[:_MAX_SPECIAL])


def _configuration(value: Any) -> Any:
    """`config` of a module, read without running the user's properties."""
    from trapline._fault.program.owners import is_module

    return value.__dict__.get("config") if is_module(value) else None


def _from_holder(holder: Any, found: dict[str, int], path: str = "") -> None:
    kind = type(holder).__name__.lower()
    if "tokenizer" not in kind and "config" not in kind:
        return  # properties of other objects may do anything
    for name in _SPECIAL_ATTRIBUTES:
        try:
            value = getattr(holder, name, None)
        except Exception:
            continue
        if type(value) is int:
            found.setdefault(path + name, value)
    for name, part in list(scope.members(holder).items()) if not path else ():  # text_config, decoder
        if "config" in type(part).__name__.lower():
            _from_holder(part, found, f"{name}.")
