"""Archives of arrays, stored and compressed; bombs and lying directories are errors in bounded memory."""

import io
import struct
import zipfile
import zlib

import numpy as np
import pytest
from reading import read, read_well, write


def arrays() -> dict:
    random = np.random.default_rng(5)
    return {
        "x": random.normal(size=(50, 3, 4)).astype("f4"),
        "labels": random.integers(0, 10, 500),
        "fortran": np.asfortranarray(random.normal(size=(30, 20))),
        "big_endian": random.integers(0, 99, 77).astype(">i4"),
        "scalar": np.array(5),
        "empty": np.zeros((0, 3)),
    }


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_arrays_of_numpy(tmp_path, save):
    save(tmp_path / "a.npz", text=np.array(["x"]), **arrays())
    reading = read_well(tmp_path / "a.npz")
    assert reading.reader == "npz"
    assert reading.skipped == {"text": "text"}
    for name, array in arrays().items():
        assert reading.columns[name].sizes == list(array.shape), name
        assert np.array_equal(reading.columns[name].array(), array), name


def test_large_compressed_arrays_come_in_pieces(tmp_path):
    array = np.arange(600_000).reshape(-1, 3)
    np.savez_compressed(tmp_path / "a.npz", a=array, b=np.arange(600_000)[None])
    columns = read_well(tmp_path / "a.npz").columns
    assert len(columns["a"].pieces) > 1 and len(columns["b"].pieces) > 1
    assert columns["a"].values == list(range(600_000))
    assert columns["a"].rows == [i // 3 for i in range(600_000)]
    assert columns["b"].values == list(range(600_000))
    assert set(columns["b"].rows) == {0}


def test_zip64(tmp_path):
    # NumPy forces the zip64 fields of every entry.
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.arange(7))
    with (
        zipfile.ZipFile(tmp_path / "a.npz", "w") as archive,
        archive.open("a.npy", "w", force_zip64=True) as file,
    ):
        file.write(buffer.getvalue())
    assert read_well(tmp_path / "a.npz").columns["a"].values == list(range(7))
    # The directory of a really large archive: sizes in the extra field, and the wide end record.
    data = npy(np.arange(9))
    local = struct.pack(
        "<IHHHHHIIIHH", 0x04034B50, 45, 0, 0, 0, 0, zlib.crc32(data), 0xFFFFFFFF, 0xFFFFFFFF, 5, 20
    )
    local += b"b.npy" + struct.pack("<HHQQ", 1, 16, len(data), len(data))
    wide = struct.pack("<HHQQQ", 1, 24, len(data), len(data), 0)
    central = struct.pack(
        "<IHHHHHHIIIHHHHHII",
        *(0x02014B50, 45, 45, 0, 0, 0, 0, zlib.crc32(data), 0xFFFFFFFF, 0xFFFFFFFF, 5, len(wide)),
        *(0, 0, 0, 0, 0xFFFFFFFF),
    )
    central += b"b.npy" + wide
    start = len(local) + len(data)
    end = struct.pack("<IQHHIIQQQQ", 0x06064B50, 44, 45, 45, 0, 0, 1, 1, len(central), start)
    end += struct.pack("<IIQI", 0x07064B50, 0, start + len(central), 1)
    end += struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    path = write(tmp_path / "b.npz", local + data + central + end)
    assert zipfile.ZipFile(path).namelist() == ["b.npy"]
    assert read_well(path).columns["b"].values == list(range(9))


def npy(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def archive(path, data: bytes, **options):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, **options) as file:
        file.writestr("a.npy", data)
    return path


def test_a_bomb_is_read_in_little_memory(tmp_path):
    # 4 GiB of zeros in 4 MiB: read as what it is, or refused when the array is not as large as that.
    def bomb(name: str, header: bytes, count: int):
        path = tmp_path / name
        with (
            zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file,
            file.open("a.npy", "w", force_zip64=True) as entry,
        ):
            entry.write(header)
            for _ in range(count):
                entry.write(bytes(1 << 20))
        return path

    small = npy(np.zeros(4))
    path = bomb("lies.npz", small, 256)
    assert "its header claims 160 bytes, the archive 268435616" in read(path).error
    header = (
        b"\x93NUMPY\x01\x00\x46\x00"
        + b"{'descr': '<i8', 'fortran_order': True, 'shape': (8192, 8192), }".ljust(70)
    )
    assert "in Fortran order of more than 256 MiB" in read(bomb("fortran.npz", header, 512)).error
    reading = read(
        bomb("wanted.npz", header.replace(b"True,", b"False,").replace(b" }    ", b"}    "), 512), "other"
    )
    assert reading.error == ""


