"""`trapline check` on SQLite databases: the finding has the file, the column, the row and the value."""

import sqlite3

import pytest
from checking import BUILD, only_finding, report, run

pytestmark = pytest.mark.skipif(
    not (BUILD / "lib" / "libtrapline_sqlite.so").exists(), reason="built without libsqlite3"
)


@pytest.fixture
def animals(tmp_path):
    connection = sqlite3.connect(tmp_path / "animals.db")
    connection.execute("CREATE TABLE train (picture TEXT, label INTEGER, weight REAL)")
    rows = [(f"{i}.png", 12 if i == 7 else i % 10, i / 2) for i in range(1000)]
    connection.executemany("INSERT INTO train VALUES (?,?,?)", rows)
    connection.commit()
    yield connection, tmp_path / "animals.db"
    connection.close()


def test_a_label_out_of_range(animals):
    _, path = animals
    report("labels", path, "--classes", 13, exit_code=0)
    finding = only_finding("labels", path, "--classes", 10)
    assert finding["code"] == "TL101"
    assert finding["argument"] == "label"
    assert finding["element"]["index"] == [7] and finding["element"]["value"] == 12
    assert (finding["valid"]["min"], finding["valid"]["max"]) == (0, 9)
    assert finding["element"]["bad"] == 1 and finding["element"]["total"] == 1000
    assert finding["evidence"][0]["source"] == str(path)


def test_of_two_tables_the_column_is_named_with_its_table(animals):
    connection, path = animals
    connection.execute("CREATE TABLE val (label INTEGER)")
    connection.executemany("INSERT INTO val VALUES (?)", [(i % 10,) for i in range(50)])
    connection.commit()
    finding = only_finding("dataset", path, "--classes", 10)
    assert finding["argument"] == "train.label"
    assert finding["element"]["index"] == [7] and finding["element"]["value"] == 12
    report("labels", path, "--column", "val.label", "--classes", 10, exit_code=0)


def test_missing_and_mixed_values(animals):
    connection, path = animals
    connection.execute("UPDATE train SET label = NULL WHERE rowid = 4")
    connection.execute("UPDATE train SET label = 'cat' WHERE rowid = 6")
    connection.execute("UPDATE train SET label = 3 WHERE rowid = 8")
    connection.commit()
    found = report("labels", path, "--classes", 10, exit_code=1)["findings"]
    assert [(one["code"], one["element"]["index"]) for one in found] == [("TL108", [3]), ("TL203", [5])]


def test_ids(animals):
    connection, path = animals
    connection.execute("DROP TABLE train")
    connection.execute("CREATE TABLE tokens (token_id INTEGER)")
    connection.executemany("INSERT INTO tokens VALUES (?)", [(i % 50,) for i in range(200)] + [(50,)])
    connection.commit()
    finding = only_finding("ids", path, "--rows", 50)
    assert (finding["code"], finding["element"]["index"], finding["element"]["value"]) == ("TL103", [200], 50)
    report("ids", path, "--rows", 51, exit_code=0)


def test_infinity_is_found(animals):
    connection, path = animals
    connection.execute("UPDATE train SET weight = 9e999 WHERE rowid = 11")
    connection.commit()
    finding = only_finding("finite", path)
    assert (finding["code"], finding["argument"], finding["element"]["index"]) == ("TL109", "weight", [10])


def test_damage_is_one_line_and_no_pass(animals, tmp_path):
    _, path = animals
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 4096 // 2 * 4096])
    done = run("dataset", path, "--classes", 13)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert (
        f'trapline: cannot read {path}: SQLite says: "database disk image is malformed": mend it'
        in done.stderr
    )


def test_in_a_folder(animals):
    _, path = animals
    finding = only_finding("dataset", path.parent, "--classes", 10)
    assert (finding["element"]["index"], finding["evidence"][0]["source"]) == ([7], str(path))
