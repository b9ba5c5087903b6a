"""Tables, lines and arrays behind gzip, zstd, bzip2 and xz."""

import bz2
import gzip
import io
import lzma

import numpy as np
import pytest
from reading import read, read_well, write

zstd = pytest.importorskip("pyarrow").Codec("zstd")
PACKERS = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": lambda data: zstd.compress(data, asbytes=True),
}
INNER = {
    "t.csv": (b"x,label\n1,7\n2,8\n", "label", [7, 8]),
    "t.tsv": (b"x\tlabel\n1\t7\n2\t8\n", "label", [7, 8]),
    "t.jsonl": (b'{"label": 7}\n{"label": 8}\n', "label", [7, 8]),
}


def npy(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


INNER["t.npy"] = (npy(np.arange(5)), "", [0, 1, 2, 3, 4])


@pytest.mark.parametrize("ending", PACKERS)
@pytest.mark.parametrize("name", INNER)
def test_what_is_inside_is_read(tmp_path, name, ending):
    data, column, values = INNER[name]
    reading = read_well(write(tmp_path / f"{name}.{ending}", PACKERS[ending](data)))
    assert reading.reader == "compressed"
    assert reading.columns[column].values == values


@pytest.mark.parametrize("ending", PACKERS)
def test_a_cut_archive_is_an_error_and_what_came_before_is_read(tmp_path, ending):
    random = np.random.default_rng(1)
    lines = [f"{a},{b}" for a, b in random.integers(0, 10**9, (200_000, 2))]
    data = PACKERS[ending](("x,label\n" + "\n".join(lines)).encode())
    reading = read(write(tmp_path / f"t.csv.{ending}", data[: len(data) * 3 // 4]))
    assert reading.code == 2
    assert "ends too early" in reading.error
    values = reading.columns["label"].values
    assert values[:1000] == [int(line.split(",")[1]) for line in lines[:1000]]


def test_a_bomb_is_read_in_little_memory(tmp_path):
    block = gzip.compress(b"1,2\n" * (1 << 22))  # 16 MiB
    path = write(tmp_path / "t.csv.gz", gzip.compress(b"x,label\n") + block * 16)
    reading = read_well(path, "no such column", limit=512 << 20)
    assert reading.columns["label"].values == []


def test_no_room_to_unpack_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path / "none"))
    error = read(write(tmp_path / "t.csv.gz", gzip.compress(b"x,label\n1,2\n"))).error
    assert error == (
        f"cannot read {tmp_path}/t.csv.gz: it cannot be unpacked in {tmp_path}/none: "
        "No such file or directory: "
        "set TMPDIR to a folder with room, or unpack the file yourself"
    )


def test_nothing_is_left_in_the_temporary_folder(tmp_path, monkeypatch):
    (tmp_path / "room").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "room"))
    read_well(write(tmp_path / "t.csv.gz", gzip.compress(b"x,label\n1,2\n")))
    assert list((tmp_path / "room").iterdir()) == []


@pytest.mark.parametrize("name", ["t.gz", "t.csv.gz.gz", "t.xyz.gz"])
def test_a_name_that_does_not_say_what_is_inside_has_no_reader(tmp_path, name):
    assert "no reader knows" in read(write(tmp_path / name, gzip.compress(b"x,label\n1,2\n"))).error


def test_damage_inside_names_the_archive(tmp_path):
    error = read(write(tmp_path / "t.csv.gz", gzip.compress(b'x,label\n"1,2\n'))).error
    assert error.startswith(
        f"cannot read {tmp_path}/t.csv.gz, unpacked: a quoted field does not end (at byte 8)"
    )


def test_random_damage_never_crashes(tmp_path):
    random = np.random.default_rng(2)
    data = bytearray(gzip.compress(b"x,label\n" + b"1,2\n" * 500))
    for _ in range(60):
        damaged = bytearray(data)
        damaged[random.integers(0, len(data))] ^= 1 << random.integers(0, 8)
        read(write(tmp_path / "t.csv.gz", bytes(damaged)))
