"""DuckDB databases written by DuckDB itself, read through it; damaged ones, and machines without it."""

import importlib
import importlib.util
import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from reading import DUMP, Reading, read_well

# Where a program of DuckDB's may be asked for: threads and Python take room.
ROOM = 8 << 30
MAGIC = b"\1" * 8 + b"DUCK" + b"\x40" + bytes(4096)
duckdb = importlib.import_module("duckdb") if importlib.util.find_spec("duckdb") else None
needs_duckdb = pytest.mark.skipif(duckdb is None, reason="duckdb is not installed")


@pytest.fixture(autouse=True)
def this_python(monkeypatch):
    monkeypatch.setenv("TRAPLINE_DUCKDB", sys.executable)


def database(path, *statements):
    connection = duckdb.connect(str(path))
    for statement in statements:
        connection.execute(statement)
    connection.close()
    return path


def error_of(path, **environment):
    done = subprocess.run(
        [DUMP, path],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, **environment},
    )
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
    return done.stderr


def wait_until(holds):
    until = time.monotonic() + 60
    while not (value := holds()):
        assert time.monotonic() < until
        time.sleep(0.01)
    return value


@needs_duckdb
def test_one_table_has_plain_names(tmp_path):
    path = database(
        tmp_path / "t.duckdb",
        "CREATE TABLE t AS SELECT 'n' || i AS name, CAST(i % 7 AS TINYINT) AS label, i / 2 AS score, "
        "CAST('x' AS BLOB) AS picture, DATE '2026-01-01' AS day FROM range(300000) r(i)",
    )
    reading = read_well(path, limit=ROOM)
    assert reading.reader == "duckdb"
    assert list(reading.columns) == ["label", "score"]
    assert reading.columns["label"].values == [i % 7 for i in range(300000)]
    assert reading.columns["label"].rows == list(range(300000))
    assert reading.columns["score"].dtype == "float64"
    assert reading.skipped == {"name": "text", "picture": "binary", "day": "times"}


@needs_duckdb
def test_types(tmp_path):
    path = database(
        tmp_path / "t.duckdb",
        "CREATE TABLE t (h HUGEINT, u UBIGINT, d DECIMAL(9,2), ids INTEGER[], pair DOUBLE[2], "
        "box STRUCT(x INTEGER, name VARCHAR), yes BOOLEAN, e ENUM('a','b'), m MAP(VARCHAR, INTEGER))",
        "INSERT INTO t VALUES (3, 18446744073709551615, 1.25, [7, 8], [0.5, 1], {'x': 4, 'name': 'n'}, true, "
        "'a', MAP {'k': 1}), (170141183460469231731687303715884105727, 2, -3, [], [2, 'inf'::DOUBLE], "
        "{'x': 5, 'name': 'n'}, false, 'b', NULL), (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
    )
    reading = read_well(path, limit=ROOM)
    values = {name: column.values for name, column in reading.columns.items()}
    largest = 2**63 - 1
    assert values["h"] == [3, largest] and values["u"] == [largest, 2] and values["d"] == [1.25, -3]
    assert values["ids"] == [7, 8] and reading.columns["ids"].rows == [0, 0]
    assert values["box.x"] == [4, 5] and values["yes"] == [1, 0]
    assert reading.columns["h"].malformed == [(2, "")]
    assert values["pair"][:3] == [0.5, 1, 2] and reading.columns["pair"].rows == [0, 0, 1, 1]
    assert {"e", "m"} <= set(reading.skipped)


@needs_duckdb
def test_several_tables_schemas_and_views(tmp_path):
    path = database(
        tmp_path / "t.db",
        "CREATE TABLE train AS SELECT 1 AS label",
        "CREATE SCHEMA other",
        'CREATE TABLE other."a ""b""; DROP TABLE x" AS SELECT 2 AS "my ""label"""',
        "CREATE VIEW seen AS SELECT error('a view was evaluated') AS label",
    )
    reading = read_well(path, limit=ROOM)
    assert {name: column.values for name, column in reading.columns.items()} == {
        "train.label": [1],
        'other.a "b"; DROP TABLE x.my "label"': [2],
    }
    assert reading.skipped == {"seen": "a view, which is not evaluated"}


@needs_duckdb
def test_names_with_line_breaks_are_no_statements(tmp_path):
    victim = tmp_path / "victim"
    command = f"x\n.shell touch {victim}\n"
    path = database(
        tmp_path / "t.db",
        f'CREATE TABLE "{command}" AS SELECT 1 AS label',
        f'CREATE TABLE fine AS SELECT 2 AS label, 3 AS "{command}"',
    )
    reading = Reading(2, [], error_of(path))
    assert "its name has control characters" in reading.error
    assert not victim.exists()


@needs_duckdb
def test_macros_and_settings_of_the_database_are_not_used(tmp_path):
    path = database(
        tmp_path / "t.db",
        "CREATE TABLE t AS SELECT CAST(7 AS HUGEINT) AS label",
        "CREATE MACRO duckdb_columns() AS TABLE SELECT 1 AS nothing",
        "CREATE MACRO hex(x) AS 'ff'",
        "CREATE MACRO least(x, y) AS 0",
    )
    assert read_well(path, limit=ROOM).columns["label"].values == [7]


