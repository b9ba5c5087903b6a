"""Which row of a table of weights was not finite, and whose sample read it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trapline._fault.data import batches, samples
from trapline._fault.data.match import Match
from trapline._fault.data.values import unravel
from trapline._watch.again import is_plain
from trapline._watch.flow import parts

_DEPTH = 5  # of tuples, lists, mappings


def read_row(module: Any, name: str, arguments: Any) -> dict[str, Any]:
    """Facts: of an embedding's weights the first bad row that the module was given, else the only bad one."""
    import torch

    owner = dict(module.named_modules()).get(name.rpartition(".")[0])
    if not isinstance(owner, (torch.nn.Embedding, torch.nn.EmbeddingBag)):
        return {}
    bad = (~owner.weight.detach().isfinite()).any(1).cpu()
    if bool(bad.all()):
        return {}
    ids = [tensor for tensor in _tensors(arguments) if _are_ids(tensor, len(bad))]
    for given in ids:
        hits = bad[given.detach().cpu().long()].reshape(-1)
        if bool(hits.any()):
            at = int(hits.int().argmax())
            # Several inputs of ids: another table may be what this one is for.
            return {"row": int(given.reshape(-1)[at]), **(_sample(given, at) if len(ids) == 1 else {})}
    return {"row": int(bad.int().argmax())} if int(bad.sum()) == 1 else {}


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
