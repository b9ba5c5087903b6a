"""What makes two requests the same, as docs/requests.md has it."""

from __future__ import annotations

from hashlib import blake2b
from itertools import combinations

from trapline._supervise import fingerprint


def by_hand(*parts: bytes) -> str:
    joined = b"".join(str(len(part)).encode() + b":" + part for part in parts)
    return blake2b(joined, digest_size=16).hexdigest()


def test_it_is_made_as_the_page_says():
    assert fingerprint.of_http("POST", b"/predict?n=1", b"{}", 2) == by_hand(
        b"http", b"POST", b"/predict?n=1", b"2", b"{}"
    )
    assert fingerprint.of_http("POST", b"/x?", b"begins", None) == by_hand(
        b"http", b"POST", b"/x?", b"?", b"begins"
    )
    assert fingerprint.of_content("größe") == by_hand(b"content", "größe".encode())
    assert fingerprint.of_content("a") == fingerprint.of_content(bytearray(b"a"))
    assert fingerprint.of_content("a") == fingerprint.of_content(memoryview(b"a"))
    assert fingerprint.of_identifier("7") == by_hand(b"id", b"7")


def test_it_does_not_change_between_versions():
    assert fingerprint.of_http("GET", b"/?", b"", 0) == "2f7f0214c9b6d7a6dfb39a4af5c73920"
    assert fingerprint.of_content(b"") == "8a9234755bb3582b708a42a963a09ae2"


def test_no_two_different_requests_share_one():
    made = [
        fingerprint.of_http("GET", b"/a?", b"", 0),
        fingerprint.of_http("POST", b"/a?", b"", 0),
        fingerprint.of_http("POST", b"/a?b", b"", 0),
        fingerprint.of_http("POST", b"/a?", b"b", 1),
        fingerprint.of_http("POST", b"/a?", b"b", 2),
        fingerprint.of_http("POST", b"/a?", b"b", None),
        fingerprint.of_http("POST", b"/a?1:", b"", 0),
        fingerprint.of_content("a"),
        fingerprint.of_identifier("a"),
        fingerprint.of_content("\ud800"),
    ]
    assert all(a != b for a, b in combinations(made, 2))
