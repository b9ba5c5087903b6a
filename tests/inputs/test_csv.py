"""Tables as pandas, polars, NumPy and spreadsheets write them."""

import numpy as np
import pytest
from reading import read, read_well, write

pandas = pytest.importorskip("pandas")


def test_a_table_of_pandas(tmp_path):
    random = np.random.default_rng(1)
    table = pandas.DataFrame(
        {
            "text": ['a "quoted" word, and more', "two\nlines", "plain"] * 100,
            "label": random.integers(-5, 1000, 300),
            "big": random.integers(-(2**63), 2**63 - 1, 300),
            "score": random.normal(size=300) * 10.0 ** random.integers(-300, 300, 300),
            "flag": random.integers(0, 2, 300).astype(bool),
        }
    )
    table.to_csv(tmp_path / "t.csv", index=False)
    reading = read_well(tmp_path / "t.csv")
    assert reading.reader == "csv"
    assert reading.skipped == {"text": "text"}
    for name in ["label", "big", "score", "flag"]:
        assert reading.columns[name].values == table[name].tolist(), name
        assert reading.columns[name].rows == list(range(300))
    # Every third text has two lines.
    piece = reading.columns["label"].pieces[-1]
    lines = [2 + row + (row + 1) // 3 for row in range(300)]
    assert piece["first_line"] == lines[piece["first_row"]]


def test_missing_values_are_told_and_left_out(tmp_path):
    table = pandas.DataFrame({"label": pandas.array([3, None, 5], dtype="Int64"), "x": ["a", "b", "c"]})
    table.to_csv(tmp_path / "t.csv")
    column = read_well(tmp_path / "t.csv", "label").columns["label"]
    assert (column.values, column.rows) == ([3, 5], [0, 2])
    assert column.malformed == [(1, "")]


def test_tsv_of_polars(tmp_path):
    polars = pytest.importorskip("polars")
    polars.DataFrame({"name": ["x,y", "z"], "id": [7, 8]}).write_csv(tmp_path / "t.tsv", separator="\t")
    reading = read_well(tmp_path / "t.tsv")
    assert reading.columns["id"].values == [7, 8]
    assert reading.skipped == {"name": "text"}


def test_savetxt_of_numpy(tmp_path):
    numbers = np.arange(6).reshape(3, 2)
    np.savetxt(tmp_path / "t.csv", numbers, fmt="%d", delimiter=",", header="made by hand")
    columns = read_well(tmp_path / "t.csv").columns
    assert columns["0"].values == [0, 2, 4]
    assert columns["1"].values == [1, 3, 5]
    assert columns["1"].pieces[0]["first_line"] == 2


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("", {}),
        ("label\n", {"label": []}),
        ("label", {"label": []}),
        ("label\n1\n2", {"label": [1, 2]}),
        ("label\r\n1\r\n2\r\n", {"label": [1, 2]}),
        ("label\n1\n\n\n2\n", {"label": [1, 2]}),
        ("1\n2\n", {"": [1, 2]}),
        ("\ufefflabel;x\n1;2\n", {"label": [1], "x": [2]}),
        ("a|b\n1|2\n", {"a": [1], "b": [2]}),
        ("a,b\n 1 ,\t2\n", {"a": [1], "b": [2]}),
        ('"a","b"\n"1","2"\n', {"a": [1], "b": [2]}),
        ('"a ""x""",b\n+1,-2\n', {'a "x"': [1], "b": [-2]}),
        ('a,b\n"1\n",2\n3,4\n', {"a": [3], "b": [2, 4]}),
        ("a\nnan\ninf\n-inf\n1e400\n1e-400\n", None),
        ("a\n9223372036854775807\n-9223372036854775808\n", {"a": [2**63 - 1, -(2**63)]}),
        ("a\n1\n9223372036854775808\n", {"a": [1]}),  # and one malformed
        ("a\nTrue\nfalse\n", {"a": [1, 0]}),
        ("a,b\n1\n2,3,4\n", {"a": [1, 2], "b": [3]}),
    ],
)
def test_dialects(tmp_path, text, columns):
    reading = read_well(write(tmp_path / "t.csv", text.encode()))
    if columns is None:
        got = reading.columns["a"].values
        assert got == [np.inf, -np.inf, np.inf, 0.0]
        assert reading.columns["a"].malformed == [(0, "nan")]
    else:
        assert {name: column.values for name, column in reading.columns.items()} == columns


def test_text_among_numbers_is_malformed(tmp_path):
    path = write(tmp_path / "t.csv", b"label,x\n1,1\ncat,2\n0x10,3\n1_0,4\n2,5\n")
    column = read_well(path).columns["label"]
    assert (column.values, column.rows) == ([1, 2], [0, 4])
    assert column.malformed == [(1, "cat"), (2, "0x10"), (3, "1_0")]


def test_integers_stay_exact_until_the_first_float(tmp_path):
    big = 2**53 + 1
    rows = "\n".join([str(big)] * 2000 + ["0.5", "7"])
    column = read_well(write(tmp_path / "t.csv", f"a\n{rows}\n".encode())).columns["a"]
    assert column.values == [big] * 2000 + [0.5, 7.0]
    assert [piece["dtype"] for piece in column.pieces] == ["int64", "float64"]


