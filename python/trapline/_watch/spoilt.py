"""The batch that holds a number which is not finite: whose it is, and what the program calls it."""

from __future__ import annotations

from typing import Any, Optional

from trapline._fault.data import batches, cut, samples
from trapline._fault.data.match import Match
from trapline._fault.data.values import unravel
from trapline._fault.program import arisen, names, scope

_BATCHES = 16  # the newest, and those that it is compared with
_LEAST = 3  # of these


def sample(like: Any = None) -> dict[str, Any]:
    """The sample of :func:`spoiled`."""
    located = spoiled(like)
    if located is None:
        return {}
    told = samples.sample_facts(located)
    return {"sample": told, **(_element(located) or _of_array(located, told or {}))}


def _of_array(located: samples.Located, told: dict[str, Any]) -> dict[str, Any]:
    """The same by the program's array that the batch was cut from, and the line that made that."""
    data = located.batch.loader.data_set() if type(located.batch.loader) is cut.Source else None
    name, row = (told.get("dataset") or {}).get("name"), told.get("dataset_index")
    place = list(located.found.place)
    if name is None or row is None or getattr(data, "ndim", 0) != len(place):
        return {}
    value = str(float(located.tensor.detach()[tuple(place)]))
    return {"element": {"name": name, "index": [row, *place[1:]], "value": value}, **arisen.bound(data)}


def first() -> dict[str, Any]:
    """The sample of the newest batch that is not finite, where all before it were: a model that was made for
    such numbers (a mask, nan_to_num) would have met them before."""
    newest, *before = batches.newest_first()[:_BATCHES] or [None]
    located = None if newest is None else not_finite(newest)
    if located is None or len(before) < _LEAST or any(not_finite(batch) is not None for batch in before):
        return {}
    value = located.tensor.detach()[tuple(located.found.place)]
    spoilt = "nan" if bool(value.isnan()) else "inf"
    return {"spoilt": spoilt, "sample": samples.sample_facts(located), **_element(located)}


def _element(located: samples.Located) -> dict[str, Any]:
    """By the name that the program has for it: `x[3, 12]`, `batch['weight'][0]`."""
    place = list(located.found.place)
    name = names.Names().of(lambda value: value is located.tensor) or _in_library(located.tensor)
    value = str(float(located.tensor.detach()[tuple(place)]))
    return {"element": {"name": name, "index": place, "value": value}} if name else {}


def _in_library(tensor: Any) -> str:
    """By the name that a trainer's frames have for it: `inputs['labels']`."""
    for frame in scope.live_frames():
        for variable, value in list(frame.f_locals.items()) if not _is_torch(frame) else ():
            for step, part in [("", value), *names.parts(value)]:
                if part is tensor and variable.isidentifier():
                    return variable + step
    return ""


def _is_torch(frame: Any) -> bool:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] in ("torch", "trapline")


def spoiled(like: Any = None) -> Optional[samples.Located]:
    """Where the newest batch holds a number that is not finite: just where `like` holds them."""
    found = (not_finite(batch, like) for batch in batches.newest_first()[:2])
    return next((located for located in found if located is not None), None)


def not_finite(batch: batches.Batch, like: Any = None) -> Optional[samples.Located]:
    """Where this one does, in host memory."""
    import torch

    for tensor in batch.tensors():
        if not tensor.dtype.is_floating_point or not tensor.is_cpu or bool(tensor.isfinite().all()):
            continue
        finite = tensor.isfinite().reshape(-1)
        if like is not None and not torch.equal(finite, like.isfinite().reshape(-1)):
            continue
        at = unravel(int((~tensor.detach().isfinite()).reshape(-1).int().argmax()), tensor.shape)
        return samples.Located(batch, tensor, Match(at, None, 0, True))
    return None
