"""JSON lines as pandas, datasets and people write them."""

import gzip
import json

import pytest
from reading import read, read_well, write


def lines(path, records: list):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_numbers_and_lists_by_key(tmp_path):
    records = [
        {"text": "a", "label": 3, "input_ids": [1, 2, 3], "meta": {"id": 7, "score": 0.5}},
        {"text": "b", "label": -1, "input_ids": [], "meta": {"id": 8, "score": 1}},
        {"label": 2**63 - 1, "text": "c", "input_ids": [4, 5], "meta": {"score": float("1e300"), "id": 9}},
    ]
    reading = read_well(lines(tmp_path / "t.jsonl", records))
    assert reading.reader == "jsonl"
    columns = reading.columns
    assert columns["label"].values == [3, -1, 2**63 - 1]
    assert columns["label"].pieces[0]["first_line"] == 1
    assert columns["input_ids"].values == [1, 2, 3, 4, 5]
    assert columns["input_ids"].rows == [0, 0, 0, 2, 2]
    assert columns["meta.id"].values == [7, 8, 9]
    assert columns["meta.score"].values == [0.5, 1.0, 1e300]
    assert reading.skipped == {"text": "text"}


def test_records_of_pandas(tmp_path):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"id": range(5000), "x": [i / 8 for i in range(5000)], "s": ['é"\\'] * 5000})
    table.to_json(tmp_path / "t.jsonl", orient="records", lines=True)
    columns = read_well(tmp_path / "t.jsonl").columns
    assert columns["id"].values == list(range(5000))
    assert columns["x"].values == [i / 8 for i in range(5000)]


def test_lists_of_lists_and_of_objects_are_flat(tmp_path):
    records = [
        {"m": [[1, 2], [3]], "o": [{"k": 1}, {"k": 2}]},
        {"m": [[]], "o": []},
        {"m": [4], "o": [{"k": 5}]},
    ]
    columns = read_well(lines(tmp_path / "t.jsonl", records)).columns
    assert (columns["m"].values, columns["m"].rows) == ([1, 2, 3, 4], [0, 0, 0, 2])
    assert (columns["o.k"].values, columns["o.k"].rows) == ([1, 2, 5], [0, 0, 2])


def test_lines_that_are_called_json(tmp_path):
    path = lines(tmp_path / "t.json", [{"a": 1, "b": {}}, {"a": 2}])
    assert read_well(path).columns["a"].values == [1, 2]
    for text in ('{"a": 1}\n', '{\n"a": 1}\n', '{"a":\n{}}', "{\n{"):
        assert "no reader knows this format" in read(write(path, text.encode())).error


def test_bare_values_have_no_name(tmp_path):
    columns = read_well(write(tmp_path / "t.jsonl", b"1\n2\n[3,4]\n")).columns
    assert (columns[""].values, columns[""].rows) == ([1, 2, 3, 4], [0, 1, 2, 2])


def test_what_is_no_number(tmp_path):
    records = [{"a": None}, {"a": 1}, {"a": "cat"}, {"a": True}, {"a": None}, {}, {"a": 2}]
    column = read_well(lines(tmp_path / "t.jsonl", records)).columns["a"]
    assert (column.values, column.rows) == ([1, 1, 2], [1, 3, 6])
    assert column.malformed == [(0, ""), (2, "cat"), (4, ""), (5, "")]


def test_the_words_of_python_for_what_json_lacks(tmp_path):
    records = [{"a": float("nan")}, {"a": [float("inf"), float("-inf")], "b": 1}]
    column = read_well(lines(tmp_path / "t.jsonl", records)).columns["a"]
    assert [str(value) for value in column.values] == ["inf", "-inf"]
    assert column.malformed == [(0, "")]


def test_large_integers(tmp_path):
    column = read_well(
        write(tmp_path / "t.jsonl", b'{"a":-9223372036854775808}\n{"a":18446744073709551615}\n')
    )
    assert column.columns["a"].values == [-(2**63)]
    assert column.columns["a"].malformed == [(1, "18446744073709551615")]


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_line_ends_and_blank_lines(tmp_path, end):
    column = read_well(
        write(tmp_path / "t.jsonl", f'\ufeff{{"a":1}}\r\n\r\n{{"a":2}}{end}'.encode())
    ).columns["a"]
    assert column.values == [1, 2]
    assert [piece["first_line"] for piece in column.pieces] == [1, 3]


