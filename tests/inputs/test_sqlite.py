"""SQLite databases written by Python's sqlite3; odd, hostile and damaged ones."""

import random
import shutil
import sqlite3
import subprocess
import zlib

import pytest
from reading import BUILD, DUMP, read, read_well, write

pytestmark = pytest.mark.skipif(
    not (BUILD / "lib" / "libtrapline_sqlite.so").exists(), reason="built without libsqlite3"
)


def database(path, *statements, rows=(), settings=()):
    """Runs the statements; ``rows``: (statement, rows) pairs."""
    connection = sqlite3.connect(path)
    for statement in (*settings, *statements):
        connection.execute(statement)
    for statement, values in rows:
        connection.executemany(statement, values)
    connection.commit()
    connection.close()
    return path


def test_one_table_has_plain_names(tmp_path):
    path = database(
        tmp_path / "t.db",
        "CREATE TABLE t (name TEXT, label INTEGER, score REAL, picture BLOB)",
        rows=[("INSERT INTO t VALUES (?,?,?,?)", [(f"n{i}", i % 7, i / 2, b"x") for i in range(3000)])],
    )
    reading = read_well(path)
    assert reading.reader == "sqlite"
    assert list(reading.columns) == ["label", "score"]
    assert reading.columns["label"].dtype == "int64" and reading.columns["score"].dtype == "float64"
    assert reading.columns["label"].values == [i % 7 for i in range(3000)]
    assert reading.columns["score"].values == [i / 2 for i in range(3000)]
    assert reading.columns["label"].rows == list(range(3000))
    assert reading.skipped == {"name": "text", "picture": "binary"}


def test_several_tables_and_what_is_no_table(tmp_path):
    path = database(
        tmp_path / "t.db",
        "CREATE TABLE train (id INTEGER PRIMARY KEY AUTOINCREMENT, label INTEGER)",
        'CREATE TABLE "odd ""na\'me" (label INTEGER, "a b" REAL)',
        "CREATE TABLE keyed (k TEXT PRIMARY KEY, v INTEGER) WITHOUT ROWID",
        "CREATE VIEW v AS SELECT label FROM train",
        "CREATE INDEX i ON train (label)",
        "INSERT INTO train (label) VALUES (5), (3), (4)",
        'INSERT INTO "odd ""na\'me" VALUES (1, 0.5)',
        "INSERT INTO keyed VALUES ('b', 2), ('a', 1)",
    )
    reading = read_well(path)
    columns = reading.columns
    # Not in the order of the index, which holds the column in full.
    assert columns["train.label"].values == [5, 3, 4]
    assert columns["train.id"].values == [1, 2, 3]
    assert columns["odd \"na'me.label"].values == [1] and columns["odd \"na'me.a b"].values == [0.5]
    assert columns["keyed.v"].values == [1, 2]
    assert reading.skipped == {"keyed.k": "text", "v": "a view, which is not evaluated"}
    assert len(columns) == 5


def test_values_of_every_kind_in_one_column(tmp_path):
    values = [1, None, "2", "cat", 2.5, b"\3\0\0\0\0\0\0\0", "", " 7 ", 9223372036854775807, "9" * 20, "nan"]
    path = database(
        tmp_path / "t.db",
        "CREATE TABLE t (v, w INTEGER)",
        rows=[("INSERT INTO t VALUES (?,?)", [(value, i) for i, value in enumerate(values)])],
    )
    column = read_well(path).columns["v"]
    assert column.values == [1, 2, 2.5, 7, float(2**63 - 1), 1e20]
    assert column.rows == [0, 2, 4, 7, 8, 9]
    assert column.malformed == [(1, ""), (3, "cat"), (5, "x'0300000000000000'"), (6, ""), (10, "nan")]


def test_deleted_rows_do_not_count(tmp_path):
    path = database(
        tmp_path / "t.db",
        "CREATE TABLE t (label INTEGER)",
        "INSERT INTO t VALUES (0), (1), (2), (3)",
        "DELETE FROM t WHERE label < 2",
    )
    column = read_well(path).columns["label"]
    assert (column.values, column.rows) == ([2, 3], [0, 1])


def test_only_what_is_wanted(tmp_path):
    path = database(tmp_path / "t.db", "CREATE TABLE t (a INTEGER, b INTEGER)", "INSERT INTO t VALUES (1, 2)")
    columns = read_well(path, "b").columns
    assert columns["a"].values == [] and columns["b"].values == [2]


@pytest.mark.parametrize("encoding", ["UTF-8", "UTF-16le", "UTF-16be"])
@pytest.mark.parametrize("page", [512, 4096, 65536])
def test_encodings_and_page_sizes(tmp_path, encoding, page):
    path = database(
        tmp_path / "t.db",
        'CREATE TABLE t ("größe" INTEGER, n TEXT)',
        "INSERT INTO t VALUES (1, '4'), (2, '5')",
        settings=[f"PRAGMA page_size={page}", f"PRAGMA encoding='{encoding}'"],
    )
    columns = read_well(path).columns
    assert columns["größe"].values == [1, 2] and columns["n"].values == [4, 5]


