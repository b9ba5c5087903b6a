"""``trapline.check_labels`` and its relatives: the contracts of the guard, applied to data at hand."""

from __future__ import annotations

import ctypes
import json
import sys
from collections.abc import Iterator, Mapping
from typing import Any, Callable, Optional

from trapline._check import tensors
from trapline._library import capi, current, paths, scans
from trapline._library.errors import DeviceAssertError

_MAX_LIMIT = 1 << 62


def make_rule(
    kind: int, limit: int = 0, ignore_index: Optional[int] = None, positions: Optional[int] = None
) -> capi.DataRule:
    """A rule; ValueError when a limit makes no sense."""
    if kind in (capi.DATA_LABELS, capi.DATA_IDS) and not 0 < limit < _MAX_LIMIT:
        raise ValueError(f"trapline: check: {limit} classes or rows: give a number above 0")
    return capi.DataRule(
        kind, ignore_index is not None, limit, ignore_index or 0, -1 if positions is None else positions
    )


def _answer(lib: ctypes.CDLL, pointer: int) -> dict:
    if not pointer:
        raise MemoryError("trapline: check: out of memory: free some memory and run again")
    try:
        answer = json.loads(ctypes.string_at(pointer).decode("utf-8", "replace"))
    finally:
        lib.trapline_free(pointer)
    if "error" in answer:
        raise TypeError(f"trapline: {answer['error']}")
    return answer


def _good(rule: capi.DataRule, view: tensors.View) -> bool:
    """One sweep. ctypes lets go of the GIL meanwhile."""
    if view.missing[0]:
        return False
    if rule.positions >= 0 and view.lengths is not None and max(view.lengths(), default=0) > rule.positions:
        return False
    scan = capi.Scan()
    verdict = paths.library().trapline_data_check(
        ctypes.byref(rule), ctypes.byref(view.tensor), ctypes.byref(scan)
    )
    if verdict == capi.NOT_APPLICABLE:
        name = tensors.NAMES.get(view.dtype, "?")
        wanted = "integers" if rule.kind in (capi.DATA_LABELS, capi.DATA_IDS) else "floating point numbers"
        raise TypeError(f"trapline: check: elements of dtype {name}: pass {wanted}")
    return verdict == capi.OK


def tally(rule: capi.DataRule, view: tensors.View) -> dict:
    """What the library saw in one view, element by element, with rows counted over all views."""
    lib = paths.library()
    if view.missing[0]:
        count, first = view.missing
        index = view.place(first) if view.place else [first]
        index[0] += view.first_row
        total = max(1, view.sizes[0]) - count
        at = {"index": index, "value": "f:nan"}
        return {"total": total, "missing": {"count": count, "first": at, "text": ""}}
    first_row = 0 if view.place else view.first_row
    seen = _answer(lib, lib.trapline_data_tally(ctypes.byref(rule), ctypes.byref(view.tensor), first_row))
    if view.place:
        for at in [seen.get("first"), *seen.get("places", []), seen.get("missing", {}).get("first")]:
            if at and len(at["index"]) == 1:
                at["index"] = view.place(at["index"][0])
                at["index"][0] += view.first_row
    if view.lengths is not None and rule.positions >= 0:
        seen["lengths"] = _lengths(view, rule.positions)
    return seen


def _lengths(view: tensors.View, most: int) -> dict:
    lengths = view.lengths()
    long = [row for row, length in enumerate(lengths) if length > most]
    return {
        "rows": len(lengths),
        "too_long": len(long),
        "longest": max(lengths, default=0),
        "row": view.first_row + (long[0] if long else 0),
    }


def findings(rule: capi.DataRule, tallies: list, subject: dict) -> list:
    """The findings of merged tallies, as in docs/finding.schema.json."""
    lib = paths.library()
    texts = json.dumps(tallies).encode(), json.dumps(subject).encode()
    return _answer(lib, lib.trapline_data_findings(ctypes.byref(rule), *texts))["findings"]


