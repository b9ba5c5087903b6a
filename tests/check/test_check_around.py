"""What stands around a table: partitions in its path, classes in dataset_info.json, two kinds of labels."""

import io
import json
import tarfile

import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
from checking import only_finding, report


def partitioned(folder, labels, **how):
    table = pa.table({"x": [i / 2 for i in range(len(labels))], "label": labels})
    pa.dataset.write_dataset(
        table, folder, format="parquet", partitioning=["label"], partitioning_flavor="hive", **how
    )
    return folder


def test_a_label_in_the_name_of_a_folder(tmp_path):
    folder = partitioned(tmp_path / "d", [0, 1, 2, 7, 7, 1], max_rows_per_file=1, max_rows_per_group=1)
    assert len(list((folder / "label=7").iterdir())) == 2
    report("dataset", folder, "--classes", 8, exit_code=0)
    finding = only_finding("dataset", folder, "--classes", 3)  # once, and not for each file
    assert (finding["code"], finding["argument"], finding["element"]["value"]) == ("TL101", "label", 7)
    assert finding["evidence"][0]["source"] == str(folder / "label=7")
    only_finding("labels", folder, "--classes", 3, "--column", "label")


def test_a_folder_for_what_has_no_value(tmp_path):
    folder = partitioned(tmp_path / "d", [0, None, 2])
    found = report("labels", folder, "--classes", 3, exit_code=1)["findings"]
    assert [(one["code"], one["evidence"][0]["source"]) for one in found] == [
        ("TL108", str(folder / "label=__HIVE_DEFAULT_PARTITION__"))
    ]


def test_the_tables_own_column_counts(tmp_path):
    (tmp_path / "label=9").mkdir()
    (tmp_path / "label=9" / "t.csv").write_text("label,x\n0,1\n1,2\n0,3\n")
    report("labels", tmp_path, "--classes", 3, exit_code=0)


def test_text_in_a_path_is_no_label(tmp_path):
    folder = tmp_path / "lang=de%20x" / "run=a"
    folder.mkdir(parents=True)
    (folder / "t.csv").write_text("label,x\n0,1\n1,2\n0,3\n")
    report("dataset", tmp_path, "--classes", 3, exit_code=0)


def test_classes_that_stand_beside_the_table(tmp_path):
    (tmp_path / "data").mkdir()
    pa.parquet.write_table(pa.table({"label": [0, 1, 2, 1] * 5}), tmp_path / "data" / "train.parquet")
    info = {
        "features": {"label": {"names": ["neg", "pos"], "_type": "ClassLabel"}, "x": {"dtype": "float32"}}
    }
    (tmp_path / "dataset_info.json").write_text(json.dumps(info))
    finding = only_finding("dataset", tmp_path)
    assert (finding["code"], finding["element"]["index"], finding["element"]["value"]) == ("TL101", [2], 2)
    assert (finding["valid"]["min"], finding["valid"]["max"]) == (0, 1)
    info["features"]["label"]["names"].append("none")
    (tmp_path / "dataset_info.json").write_text(json.dumps(info))
    report("dataset", tmp_path, exit_code=0)


def test_a_table_by_columns(tmp_path):
    (tmp_path / "t.json").write_text(json.dumps({"text": ["a", "b", "c"], "label": [0, 5, 1]}))
    finding = only_finding("dataset", tmp_path / "t.json", "--classes", 3)
    assert (finding["argument"], finding["element"]["index"], finding["element"]["value"]) == (
        "label",
        [1],
        5,
    )


def test_cls_beside_a_label_in_json(tmp_path):
    with tarfile.open(tmp_path / "t.tar", "w") as tar:
        for i in range(20):
            members = (("cls", str(12 if i == 7 else i % 3)), ("json", json.dumps({"label": i % 3})))
            for end, text in members:
                member = tarfile.TarInfo(f"{i:03}.{end}")
                member.size = len(text)
                tar.addfile(member, io.BytesIO(text.encode()))
    finding = only_finding("dataset", tmp_path / "t.tar", "--classes", 3)
    assert (finding["argument"], finding["element"]["value"]) == ("cls", 12)


def test_a_table_of_r(tmp_path):
    rows = "".join(f'"{i}"\t{i / 2}\t{9 if i == 4 else i % 3}\n' for i in range(1, 30))
    (tmp_path / "t.tab").write_text('"x"\t"label"\n' + rows)
    finding = only_finding("dataset", tmp_path / "t.tab", "--classes", 3)
    assert (finding["argument"], finding["element"]["index"], finding["element"]["value"]) == (
        "label",
        [3],
        9,
    )


def test_a_broken_first_line_of_yolo(tmp_path):
    (tmp_path / "labels").mkdir()
    (tmp_path / "labels" / "a.txt").write_text("x 0.5 0.5\n0 0.5 0.5 0.1 0.1\n1 0.5 0.5 0.1 0.1\n")
    found = report("dataset", tmp_path, "--classes", 2, exit_code=2)
    assert found["verdict"] == "unknown"


def test_an_infinity_is_not_filled_with_the_largest_number(tmp_path):
    (tmp_path / "t.csv").write_text("x\n1.5\ninf\n2.5\n")
    help_ = " ".join(
        fix["text"] if isinstance(fix, dict) else fix
        for fix in only_finding("finite", tmp_path / "t.csv")["fix"]
    )
    assert "np.nan_to_num(x, nan=0.0, posinf=0.0, neginf=0.0)" in help_


def test_classes_of_a_saved_data_set_that_stand_beside_it_alone(tmp_path):
    for split in ("train", "test"):
        folder = tmp_path / split
        folder.mkdir()
        table = pa.table({"label": [0, 1, 2, 1]})
        with pa.ipc.new_stream(str(folder / "data-0.arrow"), table.schema) as writer:
            writer.write_table(table)
        (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": "data-0.arrow"}]}))
        names = {"label": {"names": ["neg", "pos", "other"], "_type": "ClassLabel"}}
        (folder / "dataset_info.json").write_text(json.dumps({"features": names}))
    report("dataset", tmp_path / "train", exit_code=0)
    info = (tmp_path / "train" / "dataset_info.json").read_text().replace(', "other"', "")
    (tmp_path / "train" / "dataset_info.json").write_text(info)
    finding = only_finding("dataset", tmp_path / "train")
    assert (finding["code"], finding["element"]["index"], finding["element"]["value"]) == ("TL101", [2], 2)
