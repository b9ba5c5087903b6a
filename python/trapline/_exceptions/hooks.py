"""Explains host-side look-alikes: ordinary exceptions about shapes, devices and dtypes that end a
program.

`install` chains the places where Python tells of an exception that nobody caught. The program's own
traceback and its exit code stay what they are; a report file is written beside them (without `trapline run`
the report follows the traceback), and only when libtrapline's catalogue knows the message. Exceptions that a
program handles are never looked at. What ended the program is told to `_fault.life`.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
import traceback
from typing import Any, Callable, Optional

from trapline._exceptions import elastic, from_worker, raised, tracebacks
from trapline._fault import life, write
from trapline._fault.program import frames, scope, trainers
from trapline._library import current, diagnose, options, progress, say
from trapline._library.errors import DeviceAssertError
from trapline._library.say import debug, debug_failure

_previous: dict[str, Callable[..., Any]] = {}
_explained: list[BaseException] = []  # kept alive, so that an identity is never taken twice
_MAX_CHAIN = 8
_QUOTED = "\n(PyTorch: "  # what the guard's exception puts before PyTorch's own words
# A wrapper of these types says nothing by itself: the exception it was raised from is the cause.
_GENERIC = (RuntimeError, Exception, BaseException)


def install() -> None:
    """Watches for exceptions that end the program, a thread, or a multiprocessing child."""
    if _previous:
        return
    _previous.update(
        excepthook=sys.excepthook,
        thread=threading.excepthook,
        unraisable=sys.unraisablehook,
        print_exc=traceback.print_exc,
        format_exc=traceback.format_exc,
    )
    sys.excepthook = _excepthook
    threading.excepthook = _thread_excepthook
    sys.unraisablehook = _unraisablehook
    traceback.print_exc = _print_exc
    traceback.format_exc = _format_exc
    from_worker.install(_told_by_worker)
    atexit.register(_at_exit)
    _watch_ipython()


def uninstall() -> None:
    """Puts back what `install` replaced, unless somebody else has replaced it since."""
    if not _previous:
        return
    if sys.excepthook is _excepthook:
        sys.excepthook = _previous["excepthook"]
    if threading.excepthook is _thread_excepthook:
        threading.excepthook = _previous["thread"]
    if sys.unraisablehook is _unraisablehook:
        sys.unraisablehook = _previous["unraisable"]
    if traceback.print_exc is _print_exc:
        traceback.print_exc = _previous["print_exc"]
    if traceback.format_exc is _format_exc:
        traceback.format_exc = _previous["format_exc"]
    from_worker.uninstall()
    atexit.unregister(_at_exit)
    _previous.clear()


def _excepthook(kind: Any, value: Any, trace: Any) -> None:
    try:
        tracebacks.without_ours(value)
        _previous.get("excepthook", sys.__excepthook__)(kind, value, trace)
    finally:  # at Python's own prompt the session goes on
        if not _is_plain_ctrl_c(kind):
            explain(value, "cell" if hasattr(sys, "ps1") or sys.flags.interactive else "process")


def _is_plain_ctrl_c(kind: Any) -> bool:
    """Ctrl-C with no fault before it. Python forgets that it has to die of SIGINT when exec() runs here, as
    it does when some modules are imported."""
    return issubclass(kind, KeyboardInterrupt) and not life.has_told()


def _thread_excepthook(args: Any) -> None:
    try:
        tracebacks.without_ours(args.exc_value)
        _previous.get("thread", threading.__excepthook__)(args)
    finally:
        explain(args.exc_value, "thread")


def _unraisablehook(args: Any) -> None:
    """A function that atexit called, or a destructor: Python tells of their exceptions in this way only."""
    try:
        _previous.get("unraisable", sys.__unraisablehook__)(args)
    finally:
        if isinstance(args.exc_value, DeviceAssertError):
            explain(args.exc_value, "exit")


def _print_exc(*args: Any, **kwargs: Any) -> None:
    """multiprocessing's Process prints the exception that ends a child by itself, with this function."""
    _previous.get("print_exc", _print_exc_fallback)(*args, **kwargs)
    _explain_if_called_by("_bootstrap", os.path.join("multiprocessing", "process.py"))


def _format_exc(*args: Any, **kwargs: Any) -> str:
    """torch.multiprocessing.spawn formats the exception that ends a child with this function."""
    text = _previous.get("format_exc", _format_exc_fallback)(*args, **kwargs)
    _explain_if_called_by("_wrap", os.path.join("torch", "multiprocessing", "spawn.py"))
    return text