def test_sizes_that_the_data_does_not_have(tmp_path):
    data = npy(np.arange(1000))
    path = archive(tmp_path / "a.npz", data)
    whole = bytearray(path.read_bytes())
    central = whole.rindex(b"PK\x01\x02")
    for size in (len(data) - 8, len(data) + 8):
        whole[central + 24 : central + 28] = struct.pack("<I", size)
        reading = read(write(tmp_path / "b.npz", bytes(whole)))
        assert f"its header claims {len(data)} bytes, the archive {size}" in reading.error
    longer = npy(np.arange(1001))
    lying = longer.replace(b"(1001,)", b"(1000,)")
    whole = bytearray(archive(tmp_path / "c.npz", lying).read_bytes())
    central = whole.rindex(b"PK\x01\x02")
    whole[central + 24 : central + 28] = struct.pack("<I", len(data))
    assert "more data than the archive claims" in read(write(tmp_path / "c.npz", bytes(whole))).error


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_truncated_and_flipped_anywhere(tmp_path, save):
    save(tmp_path / "a.npz", a=np.arange(300), b=np.arange(20.0))
    whole = (tmp_path / "a.npz").read_bytes()
    for size in range(0, len(whole), 61):
        reading = read(write(tmp_path / "cut.npz", whole[:size]))
        assert "the archive has no directory at its end" in reading.error and "(at byte " in reading.error, (
            size
        )
    for at in range(0, len(whole), 37):
        flipped = bytearray(whole)
        flipped[at] ^= 0x55
        read(write(tmp_path / "flipped.npz", bytes(flipped)))  # any answer, but no crash


def test_compressed_data_is_checked(tmp_path):
    path = archive(tmp_path / "a.npz", npy(np.arange(1000)))
    whole = bytearray(path.read_bytes())
    whole[whole.rindex(b"PK\x01\x02") + 16] ^= 1
    assert 'the array "a": its checksum is wrong' in read(write(tmp_path / "b.npz", bytes(whole))).error
    whole = bytearray(path.read_bytes())
    whole[200:220] = b"\xff" * 20
    assert (
        'the array "a": its compressed data is broken' in read(write(tmp_path / "c.npz", bytes(whole))).error
    )


def test_other_methods_and_encryption_are_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_LZMA) as file:
        file.writestr("a.npy", npy(np.arange(9)))
    assert "an entry with the compression method 14" in read(tmp_path / "a.npz").error
    whole = bytearray(archive(tmp_path / "b.npz", npy(np.arange(9))).read_bytes())
    whole[whole.rindex(b"PK\x01\x02") + 8] |= 1
    assert "an encrypted entry" in read(write(tmp_path / "b.npz", bytes(whole))).error


def test_directories_that_lie(tmp_path):
    whole = bytearray(archive(tmp_path / "a.npz", npy(np.arange(9))).read_bytes())
    end = whole.rindex(b"PK\x05\x06")
    central = whole.rindex(b"PK\x01\x02")
    cases = [
        (end + 10, struct.pack("<H", 9), "has no entry here, though it claims 9"),
        (end + 12, struct.pack("<I", 2**32 - 1), "lies behind the end of the file"),
        (end + 16, struct.pack("<I", 2**32 - 1), "lies behind the end of the file"),
        (central + 28, struct.pack("<H", 60000), "ends in the middle of an entry"),
        (central + 20, struct.pack("<I", 2**31), "ends behind the end of the file"),
        (central + 42, struct.pack("<I", 2**31), "leads to no entry"),
        (central + 42, struct.pack("<I", 2**32 - 1), "lacks the sizes"),
    ]
    for at, data, why in cases:
        changed = bytearray(whole)
        changed[at : at + len(data)] = data
        reading = read(write(tmp_path / "b.npz", bytes(changed)))
        assert why in reading.error and "(at byte " in reading.error, (at, reading.error)
