"""Answers the supervisor's question whether the CUDA context of this process lives.

A thread waits on the supervisor's socket; it is woken by a question and by nothing else. It uses no torch
operation: `driver` says how it asks, and the device of ``--cpu`` has a function of its own.
"""

from __future__ import annotations

import _thread
import os
import socket
from typing import Callable, Optional

from trapline._library import forks, options
from trapline._library.say import debug
from trapline._supervise import driver

_QUESTION = b"context?"
_MAX_LINE = 400

_connection: Optional[socket.socket] = None
_pid = 0  # the process that is connected


def install(check_stand_in: Optional[Callable[[], None]] = None) -> None:
    """Connects, once torch is imported. ``check_stand_in`` raises what a call to the device of ``--cpu``
    raises when its context is lost.

    A forked child does not share the connection; it makes its own when it begins to use CUDA.
    """
    import torch

    def connect() -> None:
        if _pid != os.getpid():
            _connect(check_stand_in)

    connect()
    # Runs when CUDA is initialised, in this process or in a child of it.
    torch.cuda._lazy_call(connect)


def uninstall() -> None:
    """Ends the connection, and with it the thread."""
    connection = _connection
    if connection is not None:
        try:
            connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def _connect(check_stand_in: Optional[Callable[[], None]]) -> None:
    global _connection, _pid
    path = options.context_socket()
    if path is None:
        return
    _pid = os.getpid()
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        connection.settimeout(5.0)
        connection.connect(path)
        connection.settimeout(None)
        connection.send(f"hello {_pid}".encode(), socket.MSG_NOSIGNAL)
        _thread.start_new_thread(_serve, (connection, check_stand_in))
    except (OSError, RuntimeError) as error:
        connection.close()
        debug(f"the supervisor is not told of the CUDA context: {error}")
        return
    _connection = connection


def _serve(connection: socket.socket, check_stand_in: Optional[Callable[[], None]]) -> None:
    asked: Optional[driver.Driver] = None
    try:
        while True:
            question = connection.recv(64)
            if not question:
                return
            if question != _QUESTION:
                continue
            if check_stand_in is None and asked is None and _is_used():
                asked = _driver()
            connection.send(_answer(check_stand_in, asked).encode(), socket.MSG_NOSIGNAL)
    except Exception as error:  # the supervisor is gone, or the interpreter ends
        try:
            debug(f"the supervisor asks no more: {error}")
        except Exception:
            pass


def _is_used() -> bool:
    import torch

    return torch.cuda.is_initialized()


def _driver() -> Optional[driver.Driver]:
    try:
        return driver.Driver()
    except (OSError, AttributeError) as error:
        debug(f"the CUDA driver cannot be asked: {error}")
        return None


def _answer(check_stand_in: Optional[Callable[[], None]], asked: Optional[driver.Driver]) -> str:
    if not _is_used():
        return "none"
    if check_stand_in is not None:
        try:
            check_stand_in()
        except RuntimeError as error:
            return _dead(str(error))
        return "alive"
    lost = None if asked is None else asked.lost()
    if lost is None:
        return "none"
    return _dead(lost) if lost else "alive"


def _dead(text: str) -> str:
    line = (text.splitlines() or [""])[0][:_MAX_LINE]
    return "dead " + "".join(c if c.isprintable() else "?" for c in line)


def _forget() -> None:
    """In a child: the parent's connection is not its own."""
    global _connection
    connection, _connection = _connection, None
    if connection is not None:
        connection.close()


forks.in_child(_forget)
