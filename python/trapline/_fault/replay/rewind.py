"""A random generator as it was before the program drew from it.

What runs again draws what the program drew, if its generator is wound back by as many numbers as that takes.
The Mersenne Twister, which PyTorch has on the CPU, goes both ways: Matsumoto and Nishimura, "Mersenne
Twister: a 623-dimensionally equidistributed uniform pseudo-random number generator" (1998).
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple, Optional

import torch

_WORDS = 624
_MIDDLE = 397
_UPPER = 0x80000000
_LOWER = 0x7FFFFFFF
_MATRIX = 0x9908B0DF
_MAX_BLOCKS = 1024  # of 624 numbers each
# CPUGeneratorImplState in ATen/CPUGeneratorImpl.cpp: seed, left, seeded, next, 624 words of 64 bits, normals.
_HEAD = struct.Struct("<QiiQ")
_SIZE = _HEAD.size + 8 * _WORDS + 40
_NORMALS = slice(_SIZE - 16, _SIZE)  # whether some were kept for later


class _Twister(NamedTuple):
    words: list[int]  # of this block
    used: int  # how many of them were drawn


def rewound(before: Any, after: Any) -> Optional[Any]:
    """`before`, as many numbers earlier as `after` is later, as states of PyTorch's generator; None where
    nothing was drawn in between, or that cannot be told."""
    first, last = _read(before), _read(after)
    if first is None or last is None or first == last:
        return None
    count = _distance(first, last)
    return None if count is None else _written(before, _back(first, count))


def _read(state: Any) -> Optional[_Twister]:
    if state.numel() != _SIZE:
        return None
    data = bytes(state.tolist())
    _, left, _, following = _HEAD.unpack_from(data)
    words = list(struct.unpack_from(f"<{_WORDS}Q", data, _HEAD.size))
    used = _WORDS if left == 1 else following  # a fresh one has left == 1 and next == 0
    return _Twister(words, used) if 0 <= used <= _WORDS else None


def _written(like: Any, twister: _Twister) -> Any:
    data = bytearray(like.tolist())
    seed, _, seeded, _ = _HEAD.unpack_from(data)
    _HEAD.pack_into(data, 0, seed, _WORDS + 1 - twister.used, seeded, twister.used)
    struct.pack_into(f"<{_WORDS}Q", data, _HEAD.size, *twister.words)
    data[_NORMALS] = bytes(len(data[_NORMALS]))
    return torch.frombuffer(data, dtype=torch.uint8).clone()


def _distance(first: _Twister, last: _Twister) -> Optional[int]:
    words = first.words
    for blocks in range(_MAX_BLOCKS):
        if words == last.words:
            count = blocks * _WORDS + last.used - first.used
            return count if count > 0 else None
        words = _next(words)
    return None


def _back(twister: _Twister, count: int) -> _Twister:
    words, used = twister.words, twister.used - count
    while used <= 0:  # all of the block before
        words, used = _previous(words), used + _WORDS
    return _Twister(words, used)


def _next(words: list[int]) -> list[int]:
    out = list(words)
    for at in range(_WORDS):
        mixed = (out[at] & _UPPER) | (out[(at + 1) % _WORDS] & _LOWER)
        out[at] = out[(at + _MIDDLE) % _WORDS] ^ (mixed >> 1) ^ (_MATRIX if mixed & 1 else 0)
    return out


def _previous(words: list[int]) -> list[int]:
    out = list(words)
    for at in reversed(range(_WORDS)):
        upper = _unmixed(out[at] ^ out[(at + _MIDDLE) % _WORDS]) & _UPPER
        lower = _unmixed(out[at - 1] ^ out[(at - 1 + _MIDDLE) % _WORDS]) & _LOWER
        out[at] = upper | lower
    return out


def _unmixed(word: int) -> int:
    """The word of which a step has taken the lowest bit to the matrix."""
    odd = bool(word & _UPPER)
    return ((word ^ (_MATRIX if odd else 0)) << 1 | odd) & 0xFFFFFFFF
