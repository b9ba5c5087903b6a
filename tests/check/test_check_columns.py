"""What a column is, by its name, dtype, values and neighbours; and what no value is."""

import gzip
import json
from pathlib import Path

import pytest
from checking import only_finding, report, run

np = pytest.importorskip("numpy")


def csv(path: Path, header: str, *rows: str) -> Path:
    path.write_text("\n".join((header, *rows)) + "\n")
    return path


def taken(path: Path, kind: str, exit_code: int = 0) -> list[str]:
    """The columns that `check dataset` took for this kind."""
    notes = report("dataset", path, exit_code=exit_code)["notes"]
    return [note.split("'")[1] for note in notes if f"' holds {kind} (" in note]


@pytest.mark.parametrize(
    ("header", "row", "labels"),
    [
        ("x,y,label", "{},{},1", ["label"]),
        ("x,y,w,h,class_id", "220,{},30,40,2", ["class_id"]),
        ("label,predicted_label", "1,{}", ["label"]),
        ("label,attention_mask,mask", "0,1,{}", ["label"]),
        ("coarse_label,fine_label", "1,2", ["coarse_label", "fine_label"]),
        ("classId,n_classes", "1,{}", ["classId"]),
        ("classId,#trials / class,trials per class", "1,{},{}", ["classId"]),
    ],
)
def test_the_best_name_makes_weaker_ones_no_labels(
    tmp_path: Path, header: str, row: str, labels: list[str]
) -> None:
    path = csv(tmp_path / "t.csv", header, *(row.format(-i, i) for i in range(-3, 30)))
    assert taken(path, "labels") == labels


def test_values_speak_against_a_name(tmp_path: Path) -> None:
    """The targets of a regression: floats, whole ones without repetition, numbers on both sides of 0."""
    rng = np.random.default_rng(0)
    prices, curve, swing = rng.normal(size=300), rng.permutation(300), rng.integers(-500, 500, 300)
    rows = [f"{a},{b},{c}" for a, b, c in zip(prices, curve, swing, strict=True)]
    asked = run("dataset", csv(tmp_path / "t.csv", "label,y,target", *rows))
    assert asked.returncode == 0
    assert "holds labels (" not in asked.stdout
    assert "nothing tells which column holds labels or ids: label, y, target" in " ".join(
        asked.stdout.split()
    )


def test_a_lone_array_is_labels_only_when_it_could_be(tmp_path: Path) -> None:
    np.save(tmp_path / "features.npy", np.random.default_rng(0).random((10, 3)))
    report("dataset", tmp_path / "features.npy", exit_code=0)
    np.save(tmp_path / "curve.npy", np.arange(1000) - 700)
    asked = run("dataset", tmp_path / "curve.npy")
    assert (asked.returncode, "name the column of labels with --column" in asked.stderr) == (2, True)
    np.save(tmp_path / "labels.npy", np.array([0, 1, 2, -7] + [1] * 40))
    assert only_finding("dataset", tmp_path / "labels.npy")["code"] == "TL101"


def test_a_record_number_is_no_token_id(tmp_path: Path) -> None:
    rows = [{"id": i, "user_id": [i], "input_ids": [i % 40], "attention_mask": [1]} for i in range(200)]
    path = tmp_path / "t.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    report("ids", path, "--rows", 40, exit_code=0)
    assert taken(path, "ids") == ["input_ids"]
    pair = csv(tmp_path / "pairs.csv", "user_id,item_id", "900000,1", "5,6")
    unclear = run("ids", pair, "--rows", 100)
    assert unclear.returncode == 2
    assert "which column holds the ids is not clear: user_id, item_id" in unclear.stderr


