"""HDF5 files written by h5py; odd, hostile and damaged ones."""

import random
import subprocess
import time

import numpy as np
import pytest
from reading import BUILD, DUMP, read, read_well, write

h5py = pytest.importorskip("h5py")
pytestmark = pytest.mark.skipif(
    not (BUILD / "lib" / "libtrapline_hdf5.so").exists(), reason="built without libhdf5"
)


@pytest.fixture
def file(tmp_path):
    """An empty file to fill, that the test closes."""
    with h5py.File(tmp_path / "t.h5", "w") as opened:
        yield opened


def closed(file):
    path = file.filename
    file.close()
    return path


def test_a_column_for_each_data_set(file):
    file["train/labels"] = np.arange(3000) % 7
    file["train/x"] = np.arange(12, dtype=np.float32).reshape(3, 4)
    file["val/labels"] = np.array([1, 2], np.uint8)
    file["epoch"] = 4
    file["name"] = "words"
    reading = read_well(closed(file))
    assert reading.reader == "hdf5"
    columns = reading.columns
    assert list(columns) == ["/epoch", "/train/labels", "/train/x", "/val/labels"]
    assert columns["/train/labels"].dtype == "int64"
    assert columns["/train/labels"].values == [i % 7 for i in range(3000)]
    assert columns["/train/labels"].rows == list(range(3000))
    assert columns["/train/x"].array().tolist() == np.arange(12).reshape(3, 4).tolist()
    assert columns["/val/labels"].values == [1, 2]
    assert (columns["/epoch"].sizes, columns["/epoch"].values) == ([], [4])
    assert reading.skipped == {"/name": "text"}


