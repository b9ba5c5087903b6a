"""The batch that holds a number which is not finite: whose it is, and what the program calls it."""

from __future__ import annotations

from typing import Any, Optional

from trapline._fault.data import batches, cut, records, samples
from trapline._fault.data.match import Match
from trapline._fault.data.values import MAX_ELEMENTS, element, first_place
from trapline._fault.program import arisen, holders, names, scope
from trapline._watch.rows import sample_of

_BATCHES = 16  # the newest, and those that it is compared with
_LEAST = 3  # of these
_NAMED = 8
_FEW = 16


def sample(like: Any = None) -> dict[str, Any]:
    """The sample of :func:`spoiled`."""
    located = spoiled(like)
    if located is None:
        return {}
    told = samples.sample_facts(located)
    element = _element(located) or _of_array(located, told or {})
    return {"sample": told, **element, **_others(located, told or {})}


def left_out(bad: Any) -> dict[str, Any]:
    """`left_out`, and the sample: the batch holds such numbers just where a derivative does, and the loss is
    finite without them (nanmean, a mask): 0 times NaN."""
    import torch

    like = torch.zeros(bad.shape).masked_fill_(bad.cpu(), float("nan"))
    told = sample(like)
    return {"left_out": True, **told} if told else {}


def by_holder(bad: Any) -> dict[str, Any]:
    """The sample of the first bad row of what a loss was given: of rows that were cut by hand, by the array
    that holds these numbers and not by what the model was given."""
    found = sample_of(bad, learned=False)
    batch, whose = next(iter(batches.newest_first()), None), found.get("sample") or {}
    if batch is None or type(batch.loader) is not cut.Source or "dataset_index" not in whose:
        return found
    holder = cut.holder_of(batch, bad) if len(bad) == len(batch.indices) else None
    if holder is not None:
        name, held = holder
        found["sample"] = records.sample(name, held, len(held), whose["dataset_index"], whose.get("row"))
    return found


def _others(located: samples.Located, told: dict[str, Any]) -> dict[str, Any]:
    """`rows`: how many of the data set's own array are not finite, the first of them, and the one `place` of
    a row that all have it in."""
    import torch

    data, row = located.batch.loader.data_set(), told.get("row")
    indices = located.batch.indices
    if (
        data is None
        or not isinstance(row, int)
        or not isinstance(indices, (list, tuple))
        or row >= len(indices)
    ):
        return {}
    own = located.tensor.detach()[row]
    for array in _arrays(data):
        if array.shape[1:] != own.shape or not isinstance(indices[row], int) or indices[row] >= len(array):
            continue
        if not torch.allclose(array[indices[row]].double(), own.double(), rtol=0, atol=0, equal_nan=True):
            continue
        bad = ~array.isfinite()
        rows = bad.reshape(len(array), -1).any(1).nonzero().reshape(-1).tolist()
        places = bad.any(0).nonzero().tolist()
        one = {"place": places[0]} if len(places) == 1 and own.dim() else {}
        return {"rows": {"bad": len(rows), "total": len(array), "first": rows[:_NAMED], **one}}
    return _every_row(located)


def _every_row(located: samples.Located) -> dict[str, Any]:
    """The same where the batch tells it: all of its rows have such a number at the same place, so that none
    of them is to blame."""
    bad = ~located.tensor.detach().isfinite()
    count = len(bad) if bad.dim() else 0
    if count < _LEAST or count != len(located.batch.indices) or not bool(bad.all(0).any()):
        return {}
    return {"rows": {"bad": count, "total": count, "batch": True}}


def _arrays(data: Any) -> list[Any]:
    """Of a row for each sample, which the data set itself holds."""
    held = list(scope.members(data).values())
    held += [one for many in held if type(many) is dict and len(many) < _FEW for one in many.values()]
    held += [one for many in held if type(many) in (list, tuple) and len(many) < _FEW for one in many]
    found = [holders.as_tensor(one, MAX_ELEMENTS) for one in held if holders.is_array(one)]
    return [one for one in found if one is not None and one.dim() and one.dtype.is_floating_point]


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
    name = names.Names().of(lambda value: value is located.tensor) or _in_library(located.tensor)
    return element(name, located.tensor, list(located.found.place)) if name else {}


def of_argument(bad: Any) -> dict[str, Any]:
    """Of what a module was given: the first number that is not finite, by the name of the variable that holds
    it, and the statement that gave it to that."""
    if bad is None or not bad.is_cpu or not bad.dim():
        return {}
    held = next(
        (
            value
            for frame in holders.user_frames()
            for value in list(frame.f_locals.values())
            if type(value) is type(bad) and value.shape == bad.shape and value.data_ptr() == bad.data_ptr()
        ),
        None,
    )
    name = names.Names().of(lambda value: value is held) if held is not None else ""
    if not name:
        return {}
    return {**element(name, bad, first_place(~bad.isfinite())), **arisen.bound(held)}


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
        at = first_place(~tensor.detach().isfinite())
        return samples.Located(batch, tensor, Match(at, None, 0, True))
    return None
