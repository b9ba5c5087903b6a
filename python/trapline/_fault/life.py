"""What becomes of a fault after it was raised: caught, or the end of the program.

`raised` is told of every fault, `uncaught` of every exception that nobody caught (`_exceptions` sees them).
What they know goes into one small file, ``ended-HOST-PID.TAG.json``, from which `trapline run` tells the
fault that ended the program from those that it caught. A process that is killed writes none, or an
unfinished one.

A fault of a program that is still running a second later is said on stderr at once, in one line: whoever
watches a server need not wait for its end.
"""

from __future__ import annotations

import _thread
import os
import sys
import threading
import time
import weakref
from typing import Any, Callable, Optional

from trapline._fault import write
from trapline._fault.data import recorded
from trapline._library import forks, options
from trapline._library.say import say_if_ready, shows_faults

_PATIENCE_S = 1.0  # a program that dies of its fault does so sooner
_MAX_LINES = 20
_MAX_TEXT = 4000
_MAX_CHAIN = 32
# Exceptions which say that another process failed: that one has its own story.
_MESSENGERS = {
    "BrokenProcessPool",
    "CalledProcessError",
    "CellExecutionError",
    "ChildFailedError",
    "DeadKernelError",
    "ProcessExitedException",
    "ProcessRaisedException",
}
_FAULT = "DeviceAssertError"

Finding = dict[str, Any]


