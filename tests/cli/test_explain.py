"""`trapline explain` from outside: verdicts, exit codes, bad input, folders, live input. Needs no torch."""

import bz2
import gzip
import json
import lzma
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("TRAPLINE_BUILD_DIR", ROOT / "build"))
TRAPLINE = str(BUILD / "bin" / "trapline")
SCHEMA = json.loads((ROOT / "docs" / "finding.schema.json").read_text(encoding="utf-8"))
GUARDED = ROOT / "tests" / "report" / "cases" / "label.json"

ASSERTION = (
    "../aten/src/ATen/native/cuda/Loss.cu:250: nll_loss_forward_reduce_cuda_kernel_2d: block: [0,0,0], "
    "thread: [5,0,0] Assertion `t >= 0 && t < n_classes` failed.\n"
)
TRACEBACK = """Traceback (most recent call last):
  File "/srv/job/train.py", line 41, in <module>
    print(loss.item())
RuntimeError: CUDA error: device-side assert triggered
CUDA kernel errors might be asynchronously reported at some other API call.
"""
LABEL_LOG = "epoch 1 loss 2.31\n" + ASSERTION + TRACEBACK
CLEAN_LOG = "epoch 1 loss 2.31\nepoch 2 loss 2.20\ndone\n"
VICTIM_LOG = "[rank1]: torch.distributed.DistBackendError: NCCL communicator was aborted on rank 1.\n"


def explain(*words: object, **options: Any) -> "subprocess.CompletedProcess[bytes]":
    options.setdefault("stdin", subprocess.DEVNULL) if "input" not in options else None
    return subprocess.run(
        [TRAPLINE, "explain", *map(str, words)],
        capture_output=True,
        check=False,
        **options,
    )


def verdict(*words: object, **options: Any) -> dict[str, Any]:
    """The JSON report, which must keep to the schema."""
    report = json.loads(explain("--format", "json", *words, **options).stdout)
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.validators.validator_for(SCHEMA)(SCHEMA).validate(report)
    assert report["command"] == "explain"
    return report


def zstd(text: bytes) -> bytes:
    if shutil.which("zstd") is None:
        pytest.skip("the zstd program is missing")
    return subprocess.run(["zstd", "-c"], input=text, capture_output=True, check=True).stdout


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "train.log"
    path.write_text(LABEL_LOG)
    return path


def test_fault(log: Path) -> None:
    done = explain(log)
    assert (done.returncode, done.stderr) == (1, b"")
    lines = done.stdout.decode().splitlines()
    assert lines[0].startswith("error[TL101]: ")
    assert lines[-1] == "for more: trapline why TL101"
    assert len(lines) <= 25
    root = verdict(log)["findings"][0]
    assert (root["cause"], root["device_assert"], root["argument"]) == ("label_out_of_range", True, "target")
    assert "origin" not in root and root["surfaced"]["line"] == 41  # the reading back is not the origin


def test_clean(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(CLEAN_LOG)
    done = explain(tmp_path / "a.log")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"trapline: no fault found\n", b"")
    assert verdict(tmp_path / "a.log")["verdict"] == "clean"


