"""Classes that are texts, and class numbers that no class has."""

import json

import pandas as pd
import pytest
from checking import only_finding, report


@pytest.fixture(params=["csv", "parquet", "jsonl", "json"])
def animals(request, tmp_path):
    def write(labels, name="t"):
        table = pd.DataFrame({"id": range(len(labels)), "label": labels})
        path = tmp_path / f"{name}.{request.param}"
        if request.param == "csv":
            table.to_csv(path, index=False)
        elif request.param == "parquet":
            table.astype({"label": "category"}).to_parquet(path)
        elif request.param == "jsonl":
            table.to_json(path, orient="records", lines=True)
        else:
            path.write_text(json.dumps(table.to_dict("list")))
        return path

    return write


NAMES = ["cat", "dog", "eel"] * 10


def test_more_texts_than_classes(animals):
    path = animals([*NAMES, "Cat ", "cat"])
    report("dataset", path, "--classes", 4, exit_code=0)
    finding = only_finding("dataset", path, "--classes", 3)
    assert (finding["code"], finding["argument"]) == ("TL102", "label")
    assert finding["element"]["index"] == [30]
    assert finding["classes"] == {"seen": 4, "expected": 3}
    assert (
        "label has 4 different texts for 3 classes: the 4th is 'Cat ', first in row 30" in finding["summary"]
    )
    assert finding["evidence"][0]["text"] == "label[30] is 'Cat '"
    help_ = json.dumps(finding["fix"])
    assert "'cat' and 'Cat ' are two classes to a program" in help_
    assert only_finding("labels", path, "--column", "label", "--classes", 3)["element"]["index"] == [30]


def test_texts_of_several_files_are_counted_together(animals):
    first = animals(NAMES, "train")
    animals(["cat", "dog", "fox"] * 5, "val")
    report("dataset", first.parent, "--classes", 4, exit_code=0)
    finding = only_finding("dataset", first.parent, "--classes", 3)
    assert finding["element"]["index"] == [2]
    assert finding["evidence"][0]["source"] == str(first.parent / first.name.replace("train", "val"))


def test_without_a_number_of_classes_they_are_counted(animals):
    notes = " ".join(report("dataset", animals(NAMES), exit_code=0)["notes"])
    assert "guessed: column 'label' holds labels (30 in 1 file, 3 different texts)" in notes


def test_text_that_never_repeats_is_no_label(animals):
    path = animals([f"a sentence about {i}" for i in range(100)])
    assert report("dataset", path, "--classes", 3, exit_code=2)["findings"] == []


def test_numbers_beside_text_are_the_labels(tmp_path):
    table = pd.DataFrame({"label": [0, 1, 2] * 5, "label_class": ["cat", "dog", "eel"] * 5})
    table.to_csv(tmp_path / "t.csv", index=False)
    report("dataset", tmp_path / "t.csv", "--classes", 3, exit_code=0)


def coco(path, *used, ids=(1, 2, 4, 7)):
    content = {
        "annotations": [{"id": i, "category_id": one} for i, one in enumerate(used)],
        "categories": [{"id": i, "name": f"c{i}"} for i in ids],
    }
    path.write_text(json.dumps(content))
    return path


def test_a_category_that_nobody_names(tmp_path):
    report("dataset", coco(tmp_path / "t.json", 1, 2, 4, 7, 7), exit_code=0)
    finding = only_finding("dataset", coco(tmp_path / "t.json", 1, 2, 4, 5, 7, 3))
    assert (finding["code"], finding["argument"]) == ("TL101", "category_id")
    assert (finding["element"]["index"], finding["element"]["value"]) == ([3], 5)
    assert (finding["element"]["bad"], finding["element"]["total"]) == (2, 6)
    assert "category_id[3] is 5, and the data set has no class of that number" in finding["summary"]
    # Above the last it is out of the range.
    assert only_finding("dataset", coco(tmp_path / "t.json", 1, 8))["element"]["value"] == 8
    # Numbers below the first class are none either: 0, where the data set counts from 1.
    assert only_finding("dataset", coco(tmp_path / "t.json", 1, 0, 2))["element"]["value"] == 0
