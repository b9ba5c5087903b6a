"""What the watch does inside the program's calls may fail: nothing of that reaches the program."""

from __future__ import annotations

import functools
from typing import Any

from trapline._library.errors import DeviceAssertError
from trapline._library.say import debug


def quietly(hook: Any) -> Any:
    """For hooks, whose result is that they have been called."""

    @functools.wraps(hook)
    def called(*args: Any) -> Any:
        try:
            return hook(*args)
        except DeviceAssertError:  # the guard's, met by what the watch reads
            raise
        except Exception as error:
            debug(f"watch: {error!r}")
            return None

    return called