@needs_duckdb
def test_a_column_that_duckdb_computes(tmp_path):
    path = database(
        tmp_path / "t.db",
        "CREATE TABLE t (id INTEGER, twice INTEGER GENERATED ALWAYS AS (id * 2) VIRTUAL)",
        "INSERT INTO t VALUES (1), (2)",
    )
    assert read_well(path, limit=ROOM).columns["twice"].values == [2, 4]


@needs_duckdb
def test_neither_the_current_folder_nor_the_environment_is_executed(tmp_path):
    path = database(tmp_path / "t.db", "CREATE TABLE t AS SELECT 7 AS label")
    bad = "open('was_run', 'w').close()\nraise SystemExit(9)\n"
    (tmp_path / "duckdb.py").write_text(bad)
    (tmp_path / "sitecustomize.py").write_text(bad)
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / ".duckdbrc").write_text(".shell touch was_run\n")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "HOME": str(tmp_path / "home")}
    done = subprocess.run(
        [DUMP, path], capture_output=True, text=True, check=False, cwd=tmp_path, env=environment
    )
    assert done.returncode == 0 and '"values":[7]' in done.stdout.replace(" ", ""), done.stderr
    assert not (tmp_path / "was_run").exists()


@needs_duckdb
def test_nothing_is_left_in_the_temporary_folder_also_when_killed(tmp_path):
    path = database(tmp_path / "t.db", "CREATE TABLE t AS SELECT i % 5 AS label FROM range(20000000) r(i)")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    before = path.read_bytes()
    environment = {**os.environ, "TMPDIR": str(temporary)}
    started = subprocess.Popen([DUMP, path], stdout=subprocess.DEVNULL, env=environment)
    children = Path(f"/proc/{started.pid}/task/{started.pid}/children")
    below = wait_until(lambda: children.read_text(encoding="ascii").split())
    started.kill()
    started.wait()
    wait_until(lambda: not any(Path(f"/proc/{child}/fd/1").exists() for child in below))
    assert list(temporary.iterdir()) == []
    assert path.read_bytes() == before


@needs_duckdb
def test_a_database_that_another_process_writes_to_is_an_error(tmp_path):
    path = database(tmp_path / "t.db", "CREATE TABLE t AS SELECT 7 AS label")
    connection = duckdb.connect(str(path))
    try:
        assert "lock" in error_of(path)
    finally:
        connection.close()


@needs_duckdb
@pytest.mark.skipif(shutil.which("duckdb") is None, reason="the program duckdb is not installed")
def test_the_program_reads_as_the_package_does(tmp_path, monkeypatch):
    (tmp_path / ".duckdbrc").write_text(".shell touch was_run\n")
    path = tmp_path / "t.db"
    database(
        ":memory:",
        f"ATTACH '{path}' AS t (STORAGE_VERSION 'v1.2.0')",
        "CREATE TABLE t.train AS SELECT i % 5 AS label FROM range(1000) r(i)",
        'CREATE TABLE t."; .shell touch was_run" AS SELECT 7 AS label',
        "DETACH t",
    )
    monkeypatch.setenv("TRAPLINE_DUCKDB", shutil.which("duckdb"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    columns = read_well(path, limit=ROOM).columns
    assert columns["train.label"].values == [i % 5 for i in range(1000)]
    assert columns["; .shell touch was_run.label"].values == [7]
    assert not (tmp_path / "was_run").exists()


@needs_duckdb
def test_damaged_databases(tmp_path):
    whole = database(
        tmp_path / "t.db", "CREATE TABLE t AS SELECT i % 5 AS label, i AS n FROM range(100000) r(i)"
    ).read_bytes()
    chance = random.Random(18)
    for i in range(8):
        data = bytearray(whole[: chance.randrange(100, len(whole))] if i % 2 else whole)
        for _ in range(20):
            at = chance.randrange(20, len(data))
            data[at] = chance.randrange(256)
        path = tmp_path / f"damaged-{i}.db"
        path.write_bytes(data)
        done = subprocess.run([DUMP, path], capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode in (0, 2) and done.stderr.count("\n") == (done.returncode == 2), done.stderr
    assert "DuckDB " in error_of(tmp_path / "damaged-1.db")


@pytest.mark.parametrize("version", [b"\x40", b"\xe7\x03"])
def test_without_duckdb_the_error_says_what_to_do(tmp_path, version):
    path = tmp_path / "t.db"
    path.write_bytes((b"\1" * 8 + b"DUCK" + version).ljust(4096, b"\0"))
    error = error_of(path, TRAPLINE_DUCKDB="off")
    assert "DuckDB databases need DuckDB" in error
    assert "pip install duckdb" in error and "COPY t TO" in error


def program(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("echo 'IO Error: it is too new' >&2; exit 1", 'DuckDB says: "IO Error: it is too new"'),
        ("kill -SEGV $$", "DuckDB was ended by signal 11"),
        ("echo nonsense >/dev/fd/1", "DuckDB was led astray by it"),
        ("exit 127", "DuckDB databases need DuckDB"),
    ],
)
def test_whatever_the_program_does_is_one_line(tmp_path, text, words):
    path = tmp_path / "t.db"
    path.write_bytes(MAGIC)
    assert words in error_of(path, TRAPLINE_DUCKDB=program(tmp_path / "duckdb", text))
