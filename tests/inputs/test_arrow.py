"""Parquet, Arrow and Feather files of pyarrow, pandas, polars and datasets; damaged ones are errors."""

import os
import subprocess

import numpy as np
import pytest
from reading import BUILD, DUMP, read, read_well, write

pa = pytest.importorskip("pyarrow")
feather = pytest.importorskip("pyarrow.feather")
ipc = pytest.importorskip("pyarrow.ipc")
parquet = pytest.importorskip("pyarrow.parquet")

pytestmark = pytest.mark.skipif(
    not (BUILD / "lib" / "libtrapline_arrow.so").exists(), reason="built without Arrow C++"
)
# Arrow's own pools reserve more address space than the other readers may have; decompressed pages have 1 GiB.
LIMIT = {"limit": 3 << 30}


def as_parquet(table, path):
    parquet.write_table(table, path, row_group_size=64)


def as_file(table, path):
    with ipc.new_file(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=50)


def as_stream(table, path):
    with ipc.new_stream(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=50)


def as_feather(table, path):
    feather.write_feather(table, path, compression="zstd")


WRITERS = {"t.parquet": as_parquet, "t.arrow": as_file, "s.arrow": as_stream, "t.feather": as_feather}


@pytest.fixture(params=sorted(WRITERS))
def save(request, tmp_path):
    def saved(table):
        WRITERS[request.param](table, str(tmp_path / request.param))
        return tmp_path / request.param

    return saved


def flat(values) -> list:
    if isinstance(values, (list, tuple)):
        return [item for value in values for item in flat(value)]
    if isinstance(values, dict):
        return [item for value in values.values() for item in flat(value)]
    return [] if values is None else [values]


def rows_of(column) -> list:
    return [row for row, value in enumerate(column) for _ in flat(value)]


NUMBERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
NUMBERS += ["float16", "float32", "float64", "bool"]


def test_every_dtype(save):
    random = np.random.default_rng(2)
    arrays = {name: random.integers(0, 2, 150).astype(name) for name in NUMBERS}
    arrays["int64"][7] = -(2**63)
    arrays["uint64"][8] = 2**64 - 1
    arrays["uint32"][8] = 2**32 - 1
    arrays["uint16"][8] = 2**16 - 1
    arrays["float32"][9] = np.nan
    reading = read_well(save(pa.table(arrays)), **LIMIT)
    assert reading.reader == "arrow"
    assert list(reading.columns) == NUMBERS
    for name, array in arrays.items():
        wanted = np.minimum(array, 2**63 - 1) if name == "uint64" else array
        wanted = array.view(np.uint16) if name == "float16" else wanted
        got = np.array(reading.columns[name].values)
        assert np.array_equal(got, wanted, equal_nan=wanted.dtype.kind == "f"), name
        assert reading.columns[name].rows == list(range(150)), name


def test_nulls_are_told_and_left_out(save):
    values = [None if i % 3 == 0 else i for i in range(150)]
    table = pa.table({"a": pa.array(values, pa.int32()), "b": pa.array([v is None or None for v in values])})
    columns = read_well(save(table), **LIMIT).columns
    assert columns["a"].values == [v for v in values if v is not None]
    assert columns["a"].rows == [i for i in range(150) if i % 3]
    assert columns["a"].malformed == [(i, "") for i in range(0, 150, 3)]
    assert columns["b"].rows == list(range(0, 150, 3))


def test_lists_have_the_row_of_each_element(save):
    ids = [[i * 10 + j for j in range(i % 5)] for i in range(150)]
    nested = [[[i], [], [i + 1, i + 2]] if i % 2 else [] for i in range(150)]
    holes = [None if i % 7 == 0 else [None if j == 1 else i for j in range(3)] for i in range(150)]
    table = pa.table(
        {
            "ids": pa.array(ids, pa.list_(pa.int64())),
            "large": pa.array(ids, pa.large_list(pa.int32())),
            "nested": pa.array(nested, pa.list_(pa.list_(pa.int16()))),
            "holes": pa.array(holes, pa.list_(pa.float32())),
            "narrow": pa.array(ids, pa.list_(pa.uint16())),
        }
    )
    columns = read_well(save(table), **LIMIT).columns
    for name in table.column_names:
        values = table[name].to_pylist()
        assert columns[name].values == flat(values), name
        assert columns[name].rows == rows_of(values), name
    told = [(i, "") for i in range(150) for _ in range(1)]
    assert columns["holes"].malformed == told


