"""Whether a sample that was found is to blame: not where most of its batch is as bad."""

from __future__ import annotations

from typing import Any, Optional

from trapline._fault.data import at_work, batches, hand, values
from trapline._fault.data.samples import Sample

_MIN_ROWS = 4
_NOT_BLAMED = ("inside", "padding", "collate", "replaced")
_MANY_ROWS = 8  # among which half are no chance


def blamed(sample: Optional[Sample], violation: dict[str, Any], predicate: Optional[int]) -> Optional[Sample]:
    """Where most rows of the batch are bad, no sample is at fault: then only the batch is named."""
    tensor, first = violation["tensor"], violation["scan"].get("first", -1)
    if not sample or first < 0 or not tensor.dim():
        return sample
    most = 2 * violation["scan"].get("bad", 0) >= violation["scan"].get("total", 0) > _MIN_ROWS
    if "one_of" in sample and (most or _are_most_rows_bad(violation, predicate)):
        return _only_batch(sample)
    if "row" not in sample:
        return sample
    if sample.get("by") in _NOT_BLAMED:  # whatever the others have
        return sample
    if values.unravel(first, tensor.shape)[0] != sample["row"] or not _are_most_rows_bad(
        violation, predicate
    ):
        return sample
    if sample.get("by") == "function" and "batch" in sample:
        return {name: sample[name] for name in ("batch", "by", "likely") if name in sample}
    return _only_batch(sample)


def _only_batch(sample: Sample) -> Optional[Sample]:
    """The batch with its samples, none of which is blamed."""
    numbers = [batch for batch in batches.newest_first(later=True) if batch.number == sample.get("batch")]
    if len(numbers) > 1:  # of another epoch, or of another loader
        current = hand.in_hand()
        numbers = [batch for batch in numbers if current is not None and batch.serial == current.serial]
    if len(numbers) == 1:
        return at_work.told(numbers[0])
    return {"batch": sample["batch"]} if "batch" in sample else None


def _are_most_rows_bad(violation: dict[str, Any], predicate: Optional[int]) -> bool:
    tensor = violation["tensor"]
    rows = tensor.shape[0]
    if rows < _MIN_ROWS or tensor.numel() > values.MAX_ELEMENTS:
        return False
    bad = values.bad_mask(tensor.detach().reshape(-1).cpu(), violation["scan"], predicate)
    if bad is None or int(bad.sum()) != violation["scan"].get("bad"):
        return False
    found = int(bad.reshape(rows, -1).any(1).sum())
    return found * 2 > rows or (rows >= _MANY_ROWS and found * 2 == rows)