def test_only_wanted_keys_are_decoded(tmp_path):
    path = write(tmp_path / "t.jsonl", b'{"a": 1, "b": 12e}\n{"a": 2, "b": []}\n')
    assert read_well(path, "a").columns["a"].values == [1, 2]
    assert read(path).code == 2


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b'{"a":1}\n{"a":2\n{"a":3}\n', "line 2: no valid JSON"),
        (b'{"a":1}\n{"a":2}}\n', "line 2: "),
        (b'{"a":1} {"a":2}\n', "line 1: text behind the end of the record (at byte 8)"),
        (b'{"a":' + b"[" * 100 + b"]" * 100 + b"}\n", 'line 1: "a" is nested more than 64 deep'),
        (b'{"a":' + b"[" * 100000 + b"\n", "line 1: "),
        (b'{"a":' * 100000 + b"\n", "line 1: "),
        (b'{"a":1,"b":"\xff\xfe"}\n', "line 1: no valid JSON"),
        (b'{"a":nan}\n', "line 1: no valid JSON"),
        (b"\x00\x01\x02\n", "line 1: no valid JSON"),
    ],
)
def test_damage(tmp_path, data, why):
    path = write(tmp_path / "t.jsonl", data)
    reading = read(path)
    assert reading.code == 2
    assert f"cannot read {path}: {why}" in reading.error and "(at byte " in reading.error


def test_truncated_anywhere(tmp_path):
    whole = b'{"text": "a\\u00e9", "ids": [1, 2.5, -3], "deep": {"er": [true, null, {}]}}'
    for size in range(1, len(whole)):
        assert read(write(tmp_path / "cut.jsonl", whole[:size])).code == 2, size


def test_what_stands_before_the_damage_is_read(tmp_path):
    reading = read(write(tmp_path / "t.jsonl", b'{"a":1}\n{"a":2}\n{"a":'))
    assert reading.columns["a"].values == [1, 2]


def test_keys_that_are_data_are_bounded(tmp_path):
    record = {f"k{i}": i for i in range(3000)}
    reading = read_well(lines(tmp_path / "t.jsonl", [record]))
    assert len(reading.columns) == 1024
    assert reading.skipped["k2999"] == "more than 1024 different keys with numbers"
    many = {f"k{i}": i for i in range(70000)}
    assert "an object of it has more than 65536 keys" in read(lines(tmp_path / "u.jsonl", [many])).error


def test_many_records_keep_their_rows_and_lines(tmp_path):
    """More than threads read at a time, with what makes them stop: blank lines, late keys, other values."""
    records: list = []
    text, first_lines = [], {}
    for row in range(60000):
        record: dict = {"id": row, "text": "x" * (row % 40), "label": row % 7, "ids": list(range(row % 5))}
        if row > 50000 and row % 3 == 0:
            record["late"] = row / 4
        if row in (31000, 59999):
            record["label"] = "cat"
        if row == 40000:
            del record["label"]
        records.append(record)
        first_lines[row] = len(text) + 1
        text.append(json.dumps(record) + ("\r\n" if row % 11 == 0 else "\n"))
        if row % 1000 == 999:
            text.append(" \n")
    data = "".join(text).encode()
    plain = write(tmp_path / "t.jsonl", data)
    for path in (plain, write(tmp_path / "u.jsonl.gz", gzip.compress(data, 1))):
        columns = read_well(path).columns
        assert columns["id"].values == list(range(60000))
        assert [piece["first_line"] for piece in columns["id"].pieces] == [
            first_lines[piece["first_row"]] for piece in columns["id"].pieces
        ]
        whole = [(row, record["label"]) for row, record in enumerate(records) if "label" in record]
        assert list(zip(columns["label"].rows, columns["label"].values)) == [
            (row, label) for row, label in whole if label != "cat"
        ]
        assert columns["label"].malformed == [(31000, "cat"), (59999, "cat"), (40000, "")]
        assert columns["ids"].values == [value for record in records for value in record["ids"]]
        assert columns["late"].values == [record["late"] for record in records if "late" in record]
        assert columns["late"].malformed == []
