"""The line of a data set, or of a collate function, that makes a number which is not finite: the program's
data set is asked for that sample once more, and its operations are followed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from trapline._fault.data import hand, samples
from trapline._fault.data.fetched import RandomState, fetch
from trapline._fault.program import places, warned
from trapline._library import aside
from trapline._watch import spoilt
from trapline._watch.flow import Flow, tensors

Facts = dict[str, Any]
Place = tuple[str, str, int]  # what NumPy said, file, line
_NESTED = 3
_READY = ("torch.", "builtins", "numpy")  # kinds of data sets that compute nothing


def made() -> Facts:
    """`fetched`, the operation or what NumPy says of it, and `origin`; {} where the sample that is not finite
    was so before, or is another one each time."""
    located = spoilt.spoiled()
    indices = None if located is None else located.batch.indices
    row = None if located is None else (samples.sample_facts(located) or {}).get("row")
    if not isinstance(indices, (list, tuple)) or not isinstance(row, int) or not row < len(indices):
        return {}
    data_set, collate = located.batch.loader.data_set(), located.batch.loader.collate()
    if data_set is None or (_computes_nothing(data_set) and not _is_user(collate)):
        return {}
    with aside.running(), RandomState(data_set), torch.no_grad(), _numpy() as said, Flow() as flow:
        sample = fetch(data_set, indices[row])
        if not _bad(sample) and _is_user(collate):
            sample = _collated(collate, sample)
        bad = _bad(sample)
        origin = flow.origin_of(bad) if bad else None
    if origin is not None and origin.frame is not None:
        first = origin.infinite or origin
        return {"fetched": {"op": first.op}, "origin": first.frame or origin.frame} if first.finite else {}
    wanted = [place for place in said if place[0].startswith("invalid")] or said
    lines = {place[1:] for place in wanted}
    if not bad or len(lines) != 1:
        return {}
    return {"fetched": {"numpy": wanted[0][0]}, "origin": warned.frame(*lines.pop())}


def _computes_nothing(data_set: Any) -> bool:
    return type(data_set).__module__.startswith(_READY) and not hasattr(data_set, "dataset")


def _is_user(function: Any) -> bool:
    called = function if hasattr(function, "__code__") else vars(type(function)).get("__call__")
    code = getattr(called, "__code__", None)
    return code is not None and places.is_user(code)


def _collated(collate: Any, sample: Any) -> Any:
    try:
        return collate([sample])
    except Exception:  # what it makes of several
        return None


def _bad(sample: Any) -> list[Any]:
    """The tensors and arrays of it that are not finite, as tensors."""
    items = [torch.from_numpy(one) if _is_array(one) else one for one in hand.items_of(sample, _NESTED)]
    items = [torch.tensor(one) if isinstance(one, float) else one for one in items]
    return [one for one in tensors(items) if not bool(one.isfinite().all())]


def _is_array(value: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and type(value) is numpy.ndarray and value.dtype in ("float32", "float64")


@contextmanager
def _numpy() -> Iterator[list[Place]]:
    """What NumPy meets, and in which of the user's lines."""
    said: list[Place] = []
    numpy = sys.modules.get("numpy")
    if numpy is None:
        yield said
        return

    def note(what: str, flag: int) -> None:
        del flag
        frame: Any = sys._getframe(1)
        while frame is not None and not places.is_user(frame.f_code):
            frame = frame.f_back
        if frame is not None:
            said.append((what, frame.f_code.co_filename, frame.f_lineno))

    with numpy.errstate(divide="call", over="call", invalid="call", call=note):
        yield said
