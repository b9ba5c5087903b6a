"""WebDataset tars, written by Python's tarfile."""

import io
import json
import random
import tarfile

import numpy as np
import pytest
from reading import read, read_well, write


def npy(values):
    """The bytes of a .npy file."""
    file = io.BytesIO()
    np.save(file, values)
    return file.getvalue()


def tar(*members, **options):
    """An archive of (name, bytes) members."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", **options) as archive:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return file.getvalue()


def sample(i, label):
    """One sample of four members."""
    return [
        (f"train/{i:06}.jpg", b"\xff\xd8picture"),
        (f"train/{i:06}.cls", str(label).encode() + b"\n"),
        (f"train/{i:06}.json", json.dumps({"label": label, "box": {"w": [i, 0.5]}, "who": "me"}).encode()),
        (f"train/{i:06}.Ids.NPY", npy(np.array([i, label], np.uint16))),
    ]


GOOD = [member for i in range(3) for member in sample(i, i * 10)]
FORMATS = [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT]


@pytest.mark.parametrize("kind", FORMATS)
def test_samples_are_rows_and_endings_columns(tmp_path, kind):
    reading = read_well(write(tmp_path / "t.tar", tar(*GOOD, format=kind)))
    assert reading.reader == "webdataset"
    columns = reading.columns
    assert (columns["cls"].values, columns["cls"].rows) == ([0, 10, 20], [0, 1, 2])
    assert columns["json.label"].values == [0, 10, 20]
    assert (columns["json.box.w"].values, columns["json.box.w"].rows) == (
        [0, 0.5, 1, 0.5, 2, 0.5],
        [0, 0, 1, 1, 2, 2],
    )
    assert (columns["ids.npy"].values, columns["ids.npy"].rows) == ([0, 0, 1, 10, 2, 20], [0, 0, 1, 1, 2, 2])
    assert columns["ids.npy"].dtype == "int32"
    assert reading.skipped == {"jpg": "pictures: 3", "json.who": "text"}
    assert columns["cls"].files == [f"{tmp_path}/t.tar/train/{i:06}.cls" for i in range(3)]


def test_it_is_known_by_its_first_block(tmp_path):
    assert read_well(write(tmp_path / "shard-0", tar(*GOOD))).columns["cls"].values == [0, 10, 20]


@pytest.mark.parametrize("kind", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_long_names_and_numbers_of_pax(tmp_path, kind):
    name = "a/" * 200 + "bär" * 40
    reading = read_well(write(tmp_path / "t.tar", tar((name + ".cls", b"7"), ("b.cls", b"8"), format=kind)))
    assert reading.columns["cls"].values == [7, 8]
    assert reading.columns["cls"].files == [f"{tmp_path}/t.tar/{name}.cls", f"{tmp_path}/t.tar/b.cls"]


def test_what_is_no_integer_is_told_with_its_row(tmp_path):
    texts = [b"1", b"cat", b"", b"2.0", b" 3 ", b"99999999999999999999"]
    data = tar(*((f"{i}.cls", text) for i, text in enumerate(texts)))
    column = read_well(write(tmp_path / "t.tar", data)).columns["cls"]
    assert (column.values, column.rows) == ([1, 3], [0, 4])
    assert column.malformed == [(1, "cat"), (2, ""), (3, "2.0"), (5, "99999999999999999999")]


def test_what_is_no_member_of_a_sample_is_passed_over(tmp_path):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        for name, kind in [("d", tarfile.DIRTYPE), ("x.cls", tarfile.SYMTYPE), ("y.cls", tarfile.LNKTYPE)]:
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, "/etc/passwd"
            archive.addfile(info)
        for name in ["d/README", "d/.hidden.cls", "__meta__.cls", "d/0.cls"]:
            info = tarfile.TarInfo(name)
            info.size = 1
            archive.addfile(info, io.BytesIO(b"5"))
    column = read_well(write(tmp_path / "t.tar", file.getvalue())).columns["cls"]
    assert (column.values, column.rows) == ([5], [0])


def test_arrays_of_any_shape_are_flat(tmp_path):
    values = np.arange(40_000, dtype=">f4").reshape(200, 200)
    data = tar(("0.npy", npy(np.float64(2))), ("1.npy", npy(values)), ("2.npy", npy(np.array(["a"]))))
    reading = read_well(write(tmp_path / "t.tar", data))
    assert reading.columns["npy"].values == [2, *range(40_000)]
    assert reading.columns["npy"].rows == [0] + [1] * 40_000
    assert reading.skipped == {"npy": "text"}


@pytest.mark.parametrize("name", ["t.tar.gz", "t.tgz"])
def test_a_packed_archive(tmp_path, name):
    path = tmp_path / name
    with tarfile.open(path, "w:gz") as archive:
        info = tarfile.TarInfo("0.cls")
        info.size = 1
        archive.addfile(info, io.BytesIO(b"4"))
    assert read_well(path).columns["cls"].values == [4]


HEADER = tar(("a.cls", b"1"))[:512]


def header(**fields):
    """A first block with other fields and the right sum."""
    block = bytearray(HEADER)
    places = {"size": 124, "type": 156}
    for name, value in fields.items():
        block[places[name] : places[name] + len(value)] = value
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


ZEROS = bytes(1024)


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (HEADER, 'it ends too early: "a.cls" claims 1 bytes, 0 are left (at byte 0)'),
        (HEADER + b"1", 'it ends too early: "a.cls" claims 1 bytes, 1 are left (at byte 0)'),
        (HEADER + b"1" + bytes(511), "it ends too early (at byte 1024)"),
        (HEADER[:100] + b"?" + HEADER[101:] + ZEROS, "the header of a member is wrong (at byte 0)"),
        (header(size=b"77777777777\0") + ZEROS, "claims 8589934591 bytes, 1024 are left"),
        (header(size=b"\x80" + b"\xff" * 11) + ZEROS, "the header of a member is wrong"),
        (header(size=b"\x80\0\0\0" + b"\xff" * 8) + ZEROS, "claims 18446744073709551615 bytes"),
        (header(size=b"x") + ZEROS, "the header of a member is wrong"),
        (header(size=b"0" * 11, type=b"S") + ZEROS, "a sparse member"),
        (header(size=b"00010000001", type=b"x") + bytes(3 << 20), "a header of more than 1 MiB"),
        (header(size=b"00000000004", type=b"x") + b"9 a=" + bytes(508), "a pax header is wrong"),
        (tar(("a.cls", b"1"), ("a.cls", b"2")), 'member "a.cls": the sample has two of it (at byte 1024)'),
        (tar(("a.json", b"{")), 'member "a.json": no valid JSON'),
        (tar(("a.npy", npy(np.zeros(9))[:-1])), "claims 72 bytes of elements, 71 are there"),
        (tar(*((f"a.x{i}", b"") for i in range(1100))), "more than 1024 different endings"),
    ],
)
def test_damage_is_one_line(tmp_path, data, error):
    assert error in read(write(tmp_path / "t.tar", data)).error


def test_cut_anywhere_it_says_so_and_what_came_before_counts(tmp_path):
    data = tar(*GOOD)
    end = len(data.rstrip(b"\0")) // 512 * 512 + 512  # of the last member; behind it only zeros
    for part in range(64):
        size = end * part // 64
        reading = read(write(tmp_path / "t.tar", data[:size]))
        assert "it ends too early" in reading.error
        seen = reading.columns["cls"].values if "cls" in reading.columns else []
        assert seen == [0, 10, 20][: len(seen)]


def test_flipped_bits_never_crash(tmp_path):
    data = tar(*GOOD, format=tarfile.PAX_FORMAT)
    chance = random.Random(1)
    for _ in range(60):
        damaged = bytearray(data)
        for _ in range(3):
            damaged[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        read(write(tmp_path / "t.tar", bytes(damaged)))
