"""Puts the guard into this process when torch is imported. Start-up code: imports almost nothing itself.

A finder in front of ``sys.meta_path`` answers for the module ``torch`` only and, once the guard is in, for
what torch.compile is made of. It asks the other finders for the module's spec and replaces, on
that one loader object, ``exec_module`` by a function that puts the original back, runs it, and then activates
the guard. Loader, spec and module stay what they are without Trapline.
"""

from __future__ import annotations

import _thread
import sys

from trapline._library import options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any, Callable

_lock = _thread.RLock()
_finder: _TorchFinder | None = None
_active: ModuleType | None = None  # trapline._guard.active once the guard is in
_failure: str | None = None  # why it is not, in one line
_standby: ModuleType | None = None  # trapline._supervise.standby where this process is one
_installed: list[ModuleType] = []  # the other parts, in the order of their installation


class _TorchFinder:
    """Meta path finder for the modules that are waited for; for any other name it answers None at once."""

    def __init__(self) -> None:
        self.waiting: dict[str, Callable[[], None]] = {}
        self.before: dict[str, Callable[[], None]] = {}  # called when the module is about to be imported
        self._asking: set[int] = set()  # threads inside find_spec: the others may ask us in turn

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        first = self.before.pop(fullname, None)
        if first is not None:
            first()
        done = self.waiting.get(fullname)
        if done is None:
            return None
        thread = _thread.get_ident()
        if thread in self._asking:
            return None
        self._asking.add(thread)
        try:
            for finder in list(sys.meta_path):
                find = None if finder is self else getattr(finder, "find_spec", None)
                spec = find(fullname, path, target) if find is not None else None
                if spec is not None:
                    _run_after_import(spec, done)
                    return spec
        finally:
            self._asking.discard(thread)
        return None  # torch is missing: the program gets Python's own ModuleNotFoundError


def _run_after_import(spec: Any, done: Callable[[], None]) -> None:
    """Make ``done`` run right after ``spec.loader`` has executed the module."""
    loader = spec.loader
    original = getattr(loader, "exec_module", None)
    if original is None or isinstance(loader, type):  # a namespace package called torch; a frozen one
        _debug(f"cannot watch the import of {spec.name}: its loader is {loader!r}")
        return

    def exec_module(module: ModuleType) -> None:
        if module.__name__ != spec.name:  # a loader that serves several modules, as for a zip file
            original(module)
            return
        try:
            del loader.exec_module
        except AttributeError:
            pass
        original(module)  # raises what it raises: a torch that cannot be imported is not ours to explain
        done()

    try:
        loader.exec_module = exec_module
    except AttributeError:  # a loader without __dict__
        _debug(f"cannot watch the import of {spec.name}: its loader is {loader!r}")


def _torch_imported() -> None:
    if _finder is not None:
        _finder.waiting.pop("torch", None)
    _activate()
    if _standby is not None:
        _standby.torch_is_imported()


def _install_later(module: str, part: Callable[[], ModuleType]) -> None:
    """Install a part when ``module`` is imported, or now if it is."""

    def imported() -> None:
        if _finder is not None:
            _finder.waiting.pop(module, None)
        if _active is not None:
            _install(part)

    if module in sys.modules:
        _install(part)
    else:
        _wait_for(module, imported)


def _the_finder() -> _TorchFinder:
    global _finder
    with _lock:
        if _finder is None:
            _finder = _TorchFinder()
        if _finder not in sys.meta_path:
            sys.meta_path.insert(0, _finder)
        return _finder


def _wait_for(module: str, done: Callable[[], None]) -> None:
    _the_finder().waiting[module] = done


def install() -> None:
    """Guard this process: now if torch is imported, else when it is. Never raises; see :func:`failure`."""
    global _failure, _standby
    options.keep()
    if options.is_standby():
        _standby = _standing_by()
        _standby.prepare()
    if options.is_off():
        return
    _failure = None
    if "torch" in sys.modules:
        __import__("torch")  # another thread may be importing it: wait for that one, holding no lock
        if _torch_is_complete():
            _activate(say=False)
            return
    _wait_for("torch", _torch_imported)
    if options.wants_cpu():
        watch_for_cpu()


def watch_for_cpu() -> None:
    """Have the device of ``--cpu`` in place when torch, which nobody has imported yet, looks for CUDA."""
    finder = _the_finder()
    finder.before["torch._C"] = lambda: _attempt("--cpu", lambda: _cpu_backend().before_core())
    finder.before["torch.cuda"] = lambda: _attempt("--cpu", lambda: _cpu_backend().before_cuda())


def _torch_is_complete() -> bool:
    spec = getattr(sys.modules.get("torch"), "__spec__", None)
    return "torch" in sys.modules and not getattr(spec, "_initializing", False)