def test_fixed_size_lists_keep_their_shape(save):
    random = np.random.default_rng(1)
    cube = random.normal(size=(150, 4, 3)).astype("f4")
    inner = pa.FixedSizeListArray.from_arrays(pa.array(cube.ravel()), 3)
    array = pa.FixedSizeListArray.from_arrays(inner, 4)
    column = read_well(save(pa.table({"x": array})), **LIMIT).columns["x"]
    assert column.sizes[1:] == [4, 3]
    assert np.array_equal(np.array(column.values, "f4").reshape(150, 4, 3), cube)
    assert column.rows == [row for row in range(150) for _ in range(12)]


def test_structs_have_dotted_names(save):
    rows = [{"x": i, "y": {"z": i / 2}} if i % 4 else None for i in range(150)]
    boxes = [[{"w": i, "h": j} for j in range(i % 3)] for i in range(150)]
    table = pa.table({"s": rows, "boxes": boxes, "text": ["a"] * 150, "when": np.zeros(150, "M8[D]")})
    reading = read_well(save(table), **LIMIT)
    columns = reading.columns
    assert set(columns) == {"s.x", "s.y.z", "boxes.w", "boxes.h"}
    assert columns["s.x"].values == [i for i in range(150) if i % 4]
    assert columns["s.y.z"].values == [i / 2 for i in range(150) if i % 4]
    assert columns["s.x"].malformed == [(i, "") for i in range(0, 150, 4)]
    assert columns["boxes.h"].values == [j for i in range(150) for j in range(i % 3)]
    assert columns["boxes.w"].rows == [i for i in range(150) for j in range(i % 3)]
    assert reading.skipped["text"] == "text"
    assert "date32" in reading.skipped["when"]


def test_dictionaries_are_decoded(save):
    numbers = pa.array([5, 7, None, 5] * 30, pa.int64()).dictionary_encode()
    words = pa.array(["a", "b", "a", "a"] * 30).dictionary_encode()
    reading = read_well(save(pa.table({"n": numbers, "w": words})), **LIMIT)
    assert reading.columns["n"].values == [5, 7, 5] * 30
    assert reading.columns["n"].malformed == [(i, "") for i in range(2, 120, 4)]
    assert reading.skipped == {"w": "text"}


def test_only_what_is_wanted(save):
    table = pa.table({"a": list(range(150)), "s": [{"x": 1}] * 150, "b": list(range(150))})
    columns = read_well(save(table), "b", **LIMIT).columns
    assert columns["b"].values == list(range(150))
    assert columns["a"].values == [] and columns["s.x"].values == []


def test_sliced_arrays(save):
    table = pa.table({"a": list(range(200)), "l": [[i] * (i % 3) for i in range(200)]}).slice(37, 100)
    columns = read_well(save(table), **LIMIT).columns
    assert columns["a"].values == list(range(37, 137))
    assert columns["l"].values == flat(table["l"].to_pylist())