def test_computed_columns_and_virtual_tables_are_not_evaluated(tmp_path):
    path = database(
        tmp_path / "t.db",
        "CREATE TABLE t (a INTEGER, b INTEGER AS (a * 2), c INTEGER AS (a * 3) STORED)",
        "CREATE VIRTUAL TABLE words USING fts5(text)",
        "INSERT INTO t (a) VALUES (4)",
        "INSERT INTO words VALUES ('one two')",
    )
    reading = read_well(path)
    assert {name: column.values for name, column in reading.columns.items()} == {"a": [4], "c": [12]}
    assert reading.skipped == {
        "b": "computed, not stored",
        "words": "a virtual table, which is not evaluated",
    }


def test_what_was_committed_to_the_log_is_read(tmp_path):
    writer = sqlite3.connect(tmp_path / "t.db")
    writer.execute("PRAGMA journal_mode=WAL")
    writer.execute("CREATE TABLE t (label INTEGER)")
    writer.commit()
    writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    writer.executemany("INSERT INTO t VALUES (?)", [(i,) for i in range(2000)])
    writer.commit()
    assert (tmp_path / "t.db-wal").stat().st_size > 0
    before = sorted((file.name, zlib.crc32(file.read_bytes())) for file in tmp_path.iterdir())
    assert read_well(tmp_path / "t.db").columns["label"].values == list(range(2000))
    assert sorted((file.name, zlib.crc32(file.read_bytes())) for file in tmp_path.iterdir()) == before
    writer.execute("INSERT INTO t VALUES (7)")  # not committed
    assert read_well(tmp_path / "t.db").columns["label"].values == list(range(2000))
    writer.close()
    assert not (tmp_path / "t.db-wal").exists()
    assert len(read_well(tmp_path / "t.db").columns["label"].values) == 2000  # the header still says WAL


def test_a_database_in_a_folder_that_nobody_may_write_to(tmp_path):
    folder = tmp_path / "sealed"
    folder.mkdir()
    path = database(folder / "t.db", "CREATE TABLE t (a INTEGER)", "INSERT INTO t VALUES (1)")
    path.chmod(0o400)
    folder.chmod(0o500)
    assert read_well(path).columns["a"].values == [1]
    assert [file.name for file in folder.iterdir()] == ["t.db"]
    folder.chmod(0o700)


def test_an_unfinished_change_is_said(tmp_path):
    writer = sqlite3.connect(tmp_path / "t.db", isolation_level=None)
    writer.execute("PRAGMA cache_size=1")
    writer.execute("CREATE TABLE t (label INTEGER, filler TEXT)")
    writer.execute("BEGIN")
    writer.executemany("INSERT INTO t VALUES (?, ?)", [(i, "x" * 500) for i in range(2000)])
    # As a copy that was made meanwhile, and as a program that died leaves it.
    shutil.copy(tmp_path / "t.db", tmp_path / "u.db")
    shutil.copy(tmp_path / "t.db-journal", tmp_path / "u.db-journal")
    writer.execute("COMMIT")
    writer.close()
    error = read(tmp_path / "u.db").error
    assert (
        f"cannot read {tmp_path / 'u.db'}: a change to it is not finished (u.db-journal lies beside it)"
        in error
    )
    # A journal that was left behind empty, or overwritten, is none.
    write(tmp_path / "t.db-journal", bytes(512))
    assert len(read_well(tmp_path / "t.db").columns["label"].values) == 2000


def test_a_locked_database_is_read(tmp_path):
    path = database(tmp_path / "t.db", "CREATE TABLE t (a INTEGER)", "INSERT INTO t VALUES (1)")
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    assert read_well(path).columns["a"].values == [1]
    holder.close()


def test_a_packed_database(tmp_path):
    import gzip

    path = database(tmp_path / "t.sqlite", "CREATE TABLE t (a INTEGER)", "INSERT INTO t VALUES (8)")
    packed = write(tmp_path / "u.sqlite.gz", gzip.compress(path.read_bytes()))
    assert read_well(packed).columns["a"].values == [8]


def test_no_tables_and_no_rows(tmp_path):
    path = database(tmp_path / "t.db", "CREATE TABLE t (a INTEGER, b TEXT)")
    reading = read_well(path)
    assert list(reading.columns) == ["a"] and reading.columns["a"].values == []
    path = database(tmp_path / "u.db", "CREATE TABLE t (a)", "DROP TABLE t")
    assert read_well(path).columns == {}


