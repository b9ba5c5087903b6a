"""``--on-fault raise|skip|stop``: what a fault does to the program.

``raise``: the exception at the bad operation. ``stop``: the process ends at once with exit code 65.

``skip``: the operation gets a harmless copy of its bad argument, the program goes on, and the next step of
each optimizer is left out, since gradients that came from the fault may be in it
(:mod:`trapline._skip.steps`). Nothing is raised into the program, with four exceptions: no optimizer exists
yet, so that there is no step to leave out; the argument cannot be healed (an index into a dimension of size
0); the fault is in a DataLoader's worker process; more steps were left out than the limit allows.

Environment: TRAPLINE_ON_FAULT, TRAPLINE_SKIP_LIMIT (percent of the optimizer steps), TRAPLINE_QUARANTINE (the
file that bad samples go to and that a later run leaves out; :mod:`trapline._skip.quarantine`).
"""

from __future__ import annotations

import atexit
import json
import os
import sys
import threading
from typing import Any

EXIT_STOPPED = 65  # EX_DATAERR of sysexits.h
DEFAULT_LIMIT = 1.0
_FIRST_STEPS = 100  # the share is taken of at least so many steps: one of the first ten is no tenth
_MOST_LINES = 5

_mode = "raise"
_limit = DEFAULT_LIMIT
_lock = threading.RLock()
_spoils = 0  # faults that were healed, each of which spoils the next step of every optimizer
_last: Any = None  # the exception of the last one
_steps = 0
_skipped = 0
_samples: set[tuple[str, int]] = set()
_lines = 0
_known: set[tuple[Any, ...]] = set()  # tensors already reported since the last step: the backward pass


def install(mode: str, limit: float = DEFAULT_LIMIT) -> None:
    """Take up ``mode``: ``raise``, ``skip`` or ``stop``. torch must be imported."""
    global _mode, _limit
    _mode, _limit = mode, limit
    if mode != "skip":
        return
    from trapline._skip import steps

    steps.install()
    atexit.register(_write_counts)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_start_over)


def uninstall() -> None:
    """Back to ``raise``, with all counts forgotten."""
    global _mode, _spoils, _last
    if _mode == "skip":
        from trapline._skip import steps

        steps.uninstall()
        atexit.unregister(_write_counts)
    _mode, _spoils, _last = "raise", 0, None
    _start_over()


def _start_over() -> None:
    """A forked child counts for itself."""
    global _lock, _steps, _skipped, _lines
    _lock = threading.RLock()
    _steps = _skipped = _lines = 0
    _samples.clear()
    _known.clear()


def mode() -> str:
    return _mode


def spoils() -> int:
    """How many faults were healed so far. An optimizer whose last step saw fewer must not step."""
    return _spoils


def counts() -> dict[str, Any]:
    """Optimizer steps, how many of them were left out, and the samples that this process wrote down."""
    from trapline._skip import quarantine

    return {"steps": _steps, "skipped": _skipped, "samples": len(_samples), "quarantine": quarantine.path()}


def answer(violation: dict[str, Any]) -> Any:
    """For the guard: the exception to raise at this violation, or the healed tensor to go on with."""
    from trapline import _fault

    if _mode == "skip" and _can_skip():
        healed = _late(violation) if violation.get("late") else _heal(violation)
        if healed is not None:
            return healed
    from trapline._guard import waits

    if violation.get("late") and _mode == "raise":
        violation["gradients_dropped"] = waits.spoils_gradients(violation)
    error = _fault.handler(violation)
    if _mode == "stop" and not _in_worker():
        stop(error)
    return error


def stop(error: BaseException) -> None:
    """End this process now: no ``finally``, no ``atexit``; what it has written is flushed."""
    from trapline._fault import life

    life.stopped(error)
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is sys.stderr:
                print(f"trapline: stopped: {_summary(error)}", file=stream)
            stream.flush()
        except (OSError, ValueError, AttributeError):
            pass
    os._exit(EXIT_STOPPED)


def _summary(error: BaseException) -> str:
    return str(getattr(error, "summary", error))


def spoil(error: BaseException) -> None:
    """Mark the step that is under way: a result in it came from a bad value. Called by the guard."""
    global _spoils, _last, _lines
    with _lock:
        _spoils += 1
        _last = error
        _lines += 1
        lines = _lines
    if lines <= _MOST_LINES:
        more = "" if lines < _MOST_LINES else " (later ones are only counted)"
        _say(f"skips this step: {_summary(error)}: its loss is no result{more}")


