"""The text that a row of ids was made of, where a library has tokenized a list of texts itself.

A frame between the program and the fault holds as many texts as there are rows (sentence-transformers'
`encode`, a pipeline): the very object of the row is looked for in the lists that the program holds. Only
Python's own containers are walked, and texts are compared by identity, never read.
"""

from __future__ import annotations

import gc
from collections import UserDict
from types import FrameType, GeneratorType
from typing import Any, Optional

from trapline._fault.data import batches, records, values
from trapline._fault.program import holders, names, places, scope

_MAX_ROWS = 1 << 12
_MAX_LIST = 1 << 20
_MAX_VARIABLES = 256
_MAX_GENERATORS = 16
_MAX_MASK = 1 << 22
Sample = dict[str, Any]


def sample_facts(tensor: Any, scan: dict[str, Any], offsets: Any = None) -> Optional[Sample]:
    """The text of the row that has the first bad element: ids, [rows, positions]; or [positions] of all rows
    one after the other, with the `offsets` at which each begins.
    """
    first = scan.get("first", -1)
    if first < 0 or tensor.dtype.is_floating_point:
        return None
    if tensor.dim() == 1 and scope.is_tensor(offsets) and offsets.dim() == 1 and offsets.numel() > 1:
        begins = offsets.detach().cpu()
        if bool((begins[1:] >= begins[:-1]).all()) and int(begins[-1]) <= tensor.numel():
            return _of_row(int((begins <= first).sum()) - 1, len(begins), "")
    if tensor.dim() < 2:
        return None
    return _of_row(values.unravel(first, tensor.shape)[0], int(tensor.shape[0]), "")


def longest(limit: int, frames: Optional[list[FrameType]] = None) -> Optional[Sample]:
    """The one longest text of the rows that go beyond `limit`, by the innermost frame's mask."""
    for frame in scope.live_frames() if frames is None else frames:
        lengths = _lengths(frame)
        if not lengths:
            continue
        most = max(lengths)
        if most <= limit or lengths.count(most) > 1:
            return None
        return _of_row(lengths.index(most), len(lengths), "length" if len(lengths) > 1 else "", frames)
    return None


def _lengths(frame: FrameType) -> list[int]:
    """How long each row is, as an `attention_mask` of the frame says: [rows, positions], 0 for padding."""
    for held in (frame.f_locals, *map(_mapping, list(frame.f_locals.values())[:_MAX_VARIABLES])):
        mask = held.get("attention_mask")
        if not scope.is_tensor(mask) or mask.dim() != 2 or not 0 < mask.numel() <= _MAX_MASK:
            continue
        if not mask.dtype.is_floating_point and scope.is_at_hand(mask):
            return [int(length) for length in (mask.detach() != 0).sum(1).tolist()]
    return []


def _mapping(value: Any) -> dict[Any, Any]:
    if issubclass(type(value), UserDict):  # Hugging Face's BatchEncoding
        value = holders.attributes(value).get("data")
    return value if type(value) is dict else {}


def _of_row(row: int, rows: int, by: str, frames: Optional[list[FrameType]] = None) -> Optional[Sample]:
    if not 0 < rows <= _MAX_ROWS:
        return None
    for frame in scope.live_frames() if frames is None else frames:
        for value in list(frame.f_locals.values())[:_MAX_VARIABLES]:
            if not _are_texts(value) or len(value) != rows:
                continue
            if places.is_user(frame.f_code) and not all(" " in text for text in value):
                continue  # words and names of the program's own, as a rule
            found = _in_program(value[row], value)
            if found is not None:
                sample = {**found, **({"row": row} if rows > 1 else {})}
                return {**sample, "by": by} if by else sample
    return _of_record(row, rows, by, frames) if rows > 1 else None


def _of_record(row: int, rows: int, by: str, frames: Optional[list[FrameType]]) -> Optional[Sample]:
    """A slice of the program's records, of which its own function has made the rows: likely."""
    for frame in [*scope.live_frames(), *_generators()] if frames is None else frames:
        for value in list(frame.f_locals.values())[:_MAX_VARIABLES] if places.is_user(frame.f_code) else ():
            if type(value) not in (list, tuple) or len(value) != rows:
                continue
            if not all(type(record) in (dict, tuple) or scope.members(record) for record in value):
                continue
            for name, whole in names.lists(_MAX_LIST):
                at = [position for position, record in enumerate(whole) if record is value[row]]
                if len(whole) > rows and len(at) == 1:
                    sample = records.sample(name, whole, len(whole), at[0], row, likely=True)
                    return {**sample, "by": by} if by else sample
    return None


def _generators() -> list[FrameType]:
    """Of the program's own that wait to go on: one of them may have made the batch."""
    made = (one for one in gc.get_objects() if type(one) is GeneratorType)
    frames = [one.gi_frame for one in made if one.gi_frame is not None and places.is_user(one.gi_code)]
    return frames[:_MAX_GENERATORS]


def _are_texts(value: Any) -> bool:
    return type(value) in (list, tuple) and len(value) > 0 and all(type(item) is str for item in value)


def _in_program(text: str, batch: Any) -> Optional[Sample]:
    """Where the program's own list has this very text; the longest list of those that have it."""
    found: list[tuple[int, Sample]] = []
    for name, held in names.lists(_MAX_LIST):
        at = [position for position, item in enumerate(held) if item is text]
        # As many texts as the batch has rows are its texts, where no loader has made it of others.
        is_whole = held is batch and batches.given_out()
        if len(at) == 1 and len(held) >= len(batch) and not is_whole:
            found.append((len(held), records.sample(name, held, len(held), at[0], None)))
    return max(found, key=lambda one: one[0])[1] if found else None
