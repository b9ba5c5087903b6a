"""Files of any size in little memory, and files that somebody changes while they are checked."""

import os
import subprocess
import sys
import time

import numpy as np
import pytest
from checking import TRAPLINE, report, run

MOST = 256 << 10  # KiB resident


def sparse_npy(path, gib):
    """An array of zeros that takes no room."""
    array = np.lib.format.open_memmap(path, mode="w+", dtype=np.int64, shape=(gib << 27,))
    del array
    return path


# A process's peak counts what its parent held when it was forked: the parent is a small one.
MEASURE = """
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode
print(code, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def peak(*words):
    """Exit code and the largest resident set in KiB."""
    line = [sys.executable, "-S", "-c", MEASURE, TRAPLINE, "check", *map(str, words)]
    code, kib = subprocess.run(line, stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    return int(code), int(kib)


def test_an_array_of_any_size_takes_little_memory(tmp_path):
    code, kib = peak("labels", sparse_npy(tmp_path / "labels.npy", 1), "--classes", 10)
    assert code == 0
    assert kib < MOST


@pytest.mark.parametrize(
    ("name", "head", "line"), [("t.csv", "x,label\n", "1.25,3\n"), ("t.jsonl", "", '{"label": 3}\n')]
)
def test_text_of_any_size_takes_little_memory(tmp_path, name, head, line):
    with open(tmp_path / name, "w") as file:
        file.write(head)
        block = line * (1 << 16)
        for _ in range((320 << 20) // len(block)):
            file.write(block)
    code, kib = peak("labels", tmp_path / name, "--classes", 10)
    assert code == 0
    assert kib < MOST


def test_threads_make_no_difference(tmp_path):
    rows = 200_000
    labels = np.random.default_rng(1).integers(0, 10, rows)
    labels[[123_456, 150_000]] = 10
    (tmp_path / "t.csv").write_text("x,label\n" + "".join(f"some text,{label}\n" for label in labels))
    reports = [
        report("labels", tmp_path / "t.csv", "--classes", 10, "--threads", threads, exit_code=1)["findings"]
        for threads in (1, 4)
    ]
    assert reports[0][0]["element"]["index"] == [123_456]
    assert reports[0] == reports[1]


# 8 GiB take a second or more to scan.
def test_a_file_that_shrinks_is_an_error(tmp_path):
    path = sparse_npy(tmp_path / "labels.npy", 8)
    process = subprocess.Popen(
        [TRAPLINE, "check", "labels", str(path), "--classes", "10", "--threads", "1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    time.sleep(0.1)
    os.truncate(path, 1 << 20)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 2, stderr
    assert stderr == (
        f"trapline: cannot read {path}: it was changed while it was read, so nothing said of it counts: "
        "check it again when nobody writes to it\n"
    )


def test_an_unknown_format_names_the_page_that_lists_them(tmp_path):
    (tmp_path / "t.xyz").write_text("nothing that is known")
    done = run("labels", tmp_path / "t.xyz", "--classes", 2)
    assert done.returncode == 2
    assert done.stderr.endswith("its format is not known: docs/formats.md lists those that are\n")
    assert "docs/formats.md" in run("labels", "--help").stdout
