"""inflight-PID: which requests were in flight when a process died, however it died."""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import re
import signal
import stat
import threading
import time
from pathlib import Path

import pytest
import trapline
import trapline.asgi
import trapline.wsgi
from trapline._library import current
from trapline._supervise import inflight, lost, work

PRINT = "ab" * 16


def used(file: Path) -> list[str]:
    """The used slots, as the supervisor reads them."""
    content = file.read_bytes()
    assert len(content) == inflight.SLOT * inflight.SLOTS
    slots = [content[at : at + inflight.SLOT] for at in range(0, len(content), inflight.SLOT)]
    return [slot.rstrip(b"\0").decode() for slot in slots if slot[0]]


def own(folder: Path) -> Path:
    return folder / f"inflight-{os.getpid()}"


def test_a_slot_says_which_request_and_since_when(folder):
    before = time.time()
    slot = inflight.take(PRINT, "job 1")
    (text,) = used(own(folder))
    match = re.fullmatch(r"([0-9a-f]{32}) (\d+\.\d{6}) (.*)", text)
    assert match and match[1] == PRINT and match[3] == "job 1"
    assert before - 1e-6 <= float(match[2]) <= time.time()
    assert stat.S_IMODE(own(folder).stat().st_mode) == 0o600
    inflight.give_back(slot)
    assert used(own(folder)) == []


def test_a_shorter_text_leaves_nothing_of_the_one_before(folder):
    inflight.give_back(inflight.take(PRINT, "x" * 128))
    inflight.take(PRINT, "y")
    (text,) = used(own(folder))
    assert text.endswith(" y")


def test_a_long_name_is_cut_between_characters(folder):
    inflight.take(PRINT, "\U0001f600" * 128)
    inflight.take(PRINT, "ü" * 200)
    first, second = used(own(folder))
    assert first.endswith("\U0001f600") and 240 < len(first.encode()) <= inflight.SLOT
    assert second.endswith("ü")


def test_more_requests_than_slots_are_not_noted_and_do_no_harm(folder):
    slots = [inflight.take(PRINT, str(number)) for number in range(inflight.SLOTS + 3)]
    assert slots[-3:] == [-1, -1, -1]
    assert len(used(own(folder))) == inflight.SLOTS
    for slot in slots:
        inflight.give_back(slot)
    assert used(own(folder)) == []
    assert inflight.take(PRINT, "again") >= 0