def test_many_rows_have_their_lines(tmp_path):
    path = write(tmp_path / "t.csv", ("a,b\n" + "".join(f"{i},{i % 7}\n" for i in range(200_000))).encode())
    column = read_well(path, "b").columns["b"]
    assert column.values == [i % 7 for i in range(200_000)]
    assert len(column.pieces) > 1
    assert all(piece["first_line"] == piece["first_row"] + 2 for piece in column.pieces)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b'a,b\n1,"2\n3,4\n', "a quoted field does not end (at byte 6)"),
        (b'"a,b\n1,2\n', "a quoted field does not end (at byte 0)"),
        (b"\xff\xfea\x00", "the text is UTF-16"),
        (b"a,b\n1,\x00\n", "it has a zero byte (at byte 6)"),
        (b"1" + b",1" * 70000, "more than 65536 columns (at byte 0)"),
    ],
)
def test_damage(tmp_path, data, why):
    path = write(tmp_path / "t.csv", data)
    reading = read(path)
    assert reading.code == 2 and why in reading.error and str(path) in reading.error


def test_what_stands_before_the_damage_is_read(tmp_path):
    reading = read(write(tmp_path / "t.csv", b'a\n1\n2\n"3\n'))
    assert reading.code == 2 and reading.columns["a"].values == [1, 2]


def test_wide_tables_stay_in_memory(tmp_path):
    row = ",".join(["1"] * 60000) + "\n"
    header = ",".join(f"c{i}" for i in range(60000)) + "\n"
    reading = read_well(write(tmp_path / "t.csv", (header + row * 100).encode()), "c59999")
    assert reading.columns["c59999"].values == [1] * 100


# Larger than the stretches that are read at a time: where a row begins is guessed, and a wrong
# guess only costs time.
@pytest.mark.parametrize("text", ["plain", 'two\nlines, "quoted"', "\n\n\n", '"'])
def test_rows_are_right_across_stretches(tmp_path, text):
    random = np.random.default_rng(3)
    rows = 150_000
    table = pandas.DataFrame(
        {
            "text": np.where(random.integers(0, 50, rows) == 0, text, "some words to fill the line"),
            "label": random.integers(-5, 1000, rows),
            "score": random.normal(size=rows).round(3),
        }
    )
    table.to_csv(tmp_path / "t.csv", index=False)
    columns = read_well(tmp_path / "t.csv").columns
    assert columns["label"].values == table["label"].tolist()
    assert columns["label"].rows == list(range(rows))
    assert columns["score"].values == table["score"].tolist()
    piece = columns["label"].pieces[-1]
    before = table["text"][: piece["first_row"]].str.count("\n").sum()
    assert piece["first_line"] == 2 + piece["first_row"] + before


# A quote in the middle of a field opens nothing, so counting quotes leads astray.
def test_stray_quotes_mislead_no_row(tmp_path):
    lines = [
        f'5" disk {i},{i}' if i % 7 == 0 else f"a longer name of a thing {i},{i}" for i in range(120_000)
    ]
    write(tmp_path / "t.csv", ("name,label\n" + "\n".join(lines) + "\n").encode())
    assert read_well(tmp_path / "t.csv").columns["label"].values == list(range(120_000))


HEADS = {
    "units": ("a,b,name\nm,kg,\n", ["a", "b"]),
    "two rows of names": (",Jan,Feb\nkWh,SA,FT\n", ["Jan", "Feb"]),
    "words above": ("A table of things,,\n,,\na,b,name\n", ["a", "b"]),
    "a comment below": ("a,b,name\n# of a station, far away\n#\n", ["a", "b"]),
}


@pytest.mark.parametrize("name", HEADS)
def test_rows_of_words_above_the_numbers(tmp_path, name):
    head, names = HEADS[name]
    rows = "x,1,2.5\ny,3,4.5\n" if head.startswith(",") else "1,2.5,x\n3,4.5,y\n"
    reading = read_well(write(tmp_path / "t.csv", (head + rows).encode()))
    assert [column for column, _ in reading.all] == names
    assert [column.values for _, column in reading.all] == [[1, 3], [2.5, 4.5]]
    assert all(not column.malformed for _, column in reading.all)
    lines = head.count("\n")
    assert reading.all[0][1].pieces[0]["first_line"] == lines + 1


def test_a_row_of_text_that_may_be_a_mistake_is_told(tmp_path):
    for text in ("name,label\nx,oops\ny,1\nz,0\n", "name,label,a\nx,oops,1\ny,1,2\nz,0,3\n"):
        column = read_well(write(tmp_path / "t.csv", text.encode())).columns["label"]
        assert (column.malformed, column.values) == ([(0, "oops")], [1, 0])
    # Values that are missing are no head.
    text = "name,label,a\nx,NA,\ny,1,2\n"
    column = read_well(write(tmp_path / "t.csv", text.encode())).columns["label"]
    assert (column.malformed, column.values) == ([(0, "NA")], [1])