def _print_exc_fallback(*args: Any, **kwargs: Any) -> None:  # another wrapper kept ours beyond uninstall
    traceback.print_exception(*sys.exc_info())


def _format_exc_fallback(*args: Any, **kwargs: Any) -> str:
    return "".join(traceback.format_exception(*sys.exc_info()))


def _explain_if_called_by(function: str, file: str) -> None:
    code = sys._getframe(2).f_code
    if code.co_name == function and code.co_filename.endswith(file):
        explain(sys.exc_info()[1])


def _at_exit() -> None:
    """A program may replace sys.excepthook and forget ours; the interpreter keeps the exception."""
    explain(getattr(sys, "last_value", None))
    try:
        life.at_exit()
    except Exception as failure:
        _not_explained(failure)


def _told_by_worker(error: BaseException) -> Optional[dict[str, Any]]:
    from trapline._exceptions import host_facts

    return host_facts.collect(error)


def _watch_ipython() -> None:
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None and hasattr(ipython, "get_ipython") else None
    if shell is not None:
        shell.events.register("post_run_cell", _after_cell)


def _after_cell(result: Any) -> None:
    if not _previous:
        return
    error = getattr(result, "error_in_exec", None)
    if error is not None:
        explain(error, "cell")
    else:
        life.cell_ended_well()


def explain(error: Optional[BaseException], how: str = "process") -> Optional[dict[str, Any]]:
    """The finding for an exception that nobody caught; None when it is none of Trapline's business.

    It is written into the report folder, where there is one; else its report is printed. `how`: what the
    exception ended: "process", "thread", "cell", or "exit" (a function that atexit called). Never raises.
    """
    try:
        if error is None or any(error is known for known in _explained):
            return None
        _explained[:] = [*_explained[-3:], error]
        finding = _explain(error, how)
        if finding and how == "process":
            elastic.tell(finding)
        if finding and not say.shows_faults():
            say.present(finding)
        elif finding and options.report_dir() is None:
            _print_report(finding)
        return finding
    except Exception as failure:
        _not_explained(failure)
        _noted(error, how)
        return None


def _not_explained(failure: Exception) -> None:
    debug(f"host errors: {failure!r}: this exception is not explained")


def _noted(error: Optional[BaseException], how: str) -> None:
    """That it ended the program is known all the same."""
    try:
        if error is not None:
            life.ended_by(error, how)
    except Exception:
        debug_failure("life")


def _explain(error: BaseException, how: str) -> Optional[dict[str, Any]]:
    from trapline._exceptions import host_facts

    chain = _chain(error)
    # The guard has written its finding; it quotes PyTorch, also as the text of another process.
    if not any(isinstance(link, DeviceAssertError) or _QUOTED in str(link) for link in chain):
        for outer, link in zip([None, *chain], chain):
            if not isinstance(link, Exception):
                continue
            facts = host_facts.collect(link, outer)
            if facts:
                facts["origin"] = frames.with_context(facts.get("origin"))
                facts["progress"] = _progress(error)
                current.name_in(facts, current.left_by(error) or current.of_fault(late=False))
            finding = diagnose.diagnose(facts) if facts else None
            if finding:
                file = write.write_finding(finding, [], last=True)
                life.explained(finding, file, how)
                return finding
    fault = life.uncaught(error, how)
    if fault is None:
        life.ended_by(error, how)
    return fault


def _progress(error: BaseException) -> dict[str, Any]:
    """Where the training was when it ended."""
    try:
        with scope.frames_of(error.__traceback__):
            return trainers.progress_facts(progress.now())
    except Exception:
        debug_failure("progress")
        return {}


def _print_report(finding: dict[str, Any]) -> None:
    """Under `trapline.install()` nobody else prints it: after the traceback, or below the cell."""
    text = diagnose.render(finding)
    if text and sys.stderr is not None:
        sys.stderr.write("\n" + text)
        sys.stderr.flush()


def _chain(error: BaseException) -> list[BaseException]:
    """The exception and what it was raised from; an unrelated context is left out."""
    chain = [error]
    while len(chain) < _MAX_CHAIN:
        link = chain[-1]
        inner = link.__cause__ or raised.carried(link)
        if inner is None and not link.__suppress_context__ and _is_wrapper(link):
            inner = link.__context__
        if inner is None or any(inner is known for known in chain):
            break
        chain.append(inner)
    return chain


def _is_wrapper(error: BaseException) -> bool:
    return type(error) in _GENERIC or type(error).__module__ != "builtins"