def test_failure_without_a_cause(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("RuntimeError: CUDA error: device-side assert triggered\n")
    done = explain(tmp_path / "a.log")
    assert done.returncode == 3
    report = verdict(tmp_path / "a.log")
    assert report["verdict"] == "unknown"
    assert "trapline run" in json.dumps(report)  # the one command that would settle it


def test_standard_input() -> None:
    for words in ([], ["-"]):
        done = explain(*words, input=LABEL_LOG.encode())
        assert done.returncode == 1 and done.stdout.startswith(b"error[TL101]: ")


def test_several_inputs_are_one_job(log: Path, tmp_path: Path) -> None:
    (tmp_path / "other.log").write_text(CLEAN_LOG)
    report = verdict(tmp_path / "other.log", log)
    assert [f["code"] for f in report["findings"] if f["role"] == "root"] == ["TL101"]


def test_no_input_on_a_terminal() -> None:
    controller, terminal = os.openpty()
    done = explain(stdin=terminal)
    os.close(controller)
    os.close(terminal)
    assert done.returncode == 2
    assert (
        done.stderr
        == b"trapline: nothing to explain: name a log or a folder, e.g. trapline explain train.log\n"
    )


def test_report_goes_to_the_file(log: Path, tmp_path: Path) -> None:
    output = tmp_path / "report.json"
    done = explain("--format", "json", "-o", output, log)
    said = f"trapline: class label outside the valid range (TL101): the report is in {output}\n"
    assert (done.returncode, done.stdout, done.stderr.decode()) == (1, b"", said)
    assert json.loads(output.read_text())["findings"][0]["code"] == "TL101"
    assert verdict(output)["findings"][0]["code"] == "TL101"  # and a report can be explained again
    (tmp_path / "link.json").symlink_to(output)
    assert verdict(tmp_path / "link.json")["findings"] == verdict(output)["findings"]


def test_unreadable_input_does_not_stop_the_rest(log: Path, tmp_path: Path) -> None:
    done = explain(tmp_path / "missing.log", log)
    assert done.returncode == 2
    assert (
        done.stderr
        == f"trapline: {tmp_path / 'missing.log'}: No such file or directory: check the name\n".encode()
    )
    assert done.stdout.startswith(b"error[TL101]: ")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_file_without_permission(log: Path) -> None:
    log.chmod(0)
    assert explain(log).returncode == 2


def test_folder_without_logs(tmp_path: Path) -> None:
    done = explain(tmp_path)
    assert done.returncode == 2 and done.stderr.count(b"\n") == 1
    assert b"no logs" in done.stderr
    (tmp_path / "kernel.py").write_text('tl.device_assert(x < 4, "x")\n' + ASSERTION)
    assert explain(tmp_path).returncode == 2  # source code is no log


def test_binary(log: Path, tmp_path: Path) -> None:
    binary = tmp_path / "model.pt"
    binary.write_bytes(bytes(range(256)) * 400)
    done = explain(binary)
    assert done.returncode == 2 and done.stderr.count(b"\n") == 1
    assert json.loads(explain("--format", "json", binary).stdout)["verdict"] == "unknown"
    assert explain(tmp_path).returncode == 1  # in a folder it is left out


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_what_cannot_be_opened_in_a_folder_is_said_once_each(tmp_path: Path) -> None:
    (tmp_path / "rank0.log").write_text(LABEL_LOG)
    (tmp_path / "rank1.log").write_text(LABEL_LOG)
    (tmp_path / "rank1.log").chmod(0)
    (tmp_path / "locked").mkdir(mode=0)
    done = explain(tmp_path)
    assert done.returncode == 2 and done.stdout.startswith(b"error[TL101]: ")
    assert done.stderr.decode().splitlines() == [
        f"trapline: {tmp_path / name}: Permission denied: check the permissions"
        for name in ("locked", "rank1.log")
    ]


@pytest.mark.parametrize("unpacked", [gzip.compress, bz2.compress, lzma.compress, zstd])
def test_archives(tmp_path: Path, unpacked: Any) -> None:
    packed = unpacked((CLEAN_LOG * 2000 + LABEL_LOG).encode())
    (tmp_path / "log").write_bytes(packed)
    assert explain(tmp_path / "log").returncode == 1
    (tmp_path / "log").write_bytes(packed[: len(packed) // 2])
    done = explain(tmp_path / "log")
    assert done.returncode == 2 and done.stderr.count(b"\n") == 1
    assert b"ends too early" in done.stderr
    (tmp_path / "whole").write_text(LABEL_LOG)
    done = explain(tmp_path / "log", tmp_path / "whole")  # the rest is read
    assert done.returncode == 2 and done.stdout.startswith(b"error[TL101]: ")
    assert verdict(tmp_path / "log")["verdict"] != "clean"  # the fault may be in what is missing


def test_endless_line(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("x" * (8 << 20) + LABEL_LOG)
    assert verdict(tmp_path / "log")["findings"][0]["code"] == "TL101"


def test_empty_log_is_said(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("")
    assert verdict(tmp_path / "log")["notes"] == [f"{tmp_path / 'log'} is empty"]


def test_report_folder(tmp_path: Path) -> None:
    """What a guarded process saw is the root; logs that say the same only add to it."""
    shutil.copy(GUARDED, tmp_path / "finding-h-1-1.json")
    report = verdict(tmp_path)
    given = json.loads(GUARDED.read_text())["findings"][0]
    assert report["findings"][0] == given
    (tmp_path / "rank0.log").write_text(LABEL_LOG)
    (tmp_path / "rank1.log").write_text(VICTIM_LOG)
    report = verdict(tmp_path)
    assert [f["code"] for f in report["findings"] if f["role"] == "root"] == ["TL102"]
    assert report["findings"][0]["certainty"] == "proven"
    assert any("rank0.log" in item["source"] for item in report["findings"][0]["evidence"])


def test_finding_that_is_no_json_is_a_note(tmp_path: Path, log: Path) -> None:
    (tmp_path / "finding-h-1-1.json").write_text("{")
    report = verdict(tmp_path)
    assert report["findings"][0]["code"] == "TL101"
    assert any("finding-h-1-1.json" in note for note in report["notes"])


def error_file(message: str, stack: str) -> str:
    inner = {"message": message, "extraInfo": {"py_callstack": stack, "timestamp": "1"}}
    return json.dumps({"message": inner})


def test_torchrun_error_files(tmp_path: Path) -> None:
    """<run>/attempt_0/<rank>/error.json, and the logs that torchrun keeps next to it."""
    for rank in range(3):
        (tmp_path / "attempt_0" / str(rank)).mkdir(parents=True)
    wrong = (
        "Traceback (most recent call last):\n"
        '  File "/srv/job/train.py", line 12, in step\n    y = self.fc(x)\n'
        "RuntimeError: mat1 and mat2 shapes cannot be multiplied (32x400 and 256x10)\n"
    )
    (tmp_path / "attempt_0" / "2" / "error.json").write_text(error_file("RuntimeError: mat1", wrong))
    (tmp_path / "attempt_0" / "1" / "stderr.log").write_text(VICTIM_LOG)
    root = verdict(tmp_path)["findings"][0]
    assert (root["cause"], root["device_assert"]) == ("shape_mismatch", False)
    assert root["process"]["rank"] == 2
    assert root["origin"]["file"] == "/srv/job/train.py"
    only = verdict(tmp_path / "attempt_0" / "2" / "error.json")
    assert only["findings"][0]["cause"] == "shape_mismatch"


def read_line(process: "subprocess.Popen[bytes]", seconds: float) -> bytes:
    assert process.stderr is not None
    ready, _, _ = select.select([process.stderr], [], [], seconds)
    return process.stderr.readline() if ready else b""


def test_live_stream_is_told_at_once() -> None:
    """The stream stays open; the first word comes all the same, the report at the end."""
    with subprocess.Popen(
        [TRAPLINE, "explain", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(CLEAN_LOG.encode())
        process.stdin.flush()
        time.sleep(0.2)
        process.stdin.write(ASSERTION.encode())
        process.stdin.flush()
        assert read_line(process, 30).startswith(b"trapline: so far TL101, determined: ")
        process.stdin.write(TRACEBACK.encode())
        process.stdin.close()
        report = process.stdout.read()
        assert report.startswith(b"error[TL101]: ")
    assert process.returncode == 1


def test_live_stream_that_never_pauses() -> None:
    """Chatter without a gap must not hold back the first word."""
    command = f'(printf %s "$LOG"; yes \'epoch 1 loss 2.31\') | "{TRAPLINE}" explain -'
    with subprocess.Popen(
        ["bash", "-c", command],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={**os.environ, "LOG": LABEL_LOG},
        start_new_session=True,
    ) as process:
        first = read_line(process, 30)
        os.killpg(process.pid, 9)
        assert first.startswith(b"trapline: so far TL101")


def test_interrupt_ends_a_live_stream_with_the_report() -> None:
    command = f'(printf %s "$LOG"; sleep 60) | "{TRAPLINE}" explain -'
    with subprocess.Popen(
        ["bash", "-c", command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "LOG": LABEL_LOG},
        start_new_session=True,
    ) as process:
        first = read_line(process, 30)
        os.killpg(process.pid, 2)
        assert first.startswith(b"trapline: so far TL101")
        assert process.stdout is not None
        assert process.stdout.read().startswith(b"error[TL101]: ")


TIME_OUT = (
    "[rank{r}]:[E1122 05:31:12.{r}23456789 ProcessGroupNCCL.cpp:632] [Rank {r}] Watchdog caught "
    "collective operation timeout: WorkNCCL(SeqNum=2214, OpType=ALLREDUCE, Timeout(ms)=1800000) timed out.\n"
    "[rank{r}]:[E1122 05:31:12.{r}43456789 ProcessGroupNCCL.cpp:703] [Rank {r}] To avoid data inconsistency, "
    "we are taking the entire process down.\n"
)


def ranks(tmp_path: Path, failing: int = 5) -> Path:
    """A job of 8: one rank asserts, the others wait for it."""
    for rank in range(8):
        text = f"step 40 of rank {rank}\n"
        text += ASSERTION + TRACEBACK if rank == failing else TIME_OUT.format(r=rank)
        (tmp_path / f"rank{rank}.log").write_text(text)
    return tmp_path


def lines_of(*words: object) -> list[str]:
    return explain(*words).stdout.decode().splitlines()


def test_innocent_ranks_are_one_line(tmp_path: Path) -> None:
    lines = lines_of(ranks(tmp_path))
    assert lines[0].startswith("error[TL101] rank 5: ")
    assert [line for line in lines if line.startswith(("then:", "also:"))] == [
        "then: ranks 0-4, 6, 7 waited for rank 5 (NCCL time-out)"
    ]
    assert not any("hardware" in line for line in lines)
    waited = verdict(tmp_path)["findings"][1]
    assert (waited["code"], waited["cause"], waited["role"]) == ("TL405", "peer_failure", "consequence")


def test_rank_0_stands_in_the_headline_too(tmp_path: Path) -> None:
    assert lines_of(ranks(tmp_path, failing=0))[0].startswith("error[TL101] rank 0: ")
    assert lines_of(tmp_path / "rank0.log")[0].startswith("error[TL101]")


def test_time_out_without_a_root(tmp_path: Path) -> None:
    """No more than that is known: who waited, and which rank said nothing."""
    for rank in range(3):
        (tmp_path / f"rank{rank}.log").write_text(TIME_OUT.format(r=rank) if rank != 1 else "step 3\n")
    lines = lines_of(tmp_path)
    text = " ".join(line.strip() for line in lines)
    assert "error[TL403]: ranks 0, 2 waited for rank 1 (NCCL time-out in allreduce), whose own" in text
    assert "help: look at what rank 1 did last" in text
    assert not [line for line in lines if line.startswith("then:")]


@pytest.mark.parametrize(
    "log",
    [
        LABEL_LOG,
        TRACEBACK + "CUDA driver error: device-side assert triggered\n",
        "/b/knn.cu:88: void knn(int): block: [1,0,0], thread: [4,0,0] Assertion `k <= MAX_K` failed.\n"
        + TRACEBACK
        + "terminate called: what():  CUDA error: device-side assert triggered\n",
    ],
)
def test_root_is_not_its_own_consequence(log: str, tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(log)
    assert not [line for line in lines_of(tmp_path / "a.log") if line.startswith(("then:", "also:"))]


def test_ranks_that_fail_by_themselves_are_no_consequence(tmp_path: Path) -> None:
    for rank in range(3):
        (tmp_path / f"rank{rank}.log").write_text(ASSERTION + TRACEBACK)
    lines = lines_of(tmp_path)
    assert lines[0].startswith("error[TL101] rank 0: ")
    assert [line[:26] for line in lines if line.startswith(("then:", "also:"))] == [
        "also: [TL101] ranks 1, 2: "
    ]


def test_headline_is_not_surer_than_the_verdict(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(TRACEBACK)
    done = explain(tmp_path / "a.log")
    text = " ".join(line.strip() for line in done.stdout.decode().splitlines())
    assert done.returncode == 3
    assert text.startswith(
        "error[TL901]: a device-side assertion failed, but its own line is not in this log"
    )
    assert (
        "help: TL101 (class label outside the valid range) is the likeliest (it surfaced where the loss is"
        in text
    )
    assert (
        "not certain; causes that fit: class label outside the valid range (TL101), the model has fewer"
        in text
    )
    assert "evidence does not tell" not in text and text.endswith("for more: trapline why TL901")
    root = verdict(tmp_path / "a.log")["findings"][0]
    assert (root["cause"], root["certainty"]) == ("label_out_of_range", "unknown")
    assert "insufficient_evidence" not in root["also"]


def test_block_and_thread_are_shown_and_nothing_empty(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(ASSERTION + ASSERTION.replace("[5,0,0]", "[9,0,0]") + TRACEBACK)
    lines = lines_of(tmp_path / "a.log")
    assert "   = kernel:  block [0,0,0], thread [5,0,0] and 1 more" in lines
    assert "   = seen at: /srv/job/train.py:41 in <module>, later than it happened" in lines
    assert not any(line.strip() == "= found:   target" or "on GPU" in line for line in lines)
    kernel = verdict(tmp_path / "a.log")["findings"][0]["kernel"]
    assert (kernel["file"], kernel["line"], kernel["thread"], kernel["places"]) == (
        "Loss.cu",
        250,
        [5, 0, 0],
        2,
    )


def test_cell_of_a_notebook_is_named_as_in_ipython(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(
        ASSERTION
        + "RuntimeError                              Traceback (most recent call last)\n"
        + "Cell In[4], line 3\n      1 for x, y in loader:\n      2     loss = f(model(x), y)\n"
        + "----> 3     print(loss.item())\n\nRuntimeError: CUDA error: device-side assert triggered\n"
    )
    assert any("seen at: Cell In[4], line 3" in line for line in lines_of(tmp_path / "a.log"))


def test_nothing_to_read_is_not_clean(tmp_path: Path) -> None:
    done = explain("-", input=b"")
    assert done.returncode == 3 and b"is empty" in done.stdout
    done = explain(tmp_path / "missing.log")
    assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == (2, b"", 1)
