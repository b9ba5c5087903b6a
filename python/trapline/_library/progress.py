"""Where a training is: its step, epoch and phase, and the model's name, for whoever makes a finding.

Nobody can see them from outside: a trainer, or the program's own loop, tells by `trapline.note_progress`. A
context variable carries them, so a thread or a task knows its own only. A note is never changed, only
followed by another: tasks share those that were made before they began.
"""

from __future__ import annotations

import math
import threading
from contextvars import ContextVar
from numbers import Integral, Real

from trapline._library import forks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Optional

    Note = tuple[int, dict[str, Any]]  # how many batches were given out before it; what was told

_KEPT = 8  # a device may report a fault some batches late
_MAX_TEXT = 200
_notes: ContextVar[tuple[Note, ...]] = ContextVar("trapline_progress", default=())
# By native thread, for faults that another thread is told of. None: several tasks of the thread have told.
_of_thread: dict[int, Optional[tuple[Note, ...]]] = {}
_MAX_THREADS = 64
newest_batch = 0  # counts the batches of this process; whoever gives them out sets it


def note(
    *,
    step: Optional[int] = None,
    epoch: Optional[float] = None,
    phase: Optional[str] = None,
    model: Optional[str] = None,
    trainer: Optional[str] = None,
) -> None:
    """Tells where the training of this thread or task is; findings from now on say so.

    What is not given stays as it was told before; a call without arguments ends it. A few microseconds;
    never raises: what is of another type is left out.

    Args:
        step: how many optimizer steps are finished, as ``global_step`` counts.
        epoch: as the program counts: 2, or 2.4.
        phase: ``"train"``, ``"validation"``, ``"test"``, ``"predict"``, or a word of the program's own.
        model: its name, e.g. ``"bert-base-uncased"``.
        trainer: who trains, e.g. ``"Trainer"``.
    """
    try:
        given = {"step": step, "epoch": epoch, "phase": phase, "model": model, "trainer": trainer}
        known = _notes.get()
        ends = all(value is None for value in given.values())
        notes = (
            ()
            if ends
            else (*known[1 - _KEPT :], (newest_batch, merged(known[-1][1] if known else {}, given)))
        )
        _notes.set(notes)
        thread = threading.get_native_id()
        before = _of_thread.pop(thread, ())
        if not ends:
            _of_thread[thread] = notes if before is known or before == () else None
            if len(_of_thread) > _MAX_THREADS:
                del _of_thread[next(iter(_of_thread))]
    except Exception:  # a value with methods of its own
        pass


def merged(told: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """What was told before, with what is given now: only plain numbers and texts are taken."""
    result = dict(told)
    for name, value in given.items():
        if value is None:
            continue
        result.pop(name, None)
        if name in ("step", "epoch"):
            if type(value) is int or isinstance(value, Integral):  # no tensor is: asking one could wait
                result[name] = int(value)
            elif name == "epoch" and isinstance(value, Real) and math.isfinite(value):
                result[name] = round(float(value), 4)
        elif isinstance(value, str) and value:
            result[name] = value[:_MAX_TEXT]
    return result


def now() -> dict[str, Any]:
    """What was told last in this thread or task."""
    known = _notes.get()
    return dict(known[-1][1]) if known else {}


def of_fault(late: bool, batch: Optional[int], thread: Any = None) -> dict[str, Any]:
    """What held at the call whose fault is found here and now.

    `late`: a device told of it some time after the call, to whoever came by. `batch`: how many batches had
    been given out at the call; of several notes that fit only what they agree on is certain. `thread`: of the
    call, "name/native id".
    """
    if not late:
        return now()
    number = str(thread).rpartition("/")[2]
    known = (_of_thread.get(int(number)) if number.isdigit() else None) or ()
    before = [serial for serial, _ in known if batch is not None and serial <= batch]
    fitting = [told for serial, told in known if not before or serial == before[-1]]
    if not fitting:
        return {}
    return {
        name: value for name, value in fitting[0].items() if all(told.get(name) == value for told in fitting)
    }


def _forget() -> None:
    """For a child process: it trains nothing yet."""
    _notes.set(())
    _of_thread.clear()


forks.in_child(_forget)
