"""The row of a batch that no DataLoader of torch gave out: of a library's own loader, or a generator.

The program shows it: a loop has drawn it, or a function was given it as `batch`, as hooks of trainers are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Optional

from trapline._fault.data import batches, hand, match
from trapline._fault.data.samples import Sample
from trapline._fault.program import loops, places, scope

_MAX_DRAWN = 8
_BATCHES = ("b", "batch", "minibatch", "mini_batch")
_NUMBERS = ("i", "batch_idx", "batch_index", "batch_nb", "batch_id", "step_idx")
_KEYS = ("item_id", "__key__", "file_name", "path")
_LEAST = 2  # tensors with a row for each sample


def sample_facts(tensor: Any, scan: dict[str, Any], predicate: Optional[int]) -> Optional[Sample]:
    """`row`, and as far as they are known `batch` and `key`."""
    if any(batch.tensors() for batch in batches.newest_first()[:1]):
        return None  # a DataLoader's batch would have been found
    for container, number in _containers():
        parts = [item for item in hand.items_of(container, 1) if scope.is_tensor(item) and item.dim()]
        count = parts[0].shape[0] if parts else 0
        if len(parts) < _LEAST or count < _LEAST or any(part.shape[0] != count for part in parts):
            continue
        found = [match.locate(tensor, scan, predicate, part, True) for part in parts]
        rows = {one.place[0] for one in found if one is not None and one.place}
        if len(rows) != 1:
            continue
        sample: Sample = {"row": rows.pop()}
        if number is not None:
            sample["batch"] = number
        key = _key(container, sample["row"], count)
        if key:
            sample["key"] = key
        return sample
    return None


def _containers() -> Iterator[tuple[Any, Optional[int]]]:
    """Batches that the frames hold, innermost first, each with its number."""
    for frame in scope.live_frames():
        held, code = frame.f_locals, frame.f_code
        given = code.co_varnames[: code.co_argcount]
        for name in _BATCHES:
            if name in given and type(held.get(name)) in (dict, list, tuple):
                numbers = [held.get(word) for word in _NUMBERS]
                yield held[name], next((one for one in numbers if type(one) is int), None)
        if not places.is_user(code):
            continue
        for at, values in enumerate(loops.drawn(frame)):
            if at == _MAX_DRAWN:
                break
            numbers = [value for value in values if type(value) is int]
            number = numbers[0] if len(numbers) == 1 and values[0] is numbers[0] else None
            containers = [value for value in values if type(value) in (dict, list, tuple)]
            tensors = [value for value in values if scope.is_tensor(value)]
            for container in containers or ([tensors] if len(tensors) > 1 else []):
                yield container, number


def _key(container: Any, row: int, count: int) -> str:
    """What the batch itself calls its samples: gluonts' item_id, webdataset's keys."""
    for name in _KEYS:
        entries = container.get(name) if type(container) is dict else None
        if isinstance(entries, (list, tuple)) and len(entries) == count and isinstance(entries[row], str):
            return str(entries[row])
    return ""
