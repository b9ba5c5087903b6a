"""`trapline check` on DuckDB databases: the finding has the file, the column, the row and the value."""

import sys

import pytest
from checking import only_finding, report, run

duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")


@pytest.fixture
def animals(tmp_path, monkeypatch):
    monkeypatch.setenv("TRAPLINE_DUCKDB", sys.executable)
    path = tmp_path / "animals.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "CREATE TABLE train AS SELECT i || '.png' AS picture, "
            "CASE WHEN i = 7 THEN 12 ELSE i % 10 END AS label FROM range(1000) r(i)"
        )
    return path


def test_a_label_out_of_range(animals):
    report("labels", animals, "--classes", 13, exit_code=0)
    finding = only_finding("labels", animals, "--classes", 10)
    assert (finding["code"], finding["argument"]) == ("TL101", "label")
    assert finding["element"]["index"] == [7] and finding["element"]["value"] == 12
    assert finding["element"]["bad"] == 1 and finding["element"]["total"] == 1000
    assert finding["evidence"][0]["source"] == str(animals)


def test_of_two_tables_in_a_folder_the_column_is_named_with_its_table(animals):
    with duckdb.connect(str(animals)) as connection:
        connection.execute("CREATE TABLE val AS SELECT i % 10 AS label FROM range(50) r(i)")
    finding = only_finding("dataset", animals.parent, "--classes", 10)
    assert (finding["argument"], finding["element"]["index"]) == ("train.label", [7])
    report("labels", animals, "--column", "val.label", "--classes", 10, exit_code=0)


def test_a_missing_value(animals):
    with duckdb.connect(str(animals)) as connection:
        connection.execute("UPDATE train SET label = NULL WHERE picture = '3.png'")
        connection.execute("UPDATE train SET label = 1 WHERE picture = '7.png'")
    assert only_finding("labels", animals, "--classes", 10)["code"] == "TL108"


def test_without_duckdb_it_is_no_pass(animals, monkeypatch):
    monkeypatch.setenv("TRAPLINE_DUCKDB", "off")
    done = run("labels", animals, "--classes", 13)
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert f"trapline: cannot read {animals}: DuckDB databases need DuckDB" in done.stderr
