"""JSON by columns, and with records below a key: as pandas, json.dump() and datasets' fields have it."""

import json

import numpy as np
import pandas as pd
import pytest
from reading import read, read_well, write


@pytest.fixture
def table():
    return pd.DataFrame({"text": ["a", "b", "c"], "label": [4, 0, 2], "x": [0.5, 1.5, np.nan]})


@pytest.mark.parametrize("orient", ["columns", "split", "tight"])
def test_what_pandas_writes(tmp_path, table, orient):
    text = (
        json.dumps(table.to_dict("tight")).replace("NaN", "null")
        if orient == "tight"
        else table.to_json(orient=orient)
    )
    reading = read_well(write(tmp_path / "t.json", text.encode()))
    assert reading.reader == "json columns"
    assert list(reading.columns) == ["label", "x"]
    assert (reading.columns["label"].values, reading.columns["label"].rows) == ([4, 0, 2], [0, 1, 2])
    assert (reading.columns["x"].dtype, reading.columns["x"].values) == ("float64", [0.5, 1.5])
    assert reading.columns["x"].malformed == [(2, "")]
    assert reading.skipped == {"text": "text"}


def test_the_records_of_pandas_table(tmp_path, table):
    reading = read_well(write(tmp_path / "t.json", table.to_json(orient="table").encode()))
    assert reading.reader == "json"
    assert reading.columns["label"].values == [4, 0, 2]


@pytest.mark.parametrize("indent", [None, 2])
def test_a_dict_of_lists(tmp_path, indent):
    data = {
        "input_ids": [[101, 7, 102], [101, 102], [101, 9, 9, 102]],
        "labels": [0, 5, None],
        "flag": [True, False, True],
        "meta": [{"k": 1}, {"k": 2}, {"k": 3}],
        'say "{[,"': ["a", "b,]", "}"],
    }
    columns = read_well(write(tmp_path / "t.json", json.dumps(data, indent=indent).encode())).columns
    assert columns["input_ids"].values == [101, 7, 102, 101, 102, 101, 9, 9, 102]
    assert columns["input_ids"].rows == [0, 0, 0, 1, 1, 2, 2, 2, 2]
    assert (columns["labels"].values, columns["labels"].malformed) == ([0, 5], [(2, "")])
    assert columns["flag"].values == [1, 0, 1]
    assert columns["meta.k"].values == [1, 2, 3]
    assert len(columns) == 4


def test_records_below_a_key(tmp_path):
    data = {"version": "1.0", "data": [{"label": 3, "t": "x"}, {"label": 5, "t": "y"}]}
    reading = read_well(write(tmp_path / "t.json", json.dumps(data).encode()))
    assert (reading.reader, reading.columns["label"].values) == ("json", [3, 5])


NO_TABLES = {
    "config": {"architectures": ["BertForX"], "hidden_size": 8, "id2label": {"0": "a", "1": "b"}},
    "maps": {"label2id": {"a": 0, "b": 1}, "id2label": {"0": "a", "1": "b"}},
    "vocab": {"a": 0, "b": 1},
    "lengths": {"a": [1, 2], "b": [1, 2, 3]},
    "texts": {"a": ["x", "y"], "b": ["u", "v"]},
    "packages": {"name": "x", "dependencies": [{"n": 1}, {"n": 2}]},
    "one": {"a": [1]},
    "empty": {},
}


@pytest.mark.parametrize("name", NO_TABLES)
def test_other_objects_are_no_tables(tmp_path, name):
    path = write(tmp_path / "t.json", json.dumps(NO_TABLES[name]).encode())
    assert "no reader knows this format" in read(path).error


def test_cut_anywhere(tmp_path):
    whole = json.dumps({"label": list(range(100, 160)), "x": [i / 4 for i in range(60)]}).encode()
    for size in range(20, len(whole) - 1, 7):
        reading = read(write(tmp_path / "t.json", whole[:size]))
        assert "no valid JSON" in reading.error, size
        values = reading.columns["label"].values[:-1]  # the last may have lost digits
        assert values == list(range(100, 160))[: len(values)]


def test_deep_nesting_is_an_error(tmp_path):
    path = write(tmp_path / "t.json", b'{"a": [1, 2], "b": [' + b"[" * 100000)
    assert "nested more than 64 deep" in read(path).error
