"""The server of examples/server as it is measured: each request that it begins is noted in a file.

What a client has lost it cannot tell from its side: whether the server had begun with it, or it was still
waiting to be accepted.
"""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples" / "server"))

import app as example  # noqa: E402

_NOTES = os.open(os.environ["BENCH_BEGUN"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)


def noted(inner):
    async def application(scope, receive, send):
        if scope["type"] == "http":
            named = dict(scope["headers"]).get(b"x-request-id")
            if named:
                os.write(_NOTES, named + b"\n")
        await inner(scope, receive, send)

    return application


plain = noted(example.serve)  # as it is without Trapline
guarded = noted(example.app)