@pytest.mark.parametrize(
    "name, data, why",
    [
        ("t.sqlite", b"", "the file is empty: no database was ever written to it"),
        ("t.sqlite3", bytes(range(256)) * 16, "it is encrypted, or damaged"),
        ("t.db", b"SQLite format 3\0", "the database ends within a page (at byte 16)"),
        ("t.db", b"SQLite format 3\0" + bytes(984), "its pages cannot be of 0 bytes"),
    ],
)
def test_what_is_no_database(tmp_path, name, data, why):
    path = write(tmp_path / name, data)
    reading = read(path)
    assert reading.code == 2
    assert f"cannot read {path}: " in reading.error and why in reading.error


def large(tmp_path):
    return database(
        tmp_path / "t.db",
        "CREATE TABLE t (label INTEGER, text TEXT, score REAL)",
        "CREATE TABLE u (id INTEGER PRIMARY KEY, label INTEGER)",
        rows=[
            ("INSERT INTO t VALUES (?,?,?)", [(i, "x" * (i % 900), i / 3) for i in range(300)]),
            ("INSERT INTO u VALUES (?,?)", [(i, i % 10) for i in range(500)]),
        ],
        settings=["PRAGMA page_size=512"],
    )


def test_a_damaged_table_leaves_the_others(tmp_path):
    path = large(tmp_path)
    connection = sqlite3.connect(path)
    root = dict(connection.execute("SELECT name, rootpage FROM sqlite_master"))["t"]
    connection.close()
    data = bytearray(path.read_bytes())
    data[(root - 1) * 512 : root * 512] = b"\xff" * 512
    reading = read(write(tmp_path / "u.db", bytes(data)))
    assert 'the table "t": SQLite says: "database disk image is malformed"' in reading.error
    assert "sqlite3 FILE .recover" in reading.error
    assert reading.columns["u.label"].values == [i % 10 for i in range(500)]


def test_pages_that_lead_in_a_circle_end(tmp_path):
    # Every pointer of the table's root leads to one and the same full page, level by level.
    path = large(tmp_path)
    connection = sqlite3.connect(path)
    root = dict(connection.execute("SELECT name, rootpage FROM sqlite_master"))["t"]
    connection.close()
    data = bytearray(path.read_bytes())
    at = (root - 1) * 512
    assert data[at] == 5  # an interior page of a table
    data[at + 8 : at + 12] = root.to_bytes(4, "big")
    for cell in range(int.from_bytes(data[at + 3 : at + 5], "big")):
        place = at + int.from_bytes(data[at + 12 + 2 * cell : at + 14 + 2 * cell], "big")
        data[place : place + 4] = root.to_bytes(4, "big")
    assert read(write(tmp_path / "u.db", bytes(data))).code == 2
    # The same leaf behind every pointer: rows again and again, without a circle.
    good = path.read_bytes()
    data = bytearray(good)
    leaf = data[at + 8 : at + 12]
    for cell in range(int.from_bytes(data[at + 3 : at + 5], "big")):
        place = at + int.from_bytes(data[at + 12 + 2 * cell : at + 14 + 2 * cell], "big")
        data[place : place + 4] = leaf
    read(write(tmp_path / "v.db", bytes(data)))


def test_truncated_anywhere(tmp_path):
    whole = large(tmp_path).read_bytes()
    for size in range(0, len(whole), len(whole) // 40 + 1):
        path = write(tmp_path / "cut.sqlite", whole[:size])
        assert f"cannot read {path}: " in read(path).error, size


def test_flipped_anywhere(tmp_path):
    whole = large(tmp_path).read_bytes()
    chance = random.Random(7)
    for _ in range(150):
        flipped = bytearray(whole)
        for _ in range(chance.choice([1, 1, 4, 32])):
            # Half of them in the header and the schema, where they do most.
            at = chance.randrange(1024 if chance.random() < 0.5 else len(whole))
            flipped[at] ^= 1 << chance.randrange(8)
        read(write(tmp_path / "flip.sqlite", bytes(flipped)))  # any answer, but no crash and no hang


def test_a_schema_that_calls_functions_runs_nothing(tmp_path):
    path = database(
        tmp_path / "t.db",
        "CREATE TABLE t (a INTEGER CHECK (length(hex(a)) > 0), b INTEGER DEFAULT (random()))",
        "CREATE TRIGGER r AFTER INSERT ON t BEGIN SELECT load_extension('x'); END",
        "CREATE VIEW w AS SELECT writefile('stolen', a) FROM t",
    )
    reading = read_well(path)
    assert list(reading.columns) == ["a", "b"]
    assert [file.name for file in tmp_path.iterdir()] == ["t.db"]


def test_without_the_plugin_it_says_what_to_do(tmp_path):
    # A copy of the program has no plugin beside it.
    path = database(tmp_path / "t.db", "CREATE TABLE t (a INTEGER)")
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "dump"
    program.write_bytes(DUMP.read_bytes())
    program.chmod(0o755)
    done = subprocess.run([program, path], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert (
        "SQLite databases need libsqlite3 (there is no libtrapline_sqlite.so): write its table as CSV"
        in done.stderr
    )
