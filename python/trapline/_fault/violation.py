"""From a violation to the exception that the guard raises."""

from __future__ import annotations

import ast
from typing import Any, Callable, Optional

from trapline._fault import brief, content, history, life, write
from trapline._fault.data import (
    bags,
    batches,
    members,
    recorded,
    values,
)
from trapline._fault.model import layers, noted, positions
from trapline._fault.program import (
    calls,
    decomposed,
    frames,
    graphs,
    holders,
    owners,
    scope,
    sites,
    trainers,
)
from trapline._library import current, diagnose, options, progress
from trapline._library.errors import DeviceAssertError
from trapline._library.say import debug_failure

_RAISED = "trapline.raised"  # key under which a violation keeps the exception made for it


def handler(violation: dict[str, Any]) -> BaseException:
    """Collects facts, has them diagnosed, writes the report, returns the exception to raise. Never raises."""
    raised = violation.get(_RAISED)
    if isinstance(raised, BaseException):
        return raised
    site = None
    late = bool(violation.get("late"))
    # Now: the finding may be made after the request is done, and facts are collected without gradients.
    violation["request"] = current.of_fault(late, violation.get("batch"))
    violation["no_grad"] = not late and _keeps_no_gradient()
    violation["progress"] = progress.of_fault(late, violation.get("batch"), violation.get("thread"))
    try:
        site = sites.site_of(violation)
        if sites.is_reported(site):
            return _summed_up(violation, site)
    except Exception:
        debug_failure("summing up")
    notes: list[str] = []
    file, pending = None, None
    try:
        if write.is_full():
            pending = brief.Pending(violation, site, _finding, _whole)
            finding = pending.finding()
        else:
            finding = _finding(collect(violation, notes), notes)
            file = write.write_finding(finding, notes)
        sites.reported(site, violation, finding)
    except Exception as error:
        debug_failure("handler")
        finding = _bare(violation, f"{type(error).__name__}: {error}")
        file = file or _keep(finding)
    exception = DeviceAssertError(_text(finding, violation), finding)
    current.told(finding, late, violation.get("batch"))
    try:
        if pending is not None:
            exception._pending = pending  # type: ignore[attr-defined]
        life.raised(exception, str(finding.get("code", "TL901")), lambda: finding)
        life.reported(finding, file)
    except Exception:
        debug_failure("life")
    violation[_RAISED] = exception
    return exception


def _keep(finding: dict[str, Any]) -> Optional[str]:
    """Writes a bare finding, or marks it as lost: a program that catches it is not clean."""
    try:
        return write.write_finding(finding, [])
    except Exception:
        debug_failure("keeping a bare finding")
        return None


def _summed_up(violation: dict[str, Any], site: Any) -> BaseException:
    """The exception of a fault at a place that was reported; its text is made when somebody reads it."""
    pending = brief.Pending(violation, site, _finding, _whole)

    def ask() -> tuple[str, dict[str, Any]]:
        try:
            finding = pending.finding()
        except Exception as error:
            debug_failure("summing up")
            finding = _bare(pending.violation, f"{type(error).__name__}: {error}")
        return _text(finding, pending.violation), finding

    exception = DeviceAssertError.asked_later(ask)
    exception._pending = pending  # type: ignore[attr-defined]
    if current.is_any():
        current.told(exception.finding, bool(violation.get("late")), violation.get("batch"))
    life.raised(exception, sites.code_of(site) or "TL901", pending.finding, pending.forget)
    violation[_RAISED] = exception
    return exception


def _whole(violation: dict[str, Any]) -> dict[str, Any]:
    """The finding with all that can be found out, of a fault that was summed up."""
    notes: list[str] = []
    return _finding(collect(violation, notes), notes)


def collect(violation: dict[str, Any], notes: list[str]) -> dict[str, Any]:
    """All facts that were seen. A collector that fails leaves its fact out and says so in the notes."""
    import torch

    with torch.no_grad(), batches.as_of(violation.get("batch")):
        return _collect(violation, notes)


