"""What the watch does inside the program's calls may fail: nothing of that reaches the program."""

from __future__ import annotations

import functools
from typing import Any

import torch

from trapline._library.errors import DeviceAssertError
from trapline._library.say import debug

_is_compiling = torch.compiler.is_dynamo_compiling


def quietly(hook: Any) -> Any:
    """For hooks, whose result is that they have been called. In a graph that is compiled they are nothing:
    compiled autograd traces those of the program's backward pass.
    """

    @functools.wraps(hook)
    def called(*args: Any) -> Any:
        if _is_compiling():
            return None
        try:
            return hook(*args)
        except DeviceAssertError:  # the guard's, met by what the watch reads
            raise
        except Exception as error:
            debug(f"watch: {error!r}")
            return None

    return called