def find(rule: capi.DataRule, x: Any, column: Optional[str] = None, name: str = "") -> list:
    """The findings of ``x``; an empty list when it is good, after one sweep without a copy."""
    if x is None:
        raise TypeError(
            "trapline: check: None holds no numbers: pass an array, a tensor, a column, or a list"
        )
    x = _from_device(rule, x)
    if x is None:
        return []
    pieces = tensors.views(x, column)
    if all(_good(rule, view) for view in pieces):
        return []
    shape = pieces[0].shape if len(pieces) == 1 else [sum(view.rows for view in pieces)]
    subject = {"name": name or column or "", "dtype": tensors.NAMES[pieces[0].dtype], "shape": shape}
    return findings(rule, [tally(rule, view) for view in pieces], subject)


def _from_device(rule: capi.DataRule, x: Any) -> Any:
    """A torch tensor on a device is judged there; only a bad one is copied to be looked at."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(x, torch.Tensor):
        return x
    x = x.detach()
    if x.device.type == "cpu":
        return x if x.layout == torch.strided else x.to_dense()
    if x.numel() == 0:
        return None
    if rule.kind in (capi.DATA_LABELS, capi.DATA_IDS):
        bad = (x < 0) | (x >= rule.limit)
        if rule.has_ignore_index:
            bad &= x != rule.ignore_index
    elif rule.kind == capi.DATA_FINITE:
        bad = ~torch.isfinite(x)
    else:
        bad = ~torch.isfinite(x) | (x < 0) | (x.sum(-1, keepdim=True) <= 0)
    too_long = rule.kind == capi.DATA_IDS and 0 <= rule.positions < (x.shape[-1] if x.dim() >= 2 else 0)
    return x.cpu() if too_long or bool(bad.any()) else None


def require(rule: capi.DataRule, x: Any, column: Optional[str] = None, name: str = "") -> None:
    """Raises DeviceAssertError for the first finding of ``x``."""
    found = find(rule, x, column, name)
    if found:
        raise _error(found[0])


def _error(finding: dict[str, Any]) -> DeviceAssertError:
    current.name_in(finding, current.of_fault(late=False))
    current.told(finding)
    return DeviceAssertError(finding["summary"], finding)


def check_labels(
    x: Any, num_classes: int, ignore_index: Optional[int] = -100, *, column: Optional[str] = None
) -> None:
    require(make_rule(capi.DATA_LABELS, num_classes, ignore_index), x, column)


def check_ids(
    x: Any, num_embeddings: int, *, positions: Optional[int] = None, column: Optional[str] = None
) -> None:
    require(make_rule(capi.DATA_IDS, num_embeddings, positions=positions), x, column)


def check_finite(x: Any, *, column: Optional[str] = None) -> None:
    rule = make_rule(capi.DATA_FINITE)
    parts = _parts(x) if column is None else None
    if parts is None:
        require(rule, x, column)
        return
    for name, part in parts:
        require(rule, part, name=name)


def _parts(x: Any) -> Optional[list]:
    """(name, tensor) of a module, a state dict, a list of parameters; of anything else None."""
    torch = sys.modules.get("torch")
    if torch is None:
        return None
    if isinstance(x, torch.nn.Module):
        x = x.state_dict()
    if isinstance(x, Mapping):
        pairs = list(x.items())
    elif isinstance(x, Iterator):  # model.parameters(), model.named_parameters()
        pairs = [one if _is_named(torch, one) else (str(i), one) for i, one in enumerate(x)]
    elif isinstance(x, (list, tuple)) and any(isinstance(one, torch.Tensor) for one in x):
        pairs = [(str(i), one) for i, one in enumerate(x)]
    else:
        return None
    floats = []
    for name, part in pairs:
        if isinstance(part, Mapping):
            floats += [(f"{name}.{inner}", tensor) for inner, tensor in _parts(part) or []]
        elif isinstance(part, torch.Tensor) and part.is_floating_point():
            floats.append((str(name), part))
    if not floats:
        raise TypeError(
            f"trapline: check: a {type(x).__name__} without a floating point tensor: pass its weights"
        )
    return floats


def _is_named(torch: Any, one: Any) -> bool:
    return isinstance(one, tuple) and len(one) == 2 and isinstance(one[1], torch.Tensor)


def check_probs(x: Any, *, column: Optional[str] = None) -> None:
    require(make_rule(capi.DATA_PROBABILITIES), x, column)


# What a loss wants of its input and target: one row per loss, by the name of the module or the function.
def _class_target(loss: Any, logits: Any, target: Any, ignore: Optional[int] = None) -> None:
    if target.is_floating_point():
        return  # probabilities of classes
    classes = logits.shape[1] if logits.dim() > 1 else logits.shape[0]
    if ignore is None:
        ignore = getattr(loss, "ignore_index", None)
    if ignore is None:
        keywords = getattr(loss, "keywords", None) or {}
        ignore = keywords.get("ignore_index", -100)
    require(make_rule(capi.DATA_LABELS, int(classes), int(ignore)), target, name="target")


def _margin_target(loss: Any, logits: Any, target: Any) -> None:
    require(make_rule(capi.DATA_LABELS, int(logits.shape[-1])), target, name="target")


def _both_finite(loss: Any, logits: Any, target: Any) -> None:
    for name, x in (("input", logits), ("target", target)):
        if x.is_floating_point():
            require(make_rule(capi.DATA_FINITE), x, name=name)


_LOSSES: dict[str, Callable[[Any, Any, Any], None]] = {
    "CrossEntropyLoss": _class_target,
    "cross_entropy": _class_target,
    "NLLLoss": _class_target,
    "nll_loss": _class_target,
    "MultiMarginLoss": _margin_target,
    "multi_margin_loss": _margin_target,
    "BCELoss": _both_finite,
    "binary_cross_entropy": _both_finite,
    "BCEWithLogitsLoss": _both_finite,
    "binary_cross_entropy_with_logits": _both_finite,
    "MSELoss": _both_finite,
    "mse_loss": _both_finite,
    "L1Loss": _both_finite,
    "l1_loss": _both_finite,
}


def check_loss(
    loss_fn: Callable[..., Any], input: Any, target: Any, *, ignore_index: Optional[int] = None
) -> Any:
    inner = getattr(loss_fn, "func", loss_fn)  # functools.partial
    name = getattr(inner, "__name__", type(inner).__name__)
    rule = _LOSSES.get(name)
    if rule is None:
        known = ", ".join(sorted(_LOSSES))
        raise TypeError(f"trapline: check_loss: no row for {name}: pass one of {known}")
    if ignore_index is None:
        rule(loss_fn, input, target)
        options = {}
    elif rule is not _class_target:
        raise TypeError(f"trapline: check_loss: {name} has no ignore_index: leave it out")
    else:
        _class_target(loss_fn, input, target, int(ignore_index))
        # A module has its own, made when it was; a function takes it.
        options = {} if hasattr(loss_fn, "ignore_index") else {"ignore_index": ignore_index}
        if not options and loss_fn.ignore_index != ignore_index:
            raise ValueError(
                f"trapline: check_loss: ignore_index is {ignore_index}, but the loss was made with "
                f"{loss_fn.ignore_index}: give both the same"
            )
    if name in ("BCELoss", "binary_cross_entropy"):
        _unit_interval(input, target)
    return loss_fn(input, target, **options)


def _unit_interval(logits: Any, target: Any) -> None:
    """binary_cross_entropy: the guard's own rows, with its own words."""
    lib = paths.library()
    count = ctypes.c_size_t()
    rows = lib.trapline_contracts(ctypes.byref(count))
    for argument, x in (("self", logits), ("target", target)):
        if x.device.type != "cpu" and bool(((x >= 0) & (x <= 1)).all()):
            continue
        view = tensors.views(x.detach().cpu())[0]
        wanted = f"binary_cross_entropy.{argument}".encode()
        row = next(rows[i] for i in range(count.value) if rows[i].id == wanted)
        given, scan = capi.Arg(capi.ARG_TENSOR, 0, 0, view.tensor, None), capi.Scan()
        verdict = lib.trapline_check(
            ctypes.byref(row), ctypes.byref(given), None, None, None, ctypes.byref(scan)
        )
        if verdict == capi.VIOLATED:
            raise _violation(wanted.decode(), view, scan)


def _violation(contract: str, view: tensors.View, scan: capi.Scan) -> DeviceAssertError:
    index, rest = [], scan.first
    for size in reversed(view.shape):
        index.insert(0, rest % size)
        rest //= size
    facts = {
        "kind": "violation",
        "contract": contract,
        "index": index,
        "tensor": {"shape": view.shape, "dtype": tensors.NAMES[view.dtype]},
        "scan": scans.as_dict(scan),
    }
    finding = paths.call_diagnose(facts)["finding"]
    return _error(finding)
