"""TFRecord files, written here from record_writer.cc, example.proto and feature.proto."""

import struct

import numpy as np
import pytest
from reading import read, read_well, write


def crc32c(data: bytes) -> int:
    """Bit by bit; the reader has tables."""
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
    return value ^ 0xFFFFFFFF


def masked(data: bytes) -> int:
    value = crc32c(data)
    return (((value >> 15) | (value << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def record(data: bytes) -> bytes:
    head = struct.pack("<Q", len(data))
    return head + struct.pack("<I", masked(head)) + data + struct.pack("<I", masked(data))


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def block(number: int, data: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(data)) + data


def integers(*values: int, packed: bool = True) -> bytes:
    if packed:
        return block(3, block(1, b"".join(map(varint, values))))
    return block(3, b"".join(b"\x08" + varint(value) for value in values))


def floats(*values: float) -> bytes:
    return block(2, block(1, struct.pack(f"<{len(values)}f", *values)))


def example(**features: bytes) -> bytes:
    entries = (block(1, block(1, name.encode()) + block(2, value)) for name, value in features.items())
    return record(block(1, b"".join(entries)))


def test_the_checksum_is_the_one_of_the_standard():
    assert crc32c(b"123456789") == 0xE3069283


def test_features_are_columns_and_records_rows(tmp_path):
    data = example(
        label=integers(3), ids=integers(1, -2, 2**63 - 1), x=floats(0.5, -1.5), name=block(1, block(1, b"a"))
    )
    data += example(label=integers(4, packed=False), ids=integers(7), x=floats())
    reading = read_well(write(tmp_path / "t.tfrecord", data))
    assert reading.reader == "tfrecord"
    assert (reading.columns["label"].values, reading.columns["label"].rows) == ([3, 4], [0, 1])
    assert (reading.columns["ids"].values, reading.columns["ids"].rows) == (
        [1, -2, 2**63 - 1, 7],
        [0, 0, 0, 1],
    )
    assert reading.columns["x"].values == [0.5, -1.5]
    assert reading.skipped == {"name": "text"}


def test_it_is_known_by_its_framing(tmp_path):
    reading = read_well(write(tmp_path / "train-00000-of-00002", example(label=integers(3))))
    assert (reading.reader, reading.columns["label"].values) == ("tfrecord", [3])


GOOD = example(label=integers(3))


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (GOOD + GOOD[:-1], f"record 1: it ends too early (at byte {len(GOOD)})"),
        (GOOD + GOOD[:5], f"record 1: it ends too early (at byte {len(GOOD)})"),
        (GOOD + b"\xff" * 40, f"record 1: the checksum of its length is wrong (at byte {len(GOOD)})"),
        (GOOD[:-1] + bytes([GOOD[-1] ^ 1]), "record 0: its checksum is wrong (at byte 0)"),
        (GOOD + record(b"\x0a\xff\x01"), f"record 1: no tf.train.Example (at byte {len(GOOD)})"),
        (record(b"\x0a" + b"\xff" * 11), "record 0: no tf.train.Example (at byte 0)"),
    ],
)
def test_damage_is_named_by_its_record(tmp_path, data, error):
    reading = read(write(tmp_path / "t.tfrecord", data))
    assert error in reading.error
    if data.startswith(GOOD):
        assert reading.columns["label"].values == [3]


def test_a_length_that_lies_is_not_believed(tmp_path):
    head = struct.pack("<Q", 2**64 - 16)
    reading = read(write(tmp_path / "t.tfrecord", head + struct.pack("<I", masked(head)) + b"x" * 100))
    assert "record 0: it ends too early" in reading.error


def test_random_damage_never_crashes(tmp_path):
    random = np.random.default_rng(1)
    inner = block(1, block(1, block(1, b"label") + block(2, integers(1, 2, 3) + floats(1.0))))
    for _ in range(60):
        damaged = bytearray(inner)
        damaged[random.integers(0, len(inner))] = random.integers(0, 256)
        read(write(tmp_path / "t.tfrecord", record(bytes(damaged))))