def test_threads_that_are_first_at_once_share_one_file(folder):
    together = threading.Barrier(8)

    def first(number: int) -> None:
        together.wait(30)
        inflight.take(PRINT, f"{number}")

    threads = [threading.Thread(target=first, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(names(folder)) == [str(number) for number in range(8)]


def test_nothing_is_written_without_a_supervisor(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert inflight.take(PRINT, "job") == -1
    inflight.give_back(-1)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_gone_is_asked_once(tmp_path, monkeypatch):
    monkeypatch.setenv("TRAPLINE_SUPERVISE_DIR", str(tmp_path / "gone"))
    assert inflight.take(PRINT, "job") == -1
    (tmp_path / "gone").mkdir()
    assert inflight.take(PRINT, "job") == -1


def test_the_file_of_a_dead_process_with_our_number_is_replaced_and_a_link_not_followed(folder, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("untouched")
    own(folder).symlink_to(elsewhere)
    inflight.take(PRINT, "mine")
    assert elsewhere.read_text() == "untouched"
    assert [text.split(" ", 2)[2] for text in used(own(folder))] == ["mine"]


def test_what_was_in_flight_survives_sigkill(programs, folder):
    process = programs.start(
        """
        import time, trapline
        with trapline.request("done"):
            pass
        with trapline.request("culprit", content="x"), trapline.request("part"):
            print("busy", flush=True)
            time.sleep(60)
        """,
        env={"TRAPLINE_SUPERVISE_DIR": str(folder)},
    )
    assert process.stdout.readline() == "busy\n"
    process.send_signal(signal.SIGKILL)
    process.wait()
    texts = used(folder / f"inflight-{process.pid}")
    assert [text.split(" ", 2)[2] for text in texts] == ["culprit"]  # its part is no second suspect


@pytest.mark.parametrize("how", ["exception", "answer", "asgi", "wsgi"])
def test_who_was_in_flight_when_the_context_was_lost_stays_noted(folder, monkeypatch, how):
    def fails(*given: object) -> list[bytes]:
        monkeypatch.setattr(lost, "error", lambda: "CUDA error: device-side assert triggered")
        if how == "answer":
            given[1]("500 Internal Server Error", [])
            return [b"it did not work"]
        raise RuntimeError("CUDA error: device-side assert triggered")

    other = work.begin("beside it", PRINT)
    current.suspend(other)
    monkeypatch.setattr(lost, "error", lambda: "")
    with contextlib.suppress(KeyError), trapline.request("failed, but not so"):
        raise KeyError("x")
    with contextlib.suppress(RuntimeError):
        if how == "exception":
            with trapline.request("culprit"):
                fails()
        elif how == "asgi":
            asyncio.run(answered(fails))
        else:
            answer = trapline.wsgi.RequestMiddleware(fails)(environ(), lambda *_: None)
            assert list(answer) == [b"it did not work"]
            answer.close()
    work.end(other)
    with trapline.request("later"):
        assert names(folder) == ["beside it", "culprit"]


def names(folder: Path) -> list[str]:
    return [text.split(" ", 2)[2] for text in used(own(folder))]


def environ() -> dict:
    return {
        "REQUEST_METHOD": "POST",
        "PATH_INFO": "/predict",
        "CONTENT_LENGTH": "0",
        "HTTP_X_REQUEST_ID": "culprit",
        "wsgi.input": io.BytesIO(),
    }


async def answered(fails) -> None:
    async def inner(scope: object, receive: object, send: object) -> None:
        fails()

    async def receive() -> dict:
        return {"type": "http.request"}

    headers = [(b"x-request-id", b"culprit")]
    scope = {"type": "http", "method": "POST", "path": "/predict", "headers": headers}
    await trapline.asgi.RequestMiddleware(inner)(scope, receive, None)


def test_the_thread_that_has_lost_the_context_says_so_and_waits_for_its_end(folder, monkeypatch, capfd):
    waited: list[float] = []
    monkeypatch.setattr(work.time, "sleep", waited.append)
    monkeypatch.setenv("TRAPLINE_CONTEXT_SOCKET", "/nowhere")
    monkeypatch.setattr(lost, "error", lambda: "lost")
    for name in ("first", "second"):
        with contextlib.suppress(RuntimeError), trapline.request(name):
            raise RuntimeError("CUDA error: device-side assert triggered")
    assert waited == [1.0]
    said = capfd.readouterr().err.splitlines()
    assert said[0] == "trapline: request first ended with a lost CUDA context:"
    assert said[1] == "Traceback (most recent call last):"
    assert said[-1] == "RuntimeError: CUDA error: device-side assert triggered"


def test_an_error_of_the_application_keeps_nothing(folder, monkeypatch):
    monkeypatch.setattr(lost, "error", lambda: None)
    for _ in range(2):
        with contextlib.suppress(RuntimeError), trapline.request("fails"):
            raise RuntimeError("CUDA error, says somebody")
        assert names(folder) == []


def test_a_forked_child_has_a_file_of_its_own(folder):
    inflight.take(PRINT, "parent's")
    child = os.fork()
    if child == 0:
        try:
            inflight.take(PRINT, "child's")
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert [text.split(" ", 2)[2] for text in used(own(folder))] == ["parent's"]
    assert [text.split(" ", 2)[2] for text in used(folder / f"inflight-{child}")] == ["child's"]
