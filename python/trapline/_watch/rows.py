"""Whose row it is that is not finite: of a table of weights, or of what an operation made of the batch."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

from trapline._fault.data import at_work, batches, cut, hand, only, order, rows_of, samples, turns
from trapline._fault.data.match import Match
from trapline._fault.data.unusual import stands_out
from trapline._fault.data.values import unravel
from trapline._fault.program import owners
from trapline._watch.again import MAX_CALLS, Call, is_plain
from trapline._watch.flow import parts

_DEPTH = 5  # of tuples, lists, mappings
_MAX_ROWS = 4  # that are told one by one


def read_row(module: Any, name: str, arguments: Any) -> dict[str, Any]:
    """Facts: of an embedding's weights the first bad row that the module was given, else the only bad one."""
    import torch

    owner = dict(module.named_modules()).get(name.rpartition(".")[0])
    if not isinstance(owner, (torch.nn.Embedding, torch.nn.EmbeddingBag)):
        return {}
    bad = (~owner.weight.detach().isfinite()).any(1).cpu()
    if bool(bad.all()):
        return {}
    ids = ids_in(arguments, len(bad))
    for given in ids:
        hits = bad[given.detach().cpu().long()].reshape(-1)
        if bool(hits.any()):
            at = int(hits.int().argmax())
            # Several inputs of ids: another table may be what this one is for.
            return {"row": int(given.reshape(-1)[at]), **(_sample(given, at) if len(ids) == 1 else {})}
    return {"row": int(bad.int().argmax())} if int(bad.sum()) == 1 else {}


def ids_in(arguments: Any, count: int) -> list[Any]:
    """Of what a module was given, whole numbers that may name rows of a table of so many."""
    return [tensor for tensor in _tensors(arguments) if _are_ids(tensor, count)]


def sample_of(
    bad: Any, parameters: Iterable[Any] = (), learned: bool = True, grouped: bool = True
) -> dict[str, Any]:
    """The sample of the first row of `bad`, where that has the rows of the batch in hand and most are good.

    What has the shape of one of the `parameters`, or of one that was reduced, is made of weights.
    `grouped`: a sample may have several rows; not of derivatives, some of which have the shape of weights.
    `learned`: the numbers are the model's, so that only a sample that stands out in the data is to blame.
    """
    if bad is None or not bad.dim() or any(_is_made_of(bad, parameter) for parameter in parameters):
        return {}
    batch = hand.in_hand() or next(iter(batches.newest_first()), None)
    if batch is None or not isinstance(batch.indices, (list, tuple)) or len(batch.indices) < 2:
        return {}
    count, sizes = len(batch.indices), list(bad.shape)
    at = sizes.index(count) if count in sizes else 0
    rows = bad.movedim(at, 0).reshape(sizes[at], -1).any(1)
    parts = [part for part in batch.tensors() if part.dim() and part.numel()]
    if at and any(count in part.shape[1:] for part in parts):  # as many features as samples
        return {}
    like = next((part for part in parts if len(part) == sizes[at]), None)
    # Rows that the program has cut itself say nothing of another number of rows.
    if (
        type(batch.loader) is not cut.Source
        and grouped
        and like is None
        and sizes[0] % count == 0
        and not _is_of_weights(bad)
    ):
        # Tokens or heads of a sample, one after the other.
        rows = rows.reshape(count, -1).any(1)
        like = next((part for part in parts if len(part) == count), None)
    if count not in sizes:  # nodes or edges of graphs
        owner = rows_of.of_graphs(parts, sizes[0], count)
        bad_rows = bad.reshape(bad.shape[0], -1).any(1)
        if owner is not None and 0 < 2 * int(bad_rows.sum()) <= len(bad_rows):
            hit = owner[bad_rows.cpu()].unique()
            return {"sample": rows_of.of_row(batch, int(hit[0]))} if 2 * len(hit) <= count else {}
    if like is None or not 0 < 2 * int(rows.sum()) <= len(rows):
        return {}
    row = int(rows.int().argmax())
    blamed = not learned or stands_out(batch, row)
    if not blamed and int(rows.sum()) > 1:
        return _one_of(batch, rows) or batch_in_hand()
    place = [row, *[0] * (like.dim() - 1)]
    located = samples.Located(batch, like, Match(place, None, 0, True))
    # Some row has to be the first that the model's own numbers break: it is told, and not blamed.
    sample = samples.sample_facts(located, *(() if blamed else ("alone",)), likely=blamed)
    known = sample is not None and ("dataset_index" in sample or "one_of" in sample)
    return {"sample": sample if known else at_work.told(batch)}