def test_large_tables_come_in_pieces(tmp_path):
    table = pa.table({"a": np.arange(300_000), "l": [[i, i] for i in range(300_000)]})
    parquet.write_table(table, tmp_path / "t.parquet")
    columns = read_well(tmp_path / "t.parquet", **LIMIT).columns
    assert columns["a"].sizes == [300_000]
    assert columns["a"].values == list(range(300_000))
    assert len(columns["a"].pieces) > 1
    assert columns["l"].rows == [i // 2 for i in range(600_000)]


def test_files_of_pandas_and_polars(tmp_path):
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    frame = pandas.DataFrame({"label": [3, 1, 2], "x": [0.5, None, 1.5], "t": ["a", "b", "c"]})
    frame.to_parquet(tmp_path / "pandas.parquet")
    frame.to_feather(tmp_path / "pandas.feather")
    polars.from_pandas(frame).write_parquet(tmp_path / "polars.parquet")
    polars.from_pandas(frame).write_ipc(tmp_path / "polars.arrow")
    for name in ["pandas.parquet", "pandas.feather", "polars.parquet", "polars.arrow"]:
        columns = read_well(tmp_path / name, **LIMIT).columns
        assert columns["label"].values == [3, 1, 2], name
        assert columns["x"].values == [0.5, 1.5] and columns["x"].malformed == [(1, "")], name


@pytest.mark.parametrize("codec", ["snappy", "gzip", "brotli", "zstd", "lz4", "none"])
def test_codecs_of_parquet(tmp_path, codec):
    parquet.write_table(pa.table({"a": list(range(1000))}), tmp_path / "t.parquet", compression=codec)
    assert read_well(tmp_path / "t.parquet", **LIMIT).columns["a"].values == list(range(1000))


def test_data_sets_of_hugging_face(tmp_path):
    datasets = pytest.importorskip("datasets")
    features = datasets.Features(
        {
            "label": datasets.ClassLabel(names=["cat", "dog", "eel"]),
            "ids": datasets.Sequence(datasets.Value("int32")),
            "image": datasets.Array2D((2, 3), "float32"),
            "text": datasets.Value("string"),
        }
    )
    rows = {
        "label": [i % 3 for i in range(90)],
        "ids": [list(range(i % 4)) for i in range(90)],
        "image": [[[i, 1, 2], [3, 4, 5]] for i in range(90)],
        "text": ["x"] * 90,
    }
    data = datasets.Dataset.from_dict(rows, features)
    data.save_to_disk(tmp_path / "one", num_shards=3)
    column = read_well(tmp_path / "one", **LIMIT).columns
    assert column["label"].values == rows["label"]
    assert column["label"].rows == list(range(90))
    assert column["label"].class_names == [(0, "cat"), (1, "dog"), (2, "eel")]
    assert {os.path.basename(file) for file in column["label"].files} == {
        f"data-0000{i}-of-00003.arrow" for i in range(3)
    }
    assert column["ids"].values == flat(rows["ids"])
    assert column["image"].values == flat(rows["image"])

    datasets.DatasetDict({"train": data, "test": data.select(range(5))}).save_to_disk(tmp_path / "two")
    labels = [column for name, column in read_well(tmp_path / "two", **LIMIT).all if name == "label"]
    assert [len(column.values) for column in labels] == [90, 5]

    data.to_parquet(tmp_path / "t.parquet")
    column = read_well(tmp_path / "t.parquet", **LIMIT).columns["label"]
    assert column.values == rows["label"]
    assert column.class_names == [(0, "cat"), (1, "dog"), (2, "eel")]


def test_a_data_set_with_a_missing_file(tmp_path):
    datasets = pytest.importorskip("datasets")
    datasets.Dataset.from_dict({"a": [1, 2, 3, 4]}).save_to_disk(tmp_path / "d", num_shards=2)
    (tmp_path / "d" / "data-00001-of-00002.arrow").unlink()
    assert "data-00001-of-00002.arrow: No such file or directory" in read(tmp_path / "d", **LIMIT).error
    state = tmp_path / "d" / "state.json"
    state.write_text(state.read_text().replace("data-00001-of-00002.arrow", "../../etc/passwd"))
    assert "which is not a file name" in read(tmp_path / "d", **LIMIT).error


def test_truncated_and_flipped_anywhere(save):
    table = pa.table({"a": list(range(120)), "l": [[i] * (i % 3) for i in range(120)], "s": ["x"] * 120})
    path = save(table)
    whole = path.read_bytes()
    stream = path.name == "s.arrow"
    for size in range(0, len(whole), len(whole) // 12 + 1):
        reading = read(write(path.with_name("cut-" + path.name), whole[:size]), **LIMIT)
        assert (stream and reading.code == 0) or str(path.parent) in reading.error, size
    random = np.random.default_rng(4)
    for at in random.integers(0, len(whole), 25):
        flipped = bytearray(whole)
        flipped[at] ^= 1 << random.integers(0, 8)
        read(write(path.with_name("flip-" + path.name), bytes(flipped)), **LIMIT)  # any answer, but no crash


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow", "t.feather"])
@pytest.mark.parametrize(
    "data", [b"", b"PAR1", b"PAR1" + b"\xff" * 40 + b"PAR1", b"ARROW1\0\0" + b"\xff" * 40, b"x" * 99]
)
def test_damage(tmp_path, name, data):
    path = write(tmp_path / name, data)
    reading = read(path, **LIMIT)
    assert reading.code == 2 and f"cannot read {path}: " in reading.error


def test_rows_that_are_not_there(tmp_path):
    # What the fuzzer found: the count in the footer was believed.
    parquet.write_table(pa.table({"a": [1, 2, 3]}), tmp_path / "t.parquet")
    whole = (tmp_path / "t.parquet").read_bytes()
    # The schema's end, then field 3: the number of rows, in zigzag.
    for number, why in [(b"\x05", "it claims -3 rows"), (b"\x08", "it claims 4 rows, 3 are there")]:
        at = whole.index(b"\x16\x06\x19", whole.index(b"schema"))
        path = write(tmp_path / "u.parquet", whole[: at + 1] + number + whole[at + 2 :])
        assert why in read(path, **LIMIT).error


def test_the_old_feather_is_refused(tmp_path):
    path = write(tmp_path / "t.feather", b"FEA1" + bytes(40) + b"FEA1")
    assert "Feather version 1 is not read" in read(path, **LIMIT).error


def test_without_the_plugin_it_says_what_to_install(tmp_path):
    # A copy of the program has no plugin beside it.
    parquet.write_table(pa.table({"a": [1]}), tmp_path / "t.parquet")
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "dump"
    program.write_bytes(DUMP.read_bytes())
    program.chmod(0o755)
    done = subprocess.run([program, tmp_path / "t.parquet"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert (
        "Parquet and Arrow need Arrow C++ (there is no libtrapline_arrow.so): check the columns in Python"
        in done.stderr
    )


def many_groups(path, **how):
    rows = 40000
    table = pa.table(
        {
            "label": pa.array([i % 7 if i % 1000 != 999 else None for i in range(rows)], pa.int16()),
            "ids": [[i] * (i % 4) for i in range(rows)],
            "text": [str(i % 5) for i in range(rows)],
        }
    )
    parquet.write_table(table, path, row_group_size=1500, **how)
    return rows


def test_row_groups_that_are_decoded_together(tmp_path):
    path = tmp_path / "t.parquet"
    rows = many_groups(path)
    columns = read_well(path, "label", "ids", **LIMIT).columns
    assert columns["label"].rows == [i for i in range(rows) if i % 1000 != 999]
    assert columns["label"].values == [i % 7 for i in columns["label"].rows]
    assert columns["label"].malformed == [(i, "") for i in range(999, rows, 1000)]
    assert columns["ids"].values == [i for i in range(rows) for _ in range(i % 4)]
    assert columns["ids"].rows == columns["ids"].values


def test_what_stands_before_a_broken_row_group_is_read(tmp_path):
    path = tmp_path / "t.parquet"
    many_groups(path, use_dictionary=False, compression="zstd", write_page_index=False)
    chunk = parquet.ParquetFile(path).metadata.row_group(11).column(0)
    data = bytearray(path.read_bytes())
    start = chunk.data_page_offset
    data[start + 40 : start + chunk.total_compressed_size] = b"\xff" * (chunk.total_compressed_size - 40)
    reading = read(write(path, bytes(data)), "label", **LIMIT)
    assert reading.code == 2 and f"cannot read {path}: " in reading.error
    good = [i for i in range(11 * 1500) if i % 1000 != 999]
    assert reading.columns["label"].rows == good
    assert reading.columns["label"].values == [i % 7 for i in good]
