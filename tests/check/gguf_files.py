"""Small .gguf files, by the format's specification (docs/gguf.md of ggml)."""

import struct
from pathlib import Path
from typing import Any

U32, STRING, ARRAY = 4, 8, 9
F32, Q8_0 = 0, 8


def text(value: str) -> bytes:
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def value(what: Any) -> bytes:
    if isinstance(what, int):
        return struct.pack("<II", U32, what)
    if isinstance(what, str):
        return struct.pack("<I", STRING) + text(what)
    return struct.pack("<IIQ", ARRAY, STRING, len(what)) + b"".join(map(text, what))


def write_gguf(path: Path, metadata: dict, tensors: dict[str, tuple[int, list[int], bytes]]) -> Path:
    """``tensors``: name to type, sizes (row-major) and data."""
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata))
    head += b"".join(text(key) + value(what) for key, what in metadata.items())
    body = b""
    for name, (kind, sizes, data) in tensors.items():
        body += b"\0" * (-len(body) % 32)
        head += text(name) + struct.pack("<I", len(sizes))
        head += struct.pack(f"<{len(sizes)}Q", *reversed(sizes)) + struct.pack("<IQ", kind, len(body))
        body += data
    path.write_bytes(head + b"\0" * (-len(head) % 32) + body)
    return path


def floats(count: int, number: float = 1.0) -> bytes:
    return struct.pack("<f", number) * count


METADATA: dict = {
    "general.architecture": "llama",
    "llama.block_count": 2,
    "llama.embedding_length": 32,
    "tokenizer.ggml.tokens": [f"w{i}" for i in range(10)],
    "tokenizer.ggml.bos_token_id": 1,
    "tokenizer.ggml.eos_token_id": 2,
}
TENSORS = {
    "token_embd.weight": (F32, [10, 32], floats(320)),
    "blk.0.attn_q.weight": (Q8_0, [32, 32], b"\1" * (32 * 34)),
    "blk.1.attn_q.weight": (Q8_0, [32, 32], b"\1" * (32 * 34)),
    "output_norm.weight": (F32, [32], floats(32)),
}
