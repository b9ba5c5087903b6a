"""`--watch light`: loss and gradients, and the place only when they are not finite.

Stage one looks at the loss that ``backward`` starts from, in each step, and at the gradients before
``Optimizer.step``, in each of the first steps and then as often as costs a four hundredth of the run's time.
A step whose gradients were not looked at is found by the next loss: the weights are bad by then.

Stage two (:mod:`trapline._watch.place`) runs before the optimizer has changed the weights, at most three
times. What it finds is a suspect until the optimizer that has the bad gradients has stepped
(:mod:`trapline._watch.suspect`).

The rule is in docs/watch.md. A loss on a device is read late (:mod:`trapline._watch.device`): nothing waits
for it.
"""

from __future__ import annotations

import atexit
import contextlib
import os
from typing import Any, Callable, Optional

from trapline._fault.data import recorded
from trapline._library.errors import DeviceAssertError
from trapline._library.say import debug
from trapline._watch import replayed
from trapline._watch.holding import Holding
from trapline._watch.suspect import modes
from trapline._watch.watching import Light

_light: Optional[Light] = None
_tells: Callable[[str], None] = debug


def install(tells: Callable[[str], None] = debug) -> None:
    """Watch this process. Calling it again changes nothing. `tells`: what is no fault, but should be said."""
    global _light, _tells
    if _light is not None:
        return
    _tells = tells
    light = Light()
    try:
        light.start()
    except TypeError:  # hooks that are called for a forward that raises came with 2.0
        light.stop()
        return
    _light = light
    recorded.by_watch(facts, thorough=False)
    recorded.by_replay(_made_again)
    atexit.register(_at_exit)


def follows_compilation() -> None:
    """Dynamo is there: hooks go when it begins to compile."""
    if _light is not None:
        _light.roots.follows_compilation()


def uninstall() -> None:
    """Stop watching; what was seen is forgotten."""
    global _light
    if _light is not None:
        _light.stop()
        _light = None
        recorded.by_watch(None)
        recorded.by_replay(None)
        atexit.unregister(_at_exit)


def is_installed() -> bool:
    return _light is not None


def facts() -> Optional[dict[str, Any]]:
    """What went bad first, as facts of a fault; None where nothing did."""
    if _light is None:
        return None
    with contextlib.suppress(DeviceAssertError):  # a fault is being told already
        _light.device.reads()
    if _light.found is None and _light.suspect is None:
        try:
            _light.catches_up()
            return _light.updates.broken()
        except Exception as error:
            debug(f"watch: {error!r}")
    return _light.found or (_light.suspect.fact if _light.suspect is not None else None)


def _made_again(value: Any, function: str) -> dict[str, Any]:
    if _light is None or modes():
        return {}
    _light.catches_up()
    with _light.second.running():
        return replayed.of_value(replayed.Held(value, function), list(_light.calls))


def verdict() -> Optional[dict[str, Any]]:
    """The same by the rule for a finding of its own, at the end of the program."""
    if _light is None:
        return None
    _light.finish()
    return _light.found


def holding() -> Optional[Holding]:
    """What `--on-fault skip` asks before each step; None: nobody watches."""
    return None if _light is None else _light.holding


def recent() -> list[tuple[int, Optional[float], Optional[float]]]:
    """See :class:`History`."""
    if _light is None:
        return []
    _light.catches_up()
    return list(_light.ring)


def harmless() -> Optional[dict[str, Any]]:
    """The first loss that was not finite and harmed no weight, where there was no fault: a NaN with gradients
    of 0 (a mean over nothing), an Inf with finite ones."""
    return None if _light is None or _light.found is not None else _light.early.harmless


def _notes_harmless() -> None:
    """The program may have shown that loss."""
    from trapline._fault import write
    from trapline._library import diagnose

    fact = harmless()
    if fact is None or write.written() or write.lost():
        return
    finding = diagnose.diagnose({"kind": "watch", "watch": fact, "process": write.process_facts()})
    if finding is not None:
        _tells(f"{finding['summary']}{_place(finding)}; {fact['why']}")
        for fix in finding["fix"]:
            _tells(f"help: {fix}")


def _place(finding: dict[str, Any]) -> str:
    """ " (main.py:27, sample 1377)"."""
    origin, sample = finding.get("origin") or {}, finding.get("sample") or {}
    parts = [f"{os.path.basename(origin['file'])}:{origin['line']}"] if "line" in origin else []
    parts += [f"sample {sample['dataset_index']}"] if "dataset_index" in sample else []
    return f" ({', '.join(parts)})" if parts else ""


def _at_exit() -> None:
    """The finding of a program that met no fault but whose weights went bad."""
    try:
        found = verdict()
        if found is None:
            _notes_harmless()
            return
        from trapline._fault import write
        from trapline._library import diagnose

        held = _light.holding if _light is not None else None
        if held is not None and held.told:
            found["later"] = True
        if write.written() > (held.written if held is not None else 0):
            return  # a fault of this process tells it already
        finding = diagnose.diagnose({"kind": "watch", "watch": found, "process": write.process_facts()})
        if finding is not None:
            write.write_finding(finding, [])
    except Exception as error:
        debug(f"watch: {error!r}")
