"""refused.jsonl: what one process refuses, the others refuse."""

from __future__ import annotations

import errno
import json
import os
import stat
import threading
from pathlib import Path

import pytest
from trapline._supervise import refused

PRINT = "ab" * 16


def record(fingerprint: str = PRINT, **changed: object) -> dict:
    return {"fingerprint": fingerprint, "request": "r", "code": "TL103", "summary": "s", **changed}


def append(folder: Path, *lines: object) -> None:
    with (folder / "refused.jsonl").open("ab") as file:
        for line in lines:
            file.write(line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n")


def test_what_is_remembered_is_in_the_file(folder):
    refused.remember(PRINT, "TL103", "the words", "job-1")
    assert [json.loads(line) for line in (folder / "refused.jsonl").read_text().splitlines()] == [
        {"fingerprint": PRINT, "request": "job-1", "code": "TL103", "summary": "the words"}
    ]
    assert stat.S_IMODE((folder / "refused.jsonl").stat().st_mode) == 0o600
    refused.remember(PRINT, "TL103", "again", "job-2")
    assert len((folder / "refused.jsonl").read_text().splitlines()) == 1


def test_without_a_supervisor_this_process_remembers(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refused.remember(PRINT, "TL103", "the words", "job-1")
    assert refused.find(PRINT).summary == "the words"
    assert list(tmp_path.iterdir()) == []


def test_what_others_append_is_noticed(folder):
    assert refused.find(PRINT) is None
    append(folder, record(summary="by the supervisor"))
    assert refused.find(PRINT).summary == "by the supervisor"
    append(folder, record("cd" * 16))
    assert refused.find("cd" * 16).code == "TL103"


def test_a_line_is_read_when_it_is_whole(folder):
    whole = json.dumps(record()).encode() + b"\n"
    append(folder, whole[:30])
    assert refused.find(PRINT) is None
    append(folder, whole[30:])
    assert refused.find(PRINT) is not None


@pytest.mark.parametrize(
    "line",
    [
        b"\n",
        b"not json\n",
        b"\xff\xfe\0\n",
        b"[" * 100_000 + b"\n",
        b"null\n",
        b"[1]\n",
        b'"text"\n',
        json.dumps({"fingerprint": PRINT}).encode() + b"\n",
        json.dumps(record(summary=7)).encode() + b"\n",
        json.dumps(record(fingerprint=["ab"])).encode() + b"\n",
        json.dumps(record(fingerprint="../../etc")).encode() + b"\n",
        json.dumps(record(summary="x" * 5000)).encode() + b"\n",
    ],
)
def test_lines_that_cannot_be_read_are_skipped(folder, line):
    append(folder, line, record("cd" * 16))
    assert refused.find("cd" * 16) is not None
    assert list(refused._known.refusals) == ["cd" * 16]


def test_a_line_that_was_cut_short_does_not_swallow_the_next(folder):
    append(folder, b'{"fingerprint": "ab')
    refused.remember(PRINT, "TL103", "words", "r")
    lines = (folder / "refused.jsonl").read_bytes().split(b"\n")
    assert json.loads(lines[1])["fingerprint"] == PRINT


@pytest.mark.parametrize("summary", ["x" * 1_000_000, "\U0001f600" * 5000, '"\n' * 5000, "ü" * 3000])
def test_a_line_never_is_longer_than_4096_bytes(folder, summary):
    refused.remember(PRINT, "TL103", summary, "\U0001f600" * 128)
    content = (folder / "refused.jsonl").read_bytes()
    assert 2000 < len(content) <= 4096
    assert content.count(b"\n") == 1
    assert json.loads(content)["summary"].endswith("...")


def test_a_file_that_was_replaced_is_read_anew(folder, tmp_path):
    append(folder, record())
    assert refused.find(PRINT) is not None
    (tmp_path / "new").write_text(json.dumps(record("cd" * 16)) + "\n")
    (tmp_path / "new").rename(folder / "refused.jsonl")
    assert refused.find("cd" * 16) is not None


def test_an_unchanged_file_is_not_opened_again(folder, monkeypatch):
    append(folder, record())
    assert refused.find(PRINT) is not None
    monkeypatch.setattr(os, "open", lambda *_: pytest.fail("opened"))
    assert refused.find(PRINT) is not None


def test_a_full_disk_leaves_it_to_this_process(folder, monkeypatch):
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    refused.remember(PRINT, "TL103", "words", "r")
    assert refused.find(PRINT).summary == "words"


def test_a_link_is_not_followed(folder, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("untouched")
    (folder / "refused.jsonl").symlink_to(elsewhere)
    refused.remember(PRINT, "TL103", "words", "r")
    assert elsewhere.read_text() == "untouched"
    assert refused.find(PRINT) is not None


def test_the_file_and_the_memory_stay_bounded(folder, monkeypatch):
    monkeypatch.setattr(refused, "_MAX_KEPT", 5)
    monkeypatch.setattr(refused, "_MAX_FILE", 600)
    for number in range(20):
        refused.remember(f"{number:032x}", "TL103", "words", "r")
    assert (folder / "refused.jsonl").stat().st_size <= 600
    assert list(refused._known.refusals) == [f"{number:032x}" for number in range(15, 20)]


def test_threads_that_append_at_once_lose_nothing(folder):
    def write(first: int) -> None:
        for number in range(first, first + 50):
            refused.remember(f"{number:032x}", "TL103", "w" * 3000, "r")

    threads = [threading.Thread(target=write, args=(first,)) for first in range(0, 200, 50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = filter(None, (folder / "refused.jsonl").read_text().splitlines())
    assert sorted(json.loads(line)["fingerprint"] for line in lines) == [f"{n:032x}" for n in range(200)]
