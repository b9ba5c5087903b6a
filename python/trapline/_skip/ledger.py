"""What ``--on-fault skip`` has done so far: faults that taint a step, steps that were left out, samples.

Counted for this process alone; ``trapline run`` adds the processes up from the files that they write.
"""

from __future__ import annotations

import threading
from typing import Any

from trapline._library import options, report
from trapline._library.errors import DeviceAssertError
from trapline._library.say import debug, say
from trapline._skip import quarantine

DEFAULT_LIMIT = 1.0
_FIRST_STEPS = 100  # the share is taken of at least so many steps: one of the first ten is no tenth
_MAX_LINES = 5

_mode = "raise"
_limit = DEFAULT_LIMIT
_lock = threading.RLock()
_taints = 0  # faults that were healed, each of which taints the next step of every optimizer
_last: Any = None  # the exception of the last one
_steps = 0
_skipped = 0
_samples: set[tuple[str, int]] = set()
_lines = 0
_known: set[tuple[Any, ...]] = set()  # tensors already reported since the last step: the backward pass


def open_for(mode: str, limit: float) -> None:
    """From now on a fault is answered as `mode` says, and `limit` percent of the steps may be left out."""
    global _mode, _limit
    _mode, _limit = mode, limit


def close() -> None:
    """Back to ``raise``, with all counts forgotten."""
    global _mode, _taints, _last
    _mode, _taints, _last = "raise", 0, None
    start_over()


def start_over() -> None:
    """A forked child counts for itself."""
    global _lock, _steps, _skipped, _lines
    _lock = threading.RLock()
    _steps = _skipped = _lines = 0
    _samples.clear()
    _known.clear()


def mode() -> str:
    """``raise``, ``skip`` or ``stop``."""
    return _mode


def taints() -> int:
    """How many faults were healed so far. An optimizer whose last step saw fewer must not step."""
    return _taints


def counts() -> dict[str, Any]:
    """Optimizer steps, how many of them were left out, and the samples that this process wrote down."""
    return {
        "steps": _steps,
        "skipped": _skipped,
        "samples": len(_samples),
        "quarantine": quarantine.written_to(),
    }


def is_known(tensor: tuple[Any, ...]) -> bool:
    """True when the same tensor was reported since the last step; from now on it is."""
    with _lock:
        known = tensor in _known
        _known.add(tensor)
    return known


def summary(error: BaseException) -> str:
    """A fault in one line."""
    return str(getattr(error, "summary", error))


def taint(error: BaseException) -> None:
    """Mark the step that is under way: a result in it came from a bad value. Called by the guard."""
    global _taints, _last, _lines
    with _lock:
        _taints += 1
        _last = error
        _lines += 1
        lines = _lines
    if lines <= _MAX_LINES:
        more = "" if lines < _MAX_LINES else " (later ones are only counted)"
        say(f"skipping this step: {summary(error)}: ignore its loss{more}")


def taint_again() -> None:
    """The same fault was met again: nothing new to say."""
    global _taints
    with _lock:
        _taints += 1


def count_step(skipped: bool) -> BaseException | None:
    """One optimizer step, done or left out. The exception to raise when too many were left out."""
    global _mode, _steps, _skipped
    with _lock:
        _known.clear()
        _steps += 1
        _skipped += skipped
        if not skipped:
            return None
        write_counts()
        if _skipped <= _limit / 100 * max(_steps, _FIRST_STEPS):
            return None
        _mode = "raise"  # a program that catches the exception must not go on like that
    share = f"{_skipped} of {_steps} optimizer steps had to be skipped"
    why = f"more than {_limit:g} %: fix the data or the model, or raise --skip-limit"
    error = DeviceAssertError(f"{summary(_last) if _last else 'another rank had a fault'}; {share}: {why}")
    error.finding = getattr(_last, "finding", {})
    return error


def count_samples(named: list[tuple[str, int]]) -> None:
    """Samples that were written down, each counted once."""
    with _lock:
        _samples.update(named)


def write_counts() -> None:
    """For ``trapline run``, which adds up the processes. Kept up to date: a process may end by a signal."""
    folder = options.report_dir()
    if not folder or not (_steps or _skipped):
        return
    try:
        report.write_file(folder, "skip", counts())
    except report.NotWritten as problem:
        debug(str(problem))
