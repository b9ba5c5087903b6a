"""What a data set's own text computes for the bad number: of a tuple, of a dictionary, in a function."""

from __future__ import annotations

import importlib
import os
import pathlib
import sys

import pytest
from conftest import table_violation

torch = pytest.importorskip("torch")
import trapline._fault as fault  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

TEXT = """
import numpy as np
import torch
from torch.utils.data import Dataset

ROWS = [(4, 1, 2), (3, 0, 5), (2, 3, 1), (1, 5, 4)]


def cell(lat, lon):
    return lat * 3 + lon


class Base(Dataset):
    def __len__(self):
        return len(ROWS)


class Photos(Base):
    def __getitem__(self, at):
        lat, tag, lon = ROWS[at]
        place = cell(lat, lon)
        return place, tag - 1, lon


class Named(Base):
    def __getitem__(self, at):
        lat, tag, lon = ROWS[at]
        return {"lon": lon, "tag": tag - 1}


class Wrapped(Base):
    def __getitem__(self, at):
        lat, _, lon = ROWS[at]
        band = (np.array([lat, lon]) // 2).astype("int64")
        return torch.from_numpy(band), float(lon)


class Several(Base):
    def __getitem__(self, at):
        lat, tag, lon = ROWS[at]
        if lat > 9:
            return lat, lon
        return lat, tag - 1
"""


@pytest.fixture
def data(tmp_path, monkeypatch):
    (tmp_path / "photos_of_test.py").write_text(TEXT)
    os.utime(tmp_path / "photos_of_test.py", (0, 0))  # not edited while the program runs
    monkeypatch.syspath_prepend(str(tmp_path))
    fault.install()
    yield importlib.import_module("photos_of_test")
    fault.uninstall()
    sys.modules.pop("photos_of_test", None)


def computed(facts_of, kind, place, rows=5):
    for batch in DataLoader(kind(), batch_size=4):
        numbers = (list(batch.values()) if isinstance(batch, dict) else batch)[place]
        facts = facts_of(table_violation(torch.zeros(rows, 2), numbers))
        return facts.get("computed")


def test_of_a_tuple(data, facts_of):
    found = computed(facts_of, data.Photos, 1)
    assert (found["text"], found["line"]) == (
        "tag - 1",
        TEXT.split("\n").index("        return place, tag - 1, lon") + 1,
    )
    assert found["file"] == data.__file__ and found["of_sample"] is True


def test_in_a_function_that_it_calls(data, facts_of):
    found = computed(facts_of, data.Photos, 0, rows=10)
    assert found["text"] == "lat * 3 + lon" and "def cell" in TEXT.split("\n")[found["line"] - 2]


def test_of_a_dictionary(data, facts_of):
    found = computed(facts_of, data.Named, 1)
    assert (found["name"], found["text"]) == ("tag", "tag - 1")
    assert computed(facts_of, data.Named, 0, rows=2) is None  # it hands on what it reads


def test_of_a_tensor_that_is_made_of_a_variable(data, facts_of):
    pytest.importorskip("numpy")
    found = computed(facts_of, data.Wrapped, 0, rows=2)
    assert (found["name"], found["text"]) == ("band", "(np.array([lat, lon]) // 2).astype('int64')")


def test_a_data_set_around_it_gives_more(data, facts_of):
    class More(data.Named):
        def __getitem__(self, at):
            return {"new": at, **super().__getitem__(at)}

    More.__name__, More.__module__ = "Named", data.__name__
    assert computed(facts_of, More, 2) is None


def test_of_several_returns_nothing_is_known(data, facts_of):
    assert computed(facts_of, data.Several, 1) is None


def band(lat):
    return lat // (7 // 3)


def test_of_a_tensor_data_set_what_each_number_is_made_by(facts_of):
    fault.install()
    rows = [4, 3, 6, 1]
    y = torch.tensor([band(lat) for lat in rows])
    for _, numbers in DataLoader(TensorDataset(torch.rand(4), y), batch_size=4):
        found = facts_of(table_violation(torch.zeros(3, 2), numbers))["computed"]
    assert (found["text"], found["file"], found["of_sample"]) == ("lat // (7 // 3)", __file__, True)
    lines = pathlib.Path(__file__).read_text().splitlines()
    assert lines[found["line"] - 1].strip() == "return lat // (7 // 3)"
    z = torch.tensor(
        [
            lat + 2  # the line that is told
            for lat in rows
        ]
    )
    for _, numbers in DataLoader(TensorDataset(torch.rand(4), z), batch_size=4):
        found = facts_of(table_violation(torch.zeros(3, 2), numbers))["computed"]
    assert lines[found["line"] - 1].strip() == "lat + 2  # the line that is told"
    fault.uninstall()
