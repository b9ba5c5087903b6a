"""Finds, builds or replaces the guard's adapter for the torch of this process, and switches it on.

The compiled adapter (``src/guard``) fits exactly one torch and one Python;
:mod:`trapline._extension.finder` finds it. Where there is none, :mod:`trapline._guard.pure` takes its place:
with its kernels in C (:mod:`trapline._guard.kernel`), or all in Python. They have the same functions and hand
over the same dictionaries.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from trapline._extension import finder
from trapline._library import diagnose, forks, kernel, options, paths, report
from trapline._library.errors import DeviceAssertError
from trapline._library.say import debug, say

if TYPE_CHECKING:
    from types import ModuleType
    from typing import Callable


class _Compiled(NamedTuple):
    """What the checks in compiled graphs remember themselves, and what they know of a site by its name."""

    remembered: Callable[[], list[dict[str, Any]]]
    complete: Callable[[dict[str, Any]], None]
    complete_cast: Callable[[dict[str, Any]], dict[str, Any]]


adapter: ModuleType | None = None
_kind = ""
_enabled = False
_notes: list[str] = []
_seen: list[str] = []  # what is no fault, but should be said when the program has ended
_answer: Callable[[dict[str, Any]], Any] | None = None
_compiled: _Compiled | None = None  # for good: compiled code may call its checks as long as it lives


def activate(answer: Callable[[dict[str, Any]], Any] | None = None) -> None:
    """Put the guard into torch. torch must be imported. Calling it again changes nothing.

    ``answer(violation)`` returns the exception to raise, or the bad tensor healed. Without it the exception
    says what the check saw, and nothing else.

    Raises:
        ImportError: libtrapline.so is missing or of another version.
        RuntimeError: no adapter can serve this torch; the message says what to do.
        BuildError: this Python is a free-threaded build.
    """
    global adapter, _kind, _enabled, _answer
    if adapter is not None:
        return
    from trapline._extension import compiler

    compiler.refuse_free_threading()
    paths.library()  # first: the compiled adapter then links with this very library
    _notes.clear()
    _answer = answer
    wanted = options.adapter()
    found = None if wanted in ("kernel", "pure") else _native()
    if found is not None:
        adapter, _kind = found, "native"
    else:
        adapter, _kind = _portable(wanted)
    _enabled = True
    _follow_device(adapter)
    _write_marker()


def deactivate() -> None:
    """Take the guard out of torch again, while no operation runs in another thread."""
    global adapter, _enabled
    if adapter is not None:
        from trapline._guard import waits

        waits.uninstall()
        adapter.uninstall()
    adapter, _enabled = None, False


def _follow_device(module: ModuleType) -> None:
    """Without it the guard still looks at operations; a fault is then learnt of later."""
    try:
        from trapline._guard import waits

        waits.install(module)
    except Exception as error:
        debug(f"waits for the device are not followed: {error!r}")


def set_enabled(on: bool) -> bool:
    """Switch the checks on or off; returns the state before."""
    global _enabled
    before = _enabled
    if adapter is not None:
        adapter.set_enabled(on)
        _enabled = on
    return before


def is_enabled() -> bool:
    """True when there is a guard and its checks are switched on."""
    return _enabled


def kind() -> str:
    """``native``, ``kernel``, ``pure``, or ``""`` while there is no guard."""
    return _kind if adapter is not None else ""


def notes() -> list[str]:
    """What the user should know about the choice of the adapter."""
    return list(_notes)


def notes_seen(text: str) -> None:
    """The report of ``trapline run`` has this among its notes."""
    _seen.append(text)
    _write_marker()


def history() -> list[dict[str, Any]]:
    """The last guarded calls, oldest first."""
    return [] if adapter is None else adapter.history()


def remembered() -> list[dict[str, Any]]:
    """Casts of NaN and the like, newest first: possible origins of a later fault."""
    found = [] if adapter is None else adapter.remembered()
    if _compiled is None:
        return found
    complete = _compiled.complete_cast
    return _compiled.remembered() + [complete(cast) if "site" in cast else cast for cast in found]


def follow_compiled(
    remembered: Callable[[], list[dict[str, Any]]],
    complete: Callable[[dict[str, Any]], None],
    complete_cast: Callable[[dict[str, Any]], dict[str, Any]],
) -> None:
    """From now on there are checks in compiled graphs, too; their violations and casts name a site."""
    global _compiled
    _compiled = _Compiled(remembered, complete, complete_cast)


def batch_listener() -> Callable[[int], Any] | None:
    """What wants to hear of each batch of a DataLoader: a call on the device remembers the newest."""
    if adapter is None or not hasattr(adapter, "device_batch") or adapter.info().get("device") is None:
        return None
    return adapter.device_batch


def info() -> dict[str, Any]:
    """What the adapter was built for; ``{}`` while there is none."""
    return {} if adapter is None else adapter.info()


def on_violation(violation: dict[str, Any]) -> Any:
    """The adapters' handler: the exception to raise, or the bad tensor healed (``--on-fault skip``).

    It never fails: a plain sentence is the last resort.
    """
    try:
        if _compiled is not None and "site" in (violation.get("args") or ()):  # found on the device
            _compiled.complete(violation)
        with forks.whole():
            answer = None if _answer is None else _answer(violation)
        if answer is not None:
            return answer
    except Exception as problem:
        debug(f"the finding could not be made: {problem!r}")
        _keep_bare(violation, f"{type(problem).__name__}: {problem}")
    return DeviceAssertError(diagnose.bare_sentence(violation.get("contract"), violation.get("scan")))


_MAX_LINES = 20
_said = 0


def _keep_bare(violation: dict[str, Any], why: str) -> None:
    """Writes what the check saw, or says it and marks it as lost: a program that catches it is not clean.
    Imports nothing: that may be what has failed."""
    global _said
    folder = options.report_dir()
    if folder is None:
        return
    finding = diagnose.bare_finding(violation.get("contract"), violation.get("scan"), why)
    try:
        report.write_finding(folder, finding, [], False)
    except Exception as problem:
        debug(f"the bare finding could not be written: {problem!r}")
        _said += 1
        if _said <= _MAX_LINES:
            say(f"[{finding.get('code', 'TL901')}] {finding.get('summary')}")


# Which adapter ------------------------------------------------------------------------------------


def _native() -> ModuleType | None:
    """The compiled adapter, installed; None when there is none and none can be built."""
    from trapline._extension import compiler

    # The device of --cpu is compiled, too, and the guard for any torch does not know its memory.
    waits = options.wants_cpu()
    found, notes = finder.find(compiler.GUARD, _load_and_install, "the guard for any torch runs", waits)
    _notes.extend(notes)
    return found


def load(path: str) -> ModuleType:
    """The compiled adapter at ``path``, not yet installed."""
    from trapline._extension import compiler

    return finder.load(path, compiler.GUARD)


def _load_and_install(path: str) -> ModuleType:
    module = load(path)
    if module.install(on_violation) == 0:
        module.uninstall()
        raise ImportError("it knows no operation of this torch")
    sys.modules["trapline_guard"] = module
    return module


def _portable(wanted: str) -> tuple[ModuleType, str]:
    """The guard that fits any torch, installed, and its kind."""
    from trapline._guard import pure

    in_c = None
    if wanted != "pure":
        try:
            in_c = kernel.load()
        except ImportError as problem:
            why = " ".join(str(problem).split())
            _notes.append(f"the guard in Python runs, tens of microseconds per guarded call: {why}")
    if options.device_is_host():
        _notes.append("what is on the device of --cpu is not checked: that needs the compiled guard")
    pure.install(on_violation, in_c)
    return pure, "pure" if in_c is None else "kernel"


def described() -> str:
    """Which guard runs in this process, and why that one, in one line; for people."""
    import torch

    version = torch.__version__
    if _kind == "native":
        return f"compiled for torch {version}: {getattr(adapter, '__file__', None)}"
    what = {"kernel": f"the one for any torch, on {version}", "pure": f"in Python, on torch {version}"}.get(
        _kind
    )
    if what is None:
        return "none"
    return "; ".join([what, *_notes]) if _notes else what


# What is said -------------------------------------------------------------------------------------


def _write_marker() -> None:
    """Tell ``trapline run`` that this process is guarded, and how. Children made by fork need no marker."""
    folder = options.report_dir()
    if folder is None:
        return
    import platform

    import torch

    marker = {
        "torch": str(torch.__version__),
        "python": platform.python_version(),
        "adapter": _kind,
        "guard": [described()],
        # The one for any torch finds the same: why it is not the compiled one interests who asks (-v).
        "notes": [*([] if _kind == "kernel" and not options.device_is_host() else _notes), *_seen],
    }
    try:
        report.write_file(folder, "guard", marker)
    except report.NotWritten as problem:
        debug(str(problem))
