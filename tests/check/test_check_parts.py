"""A data set of several files: a finding names the very file, the row in it, and its line."""

import json
from pathlib import Path

import pytest
from checking import only_finding, report

np = pytest.importorskip("numpy")


def where(finding: dict) -> list:
    """The evidence, with just the last part of each path."""
    return [(Path(one["source"]).name, one.get("line"), one["text"]) for one in finding.get("evidence", [])]


def data_set(folder: Path, **columns: list) -> Path:
    datasets = pytest.importorskip("datasets")
    datasets.Dataset.from_dict(columns).save_to_disk(folder / "ds", num_shards=2)
    return folder / "ds"


def test_a_saved_data_set(tmp_path: Path) -> None:
    finding = only_finding("labels", data_set(tmp_path, label=[0, 1, 2, 9, 1, 9]), "--classes", 3)
    assert finding["element"]["index"] == [0]
    assert (finding["element"]["bad"], finding["element"]["total"]) == (2, 6)
    assert "data-00001-of-00002.arrow" in finding["summary"]
    assert where(finding) == [
        ("data-00001-of-00002.arrow", None, "label[0] is 9 (row 3 of all files)"),
        ("data-00001-of-00002.arrow", None, "label[2] is 9 (row 5 of all files)"),
    ]


def test_a_missing_value_in_the_first_row_of_a_later_file(tmp_path: Path) -> None:
    finding = only_finding("labels", data_set(tmp_path, label=[0, 1, None, 1]), "--classes", 3)
    assert "data-00001-of-00002.arrow" in finding["summary"]
    assert where(finding) == [("data-00001-of-00002.arrow", None, "label[0] is missing (row 2 of all files)")]


def test_a_row_of_ids_that_is_too_long(tmp_path: Path) -> None:
    path = data_set(tmp_path, input_ids=[[1], [2], [3], [1, 2, 3]])
    finding = only_finding("ids", path, "--rows", 10, "--positions", 2)
    assert finding["element"]["index"] == [1]
    assert "data-00001-of-00002.arrow" in finding["summary"]
    assert where(finding) == [("data-00001-of-00002.arrow", None, "row 1 is too long (row 3 of all files)")]


def test_sharded_safetensors(tmp_path: Path) -> None:
    numpy = pytest.importorskip("safetensors.numpy")
    shards = {"a": "m-00001-of-00002.safetensors", "b": "m-00002-of-00002.safetensors"}
    bad = np.ones((4, 3), np.float32)
    bad[2, 1] = np.nan
    for name, values in (("a", np.ones(5, np.float32)), ("b", bad)):
        numpy.save_file({name: values}, tmp_path / shards[name])
    (tmp_path / "m.safetensors.index.json").write_text(json.dumps({"weight_map": shards}))
    for path in (tmp_path, tmp_path / "m.safetensors.index.json"):
        finding = only_finding("finite", path)
        assert finding["element"]["index"] == [2, 1]
        assert shards["b"] in finding["summary"]
        assert where(finding) == [(shards["b"], None, "b[2, 1] is nan")]


def test_yolo_labels(tmp_path: Path) -> None:
    (tmp_path / "labels").mkdir()
    (tmp_path / "labels" / "1.txt").write_text("0 .5 .5 .1 .1\n1 .5 .5 .1 .1\n")
    (tmp_path / "labels" / "2.txt").write_text("0 .5 .5 .1 .1\n\n7 .5 .5 .1 .1\n")
    (tmp_path / "labels" / "3.txt").write_text("x .5 .5 .1 .1\n")
    findings = report("labels", tmp_path / "labels", "--classes", 2, exit_code=1)["findings"]
    assert [where(one) for one in findings] == [
        [("2.txt", 3, "class[1] is 7 (row 3 of all files)")],
        [("3.txt", 1, "class[0] is 'x' (row 4 of all files)")],
    ]
    assert [name in one["summary"] for name, one in zip(("2.txt", "3.txt"), findings)] == [True, True]


def test_masks(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    for name, value in (("a.png", 1), ("b.png", 200)):
        mask = np.zeros((4, 6), np.uint8)
        mask[3, 5] = value
        image.fromarray(mask).save(tmp_path / name)
    finding = only_finding("labels", tmp_path, "--classes", 2)
    assert "b.png" in finding["summary"]
    assert finding["element"]["total"] == 24
    assert where(finding) == [("b.png", None, "labels[3, 5] is 200")]


def test_a_tree_of_pictures_names_the_folder_of_the_class(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    for name in ("cat", "dog"):
        (tmp_path / name).mkdir()
        for i in range(2):
            image.new("RGB", (2, 2)).save(tmp_path / name / f"{i}.png")
    finding = only_finding("labels", tmp_path, "--classes", 1)
    assert "/dog" in finding["summary"]
    assert where(finding)[0] == ("dog", None, "label[0] is 1 (row 2 of all files)")


def test_coco(tmp_path: Path) -> None:
    for name, kind in (("train.json", 1), ("val.json", 5)):
        content = {"images": [], "annotations": [{"id": 1, "category_id": 0}, {"id": 2, "category_id": kind}]}
        (tmp_path / name).write_text(json.dumps(content))
    finding = only_finding("labels", tmp_path, "--classes", 2)
    assert "val.json" in finding["summary"]
    assert where(finding) == [("val.json", None, "category_id[1] is 5")]


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("a.csv", "n,label\n1,cat\n2,1\n", 2),
        ("a.csv", '"a note\nof two lines",label\n1,0\n\n2,cat\n', 5),
        ("a.jsonl", '\n{"label": null}\n{"label": 1}\n', 2),
    ],
)
def test_the_line_of_what_is_no_number(tmp_path: Path, name: str, text: str, line: int) -> None:
    (tmp_path / name).write_text(text)
    assert only_finding("labels", tmp_path / name, "--classes", 2)["evidence"][0]["line"] == line
