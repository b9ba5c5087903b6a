"""``--on-fault raise|skip|stop``: what a fault does to the program.

``raise``: the exception at the bad operation. ``stop``: the process ends at once with exit code 65.

``skip``: the operation gets a harmless copy of its bad argument, the program goes on, and the next step of
each optimizer is left out, since gradients that came from the fault may be in it
(:mod:`trapline._skip.steps`). Nothing is raised into the program, with four exceptions: no optimizer exists
yet, so that there is no step to leave out; the argument cannot be healed (an index into a dimension of size
0); the fault is in a DataLoader's worker process; more steps were left out than the limit allows.

The bad samples go into the quarantine file, where there is one (:mod:`trapline._skip.quarantine`).
"""

from __future__ import annotations

import atexit
import os
import sys
from typing import Any, Callable

from trapline import _fault
from trapline._fault import life
from trapline._fault.data import batches
from trapline._guard import waits
from trapline._library import capi, diagnose, forks, heal, options
from trapline._library.say import debug
from trapline._skip import ledger, quarantine, steps, watched


def install(mode: str, limit: float = ledger.DEFAULT_LIMIT) -> None:
    """Take up ``mode``: ``raise``, ``skip`` or ``stop``. torch must be imported."""
    ledger.open_for(mode, limit)
    if mode != "skip":
        return
    steps.install()
    atexit.register(ledger.write_counts)
    forks.in_child(ledger.start_over)


def uninstall() -> None:
    """Back to ``raise``, with all counts forgotten."""
    watched.by_watch(None)
    if ledger.mode() == "skip":
        steps.uninstall()
        atexit.unregister(ledger.write_counts)
    ledger.close()


def by_watch(holding: Callable[[], Any]) -> None:
    """Steps with a loss or gradients that are not finite are left out, too; see :mod:`.watched`."""
    if ledger.mode() == "skip":
        watched.by_watch(holding)


def answer(violation: dict[str, Any]) -> Any:
    """For the guard: the exception to raise at this violation, or the healed tensor to go on with."""
    if ledger.mode() == "skip" and _can_skip():
        healed = _late(violation) if violation.get("late") else _heal(violation)
        if healed is not None:
            return healed
    if violation.get("late") and ledger.mode() == "raise":
        violation["gradients_dropped"] = waits.taints_gradients(violation)
    error = _fault.handler(violation)
    if options.supervise_dir():
        _propose(violation, error)
    if ledger.mode() == "stop" and not _in_worker():
        stop(error)
    return error


def stop(error: BaseException) -> None:
    """End this process now: no ``finally``, no ``atexit``; what it has written is flushed."""
    life.stopped(error)
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is sys.stderr:
                print(f"trapline: stopped: {ledger.summary(error)}", file=stream)
            stream.flush()
        except (OSError, ValueError, AttributeError):
            pass
    os._exit(capi.EXIT_STOPPED)


def _can_skip() -> bool:
    return not _in_worker() and steps.optimizer_exists()


def _in_worker() -> bool:
    data = sys.modules.get("torch.utils.data")
    return data is not None and data.get_worker_info() is not None


def _heal(violation: dict[str, Any]) -> Any:
    """The healed tensor, with the fault written down; None where it must be raised."""
    tensor, scan = violation.get("tensor"), violation["scan"]
    contract = diagnose.contract(violation["contract"])
    if contract.get("heal") == capi.HEAL_NONE:  # no value is harmless
        return None
    predicate = contract.get("predicate")
    try:
        healed = heal.heal(tensor, scan, predicate)
        if healed is None:
            return None
        newest = batches.newest_first()[:1]
        where = (newest[0].loader, newest[0].number) if newest else None
        key = (where, tensor.data_ptr(), tuple(tensor.shape), str(sorted(scan.items())))
        bad = heal.bad_elements(tensor.detach(), scan, predicate)
    except Exception as problem:
        debug(f"{violation.get('contract')} cannot be healed: {problem!r}")
        return None
    if ledger.is_known(key):  # the backward pass sees the same tensor again
        ledger.taint_again()
        return healed
    error = _fault.handler(violation)
    ledger.taint(error)
    try:
        _write_down(violation, bad, error)
    except Exception as problem:
        debug(f"the samples cannot be named: {problem!r}")
    return healed


def _late(violation: dict[str, Any]) -> Any:
    """A fault that was found on the device: the operation has had its healed copy long ago, or never will."""
    if not violation.get("contained") or violation.get("waited"):
        return None
    error = _fault.handler(violation)
    ledger.taint(error)
    try:
        tensor = violation["tensor"].detach().cpu()  # None: nobody has kept it
        predicate = diagnose.contract(violation["contract"]).get("predicate")
        bad = heal.bad_elements(tensor, violation["scan"], predicate)
        _write_down(dict(violation, tensor=tensor), bad, error)
    except Exception as problem:
        debug(f"the samples cannot be named: {problem!r}")
    return True


_MAX_PROPOSALS = 8  # of one process: what a program handles again and again did not end it
_proposals = 0


def _propose(violation: dict[str, Any], error: BaseException) -> None:
    """Tell the supervisor which samples could be left out, should this fault end the program."""
    global _proposals
    folder = options.report_dir()
    if folder is None or _proposals >= _MAX_PROPOSALS or _in_worker():
        return
    _proposals += 1
    try:
        import torch

        from trapline._fault.data import rows

        with torch.no_grad():
            tensor = violation["tensor"].detach().cpu()
            predicate = diagnose.contract(violation["contract"]).get("predicate")
            bad = heal.bad_elements(tensor, violation["scan"], predicate)
            data_set, samples = rows.offending(dict(violation, tensor=tensor), bad)
        if samples:
            path = os.path.join(folder, f"samples-{os.getpid()}.jsonl")
            quarantine.propose(path, data_set, samples, getattr(error, "finding", {}))
    except Exception as problem:
        debug(f"no samples can be proposed: {problem!r}")


def _write_down(violation: dict[str, Any], bad: Any, error: BaseException) -> None:
    """Put the samples that the bad elements came from into the quarantine file."""
    import torch

    from trapline._fault.data import rows

    with torch.no_grad():
        data_set, samples = rows.offending(violation, bad)
    if samples:
        ledger.count_samples(quarantine.add(data_set, samples, getattr(error, "finding", {})))
