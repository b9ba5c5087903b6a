"""A client that sends requests at a steady rate and keeps what became of each, with its times."""

import asyncio
import time
from dataclasses import dataclass, field

TIMEOUT = 10.0
GOOD = b'{"text": "this film is good"}'
# The mean over weights that are all 0: the model's own assertion on the device fails.
BAD = b'{"ids": [3], "weights": [0]}'


@dataclass
class Outcome:
    """One request. `status`: of the answer; 0: there was none, and `error` says how."""

    name: str
    began: float
    ended: float = 0.0
    status: int = 0
    error: str = ""
    body: bytes = b""
    port: int = 0


@dataclass
class Sample:
    """What one endpoint answered at a time; 0: nothing."""

    at: float
    status: int


@dataclass
class Record:
    """All that was seen of one contender, in seconds since the load began."""

    start: float = field(default_factory=time.monotonic)
    good: list[Outcome] = field(default_factory=list)
    bad: list[Outcome] = field(default_factory=list)
    health: list[Sample] = field(default_factory=list)
    ready: list[Sample] = field(default_factory=list)

    def now(self) -> float:
        return time.monotonic() - self.start


async def http(port: int, text: bytes, one: Outcome | None = None) -> tuple[int, bytes]:
    """One request on a connection of its own; raises OSError or EOFError where there is no whole answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        if one is not None:
            one.port = writer.get_extra_info("sockname")[1]
        writer.write(text)
        await writer.drain()
        answer = await reader.read()
    finally:
        writer.close()
    head, _, body = answer.partition(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.") or not _:
        raise EOFError("closed")
    return int(head.split(b" ", 2)[1]), body


def post(name: str, body: bytes) -> bytes:
    lines = (
        "POST /predict HTTP/1.1",
        "host: localhost",
        "connection: close",
        f"x-request-id: {name}",
        "content-type: application/json",
        f"content-length: {len(body)}",
    )
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n".encode()


async def ask(record: Record, port: int, name: str, body: bytes) -> Outcome:
    one = Outcome(name, record.now())
    try:
        one.status, one.body = await asyncio.wait_for(http(port, post(name, body), one), TIMEOUT)
    except ConnectionRefusedError:
        one.error = "refused"
    except (OSError, EOFError):
        one.error = "broken"
    except TimeoutError:
        one.error = "timeout"
    one.ended = record.now()
    return one


async def sample(record: Record, into: list[Sample], port: int, path: str, every: float) -> None:
    while True:
        at = record.now()
        try:
            status, _ = await asyncio.wait_for(http(port, get(path)), TIMEOUT)
        except (OSError, EOFError, TimeoutError):
            status = 0
        into.append(Sample(at, status))
        await asyncio.sleep(every)


async def drive(
    port: int, ready: tuple[int, str], rate: float, seconds: float, bad_at: list[float]
) -> Record:
    """Good requests at `rate` a second; a bad one at each of the times; two endpoints looked at meanwhile."""
    record = Record()
    asked: list[asyncio.Task] = []
    looking = [
        asyncio.create_task(sample(record, record.health, port, "/healthz", 0.1)),
        asyncio.create_task(sample(record, record.ready, *ready, 0.01)),
    ]
    waiting, number = sorted(bad_at), 0
    while record.now() < seconds:
        if waiting and record.now() >= waiting[0]:
            waiting.pop(0)
            asked.append(asyncio.create_task(ask(record, port, f"bad-{len(bad_at) - len(waiting)}", BAD)))
        asked.append(asyncio.create_task(ask(record, port, f"good-{number}", GOOD)))
        number += 1
        await asyncio.sleep(max(0.0, number / rate - record.now()))
    for one in await asyncio.gather(*asked):
        (record.bad if one.name.startswith("bad") else record.good).append(one)
    for task in looking:
        task.cancel()
    await asyncio.gather(*looking, return_exceptions=True)
    return record
