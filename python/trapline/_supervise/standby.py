"""A standby: a process that has done its imports and waits until it is its turn.

``trapline supervise --standby`` starts it with a descriptor. It waits at the first of these: the program
calls ``trapline.standby()``; it makes a socket of a listening descriptor that was handed on to it, which
servers do when the application is loaded; or, where none was handed on, ``import torch`` is done.
"""

from __future__ import annotations

import os
import threading
from typing import Any, Optional

from trapline._library import forks, options
from trapline._library.say import debug

_descriptor: Optional[int] = None
_turn = threading.Lock()  # held while one thread waits: the others wait for it


def prepare() -> None:
    """At start-up: takes the descriptor out of what child processes get, and watches for sockets."""
    global _descriptor
    descriptor = options.take_standby_fd()
    if descriptor is None:
        return
    try:
        os.set_inheritable(descriptor, False)
    except OSError as error:
        debug(f"no standby: descriptor {descriptor}: {error}")
        return
    _descriptor = descriptor
    forks.in_child(_forget)
    if options.listening():
        _watch_sockets()


def torch_is_imported() -> None:
    """What is left of the start is the program's own, and nothing tells when it is done."""
    if _descriptor is not None and not options.listening():
        wait()


def wait() -> None:
    """Says that this process is ready, and waits until it is its turn. At once where it is no standby."""
    global _descriptor
    if _descriptor is None:
        return
    with _turn:
        descriptor = _descriptor
        if descriptor is None:
            return
        try:
            os.write(descriptor, b"ready\n")
        except OSError:  # nobody wants to know any more; it may be its turn all the same
            pass
        try:
            go = os.read(descriptor, 1)
        except OSError:
            go = b""
        if not go:  # the supervisor is gone, or needs no standby
            os._exit(0)
        _descriptor = None
        os.close(descriptor)
        _watch_no_more()


def _forget() -> None:
    """In a child: it is no standby."""
    global _descriptor, _turn
    descriptor, _descriptor = _descriptor, None
    _turn = threading.Lock()
    if descriptor is not None:
        os.close(descriptor)
        _watch_no_more()


_replaced: list[tuple[Any, str, Any]] = []


def _watch_sockets() -> None:
    import socket

    handed_on = options.listening()
    made, from_descriptor = socket.socket.__init__, socket.fromfd

    def init(
        self: socket.socket, family: int = -1, type: int = -1, proto: int = -1, fileno: Any = None
    ) -> None:
        if fileno in handed_on:
            wait()
        made(self, family, type, proto, fileno)

    def fromfd(fd: int, family: int, type: int, proto: int = 0) -> socket.socket:
        if fd in handed_on:
            wait()
        return from_descriptor(fd, family, type, proto)

    for owner, name, original, own in (
        (socket.socket, "__init__", made, init),
        (socket, "fromfd", from_descriptor, fromfd),
    ):
        _replaced.append((owner, name, original))
        setattr(owner, name, own)


def _watch_no_more() -> None:
    while _replaced:
        owner, name, original = _replaced.pop()
        setattr(owner, name, original)