WIDENED = {"uint16": "int32", "uint32": "int64", "uint64": "int64"}


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("kind", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"])
def test_every_dtype_in_both_orders(file, kind, order):
    written = np.array([0, 1, 5, 100], order + kind)
    file["v"] = written
    column = read_well(closed(file)).columns["/v"]
    native = written.astype(written.dtype.newbyteorder("="))
    assert column.dtype == WIDENED.get(native.dtype.name, native.dtype.name)
    assert column.values == (native.view(np.uint16) if kind == "f2" else native).tolist()


def test_numbers_of_other_kinds(file):
    file["bool"] = np.array([True, False, True])
    file["complex"] = np.array([1 + 2j, 3 - 4j], np.complex64)
    file.create_dataset("classes", data=[2, 0, 1], dtype=h5py.enum_dtype({"cat": 0, "dog": 1, "eel": 2}))
    file.create_dataset("flags", data=[4, 1], dtype=h5py.enum_dtype({"a": 1, "b": 4}))
    file["pairs"] = np.array([((1, 2),), ((3, 4),)], [("v", "i4", 2)])
    file.create_dataset("large", data=np.array([2**64 - 1, 3], np.uint64))
    columns = read_well(closed(file)).columns
    assert (columns["/bool"].dtype, columns["/bool"].values) == ("bool", [1, 0, 1])
    assert (columns["/complex"].sizes, columns["/complex"].values) == ([2, 2], [1, 2, 3, -4])
    assert columns["/classes"].values == [2, 0, 1]
    assert columns["/classes"].class_names == [(0, "cat"), (1, "dog"), (2, "eel")]
    assert (columns["/flags"].values, columns["/flags"].class_names) == ([4, 1], [])
    assert (columns["/pairs.v"].sizes, columns["/pairs.v"].values) == ([2, 2], [1, 2, 3, 4])
    assert columns["/large"].values == [2**63 - 1, 3]


def test_records_lists_and_what_is_no_number(file):
    records = np.zeros(3, [("label", "i4"), ("score", "f4"), ("name", "S5")])
    records["label"], records["score"] = [7, 8, 9], [0.5, 1.5, 2.5]
    file["records"] = records
    lists = file.create_dataset("lists", 3, dtype=h5py.vlen_dtype(np.int32))
    lists[0], lists[2] = [1, 2, 3], [4]
    file.create_dataset("texts", data=["a", "b"], dtype=h5py.string_dtype())
    file.create_dataset("reference", data=file["records"].ref, dtype=h5py.ref_dtype)
    file.create_dataset("opaque", data=np.array([b"ab"], "V2"))
    file["nothing"] = h5py.Empty("f")
    reading = read_well(closed(file))
    columns = reading.columns
    assert columns["/records.label"].values == [7, 8, 9]
    assert columns["/records.score"].values == [0.5, 1.5, 2.5]
    assert (columns["/lists"].values, columns["/lists"].rows) == ([1, 2, 3, 4], [0, 0, 0, 2])
    assert reading.skipped == {
        "/nothing": "no elements",
        "/opaque": "bytes",
        "/records.name": "text",
        "/reference": "references",
        "/texts": "text",
    }


def test_text_that_is_numbers(file):
    file["label"] = np.array([b"3", b"", b"cat", b"5"])
    column = read_well(closed(file)).columns["/label"]
    assert (column.values, column.rows) == ([3, 5], [0, 3])
    assert column.malformed == [(1, ""), (2, "cat")]


def test_sizes_with_zero(file):
    file["none"] = np.zeros((0, 5), np.int64)
    file["thin"] = np.zeros((5, 0), np.int64)
    columns = read_well(closed(file)).columns
    assert (columns["/none"].sizes, columns["/none"].values) == ([0, 5], [])
    assert (columns["/thin"].sizes, columns["/thin"].values) == ([5, 0], [])


@pytest.mark.parametrize("libver", ["earliest", "v110"])
@pytest.mark.parametrize(
    "stored",
    [
        {},
        {"chunks": (7, 3)},
        {"chunks": (100, 40), "compression": "gzip", "shuffle": True, "fletcher32": True},
        {"chunks": (3, 40), "scaleoffset": 0},
        {"maxshape": (None, 40)},
    ],
    ids=str,
)
def test_layouts_and_filters(tmp_path, libver, stored):
    values = np.random.default_rng(3).integers(0, 1000, (501, 40))
    with h5py.File(tmp_path / "t.h5", "w", libver=libver) as file:
        file.create_dataset("v", data=values, **stored)
    column = read_well(tmp_path / "t.h5").columns["/v"]
    assert column.array().tolist() == values.tolist()
    assert column.rows == [row for row in range(501) for _ in range(40)]


def test_blocks_of_large_arrays_come_in_order(tmp_path):
    # Rows that are larger than a block, and chunks across them.
    values = np.arange(3 * 700 * 500, dtype=np.int32).reshape(3, 700, 500)
    with h5py.File(tmp_path / "t.h5", "w") as file:
        file.create_dataset("v", data=values, chunks=(2, 64, 500))
        file.create_dataset("w", data=values.reshape(-1))
    columns = read_well(tmp_path / "t.h5").columns
    assert columns["/v"].values == list(range(values.size))
    assert columns["/v"].rows == [i // 350000 for i in range(values.size)]
    assert columns["/w"].values == list(range(values.size))


def test_behind_a_user_block(tmp_path):
    with h5py.File(tmp_path / "t.mat", "w", userblock_size=1024) as file:
        file["labels"] = [1, 2, 3]
    assert read_well(tmp_path / "t.mat").columns["/labels"].values == [1, 2, 3]


def test_only_what_is_wanted(file):
    file["a"], file["b"] = [1, 2], [3, 4]
    columns = read_well(closed(file), "/b").columns
    assert columns["/a"].values == [] and columns["/b"].values == [3, 4]


def test_each_object_once_whatever_its_names(file):
    file["a"] = [1, 2]
    file["again"] = file["a"]
    file["soft"] = h5py.SoftLink("/a")
    file["dangling"] = h5py.SoftLink("/nowhere")
    file.create_group("g")["circle"] = file["/"]
    columns = read_well(closed(file)).columns
    assert list(columns) == ["/a"]


def test_other_files_are_not_read(tmp_path):
    secret = tmp_path / "secret.bin"
    secret.write_bytes(np.arange(4, dtype=np.int64).tobytes())
    with h5py.File(tmp_path / "other.h5", "w") as other:
        other["labels"] = [5, 6]
    with h5py.File(tmp_path / "t.h5", "w") as file:
        file["a"] = [1, 2]
        file["linked"] = h5py.ExternalLink("other.h5", "/labels")
        file.create_dataset("stored", (4,), np.int64, external=[(str(secret), 0, 32)])
        layout = h5py.VirtualLayout((2,), np.int64)
        layout[:] = h5py.VirtualSource(str(tmp_path / "other.h5"), "labels", (2,))
        file.create_virtual_dataset("virtual", layout)
    reading = read(tmp_path / "t.h5")
    assert {name: column.values for name, column in reading.columns.items() if column.values} == {
        "/a": [1, 2]
    }
    assert '"/linked": a link to another file, which is not followed' in reading.error
    assert "(and so 2 more of its objects)" in reading.error
    assert '"/stored": its values lie in another file' in read(tmp_path / "t.h5", "/stored").error
    assert '"/virtual": it is put together from other data sets' in read(tmp_path / "t.h5", "/virtual").error
    # What is not wanted is no reason not to pass the rest.
    assert read_well(tmp_path / "t.h5", "/a").columns["/a"].values == [1, 2]


def test_a_filter_that_is_not_there_is_named(file):
    file.create_dataset("v", data=np.arange(1000), compression="lzf")
    file["w"] = [1, 2]
    reading = read(closed(file))
    assert '"/v": it is packed by the filter 32000 "lzf", which libhdf5 alone does not have' in reading.error
    assert reading.columns["/w"].values == [1, 2]


def test_no_library_is_loaded_for_a_file(file, tmp_path, monkeypatch):
    (tmp_path / "plugins").mkdir()
    library = tmp_path / "plugins" / "libfilter.so"
    source = tmp_path / "filter.c"
    source.write_text(
        "#include <stdio.h>\n"
        f'__attribute__((constructor)) void here(void) {{ fopen("{tmp_path}/loaded", "w"); }}\n'
        "int H5PLget_plugin_type(void) { return 0; }\n"
        "const void* H5PLget_plugin_info(void) { return 0; }\n"
    )
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    file.create_dataset("v", data=np.arange(1000), compression="lzf")
    monkeypatch.setenv("HDF5_PLUGIN_PATH", str(library.parent))
    assert "lzf" in read(closed(file)).error
    assert not (tmp_path / "loaded").exists()


@pytest.mark.parametrize(
    "data, why",
    [
        (b"", "the file is empty"),
        (b"no such thing" * 99, "it is no HDF5 file"),
        (b"\x89HDF\r\n\x1a\n", ' says: "'),
        (b"\x89HDF\r\n\x1a\n" + bytes(500), ' says: "'),
    ],
)
def test_what_is_no_hdf5_file(tmp_path, data, why):
    path = write(tmp_path / "t.h5", data)
    reading = read(path)
    assert reading.code == 2
    assert f"cannot read {path}: " in reading.error and why in reading.error


def large(path, **how):
    with h5py.File(path, "w", **how) as file:
        file["plain"] = np.arange(2000)
        file.create_dataset("packed", data=np.arange(4000) % 10, chunks=(250,), compression="gzip")
        lists = file.create_dataset("lists", 40, dtype=h5py.vlen_dtype(np.int64))
        for i in range(40):
            lists[i] = np.arange(i)
        for i in range(30):
            file[f"group{i}/labels"] = np.arange(i)
        file["records"] = np.zeros(9, [("a", "i4"), ("b", "f8", 3)])
        file["packed"].attrs["names"] = ["a", "b"]
    return path


@pytest.mark.parametrize("libver", ["earliest", "v110"])
def test_truncated_anywhere(tmp_path, libver):
    whole = large(tmp_path / "t.h5", libver=libver).read_bytes()
    for size in range(0, len(whole), len(whole) // 40 + 1):
        path = write(tmp_path / "cut.h5", whole[:size])
        assert f"cannot read {path}: " in read(path).error, size


@pytest.mark.parametrize("libver", ["earliest", "v110"])
def test_flipped_anywhere(tmp_path, libver):
    whole = large(tmp_path / "t.h5", libver=libver).read_bytes()
    chance = random.Random(7)
    for _ in range(150):
        flipped = bytearray(whole)
        for _ in range(chance.choice([1, 1, 4, 32])):
            at = chance.randrange(2048 if chance.random() < 0.5 else len(whole))
            flipped[at] ^= 1 << chance.randrange(8)
        began = time.monotonic()
        read(write(tmp_path / "flip.h5", bytes(flipped)))  # any answer, but no crash and no hang
        assert time.monotonic() - began < 60


def test_claims_beyond_the_file_take_no_memory(file):
    # Chunks that were never written take no room in it and are read as zeros.
    file.create_dataset("v", (2**40,), np.int64, chunks=(2**16,))
    file["w"] = [1, 2]
    reading = read(closed(file))
    assert '"/v": it claims more elements than a file of this size can hold' in reading.error
    assert reading.columns["/w"].values == [1, 2]


def test_without_the_plugin_it_says_what_to_do(file, tmp_path):
    # A copy of the program has no plugin beside it.
    file["a"] = [1]
    path = closed(file)
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "dump"
    program.write_bytes(DUMP.read_bytes())
    program.chmod(0o755)
    done = subprocess.run([program, path], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert (
        "HDF5 needs libhdf5 (there is no libtrapline_hdf5.so): write each of its arrays as .npy"
        in done.stderr
    )
