"""`trapline check dataset`: what the columns hold is guessed and said."""

import json
from pathlib import Path

import pytest
from checking import report, run

np = pytest.importorskip("numpy")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = [{"input_ids": [i % 50, 3], "label": i % 4, "weight": 1.0} for i in range(100)]
    (tmp_path / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "test").mkdir()
    (tmp_path / "test" / "test.jsonl").write_text(json.dumps({"input_ids": [1], "label": 3, "weight": 0.5}))
    (tmp_path / "README.md").write_text("no data")
    return tmp_path


def test_clean(folder: Path) -> None:
    notes = report("dataset", folder, exit_code=0)["notes"]
    assert (
        "guessed: column 'label' holds labels (101 in 2 files, 0 to 3), not held against a number of "
        "classes: add --classes N or --model DIR"
    ) in notes
    assert (
        "guessed: column 'input_ids' holds ids (201 in 2 files, 0 to 49), not held against a table: "
        "add --rows N or --model DIR"
    ) in notes


def test_against_numbers(folder: Path) -> None:
    report("dataset", folder, "--classes", 4, "--rows", 50, exit_code=0)
    found = report("dataset", folder, "--classes", 3, "--rows", 49, "--positions", 1, exit_code=1)["findings"]
    assert [(Path(one["evidence"][0]["source"]).name, one["code"]) for one in found] == [
        ("test.jsonl", "TL102"),
        ("train.jsonl", "TL102"),
        ("train.jsonl", "TL103"),
        ("train.jsonl", "TL104"),
    ]


def test_without_numbers_what_cannot_be_is_found(folder: Path) -> None:
    with (folder / "train.jsonl").open("a") as out:
        out.write('{"input_ids": [-7], "label": -3, "weight": 1.0}\n')
    found = report("dataset", folder, exit_code=1)["findings"]
    assert [one["code"] for one in found] == ["TL101", "TL103"]
    assert [one["element"]["value"] for one in found] == [-3, -7]
    assert all(one["evidence"][0]["line"] == 101 for one in found)


def test_nothing_to_check(tmp_path: Path) -> None:
    done = run("dataset", tmp_path)
    assert done.returncode == 2
    assert "no file below it has a format that is known" in done.stderr