def _one_of(batch: batches.Batch, rows: Any) -> dict[str, Any]:
    """The samples of a few rows that are all bad."""
    at = rows.nonzero().reshape(-1).tolist()
    if len(at) > _MAX_ROWS or not isinstance(batch.indices, (list, tuple)) or len(batch.indices) != len(rows):
        return {}
    indices = [batch.indices[row] for row in at]
    if not all(map(samples.is_int, indices)) or not order.is_kept(batch):
        return {}
    sample: dict[str, Any] = {"batch": batch.number}
    samples.with_candidates(sample, indices)
    return {"sample": samples.described(batch, sample)}


def record_of(bad: Any) -> dict[str, Any]:
    """Of numbers that are not finite, in a program without a DataLoader, the one record of its data that has
    such a number: likely."""
    if bad is None or not bad.numel() or batches.given_out():
        return {}
    odd = bad[~bad.isfinite()]
    value = math.nan if not odd.numel() or bool(odd.isnan().any()) else float(odd.flatten()[0])
    sample = only.sample_facts(bad, {"first": 0, "value": value})
    return {"sample": sample} if sample is not None else {}


def record_given(given: Any) -> dict[str, Any]:
    """In a program without a DataLoader, the record that the module was called for."""
    sample = None if batches.given_out() else rows_of.record_given(list(_tensors(given)))
    return {"sample": sample} if sample is not None else {}


def turn_of(call: Call, own: list[Call]) -> dict[str, Any]:
    """In a program without a DataLoader, the record that a loop over some was at when it made this call."""
    alike = [one for one in own if one.module() is call.module()]
    if batches.given_out() or not any(one is call for one in alike):
        return {}
    back = len(alike) - 1 - next(at for at, one in enumerate(alike) if one is call)
    record = turns.of_call(call.module(), back, len(alike) if len(own) < MAX_CALLS else None)
    return {} if record is None else {"sample": record}


# Of one number alone they are not finite, whatever it is.
_OF_SEVERAL = ("var", "std", "var_mean", "std_mean", "cov", "corrcoef")


def batch_in_hand(op: str = "") -> dict[str, Any]:
    """The step's batch, where no row of it can be told; the sample, where it holds one, and that is not what
    the operation failed for."""
    batch = hand.in_hand() or hand.newest()
    if batch is None:
        return {}
    sample = at_work.told(batch)
    if sample.get("of") == 1 and op in _OF_SEVERAL:
        return {}
    if sample.get("of") == 1:
        only = {"batch": sample["batch"], "row": 0, "dataset_index": sample["one_of"][0]}
        sample = samples.described(batch, only)
    return {"sample": sample}


def _is_of_weights(made: Any) -> bool:
    """Some module of the program's has a weight of that shape: averages of weights, noise that is added."""
    every = (parameter for _, root in owners.roots() for parameter in root.parameters())
    return any(parameter.shape == made.shape for parameter in every)


def _is_made_of(made: Any, parameter: Any) -> bool:
    shape = tuple(parameter.shape)
    return len(shape) == made.dim() and all(size in (1, of) for size, of in zip(made.shape, shape))


def _tensors(value: Any, depth: int = _DEPTH) -> Iterator[Any]:
    if is_plain(value):
        yield value
    elif depth > 0:
        for item in parts(value):
            yield from _tensors(item, depth - 1)


def _are_ids(tensor: Any, rows: int) -> bool:
    if tensor.is_floating_point() or tensor.is_complex() or tensor.dtype.itemsize < 2 or not tensor.numel():
        return False
    return int(tensor.min()) >= 0 and int(tensor.max()) < rows


def _sample(given: Any, at: int) -> dict[str, Any]:
    """Where a batch holds just what the module was given."""
    import torch

    for batch in batches.newest_first()[:2]:
        for tensor in batch.tensors():
            if tensor.shape == given.shape and tensor.dtype == given.dtype and torch.equal(tensor, given):
                where = Match(unravel(at, tensor.shape), None, 0, True)
                return {"sample": samples.sample_facts(samples.Located(batch, tensor, where))}
    return {}
