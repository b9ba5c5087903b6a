"""A table of several files: a mistake in it is told once, with the numbers of the whole."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet
from checking import only_finding, report


def shards(folder: Path, *columns: list, ending: str = "parquet") -> Path:
    folder.mkdir(exist_ok=True)
    for i, labels in enumerate(columns):
        path = folder / f"train-{i:05}-of-{len(columns):05}.{ending}"
        if ending == "parquet":
            pa.parquet.write_table(pa.table({"label": pa.array(labels, pa.int64())}), path)
        else:
            path.write_text("".join(json.dumps({"label": label}) + "\n" for label in labels))
    return folder


def test_shards_are_one_table(tmp_path):
    for ending, line in (("parquet", None), ("jsonl", 3)):
        folder = shards(tmp_path / ending, [0, 1] * 10, [0, 1, 7] * 5, [1, 7, 9], ending=ending)
        finding = only_finding("dataset", folder, "--classes", 2)
        first = folder / f"train-00001-of-00003.{ending}"
        assert finding["element"]["index"] == [2] and finding["element"]["value"] == 7
        assert (finding["element"]["bad"], finding["element"]["total"]) == (7, 38)
        assert finding["values"] == [{"value": 7, "count": 6}, {"value": 9, "count": 1}]
        assert str(first) in finding["summary"]
        assert finding["evidence"][0]["source"] == str(first) and finding["evidence"][0].get("line") == line
        assert finding["evidence"][-1]["source"] == str(folder / f"train-00002-of-00003.{ending}")
        # Which classes occur in the shard that is good was not looked at.
        assert "classes" not in finding or finding["classes"]["missing"] == []


def test_other_names_are_other_tables(tmp_path):
    for name in ("train", "test"):
        pa.parquet.write_table(pa.table({"label": [0, 5]}), tmp_path / f"{name}.parquet")
    found = report("dataset", tmp_path, "--classes", 2, exit_code=1)["findings"]
    assert [(one["element"]["bad"], one["element"]["total"]) for one in found] == [(1, 2), (1, 2)]


def test_missing_values_of_shards(tmp_path):
    folder = shards(tmp_path / "d", [0, 1], [None, 1], [None, None])
    finding = only_finding("labels", folder, "--classes", 2)
    assert "3 of 6" in finding["summary"] and "train-00001" in finding["summary"]


def test_a_partition_counts_its_rows(tmp_path):
    for label, rows in (("0", 4), ("7", 3), ("1", 2)):
        folder = tmp_path / f"label={label}"
        folder.mkdir()
        for part in range(2):
            pa.parquet.write_table(pa.table({"x": [0.5] * rows}), folder / f"part-{part}.parquet")
    finding = only_finding("dataset", tmp_path, "--classes", 3)
    assert (finding["element"]["bad"], finding["element"]["total"], finding["element"]["value"]) == (6, 6, 7)
    assert finding["evidence"][0]["source"] == str(tmp_path / "label=7")


def saved_split(folder: Path, labels: list, names: list) -> None:
    folder.mkdir(parents=True)
    table = pa.table({"label": labels})
    with pa.ipc.new_stream(str(folder / "data-00000-of-00001.arrow"), table.schema) as writer:
        writer.write_table(table)
    (folder / "state.json").write_text(
        json.dumps({"_data_files": [{"filename": "data-00000-of-00001.arrow"}]})
    )
    info = {"features": {"label": {"names": names, "_type": "ClassLabel"}}}
    (folder / "dataset_info.json").write_text(json.dumps(info))


def test_each_split_of_a_dataset_dict_names_its_classes(tmp_path):
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "dataset_dict.json").write_text(json.dumps({"splits": ["train", "test"]}))
    saved_split(tmp_path / "d" / "train", [0, 1, 2, 1], ["a", "b", "c"])
    saved_split(tmp_path / "d" / "test", [0, 1, 3, 1], ["a", "b", "c"])
    finding = only_finding("dataset", tmp_path / "d")
    assert (finding["element"]["index"], finding["element"]["value"]) == ([2], 3)
    assert finding["valid"]["max"] == 2
    assert finding["evidence"][0]["source"] == str(tmp_path / "d" / "test" / "data-00000-of-00001.arrow")
