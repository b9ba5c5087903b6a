"""BatchCheck: the verdict of many batches is the one of the whole, in this process, on Ray and on Spark."""

import os
import random
import sys
from pathlib import Path

import pytest

pa = pytest.importorskip("pyarrow")
np = pytest.importorskip("numpy")

from trapline import DeviceAssertError  # noqa: E402
from trapline._check import rules  # noqa: E402
from trapline._library import capi  # noqa: E402
from trapline.batch import BatchCheck  # noqa: E402

REPO = Path(__file__).resolve().parents[3]


def make_table(rows: int = 10_000) -> "pa.Table":
    labels = np.random.default_rng(1).integers(0, 10, rows)
    labels[[1234, 7777]] = [12, -3]
    return pa.table({"row": np.arange(rows), "label": labels})


def whole(table: "pa.Table") -> list:
    return rules.find(rules.make_rule(capi.DATA_LABELS, 10, -100), table, "label")


@pytest.mark.parametrize("size", [1, 333, 5000, 10_000])
def test_merged_is_whole(size: int) -> None:
    table = make_table() if size > 1 else make_table().slice(1200, 100)
    table = table.combine_chunks()
    check = BatchCheck("label", num_classes=10, row_id="row")
    tallies = [check.tally(batch) for batch in table.to_batches(max_chunksize=size)]
    random.Random(0).shuffle(tallies)
    expected = whole(make_table()) if size > 1 else None
    found = check.findings(tallies)
    if expected is not None:
        assert found == expected
    assert found[0]["element"]["index"] == [1234]
    assert found[0]["element"]["value"] == 12


def test_missing_values_and_lists() -> None:
    table = pa.table({"row": [5, 6, 7], "label": [1, None, 2], "ids": [[1], [2, 70, 3], []]})
    labels = BatchCheck("label", num_classes=3, row_id="row")
    assert labels.findings([labels.tally(table)])[0]["element"]["index"] == [6]
    ids = BatchCheck("ids", num_embeddings=50, positions=2, row_id="row")
    found = ids.findings([ids.tally(table)])
    assert [one["code"] for one in found] == ["TL103", "TL104"]
    assert found[0]["element"]["index"] == [6, 1]
    assert found[1]["element"]["index"] == [6]


def test_clean_and_without_row_ids() -> None:
    table = make_table()
    check = BatchCheck("label", num_classes=20, ignore_index=-3)
    check.require(check(batch).to_pylist()[0] for batch in table.to_batches(1000))
    check = BatchCheck("label", num_classes=10)
    found = check.findings([check.tally(batch) for batch in table.to_batches(1000)])
    assert found[0]["element"]["bad"] == 2
    assert found[0]["summary"].startswith("check_labels: label is 12,")
    with pytest.raises(ValueError, match="give one of"):
        BatchCheck("label")


def test_spark_function() -> None:
    table = make_table().combine_chunks()
    check = BatchCheck("label", num_classes=10, row_id="row")
    out = list(check.map_in_arrow(iter(table.to_batches(max_chunksize=777))))
    assert [batch.schema.names for batch in out] == [["tally"]] * len(out)
    rows = [row for batch in out for row in batch.to_pylist()]
    assert check.findings(rows) == whole(table)


def test_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    sql = pytest.importorskip("pyspark.sql", reason="pyspark is missing: Spark itself is not tested")
    path = os.pathsep.join([str(REPO / "python"), os.environ.get("PYTHONPATH", "")])
    monkeypatch.setenv("PYTHONPATH", path)  # of the workers
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    session = sql.SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    try:
        frame = session.createDataFrame(make_table().to_pandas())
        check = BatchCheck("label", num_classes=10, row_id="row")
        assert check.findings(frame.mapInArrow(check.map_in_arrow, check.spark_schema).collect()) == whole(
            make_table()
        )
    finally:
        session.stop()


def test_ray_cluster_of_two_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    ray = pytest.importorskip("ray")
    monkeypatch.setenv("PYTHONPATH", str(REPO / "python"))
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
    ray.init(num_cpus=2, include_dashboard=False, _node_ip_address="127.0.0.1", log_to_driver=False)
    try:
        table = make_table()
        check = BatchCheck("label", num_classes=10, row_id="row")
        data = ray.data.from_arrow([table.slice(start, 2500) for start in range(0, 10_000, 2500)])
        rows = data.map_batches(check, batch_format="pyarrow", batch_size=500).take_all()
        assert len(rows) > 1
        assert check.findings(rows) == whole(table)
        with pytest.raises(DeviceAssertError, match=r"label\[1234\] is 12"):
            check.require(rows)
    finally:
        ray.shutdown()
    assert "RAY_ADDRESS" not in os.environ
