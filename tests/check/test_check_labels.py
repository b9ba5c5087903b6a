"""`trapline check labels`: files written by their own tools, findings by value (requirement C1)."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from checking import TRAPLINE, only_finding, report, run

np = pytest.importorskip("numpy")


@pytest.fixture
def labels() -> "np.ndarray":
    return np.random.default_rng(0).integers(0, 10, 5000)


def test_clean_labels(tmp_path: Path, labels: "np.ndarray") -> None:
    labels[7] = -100  # the default ignore_index
    np.save(tmp_path / "labels.npy", labels)
    clean = report("labels", tmp_path / "labels.npy", "--classes", 10, exit_code=0)
    assert clean["verdict"] == "clean"
    assert clean["notes"] == ["5000 values in 1 column of 1 file checked as labels"]


def test_one_label_beyond(tmp_path: Path, labels: "np.ndarray") -> None:
    labels[1234] = 10
    path = tmp_path / "labels.npy"
    np.save(path, labels)
    finding = only_finding("labels", path, "--classes", 10)
    assert finding["code"] == "TL102"
    assert finding["element"] == {
        "index": [1234],
        "value": 10,
        "bad": 1,
        "total": 5000,
        "min": 0,
        "max": 10,
    }
    assert finding["valid"]["text"] == "[0, 10) or -100"
    assert finding["values"] == [{"value": 10, "count": 1}]
    assert finding["classes"] == {"seen": 11, "expected": 10}
    assert finding["evidence"] == [{"source": str(path), "text": "labels[1234] is 10"}]
    assert (
        finding["summary"]
        == f"{path}: labels[1234] is 10, but 10 classes are expected: valid labels are [0, 10)"
    )


@pytest.mark.parametrize(
    ("change", "code", "hint"),
    [
        (
            lambda x: x + 1,
            "TL101",
            "labels look 1-based: they run from 1 to 10 in the whole data set (5000 labels)",
        ),
        (
            lambda x: np.where(x == 3, -1, x),
            "TL101",
            "-1 looks like an ignore label, but ignore_index is -100",
        ),
        (
            lambda x: np.where(x == 3, 255, x),
            "TL101",
            "255 looks like an ignore label, but ignore_index is -100",
        ),
        (lambda x: np.where(x == 3, 2**50, x), "TL101", "which is not a plausible label"),
        (
            lambda x: np.array([0, 1, 2, 5, 6, 11, 12, 13, 14, 15])[x],
            "TL101",
            "the classes have a gap: only 10 different labels occur, and 3 never",
        ),
    ],
    ids=["one-based", "minus-one", "255", "garbage", "gap"],
)
def test_hints(tmp_path: Path, labels: "np.ndarray", change, code: str, hint: str) -> None:
    np.save(tmp_path / "y.npy", change(labels))
    finding = only_finding("labels", tmp_path / "y.npy", "--classes", 10)
    assert finding["code"] == code
    assert hint in finding["summary"]


def test_ignore_index_is_allowed_once_it_is_named(tmp_path: Path, labels: "np.ndarray") -> None:
    np.save(tmp_path / "y.npy", np.where(labels == 3, 255, labels))
    report("labels", tmp_path / "y.npy", "--classes", 10, "--ignore-index", 255, exit_code=0)


def test_csv_names_the_line_and_the_column(tmp_path: Path) -> None:
    path = tmp_path / "train.csv"
    path.write_text("image,label\n" + "".join(f"{i}.png,{i % 5}\n" for i in range(40)) + "x.png,9\n")
    finding = only_finding("labels", path, "--classes", 5)
    assert finding["argument"] == "label"
    assert finding["element"]["index"] == [40]
    assert finding["evidence"] == [{"source": str(path), "line": 42, "text": "label[40] is 9"}]
    text = run("labels", path, "--classes", 5).stdout
    assert f"--> {path}:42\n" in text
    assert "= classes: 6 different labels, 5 expected" in text


def test_text_where_numbers_belong(tmp_path: Path) -> None:
    path = tmp_path / "train.csv"
    path.write_text("image,label\na.png,0\nb.png,cat\nc.png,dog\n")
    finding = only_finding("labels", path, "--classes", 5)
    assert finding["code"] == "TL203"
    assert finding["summary"] == f"{path}: label[1] is 'cat', which is not an integer: 2 of 3 values"


def test_missing_labels_that_became_nan(tmp_path: Path) -> None:
    np.save(tmp_path / "y.npy", np.array([0.0, 1.0, np.nan, 2.0]))
    finding = only_finding("labels", tmp_path / "y.npy", "--classes", 3)
    assert finding["code"] == "TL108"
    assert finding["element"]["index"] == [2]
    assert finding["element"]["value"] == "nan"


def test_jsonl_and_the_column_that_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "train.jsonl"
    rows = [{"label": 0, "fine": i % 20} for i in range(30)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    report("labels", path, "--classes", 20, "--column", "fine", exit_code=0)
    finding = only_finding("labels", path, "--classes", 19, "--column", "fine")
    assert finding["argument"] == "fine"
    assert finding["evidence"][0]["line"] == 20


def test_columns_that_are_not_there_or_not_clear(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,2\n")
    missing = run("labels", path, "--classes", 5, "--column", "c")
    assert missing.returncode == 2
    assert (
        f"trapline: cannot check {path}: it has no column 'c', but a, b: name another one with --column\n"
        == missing.stderr
    )
    unclear = run("labels", path, "--classes", 5)
    assert unclear.returncode == 2
    assert "which column holds the labels is not clear: a, b: name it with --column" in unclear.stderr


def test_hint_goes_over_all_shards(tmp_path: Path, labels: "np.ndarray") -> None:
    """The first shard alone would not say that labels are counted from 1."""
    for i, part in enumerate(np.array_split(np.sort(labels) + 1, 5)):
        np.save(tmp_path / f"part{i}.npy", part)
    finding = only_finding("labels", tmp_path, "--classes", 10)
    assert "part4.npy" in finding["summary"]
    assert "they run from 1 to 10 in the whole data set (5000 labels)" in finding["summary"]


def test_a_damaged_file_does_not_stop_the_others(tmp_path: Path, labels: "np.ndarray") -> None:
    np.save(tmp_path / "a.npy", labels)
    np.save(tmp_path / "c.npy", labels + 5)
    whole = (tmp_path / "a.npy").read_bytes()
    (tmp_path / "b.npy").write_bytes(whole[:1000])
    done = run("labels", str(tmp_path / "*.npy"), "--classes", 10, "--format", "json")
    assert done.returncode == 2
    assert "b.npy" in done.stderr and "ends too early" in done.stderr
    found = json.loads(done.stdout)
    assert ["c.npy" in finding["summary"] for finding in found["findings"]] == [True]


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "int64", "uint64", "float64"])
@pytest.mark.parametrize("threads", [1, 3])
def test_every_dtype_and_thread_count_says_the_same(tmp_path: Path, dtype: str, threads: int) -> None:
    labels = (np.arange(3_000_000) % 100).astype(dtype)
    labels[[1_000_001, 2_500_000]] = 120
    np.save(tmp_path / "y.npy", labels.reshape(3, 1_000_000))
    finding = only_finding("labels", tmp_path / "y.npy", "--classes", 100, "--threads", threads)
    assert finding["element"]["index"] == [1, 1]
    assert finding["element"]["bad"] == 2
    assert finding["element"]["total"] == 3_000_000
    assert finding["values"] == [{"value": 120, "count": 2}]


def test_fortran_order(tmp_path: Path) -> None:
    labels = np.zeros((50, 40), dtype=np.int64)
    labels[3, 7] = 99
    np.save(tmp_path / "y.npy", np.asfortranarray(labels))
    assert only_finding("labels", tmp_path / "y.npy", "--classes", 9)["element"]["index"] == [3, 7]


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ([], "trapline: check what: one of labels, ids, model, dataset, finite"),
        (["lables"], "trapline: `trapline check` has no 'lables': did you mean `trapline check labels`?"),
        (["labels", "x.npy"], "trapline: the number of classes is unknown: pass --classes N or --model DIR"),
        (["labels", "--classes", "3"], "trapline: nothing to check: name a file or a folder"),
        (["labels", "none.npy", "--classes", "3"], "none.npy"),
        (
            ["labels", "*.none", "--classes", "3"],
            "trapline: cannot check *.none: no file matches it: check the pattern",
        ),
        (["ids", "x.npy"], "trapline: the number of rows of the embedding table is unknown: pass --rows N"),
    ],
)
def test_usage(words: list, error: str, tmp_path: Path) -> None:
    done = run(*words, cwd=tmp_path)
    assert done.returncode == 2
    assert error in done.stderr


def test_stopped_by_ctrl_c(tmp_path: Path) -> None:
    """What was seen until then is reported."""
    bad = np.full(1000, 7)
    np.save(tmp_path / "a.npy", bad)
    os.mkfifo(tmp_path / "never")
    big = tmp_path / "b.jsonl"
    with big.open("w") as out:
        for _ in range(200):
            out.write('{"label": 1}\n' * 20_000)
    words = [TRAPLINE, "check", "labels", str(tmp_path / "a.npy"), str(big), "--classes", "5"]
    process = subprocess.Popen(
        [*words, "--threads", "1", "--format", "json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    found = json.loads(out)
    if "stopped by Ctrl-C: what was seen until then" in found["notes"]:
        assert process.returncode in (1, 3)
    else:  # it had ended before the signal came
        assert process.returncode == 1
