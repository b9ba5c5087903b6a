"""The magic ``%trapline``: a table of what can be asked of a session."""

from __future__ import annotations

import sys
from typing import Any, Callable

from trapline import _boot
from trapline._check import rules
from trapline._library.errors import DeviceAssertError
from trapline._notebook import cards, lost

_CHECKS: dict[str, tuple[Callable[..., None], int, str]] = {  # how many numbers follow the value
    "labels": (rules.check_labels, 1, "labels EXPRESSION CLASSES"),
    "ids": (rules.check_ids, 1, "ids EXPRESSION ROWS"),
    "finite": (rules.check_finite, 0, "finite EXPRESSION"),
    "probs": (rules.check_probs, 0, "probs EXPRESSION"),
}


class Mistake(Exception):
    """The line cannot be done; the text says why and what to write instead."""


def run(shell: Any, line: str) -> None:
    """Does what the line after ``%trapline`` says."""
    word, _, rest = line.strip().partition(" ")
    try:
        command = _COMMANDS.get(word or "status")
        if command is None:
            raise Mistake(f"there is no {word!r}: write {', '.join(_COMMANDS)}")
        command(shell, rest.strip())
    except Mistake as mistake:
        print(f"%trapline: {mistake}", file=sys.stderr)


def _status(shell: Any, rest: str) -> None:
    del shell, rest
    for line in _boot.describe():
        print(line)
    state = lost.error()
    if state:
        print(f"context: lost ({state}): %trapline restart")


def _on(shell: Any, rest: str) -> None:
    del shell, rest
    _need_guard()
    _boot.set_enabled(True)
    print("the guard is on")


def _off(shell: Any, rest: str) -> None:
    del shell, rest
    _need_guard()
    _boot.set_enabled(False)
    print("the guard is off; %trapline on switches it on again")


def _need_guard() -> None:
    if not _boot.is_active():
        raise Mistake("there is no guard yet: it comes with `import torch`")


_WATCHED = {
    "nan": "losses, outputs and gradients are watched for NaN",
    "light": "losses and gradients are watched for NaN",
    "off": "nothing is watched",
}


def _watch(shell: Any, rest: str) -> None:
    del shell
    if rest not in _WATCHED:
        raise Mistake("write `watch nan`, `watch light` or `watch off`")
    if "torch" not in sys.modules:
        raise Mistake("torch is not imported: `import torch` first")
    if not _boot.watch_nan(rest):
        raise Mistake("this torch is too old to be watched: it needs 2.0")
    print(_WATCHED[rest])


def _check(shell: Any, rest: str) -> None:
    what, _, arguments = rest.partition(" ")
    if what not in _CHECKS:
        raise Mistake("write " + " or ".join(f"`check {usage}`" for _, _, usage in _CHECKS.values()))
    check, numbers, usage = _CHECKS[what]
    words = arguments.rsplit(None, numbers) if numbers else [arguments]
    if len(words) != numbers + 1 or not words[0]:
        raise Mistake(f"write `check {usage}`")
    try:
        value, *limits = [eval(word, shell.user_global_ns, shell.user_ns) for word in words]
    except Exception as error:
        raise Mistake(f"cannot evaluate {arguments!r}: {type(error).__name__}: {error}") from None
    try:
        check(value, *limits)
    except DeviceAssertError as fault:
        cards.show(shell, fault.finding)
    except (TypeError, ValueError) as error:
        raise Mistake(f"cannot check {words[0]}: {error}") from None
    else:
        print(f"{words[0]}: nothing wrong")


def _save(shell: Any, rest: str) -> None:
    if not rest:
        raise Mistake("write `save FILE`")
    try:
        print(lost.save(shell, rest))
    except OSError as error:
        raise Mistake(f"cannot write {rest}: {error.strerror}: choose another file") from None


def _restart(shell: Any, rest: str) -> None:
    del rest
    kernel = getattr(shell, "kernel", None)
    if kernel is None:
        raise Mistake("this is no kernel: leave with Ctrl-D and start IPython again")
    kernel.do_shutdown(True)
    print("the kernel ends, and its front end starts a new one")


_COMMANDS: dict[str, Callable[[Any, str], None]] = {
    "status": _status,
    "on": _on,
    "off": _off,
    "watch": _watch,
    "check": _check,
    "save": _save,
    "restart": _restart,
}