class _Life:
    """The faults of this process."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.raised: dict[str, int] = {}  # by code
        self.files: list[tuple[Finding, str]] = []  # findings that were written, and where
        self.unhandled: list[str] = []
        self.seen: list[Finding] = []  # findings of exceptions that nobody caught
        self.left_with: list[Finding] = []
        self.elsewhere = ""
        self.other = ""
        self.went_on = True
        self.over = False
        self.forked = False
        self.lines = 0


_life = _Life()


def _start_over() -> None:
    global _life
    _life = _Life()


def _has_forked() -> None:
    _life.forked = True


forks.in_child(_start_over)
forks.in_parent(_has_forked)


def raised(
    error: BaseException, code: str, ask: Callable[[], Finding], forget: Optional[Callable[[], None]] = None
) -> None:
    """A fault is about to be raised. `ask` makes its finding; `forget`: nobody can ask any more."""
    life = _life
    count = life.raised[code] = life.raised.get(code, 0) + 1
    _last[:] = [weakref.ref(error, _Gone(ask, forget))]
    if count & (count - 1) == 0 and count > 1:  # a process that is killed has told its order of magnitude
        save()


def reported(finding: Finding, file: Optional[str]) -> None:
    """The first fault of its place has been looked into; `file`: its report, if it was written."""
    life = _life
    if file is not None:
        life.files.append((finding, os.path.basename(file)))
    elif write.lost():
        save()  # before a kill
        return  # said already
    if life.lines < _MAX_LINES and options.on_fault() == "raise" and shows_faults():
        life.lines += 1
        try:
            _thread.start_new_thread(_say_later, (life, finding))
        except RuntimeError:  # no thread can be started: the line is left out
            pass


_last: list[Any] = []  # the weak reference must outlive its object


class _Gone:
    """Called when a fault's exception is dropped. With no Python code running in the main thread the
    interpreter itself dropped it, with the SystemExit that was raised while the fault was handled."""

    def __init__(self, ask: Callable[[], Finding], forget: Optional[Callable[[], None]]) -> None:
        self.ask = ask
        self.forget = forget

    def __call__(self, _: Any) -> None:
        try:
            sys._getframe(1)
        except ValueError:
            if _thread.get_ident() == threading.main_thread().ident:
                try:
                    _life.left_with.append(self.ask())
                except Exception:  # the interpreter ends
                    pass
        if self.forget is not None:
            self.forget()


def uncaught(error: BaseException, how: str) -> Optional[Finding]:
    """An exception that nobody caught. The finding, when it is a fault or comes from one.

    `how`: "process", "thread", "exit" (a function that atexit called) or "cell" (the session goes on).
    """
    life = _life
    chain = whole_chain(error)
    faults = [link for link in chain if type(link).__name__ == _FAULT and hasattr(link, "finding")]
    life.went_on = life.went_on and how == "cell"
    if how == "process":
        life.over = True
    found: Optional[Finding] = None
    for fault in faults:
        finding = fault.finding
        if not finding or not _is_own(finding):
            life.elsewhere = (life.elsewhere + "\n" + str(fault))[-_MAX_TEXT:]
        else:
            finding = _complete(fault)
            life.seen.append(finding)
            _blame(finding)
        found = found or finding or None
    if not faults:
        found = _told_by(chain)  # TorchScript and others carry an exception on as text
    if not faults and found is None:
        told = [text for text in map(str, chain) if _FAULT in text]
        if told:
            life.elsewhere = told[0][-_MAX_TEXT:]
    if found is not None or faults or life.elsewhere or how != "exit":
        save()
    return found


_MIN_CHARACTERS = 32  # of a summary that nothing else says by chance


def _told_by(chain: list[BaseException]) -> Optional[Finding]:
    """The finding of this process whose own words another exception repeats."""
    texts = [str(link) for link in chain]
    for finding, _ in reversed(_life.files):
        summary = str(finding.get("summary") or "")
        if len(summary) >= _MIN_CHARACTERS and _is_own(finding) and any(summary in text for text in texts):
            _life.seen.append(finding)
            _blame(finding)
            return finding
    return None


def explained(finding: Finding, file: Optional[str], how: str) -> None:
    """An exception of the same family that nobody caught, and where its finding was written."""
    life = _life
    life.other = ""
    life.over = life.over or how == "process"
    life.went_on = life.went_on and how == "cell"
    if file is not None:
        life.files.append((finding, os.path.basename(file)))
        life.unhandled.append(os.path.basename(file))
    save()


def ended_by(error: BaseException, how: str) -> None:
    """An exception that nobody caught and that is none of ours."""
    if how in ("thread", "exit") or isinstance(error, (SystemExit, KeyboardInterrupt)):
        return
    if type(error).__name__ in _MESSENGERS or "exited unexpectedly" in str(error):
        return
    _life.other = _describe(error)
    save()


def has_told() -> bool:
    """True when this process had a fault, or an exception that was explained."""
    return bool(_life.raised or _life.unhandled)


def cell_ended_well() -> None:
    """In a notebook: the last exception did not end anything."""
    _life.other = ""


def at_exit() -> None:
    """The last word of this process."""
    life = _life
    life.over = True
    save()


def stopped(error: BaseException) -> None:
    """`--on-fault stop`: this fault ends the process now."""
    _blame(getattr(error, "finding", {}))
    _life.over = True
    save()


def is_said(finding: Finding) -> bool:
    """True when the program has ended, or shown, this very fault."""
    return any(finding is known for known in _life.seen)


def save() -> None:
    """Writes what is known, if there is anything to tell."""
    life = _life
    folder = options.report_dir()
    checked = _checked() if life.over and options.wants_cpu() else None
    if not folder or life.pid != os.getpid():
        return
    lost = write.lost()
    if not (life.raised or life.unhandled or life.elsewhere or life.other or lost or checked is not None):
        return
    content = {
        "over": life.over,
        "went_on": life.went_on,
        "raised": dict(life.raised),
        "unhandled": list(life.unhandled),
        "left_with": [name for finding in life.left_with for name in _names(finding)],
        "elsewhere": life.elsewhere,
        "other": life.other,
        "lost": lost,
        "checked": checked,
    }
    write.write_file("ended", content)


def _blame(finding: Finding) -> None:
    """Notes that nobody caught this fault."""
    _life.unhandled += [name for name in _names(finding) if name not in _life.unhandled]


def _names(finding: Finding) -> list[str]:
    """The file of a finding; one that was summed up only is written now."""
    names = [name for known, name in _life.files if known is finding]
    if not names and finding:
        path = write.write_finding(finding, [], last=True)
        if path is not None:
            names = [os.path.basename(path)]
            _life.files.append((finding, names[0]))
    return names


def _is_own(finding: Finding) -> bool:
    return (finding.get("process") or {}).get("pid", os.getpid()) == os.getpid()


def _complete(fault: BaseException) -> Finding:
    """The whole finding of a fault that was only summed up, while the frames it came from are still there."""
    finding: Finding = fault.finding  # type: ignore[attr-defined]
    pending = fault.__dict__.pop("_pending", None)
    return finding if pending is None else pending.complete(fault)


def whole_chain(error: BaseException) -> list[BaseException]:
    """The exception and all that it was raised from or while handling."""
    chain = [error]
    for link in chain:
        for inner in (link.__cause__, link.__context__):
            if inner is not None and len(chain) < _MAX_CHAIN and not any(inner is known for known in chain):
                chain.append(inner)
    return chain


def _describe(error: BaseException) -> str:
    """ "KeyError: 'rate' (train.py:20)": as the last line of a traceback, with the place in user code."""
    from trapline._fault.program import frames, places

    text = " ".join(str(error).split())[:200]
    text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    place, trace = "", error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if places.is_user(code) and not places.is_own(code.co_filename):
            place = f" ({os.path.basename(code.co_filename)}:{frames.line_of(code, trace.tb_lasti)})"
        trace = trace.tb_next
    return text + place


def _checked() -> Optional[bool]:
    """Whether any guarded operation ran here; None: not known, since children may have run some."""
    try:
        if recorded.history():
            return True
    except Exception:
        return None
    return None if _life.forked else False


def _say_later(life: _Life, finding: Finding) -> None:
    try:
        time.sleep(_PATIENCE_S)
        if life is _life and not is_said(finding) and not life.over:
            say_if_ready(write.line(finding))
    except Exception:
        pass  # the interpreter ends