def _collect(violation: dict[str, Any], notes: list[str]) -> dict[str, Any]:
    violation = members.of_one(decomposed.as_called(violation))
    scan = violation["scan"]
    late = bool(violation.get("late"))
    row = diagnose.contract(violation["contract"])
    if late:
        violation = noted.completed(violation, row.get("predicate"))
    tensor = violation["tensor"]  # None: checked on the device, and gone or written to since
    facts: dict[str, Any] = {
        "kind": "violation",
        "contract": violation["contract"],
        "device": "cpu",
        "scan": values.scan_facts(scan, values.repeats(tensor)),
    }

    def add(name: str, collector: Callable[[], Any]) -> None:
        try:
            value = collector()
        except Exception as error:
            debug_failure(name)
            if options.debugs():  # what fails in here is ours, not the reader's
                notes.append(f"{name} is not known: {type(error).__name__}: {error}"[:200])
            return
        if value is not None and value not in ([], {}):
            facts[name] = value

    operation = str(row.get("public_op") or "")
    pairs = violation.get("frames") or ([] if late else frames.live_pairs())
    add("stack", lambda: graphs.make_stack(pairs, operation, violation.get("graph_stack")))
    add("origin", lambda: frames.origin_of(facts.get("stack", [])))
    if late:
        _late(violation, facts, add)
    given = None if tensor is None else _given(violation, notes)
    described = values.describe(given) if given is not None else _described(violation)
    if given is not None:
        described["shape"] = frames.shape_given(given) or described["shape"]
    add("device", lambda: described["device"].split(":")[0])
    add("tensor", lambda: described)
    add("args", lambda: values.describe_args(violation.get("args") or {}))
    if scan.get("first", -1) >= 0:
        add("index", lambda: values.unravel(scan["first"], described["shape"]))
    arguments = violation.get("args") or {}
    operator = str(violation.get("op") or "").replace("aten::", "").split(".")[0]
    owners = violation.get("owners") or []
    add("layer", lambda: layers.layer_facts(operator, arguments, scan, owners))
    if tensor is not None:
        content.look_into(tensor, violation, row.get("predicate"), facts, add)
    elif scan.get("bad") == 1:
        add("values", lambda: [[values.number(scan["value"]), 1]])
    add("members", lambda: violation.get("members"))
    if violation.get("no_grad") and _is_used():
        facts["no_grad"] = True
    # A loop that generates, also where gradients are kept.
    generates = tensor is not None and positions.grows(list(tensor.shape), recorded.history())
    if tensor is not None and ("no_grad" in facts or generates):
        add("newest", lambda: content.is_chosen(tensor, scan, row.get("predicate")) or None)
    if (facts.get("raised") or {}).get("nodes_of"):
        facts.pop("sample", None)  # each is right by itself
    add("process", lambda: write.process_facts(described["device"]))
    add("progress", lambda: trainers.progress_facts(violation.get("progress") or {}, late))
    add("history", lambda: history.history_facts(recorded.history()))
    add("origin", lambda: frames.with_context(facts.get("origin")))  # last: others compare it
    current.name_in(facts, violation.get("request"))
    return facts


def _keeps_no_gradient() -> bool:
    import torch

    return not torch.is_grad_enabled()


def _is_used() -> bool:
    """The modules that run do not train, or the program has asked for no gradient itself: a checkpointed or
    compiled forward keeps none either."""
    if _asks_for_no_gradient():
        return True
    running = [frame.f_locals.get("self") for frame in scope.live_frames()]
    modules = [module for module in running if owners.is_module(module)]
    return bool(modules) and not any(module.training for module in modules)


def _asks_for_no_gradient() -> bool:
    """A function that runs, of the user's, stands below `@torch.no_grad()` or `inference_mode()`."""
    for frame in holders.user_frames():
        tree = calls.tree_of(frame.f_code)
        made = tree.body[0] if tree is not None and tree.body else None
        for one in getattr(made, "decorator_list", ()):
            if any(word in ast.unparse(one) for word in ("no_grad", "inference_mode")):
                return True
    return False


def _given(violation: dict[str, Any], notes: list[str]) -> Any:
    """The offending argument in the shape in which the caller has it."""
    try:
        return bags.as_passed(violation)
    except Exception as error:
        debug_failure("given")
        if options.debugs():
            notes.append(f"the caller's shape is not known: {type(error).__name__}: {error}"[:200])
        return violation["tensor"]


def _late(violation: dict[str, Any], facts: dict[str, Any], add: content.Add) -> None:
    """The program has gone on since the call: where it was when it learned of the fault, and which thread."""
    facts["contained"] = bool(violation.get("contained"))
    facts["gradients_dropped"] = bool(violation.get("gradients_dropped"))
    add("thread", lambda: violation.get("thread"))
    add("surfaced", lambda: frames.origin_of(frames.make_stack(frames.live_pairs())))
    if facts.get("surfaced") == facts.get("origin"):
        facts.pop("surfaced", None)


def _described(violation: dict[str, Any]) -> dict[str, Any]:
    return {name: violation.get(name) for name in ("shape", "dtype", "device")}


def _finding(facts: dict[str, Any], notes: list[str]) -> dict[str, Any]:
    try:
        finding = diagnose.diagnose(facts)
        if finding is not None:
            return finding
        reason = "libtrapline has no finding for these facts"
    except (OSError, ImportError, AttributeError, ValueError, MemoryError) as error:
        debug_failure("diagnose")
        reason = str(error)
    notes.append(f"the cause is not named: {reason}")
    return _bare(facts, reason)


def _bare(facts: dict[str, Any], reason: str) -> dict[str, Any]:
    """A finding with only what the scan says, for when the diagnosis fails."""
    finding = diagnose.bare_finding(facts.get("contract", "?"), facts.get("scan"), reason)
    for name in ("origin", "stack", "process"):
        if isinstance(facts.get(name), (dict, list)):
            finding[name] = facts[name]
    return finding


def _text(finding: dict[str, Any], violation: dict[str, Any]) -> str:
    """Programs look for PyTorch's own words in the text of an exception: they follow the summary."""
    summary = str(finding.get("summary", ""))
    torch_says = violation.get("torch_says")
    return f"{summary}\n(PyTorch: {torch_says})" if torch_says else summary
