"""The server of examples/server as it is measured: each connection that it accepts is noted in a file.

What a client has lost it cannot tell from its side: whether a process had taken it, or it was still waiting.
"""

import os
import socket
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples" / "server"))

import app as example  # noqa: E402

_NOTES = os.open(os.environ["BENCH_ACCEPTED"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
_accept = socket.socket.accept


def accept(self):
    """asyncio accepts with this function; a client is known by its port."""
    connection, address = _accept(self)
    os.write(_NOTES, b"%d\n" % address[1])
    return connection, address


socket.socket.accept = accept

plain = example.serve  # as it is without Trapline
guarded = example.app