def test_lists_of_class_labels_are_labels(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    kinds = datasets.ClassLabel(names=["O", "B", "I"])
    features = datasets.Features({"ner_tags": datasets.Sequence(kinds), "n": datasets.Value("int64")})
    table = datasets.Dataset.from_dict({"ner_tags": [[0, 1], [2]], "n": [-5, 9]}, features=features)
    table.save_to_disk(str(tmp_path / "set"))
    assert taken(tmp_path / "set", "labels") == ["ner_tags"]


@pytest.mark.parametrize("written", ["", "NA", "N/A", "null", "None", "NaN"])
def test_missing_values_are_told_as_missing(tmp_path: Path, written: str) -> None:
    label = only_finding("labels", csv(tmp_path / "a.csv", "x,label", f"1,{written}", "2,1"), "--classes", 3)
    told = f" ('{written}')" if written else ""
    assert (label["code"], label["element"]["index"]) == ("TL108", [0])
    assert label["summary"].endswith(f"label[0] is missing{told}: 1 of 2 values")
    prices = csv(tmp_path / "b.csv", "date,price", "d1,1.5", f"d2,{written}")
    price = only_finding("finite", prices)
    assert price["code"] == "TL109"
    assert price["summary"].endswith(f"price[1] is missing{told}, which is read as NaN: 1 of 2 values")
    # A table may have gaps: that is said, and no fault.
    assert "1.5 to 1.5, 1 missing" in report("dataset", prices, exit_code=0)["notes"][0]


def test_nulls_of_parquet_and_json_are_missing_alike(tmp_path: Path) -> None:
    frame = pytest.importorskip("pandas").DataFrame({"price": [1.5, None]})
    frame.to_parquet(tmp_path / "a.parquet")
    (tmp_path / "a.jsonl").write_text('{"price": 1.5}\n{"price": null}\n')
    (tmp_path / "b.jsonl").write_text('{"price": 1.5}\n{"price": NaN}\n')
    for name in ("a.parquet", "a.jsonl", "b.jsonl"):
        assert "1 missing" in report("dataset", tmp_path / name, exit_code=0)["notes"][0]
        finding = only_finding("finite", tmp_path / name)
        assert (finding["code"], finding["element"]["index"]) == ("TL109", [1])


def test_a_float_mask_of_attention_may_hold_infinities(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", attention_mask=np.array([0.0, -np.inf]), label=np.array([0, 1]))
    report("dataset", tmp_path / "a.npz", exit_code=0)


def test_nothing_checked_is_no_pass(tmp_path: Path) -> None:
    header = csv(tmp_path / "header.csv", "x,label")
    (tmp_path / "empty.csv").write_text("")
    for path in (header, tmp_path / "empty.csv"):
        assert run("labels", path, "--classes", 3).returncode == 2
        assert run("dataset", path).returncode == 2
    assert "nothing was checked" in run("labels", header, "--classes", 3).stderr
    table = csv(tmp_path / "t.csv", "kind,size", "3,40", "1,20")
    asked = run("dataset", table)
    assert (asked.returncode, "kind, size" in asked.stdout) == (2, True)
    report("dataset", table, "--column", "kind", "--classes", 4, exit_code=0)


def test_a_pass_names_its_columns(tmp_path: Path) -> None:
    path = csv(tmp_path / "t.csv", "x,label", "1,0", "2,1")
    notes = report("labels", path, "--classes", 3, exit_code=0)["notes"]
    assert notes == ["2 values in 1 column of 1 file checked as labels: label"]


def test_many_fractions_lead(tmp_path: Path) -> None:
    np.save(tmp_path / "y.npy", np.arange(0, 150, 0.3))
    finding = only_finding("labels", tmp_path / "y.npy", "--classes", 10)
    assert (finding["code"], "F.mse_loss" in finding["fix"][0]) == ("TL203", True)


def test_what_no_int64_holds_is_told_as_it_stands(tmp_path: Path) -> None:
    for name, text in (
        ("a.csv", "x,label\n1,0\n2,9223372036854775808\n"),
        ("a.jsonl", '{"label": 0}\n{"label": 18446744073709551615}\n'),
    ):
        (tmp_path / name).write_text(text)
        summary = only_finding("labels", tmp_path / name, "--classes", 3)["summary"]
        assert summary.endswith(", which is more than int64 holds: 1 of 2 values")
        assert "label[1] is 9223372036854775808" in summary or "label[1] is 18446744073709551615" in summary


def test_names_among_numbers_are_a_header(tmp_path: Path) -> None:
    """As scikit-learn writes its tables: "150,4,setosa,versicolor,virginica"."""
    path = csv(tmp_path / "t.csv", "4,2,setosa,virginica", *(f"5.1,{i}.5,1.4,0.2" for i in range(4)))
    assert taken(path, "numbers") == ["2", "4", "setosa", "virginica"]


def test_a_mask_of_two_colours_keeps_its_foreground(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    mask = np.zeros((8, 8), dtype=np.uint8)
    mask[3, 4] = 255
    image.fromarray(mask).save(tmp_path / "mask.png")
    finding = only_finding("labels", tmp_path / "mask.png", "--classes", 2)
    assert "255 is the white of a picture of two colours" in finding["summary"]
    assert finding["fix"][0] == "turn white into class 1 where the masks are loaded: labels = labels // 255"


def tree(root: Path, *folders: str) -> Path:
    for folder in folders:
        (root / folder).mkdir(parents=True)
        (root / folder / "1.jpg").write_bytes(b"picture")
    return root


def test_trees_as_image_folder_numbers_them(tmp_path: Path) -> None:
    hidden = tree(tmp_path / "hidden", ".ipynb_checkpoints", "cat", "dog")
    for flags in (["labels", hidden, "--classes", 2], ["dataset", hidden]):
        found = only_finding(*flags)
        assert f"the hidden folder {hidden}/.ipynb_checkpoints counts as class 0" in found["summary"]
        assert (found["code"], found["evidence"][0]["text"]) == ("TL102", "class 0")
        assert found["fix"][0] == f"if it is no class, remove the folder: {hidden}/.ipynb_checkpoints"
    empty = tree(tmp_path / "empty", "cat", "dog")
    (empty / "emu").mkdir()
    assert "emu counts as a class, and has no pictures" in only_finding("dataset", empty)["summary"]
    splits = tree(tmp_path / "splits", "train/a", "train/b", "train/c", "val/a", "val/c", "val/d")
    summary = only_finding("dataset", splits)["summary"]
    assert f"label 1 is 'b' in {splits}/train, but 'c' in {splits}/val" in summary


@pytest.mark.parametrize("ending", ["jsonl", "json"])
@pytest.mark.parametrize("without", [0, 3, 5])
def test_a_record_without_the_key_lacks_its_value(tmp_path: Path, ending: str, without: int) -> None:
    records = [{"text": "x", "label": i % 2, "score": 0.5} for i in range(6)]
    del records[without]["label"]
    file = tmp_path / f"train.{ending}"
    lines = [json.dumps(one) for one in records]
    file.write_text("\n".join(lines) if ending == "jsonl" else f"[{', '.join(lines)}]")
    found = only_finding("labels", file, "--column", "label", "--classes", 2)
    assert found["summary"].endswith(f"label[{without}] is missing: 1 of 6 values")
    assert found["evidence"][0].get("line") == (without + 1 if ending == "jsonl" else None)


def test_a_key_that_most_records_lack_is_optional(tmp_path: Path) -> None:
    records = [{"label": 1}, {}, {}, {"text": "x"}, {"label": 0}]
    for ending in ("jsonl", "json"):
        file = tmp_path / f"train.{ending}"
        lines = [json.dumps(one) for one in records]
        file.write_text("\n".join(lines) if ending == "jsonl" else f"[{', '.join(lines)}]")
        assert run("labels", file, "--column", "label", "--classes", 2).returncode == 0


def test_a_record_of_another_kind_is_no_number(tmp_path: Path) -> None:
    file = tmp_path / "t.jsonl"
    file.write_text('{"label": 1}\n{"label": [1, 0]}\n{"label": 0}\n{"label": {"id": 1}}\n{"label": []}\n')
    found = only_finding("labels", file, "--column", "label", "--classes", 2)
    assert found["code"] == "TL203"
    assert "label[1] is '[1, 0]', which is not an integer: 3 of 5 values" in found["summary"]


def test_classes_that_the_data_set_names_are_not_counted_from_one(tmp_path: Path) -> None:
    boxes = [
        {"id": i, "image_id": 1, "category_id": c, "bbox": [1, 2, 3, 4]} for i, c in enumerate((91, 1, 2))
    ]
    names = [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}, {"id": 90, "name": "c"}]
    (tmp_path / "c.json").write_text(json.dumps({"images": [], "annotations": boxes, "categories": names}))
    fix = only_finding("dataset", tmp_path / "c.json")["fix"]
    assert fix[0].startswith("the data set itself names 3 classes, and this is none of them")
    assert not any("- 1" in line for line in fix)


def test_a_guessed_column_that_many_rows_lack_is_said(tmp_path):
    rows = "".join(f"{i},{i % 4 if i % 5 else ''}\n" for i in range(50))
    (tmp_path / "t.csv").write_text("x,targets\n" + rows)
    notes = " ".join(report("dataset", tmp_path / "t.csv", "--classes", 4, exit_code=0)["notes"])
    assert "column 'targets' holds labels (40 in 1 file, 0 to 3, 10 missing)" in notes
    (tmp_path / "t.csv").write_text("x,label\n" + rows)
    assert only_finding("dataset", tmp_path / "t.csv", "--classes", 4)["element"]["bad"] == 10
    (tmp_path / "t.csv").write_text("x,targets\n" + "".join(f"{i},{i % 4}\n" for i in range(50)) + "7,\n")
    assert only_finding("dataset", tmp_path / "t.csv", "--classes", 4)["element"]["index"] == [50]


def test_the_three_rows_of_orange(tmp_path):
    head = "d1\tx\tcls\nd\tc\tred blue\n\t\tclass\n"
    (tmp_path / "t.tab").write_text(head + "a\t1.5\tred\nb\tinf\tblue\n")
    finding = only_finding("dataset", tmp_path / "t.tab")
    assert (finding["argument"], finding["element"]["index"]) == ("x", [1])
    assert finding["evidence"][0]["line"] == 5
    (tmp_path / "t.tab").write_text("a\tlabel\nc\t1\nd\t5\n")  # no such rows
    assert only_finding("dataset", tmp_path / "t.tab", "--classes", 2)["element"]["index"] == [1]


def test_infinity_in_a_table_without_labels_is_noted(tmp_path: Path) -> None:
    # Nothing tells that a model is trained on it: the last bin of a histogram is open.
    (tmp_path / "bins.csv").write_text("edge,height\n0.5,1.5\n1.5,2.5\ninf,0.5\n")
    read = report("dataset", tmp_path / "bins.csv", exit_code=0)
    assert any("'edge' holds NaN or Inf, 1 of 3 values, first in row 2" in note for note in read["notes"])
    assert only_finding("finite", tmp_path / "bins.csv")["code"] == "TL109"
    with gzip.open(tmp_path / "bins.csv.gz", "wt") as packed:
        packed.write((tmp_path / "bins.csv").read_text())
    report("dataset", tmp_path / "bins.csv.gz", exit_code=0)


def test_infinity_beside_labels_or_in_an_array_is_a_finding(tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text("edge,label\n0.5,0\n1.5,1\ninf,0\n")
    assert "edge[2] is inf" in only_finding("dataset", tmp_path / "train.csv")["summary"]
    np.save(tmp_path / "x.npy", np.array([0.5, np.inf]))
    assert "[1] is inf" in only_finding("dataset", tmp_path / "x.npy")["summary"]


def test_names_of_rows_without_a_header_are_no_lone_array(tmp_path: Path) -> None:
    rows = [f'"{i}","one{i}","other{i}"' for i in range(1, 9)]
    done = run("dataset", csv(tmp_path / "t.csv", '"","from","to"', *rows, '"","odd","even"'))
    assert done.returncode == 2, done.stdout
    assert "missing" not in done.stdout


def test_a_guessed_outcome_may_be_missing(tmp_path):
    rows = "".join(f"{i},{i % 4}\n" for i in range(50)) + "7,\n"
    (tmp_path / "t.csv").write_text("time,y\n" + rows)
    notes = " ".join(report("dataset", tmp_path / "t.csv", "--classes", 4, exit_code=0)["notes"])
    assert "column 'y' holds labels (50 in 1 file, 0 to 3, 1 missing)" in notes
    named = only_finding("dataset", tmp_path / "t.csv", "--classes", 4, "--column", "y")
    assert (named["code"], named["element"]["index"]) == ("TL108", [50])
    only_finding("labels", tmp_path / "t.csv", "--classes", 4)


def test_a_class_that_the_data_set_names_is_not_to_be_left_out(tmp_path: Path) -> None:
    for one in ("ant", "bee", "cat"):
        (tmp_path / "t" / one).mkdir(parents=True)
        (tmp_path / "t" / one / "0.png").write_bytes(b"x")
    found = only_finding("labels", tmp_path / "t", "--classes", 2)
    assert found["code"] == "TL102"
    assert found["fix"][0] == (
        "the data set itself names 3 classes, and 2 is one of them: "
        "give the layer that makes the input 3 outputs instead of 2"
    )
    boxes = [{"id": i, "image_id": 1, "category_id": c, "bbox": [1, 2, 3, 4]} for i, c in enumerate((1, 90))]
    names = [{"id": 1, "name": "a"}, {"id": 90, "name": "b"}]
    (tmp_path / "c.json").write_text(json.dumps({"images": [], "annotations": boxes, "categories": names}))
    fix = only_finding("labels", tmp_path / "c.json", "--classes", 2)["fix"]
    assert fix[0].startswith("the data set names 2 classes, with numbers up to 90: number them from 0")
    assert not any("leave it out" in line for line in fix)


def test_how_many_are_negative_is_told_without_an_upper_end(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("x,label\n" + "1,0\n2,2\n3,1\n" * 20 + "4,-7\n")
    fix = only_finding("dataset", tmp_path / "t.csv")["fix"]
    assert "a label must not be negative: 1 of 61 is negative: look at where the labels are computed" in fix
