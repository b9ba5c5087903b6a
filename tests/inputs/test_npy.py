"""Arrays that NumPy saved arrive element by element; damaged ones are errors."""

import numpy as np
import pytest
from reading import read, read_well, write

NUMBERS = ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8"]


def example(dtype: str, shape: tuple) -> np.ndarray:
    random = np.random.default_rng(7)
    if dtype == "?":
        return random.integers(0, 2, shape).astype(bool)
    if dtype[-2] in "iu":
        info = np.iinfo(dtype)
        return random.integers(info.min, info.max, shape, dtype=np.dtype(dtype).newbyteorder("=")).astype(
            dtype
        )
    array = random.normal(size=shape).astype(dtype)
    if array.size > 3:
        array.flat[0], array.flat[1], array.flat[2] = np.nan, np.inf, -np.inf
    return array


def assert_same(column, array: np.ndarray) -> None:
    assert column.sizes == list(array.shape)
    plain = array.astype(array.dtype.newbyteorder("="))
    if plain.dtype == np.float16:
        plain = plain.view(np.uint16)
    if plain.dtype == np.uint64:
        plain = np.minimum(plain, np.uint64(2**63 - 1)).astype(np.int64)
    got = column.array()
    assert np.array_equal(got, plain, equal_nan=plain.dtype.kind == "f")


@pytest.mark.parametrize("dtype", [order + code for code in NUMBERS for order in "<>" if code != "?"] + ["?"])
def test_every_dtype(tmp_path, dtype):
    array = example(dtype, (5, 7))
    np.save(tmp_path / "a.npy", array)
    reading = read_well(tmp_path / "a.npy")
    assert reading.reader == "npy"
    assert_same(reading.columns[""], array)
    assert reading.columns[""].rows == [i for i in range(5) for _ in range(7)]


@pytest.mark.parametrize("shape", [(), (1,), (0,), (3, 0), (0, 4), (2, 3, 4), (1, 1, 1, 1, 6)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_shapes(tmp_path, shape, order):
    array = np.asarray(example("<i4", shape), order=order)
    np.save(tmp_path / "a.npy", array)
    assert_same(read_well(tmp_path / "a.npy").columns[""], array)


@pytest.mark.parametrize("dtype", ["<f8", ">i2", "<u2"])
def test_fortran_order(tmp_path, dtype):
    array = np.asfortranarray(example(dtype, (6, 5, 4)))
    np.save(tmp_path / "a.npy", array)
    assert_same(read_well(tmp_path / "a.npy").columns[""], array)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["<c8", ">c16"])
def test_complex_numbers_are_pairs(tmp_path, dtype, order):
    pairs = example("<f8", (3, 4, 2))
    array = np.asarray(pairs.view("c16")[..., 0], dtype, order=order)
    np.save(tmp_path / "a.npy", array)
    column = read_well(tmp_path / "a.npy").columns[""]
    assert column.sizes == [3, 4, 2]
    wanted = np.stack([array.real, array.imag], -1)
    assert np.array_equal(column.array(), wanted, equal_nan=True)


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_versions(tmp_path, version):
    array = np.arange(10)
    with open(tmp_path / "a.npy", "wb") as file:
        np.lib.format.write_array(file, array, version=version)
    assert read_well(tmp_path / "a.npy").columns[""].values == list(range(10))


def test_large_arrays_come_in_pieces_with_their_rows(tmp_path):
    array = np.arange(700_000, dtype=">i8").reshape(350_000, 2)
    np.save(tmp_path / "a.npy", array)
    column = read_well(tmp_path / "a.npy").columns[""]
    assert len(column.pieces) > 1
    assert column.values == list(range(700_000))
    assert column.rows == [i // 2 for i in range(700_000)]


def test_rows_larger_than_a_buffer_are_flat(tmp_path):
    array = np.arange(600_000, dtype=">i4").reshape(2, 300_000)
    np.save(tmp_path / "a.npy", array)
    column = read_well(tmp_path / "a.npy").columns[""]
    assert column.values == list(range(600_000))
    assert column.rows == [0] * 300_000 + [1] * 300_000


@pytest.mark.parametrize(
    ("array", "why"),
    [
        (np.array([{}], dtype=object), "Python objects (a pickle, which is never loaded)"),
        (np.array(["a"]), "text"),
        (np.array([b"a"]), "text"),
        (np.array(["2020-01-01"], "M8[D]"), "times"),
        (np.zeros(2, [("a", "i4"), ("b", "f4")]), "a structured dtype"),
        (np.zeros(2, "V3"), 'the dtype "|V3"'),
    ],
)
def test_what_holds_no_numbers(tmp_path, array, why):
    np.save(tmp_path / "a.npy", array, allow_pickle=True)
    reading = read(tmp_path / "a.npy")
    assert reading.code == 2
    assert f"{tmp_path}/a.npy: the array holds {why}: " in reading.error


def test_a_name_is_not_needed(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(3))
    (tmp_path / "a.npy").rename(tmp_path / "labels")
    assert read_well(tmp_path / "labels").columns[""].values == [0, 1, 2]


def test_truncated_anywhere(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(40))
    whole = (tmp_path / "a.npy").read_bytes()
    for size in range(0, len(whole), 9):
        path = write(tmp_path / "cut.npy", whole[:size])
        reading = read(path)
        assert reading.code == 2, size
        assert (
            f"cannot read {path}: " in reading.error
            and f"(at byte {size if size > 5 else 0})" in reading.error
        )


def header(text: str, version: int = 1) -> bytes:
    length = len(text).to_bytes(2 if version == 1 else 4, "little")
    return b"\x93NUMPY" + bytes([version, 0]) + length + text.encode()


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\x93NUMPY\x09\x00\x10\x00" + b" " * 16, "version 9 of the .npy format is not known (at byte 6)"),
        (b"\x93NUMPY\x02\x00\xff\xff\xff\xff", "the .npy header claims 4294967295 bytes (at byte 8)"),
        (header("(1, 2)"), "is not a dictionary"),
        (header("{'descr': '<i8', 'fortran_order': False}"), "lacks descr, fortran_order or shape"),
        (header("{'descr': '<i8', 'fortran_order': False, 'shape': (-1,)}"), "has no valid shape"),
        (header("{'descr': '<i8', 'fortran_order': False, 'shape': (1"), "has no valid shape"),
        (header("{'descr': '<i8', 'fortran_order': os, 'shape': (1,)}"), "the order of its dimensions"),
        (header("{'descr': '<i8', 'x': 1}"), "has an unknown key"),
        (
            header("{'descr': '<i8', 'fortran_order': False, 'shape': (4611686018427387904, 4)}"),
            "claims more elements than any file can hold",
        ),
        (
            header("{'descr': '<i8', 'fortran_order': False, 'shape': (99999999999999999999,)}"),
            "has no valid shape",
        ),
        (
            header("{'descr': '<i8', 'fortran_order': False, 'shape': (1152921504606846975,)}"),
            "its header claims 9223372036854775800 bytes of elements, 0 are there",
        ),
        (
            header("{'descr': '<i8', 'fortran_order': True, 'shape': (" + "1," * 65 + ")}"),
            "has no valid shape",
        ),
    ],
)
def test_headers_that_lie(tmp_path, data, why):
    reading = read(write(tmp_path / "a.npy", data))
    assert reading.code == 2
    assert why in reading.error


def test_the_header_is_not_python(tmp_path):
    text = "{'descr': __import__('os').system('touch " + str(tmp_path / "ran") + "'), 'shape': (1,)}"
    assert read(write(tmp_path / "a.npy", header(text))).code == 2
    assert not (tmp_path / "ran").exists()
