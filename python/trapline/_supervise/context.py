"""Answers the supervisor's question whether the CUDA context of this process lives.

A thread waits on the supervisor's socket; it is woken by a question and by nothing else. It uses no operation
of torch: `driver` says how it asks, and the device of ``--cpu`` has a function of its own.
"""

from __future__ import annotations

import _thread
import os
import socket
from typing import Optional

from trapline._library import forks, options
from trapline._library.say import debug
from trapline._supervise import lost

_QUESTION = b"context?"
_MAX_LINE = 400

_connection: Optional[socket.socket] = None
_pid = 0  # the process that is connected


def install() -> None:
    """Connects, once torch is imported.

    A forked child does not share the connection; it makes its own when it begins to use CUDA.
    """
    import torch

    _connect()
    # Runs when CUDA is initialised, in this process or in a child of it.
    torch.cuda._lazy_call(_connect)


def uninstall() -> None:
    """Ends the connection, and with it the thread."""
    connection = _connection
    if connection is not None:
        try:
            connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def _connect() -> None:
    global _connection, _pid
    path = options.context_socket()
    if path is None or _pid == os.getpid():
        return
    _pid = os.getpid()
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        connection.settimeout(5.0)
        connection.connect(path)
        connection.settimeout(None)
        connection.send(f"hello {_pid}".encode(), socket.MSG_NOSIGNAL)
        _thread.start_new_thread(_serve, (connection,))
    except (OSError, RuntimeError) as error:
        connection.close()
        debug(f"the supervisor is not told of the CUDA context: {error}")
        return
    _connection = connection


def _serve(connection: socket.socket) -> None:
    try:
        while True:
            question = connection.recv(64)
            if not question:
                return
            if question == _QUESTION:
                connection.send(_answer().encode(), socket.MSG_NOSIGNAL)
    except Exception as error:  # the supervisor is gone, or the interpreter ends
        try:
            debug(f"the supervisor asks no more: {error}")
        except Exception:
            pass


def _answer() -> str:
    error = lost.error()
    if not error:
        return "none" if error is None else "alive"
    return "dead " + "".join(c if c.isprintable() else "?" for c in error[:_MAX_LINE])


def _forget() -> None:
    """In a child: the parent's connection is not its own."""
    global _connection
    connection, _connection = _connection, None
    if connection is not None:
        connection.close()


forks.in_child(_forget)
