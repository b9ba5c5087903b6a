"""Never clean by omission, and no report lost: an old one stays until there is a new one."""

import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest
from test_explain import ASSERTION, CLEAN_LOG, TRAPLINE, explain, verdict


def job(folder: Path) -> Path:
    (folder / "job").mkdir()
    (folder / "job" / "rank0.log").write_text(CLEAN_LOG)
    return folder / "job"


def deep(folder: Path) -> None:
    inner = folder.joinpath(*["d"] * 17)
    inner.mkdir(parents=True)
    (inner / "r.log").write_text(ASSERTION)


def archive(folder: Path) -> None:
    with tarfile.open(folder / "logs.tar", "w") as logs:
        logs.add(folder / "rank0.log", "rank0.log")


PASSED_OVER = {
    "depth": (deep, "it lies deeper than folders are read"),
    "bytes": (lambda folder: (folder / "r.log").write_bytes(bytes(range(1, 32)) * 99), "not a text"),
    "ebcdic": (
        lambda folder: (folder / "r.log").write_bytes((ASSERTION * 9).encode("cp037")),
        "this is a text in EBCDIC",
    ),
    "tar": (archive, "this is a tar archive"),
    "pipe": (lambda folder: os.mkfifo(folder / "r.log"), "it is a pipe"),
    "finding": (lambda folder: (folder / "finding-h-1-0.json").write_text('{"x'), "truncated or not JSON"),
    "lost": (lambda folder: (folder / "lost-h-1.json").touch(), "process h-1: findings could not be written"),
    "lost, by the marker": (
        lambda folder: (folder / "guard-h-2.json").write_text('{"lost":1}'),
        "process h-2: findings could not be written",
    ),
    "died": (
        lambda folder: (folder / "ended-h-2.json").write_text(
            '{"over":true,"other":"RuntimeError: no (a.py:1)"}'
        ),
        "a process ended by RuntimeError: no (a.py:1): that is not a kind of fault that Trapline knows",
    ),
    "ring": (lambda folder: (folder / "up").symlink_to(".."), "the link leads to a folder around this one"),
}


@pytest.mark.parametrize("name", PASSED_OVER)
def test_what_is_passed_over_is_not_clean(name: str, tmp_path: Path) -> None:
    make, why = PASSED_OVER[name]
    make(job(tmp_path))
    report = verdict(tmp_path / "job")
    assert (report["verdict"], report["findings"]) == ("unknown", [])
    assert any(why in note for note in report["notes"]), report["notes"]
    assert explain(tmp_path / "job").returncode == 3


def test_a_linked_folder_is_read_and_rings_end(tmp_path: Path) -> None:
    folder = job(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "r.log").write_text(ASSERTION)
    (folder / "rank1").symlink_to("../elsewhere")
    (folder / "self").symlink_to(".")
    assert verdict(folder)["findings"][0]["code"] == "TL101"


def test_data_beside_logs_is_no_omission(tmp_path: Path) -> None:
    (job(tmp_path) / "loss.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    assert verdict(tmp_path / "job")["verdict"] == "clean"


def test_a_link_that_leads_nowhere_is_an_input_that_cannot_be_read(tmp_path: Path) -> None:
    (job(tmp_path) / "rank1.log").symlink_to("gone.log")
    done = explain(tmp_path / "job")
    assert done.returncode == 2 and b"rank1.log: No such file or directory" in done.stderr


@pytest.mark.parametrize("form", ["json", "jsonl", "sarif", "junit", "gitlab", "github", "html"])
def test_no_format_carries_what_drives_a_terminal(form: str, tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("\u009b31m \u202e \u2028 \u007f " + ASSERTION, encoding="utf-8")
    done = explain("--format", form, tmp_path / "a.log")
    unsafe = {0x7F, 0x202E, 0x2028, *range(0x80, 0xA0)} & {ord(c) for c in done.stdout.decode("utf-8")}
    assert done.returncode == 1 and not unsafe
    if form == "json":
        assert "\u009b31m \u202e" in json.dumps(json.loads(done.stdout), ensure_ascii=False)


def run(*words: object, **options: Any) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run([TRAPLINE, "run", *map(str, words)], capture_output=True, check=False, **options)


def test_an_old_report_stays_until_there_is_a_new_one(tmp_path: Path) -> None:
    old = tmp_path / "r.json"
    old.write_text("old")
    old.chmod(0o640)
    assert run("-o", old, "--", "nosuchprogram").returncode == 2
    assert old.read_text() == "old"
    assert run("-o", old, "--format", "json", "--", "true").returncode == 0
    assert json.loads(old.read_text())["command"] == "run" and old.stat().st_mode & 0o777 == 0o640
    assert sorted(tmp_path.iterdir()) == [old]
    assert run("-o", tmp_path / "new.json", "--", "nosuchprogram").returncode == 2
    assert sorted(tmp_path.iterdir()) == [old]


def test_a_limit_on_files_costs_no_report(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(CLEAN_LOG)
    old = tmp_path / "r.json"
    old.write_text("old")
    done = subprocess.run(
        [
            "bash",
            "-c",
            'ulimit -f 0; exec "$@"',
            "-",
            TRAPLINE,
            "run",
            "--format",
            "json",
            "-o",
            old,
            "--",
            "true",
        ],
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0 and old.read_text() == "old"
    assert b"File too large: the report follows here" in done.stderr and b'"command": "run"' in done.stderr


@pytest.mark.parametrize("how", ["-I", "TRAPLINE_OFF"])
def test_an_unguarded_run_that_ends_well_is_not_clean(how: str) -> None:
    flags = ["-I"] if how == "-I" else []
    environment = {**os.environ, "TRAPLINE_OFF": "1"} if how != "-I" else dict(os.environ)
    done = run("--format", "json", "--", sys.executable, *flags, "-c", "pass", env=environment)
    report = json.loads(done.stderr)
    assert (done.returncode, report["verdict"]) == (0, "unknown")
    assert report["notes"][0].startswith("nothing was guarded") and how in report["notes"][0]