def count_step(skipped: bool) -> BaseException | None:
    """One optimizer step, done or left out. The exception to raise when too many were left out."""
    global _mode, _steps, _skipped
    with _lock:
        _known.clear()
        _steps += 1
        _skipped += skipped
        if not skipped:
            return None
        _write_counts()
        if _skipped <= _limit / 100 * max(_steps, _FIRST_STEPS):
            return None
        _mode = "raise"  # a program that catches the exception must not go on like that
    share = f"{_skipped} of {_steps} optimizer steps had to be skipped"
    why = f"more than {_limit:g} % are no few bad samples: mend the data or the model, or raise --skip-limit"
    from trapline import DeviceAssertError

    error = DeviceAssertError(f"{_summary(_last) if _last else 'another rank had a fault'}; {share}: {why}")
    error.finding = getattr(_last, "finding", {})
    return error


def _can_skip() -> bool:
    from trapline._skip import steps

    return not _in_worker() and steps.optimizer_exists()


def _in_worker() -> bool:
    data = sys.modules.get("torch.utils.data")
    return data is not None and data.get_worker_info() is not None


def _heal(violation: dict[str, Any]) -> Any:
    """The healed tensor, with the fault written down; None where it must be raised."""
    from trapline import _fault
    from trapline._fault.data import batches
    from trapline._library import diagnose, heal

    tensor, scan = violation.get("tensor"), violation["scan"]
    predicate = diagnose.contract(violation["contract"]).get("predicate")
    try:
        healed = heal.heal(tensor, scan, predicate)
        if healed is None:
            return None
        newest = batches.newest_first()[:1]
        where = (newest[0].loader, newest[0].number) if newest else None
        key = (where, tensor.data_ptr(), tuple(tensor.shape), str(sorted(scan.items())))
        bad = heal.bad_elements(tensor.detach(), scan, predicate)
    except Exception as problem:
        _debug(f"{violation.get('contract')} cannot be healed: {problem!r}")
        return None
    with _lock:
        known = key in _known
        _known.add(key)
    if known:  # the backward pass sees the same tensor again
        spoil_again()
        return healed
    error = _fault.handler(violation)
    spoil(error)
    try:
        _quarantine(violation, bad, error)
    except Exception as problem:
        _debug(f"the samples cannot be named: {problem!r}")
    return healed


def _late(violation: dict[str, Any]) -> Any:
    """A fault that was found on the device: the operation has had its healed copy long ago, or never will."""
    from trapline import _fault
    from trapline._library import diagnose, heal

    if not violation.get("contained") or violation.get("waited"):
        return None
    error = _fault.handler(violation)
    spoil(error)
    try:
        tensor = violation["tensor"].detach().cpu()  # None: nobody has kept it
        predicate = diagnose.contract(violation["contract"]).get("predicate")
        bad = heal.bad_elements(tensor, violation["scan"], predicate)
        _quarantine(dict(violation, tensor=tensor), bad, error)
    except Exception as problem:
        _debug(f"the samples cannot be named: {problem!r}")
    return True


def spoil_again() -> None:
    global _spoils
    with _lock:
        _spoils += 1


def _quarantine(violation: dict[str, Any], bad: Any, error: BaseException) -> None:
    import torch

    from trapline._fault.data import rows
    from trapline._skip import quarantine

    with torch.no_grad():
        data_set, samples = rows.offending(violation, bad)
    if samples:
        added = quarantine.add(data_set, samples, getattr(error, "finding", {}))
        with _lock:
            _samples.update(added)


def _write_counts() -> None:
    """For ``trapline run``, which adds up the processes. Kept up to date: a process may end by a signal."""
    folder = os.environ.get("TRAPLINE_REPORT_DIR")
    if not folder or not (_steps or _skipped):
        return
    from trapline._fault import write

    path = os.path.join(folder, f"skip-{write.host_name()}-{os.getpid()}.json")
    try:
        with open(path + ".tmp", "w", encoding="utf-8", errors="replace") as file:
            json.dump(counts(), file)
        os.replace(path + ".tmp", path)
    except OSError as error:
        _debug(f"the report folder cannot be written: {error}")


def _say(text: str) -> None:
    try:
        print(f"trapline: {text}", file=sys.stderr, flush=True)
    except (OSError, ValueError, AttributeError):
        pass


def _debug(text: str) -> None:
    if os.environ.get("TRAPLINE_DEBUG") == "1":
        _say(text)
