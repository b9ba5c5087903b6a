"""Whether the CUDA context of this process is lost: asked of the device of ``--cpu`` or of the driver."""

from __future__ import annotations

import sys
from typing import Callable, Optional

from trapline._library.say import debug
from trapline._supervise import driver

_check_stand_in: Optional[Callable[[], None]] = None
_driver: Optional[driver.Driver] = None
_has_driver = True


def ask_stand_in(check: Callable[[], None]) -> None:
    """CUDA is the device of ``--cpu``: ``check`` raises what a call to it raises when its context is lost."""
    global _check_stand_in
    _check_stand_in = check


def error() -> Optional[str]:
    """The error of a context that is lost, in one line; "" where it lives; None where none can be asked."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return None
    if _check_stand_in is not None:
        try:
            _check_stand_in()
        except RuntimeError as problem:
            return (str(problem).splitlines() or [""])[0] or "lost"
        return ""
    asked = _the_driver()
    return None if asked is None else asked.lost()


def _the_driver() -> Optional[driver.Driver]:
    global _driver, _has_driver
    if _driver is None and _has_driver:
        try:
            _driver = driver.Driver()
        except (OSError, AttributeError) as problem:
            _has_driver = False
            debug(f"the CUDA driver cannot be asked: {problem}")
    return _driver
