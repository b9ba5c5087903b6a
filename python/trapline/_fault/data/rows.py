"""All rows of a batch that offend, where the report names only the first: for the quarantine file."""

from __future__ import annotations

from typing import Any, Optional

from trapline._fault.data import samples, values
from trapline._fault.data.match import Match
from trapline._fault.data.samples import Located
from trapline._library import diagnose

_MAX_ROWS = 65536


def offending(violation: dict[str, Any], bad: Any) -> tuple[Any, list[dict[str, Any]]]:
    """The data set and, for each sample that offends, ``dataset_index``, ``value`` and ``count``.

    `bad` marks the offending elements of the tensor. (None, []) where the batch, or the data set's
    numbers, cannot be shown: then nobody knows which samples to leave out.
    """
    predicate = diagnose.contract(violation["contract"]).get("predicate")
    tensor = violation["tensor"]
    located = samples.locate(tensor, violation["scan"], predicate)
    located = located or samples.locate_partner(violation)
    return (None, []) if located is None else _counted(located, _places(located, bad), tensor)


def not_finite(located: Located) -> tuple[Any, list[dict[str, Any]]]:
    """The same of a batch's tensor that holds numbers which are not finite."""
    tensor = located.tensor.detach()
    positions = (~tensor.isfinite()).reshape(-1).nonzero().reshape(-1)[:_MAX_ROWS].tolist()
    return _counted(located, [(values.unravel(p, tensor.shape), p) for p in positions], tensor)


def _counted(
    located: Located, places: list[tuple[list[int], int]], tensor: Any
) -> tuple[Any, list[dict[str, Any]]]:
    """`places`: in the batch's tensor, and in `tensor`."""
    if located.batch.loader.iterable:
        return None, []
    data_set = located.batch.loader.data_set()
    if data_set is None:
        return None, []
    dimension = _row_dimension(located)
    found: dict[int, dict[str, Any]] = {}
    for place, position in places[:_MAX_ROWS]:
        here = Located(located.batch, located.tensor, Match(place, None, 0, False))
        if dimension is None:
            index: Optional[int] = samples.sample_facts_of(here).get("dataset_index")
        else:
            index = samples.index_of(here, place[dimension])
        if index is None:
            continue
        if index not in found:
            value = values.number(tensor.reshape(-1)[position].item())
            found[index] = {"dataset_index": index, "value": value, "count": 0}
        found[index]["count"] += 1
    return data_set, list(found.values())


def _places(located: Located, bad: Any) -> list[tuple[list[int], int]]:
    """Where the bad elements are in the batch's tensor, and which elements of the operation's they are."""
    import torch

    view, batch = located.found.view, located.tensor
    at = bad.reshape(-1).nonzero().reshape(-1).cpu()
    if view is None or not at.numel():
        first = int(at[0]) if at.numel() else 0
        return [(list(located.found.place), first)]
    numbers = torch.arange(batch.numel()).reshape(batch.shape)
    positions = view(numbers).reshape(-1)[at]
    pairs = zip(positions.tolist(), at.tolist())
    return [(values.unravel(p, batch.shape), a) for p, a in pairs if p >= 0]  # below 0: not of the batch


def _row_dimension(located: Located) -> Optional[int]:
    """Which dimension of the batch's tensor counts its samples."""
    probe = Match(list(range(located.tensor.dim())), None, 0, False)
    return samples.row_of(Located(located.batch, located.tensor, probe))
