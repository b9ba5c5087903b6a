"""What makes two requests the same. docs/requests.md says it for users: keep both alike.

A fingerprint is BLAKE2b with 16 bytes, in hex, over parts of which each begins with its length, so that no
two lists of parts give the same bytes.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Optional, Union

BODY_LIMIT = 1 << 20  # so much of a body is read ahead and looked at

Content = Union[bytes, bytearray, memoryview, str]


def of_http(method: str, target: bytes, body: Union[bytes, memoryview], length: Optional[int]) -> str:
    """Of an HTTP request: method, path with query, the body's first MiB and its length.

    `length`: of the whole body; None where it goes beyond `body` and its sender did not say how far.
    """
    size = b"?" if length is None else b"%d" % length
    return _digest(b"http", _bytes(method), target, size, body)


def of_content(content: Content) -> str:
    """Of what the program says is the content; text counts as its UTF-8."""
    if isinstance(content, str):
        return _digest(b"content", _bytes(content))
    return _digest(b"content", content)


def of_identifier(identifier: str) -> str:
    """Of the name alone, where nobody says what the content is."""
    return _digest(b"id", _bytes(identifier))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _digest(*parts: Union[bytes, bytearray, memoryview]) -> str:
    digest = blake2b(digest_size=16)
    for part in parts:
        size = part.nbytes if isinstance(part, memoryview) else len(part)
        digest.update(b"%d:" % size)
        digest.update(part)
    return digest.hexdigest()