def _activate(say: bool = True) -> None:
    """Install every part that the environment asks for; each one steps aside alone when it fails."""
    global _active, _failure
    with _lock:
        if _active is not None:
            return
        _watch_forks()
        if options.wants_cpu():  # first: the guard then sees which devices there are
            _install(_cpu)
        try:
            from trapline._guard import active

            active.activate(_answer)
            _active = active
        except Exception as error:
            text = (str(error).splitlines() or [""])[0]
            if text.startswith("trapline: "):
                text = text[len("trapline: ") :]
            else:
                text = f"guard: {type(error).__name__}: {text}: this process is not guarded"
            _failure = f"trapline: {text}"
            if say:
                _say(text)
        _install(_fault, _active)
        _install(_exceptions)
        if options.wants_cpu():
            _attempt("lost", _ask_stand_in)
        if options.context_socket() is not None:
            _install(_context)
        if _active is not None:
            _install_later("torch._dynamo.trace_rules", _dynamo)
            _install_later("torch._inductor.compile_fx", _compile)
            _install_later("torch._inductor.cudagraph_trees", _pools)
        mode, quarantine, steps = options.on_fault(), options.quarantine(), options.steps()
        if mode in ("skip", "stop"):
            _install(_skip, mode, options.skip_limit(1.0))
        if quarantine:
            _install(_quarantine, quarantine)
            _install(_quarantine_loader)
        watch = options.watch()
        if watch in ("nan", "nan:stop"):
            _install(_watch, watch == "nan:stop")
        elif watch == "light":
            _install(_watch_light, *([] if _active is None else [_active.notes_seen]))
            _attempt("skip", lambda: _skip().by_watch(_watch_light().holding))
        if watch is not None and watch != "off":
            for module in ("callback", "eval_frame", "convert_frame"):
                _install_later(f"torch._dynamo.{module}", _watch_compiling)
        if steps is not None:
            _install(_steps, steps)


def _answer(violation: dict[str, Any]) -> Any:
    """What the guard is told to do about a bad argument."""
    from trapline._library import aside
    from trapline._skip import policy

    if aside.is_running():
        from trapline._library.errors import DeviceAssertError

        return DeviceAssertError("in what Trapline has run again")
    return policy.answer(violation)


def _ask_stand_in() -> None:
    """The device of ``--cpu`` knows by itself whether its context lives."""
    from trapline._supervise import lost

    device = _cpu_backend().device
    if device is not None:
        lost.ask_stand_in(device.check_context)


# The parts, each imported when it is installed ----------------------------------------------------


def _cpu_backend() -> ModuleType:
    from trapline._cpu import backend

    return backend


def _cpu() -> ModuleType:
    from trapline._cpu import redirect

    return redirect


def _fault() -> ModuleType:
    from trapline import _fault

    return _fault


def _exceptions() -> ModuleType:
    from trapline._exceptions import hooks

    return hooks


def _context() -> ModuleType:
    from trapline._supervise import context

    return context


def _standing_by() -> ModuleType:
    from trapline._supervise import standby

    return standby


def _skip() -> ModuleType:
    from trapline._skip import policy

    return policy


def _quarantine() -> ModuleType:
    from trapline._skip import quarantine

    return quarantine


def _quarantine_loader() -> ModuleType:
    from trapline._skip import loader

    return loader


def _watch() -> ModuleType:
    from trapline._watch import thorough

    return thorough


def _watch_light() -> ModuleType:
    from trapline._watch import light

    return light


def _watch_compiling() -> ModuleType:
    from trapline._watch import compiling

    return compiling


def _steps() -> ModuleType:
    from trapline import _steps

    return _steps


def _dynamo() -> ModuleType:
    from trapline._compile import dynamo

    return dynamo


def _compile() -> ModuleType:
    from trapline import _compile

    return _compile


def _pools() -> ModuleType:
    from trapline._compile import pools

    return pools


def _install(part: Callable[[], ModuleType], *args: object) -> None:
    def install() -> None:
        module = part()
        _installed.append(module)  # first: what is installed in part is taken out again, too
        module.install(*args)

    _attempt(part.__name__.strip("_"), install)


def _attempt(name: str, action: Callable[[], None]) -> None:
    try:
        action()
    except Exception as error:
        _debug(f"{name} is not active: {error!r}")


def describe() -> list[str]:
    """What guards this process, a line each; for people."""
    if _active is None:
        return [_failure or "the guard waits for `import torch`"]
    lines = [f"guard: {_active.described()}"]
    if not _active.is_enabled():
        lines.append("guard: switched off")
    return lines


def watch_nan(how: str) -> bool:
    """Watch for NaN from now on as ``--watch`` says it; False where this torch cannot be watched so."""
    modules = {"light": _watch_light(), "nan": _watch()}
    for name, module in modules.items():
        if name != how:
            module.uninstall()
    module = modules.get(how)
    if module is None:
        return True
    module.install()
    if module not in _installed:
        _installed.append(module)
    return module.is_installed()


def uninstall() -> None:
    """Undo :func:`install`. The finder stays on the path, idle: another thread may be walking it."""
    global _active
    with _lock:
        if _finder is not None:
            _finder.waiting.clear()
        if _active is None:
            return
        while _installed:
            undo = getattr(_installed.pop(), "uninstall", None)
            if undo is not None:
                undo()
        _active.deactivate()
        _active = None


def _watch_forks() -> None:
    """A child forked while another thread holds our lock must not inherit it as held for ever."""
    from trapline._library import forks

    forks.in_child(_fresh_lock)


def _fresh_lock() -> None:
    global _lock
    _lock = _thread.RLock()


def is_active() -> bool:
    return _active is not None


def failure() -> str | None:
    """Why the last activation did not work, in one line; None when it did or has not been tried."""
    return _failure


def set_enabled(on: bool) -> bool:
    """Switch the checks on or off; returns the state before. Without a guard it is off and stays off."""
    with _lock:
        return False if _active is None else _active.set_enabled(on)


def _say(text: str) -> None:
    from trapline._library.say import say

    say(text)


def _debug(text: str) -> None:
    from trapline._library.say import debug

    debug(text)
