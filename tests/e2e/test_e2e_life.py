"""The life of a fault after it was raised: the exception that ends the program decides what is reported."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import e2e_runner as runner
import pytest

HEAD = """
import sys
import torch
import torch.nn.functional as F

def index(value=9):
    torch.zeros(3)[torch.tensor([value])]

def label():
    F.cross_entropy(torch.zeros(2, 3), torch.tensor([0, -1]))

def caught(call):
    try:
        call()
    except IndexError:
        pass

"""


def start(tmp_path: Path, text: str, *arguments: str) -> runner.Outcome:
    script = runner.write_program(tmp_path / "program.py", HEAD + text)
    return runner.trapline_json(tmp_path / "out", [runner.PYTHON, script], arguments)


def codes(outcome: runner.Outcome) -> list[str]:
    assert outcome.report is not None, outcome.stderr
    return [finding["code"] for finding in outcome.report["findings"]]


def notes(outcome: runner.Outcome) -> str:
    assert outcome.report is not None, outcome.stderr
    return "\n".join(outcome.report["notes"])


def test_an_unrelated_exception_is_not_blamed_on_a_handled_fault(tmp_path: Path) -> None:
    outcome = start(tmp_path, "caught(index)\n{}['learning_rate']\n")
    assert outcome.returncode == 1
    assert (codes(outcome), outcome.report["verdict"]) == ([], "unknown")
    assert "the program ended by KeyError: 'learning_rate'" in notes(outcome)
    assert "the program caught 1 fault (TL105)" in notes(outcome)
    text = runner.trapline([], [runner.PYTHON, tmp_path / "program.py"])
    assert "error[" not in text.stderr
    assert "KeyError: 'learning_rate' (program.py:19)" in text.stderr
    assert text.stderr.count("trapline: ") == 3
    assert "trapline: caught: [TL105] x[index]: index[0] is " in text.stderr


def test_the_exceptions_own_finding_is_the_report(tmp_path: Path) -> None:
    outcome = start(tmp_path, "caught(index)\ntorch.zeros(2, 3) @ torch.zeros(2, 3)\n")
    assert (codes(outcome), outcome.report["verdict"]) == (["TL201"], "fault")
    assert "the program caught 1 fault (TL105)" in notes(outcome)


def test_of_several_faults_the_last_one_ended_the_program(tmp_path: Path) -> None:
    outcome = start(tmp_path, "caught(index)\ncaught(index)\nlabel()\n")
    assert codes(outcome) == ["TL101"]
    assert "the program caught 2 faults (TL105)" in notes(outcome)


def test_the_same_line_first_handled_then_not(tmp_path: Path) -> None:
    outcome = start(tmp_path, "caught(lambda: index(7))\nindex(8)\n")
    assert codes(outcome) == ["TL105"]
    finding = outcome.report["findings"][0]
    assert finding["element"]["value"] == 8
    assert finding["origin"]["function"] == "index"


def test_an_exception_raised_from_the_fault_is_the_fault(tmp_path: Path) -> None:
    text = "caught(index)\ntry:\n    label()\nexcept IndexError as e:\n    raise ValueError('step') from e\n"
    assert codes(start(tmp_path, text)) == ["TL101"]


def test_an_exception_while_the_fault_was_handled_is_the_faults_doing(tmp_path: Path) -> None:
    outcome = start(tmp_path, "try:\n    label()\nexcept IndexError:\n    {}['fallback']\n")
    assert codes(outcome) == ["TL101"]


@pytest.mark.parametrize("leave", ["sys.exit(1)", "raise SystemExit('failed')"])
def test_a_fault_that_was_logged_before_the_program_left(tmp_path: Path, leave: str) -> None:
    text = f"caught(index)\ntry:\n    label()\nexcept Exception as e:\n    print(e)\n    {leave}\n"
    outcome = start(tmp_path, text)
    assert outcome.returncode == 1
    assert codes(outcome) == ["TL101"]
    assert "the program caught 1 fault (TL105)" in notes(outcome)


def test_an_exit_of_which_nothing_is_known_keeps_the_findings(tmp_path: Path) -> None:
    outcome = start(tmp_path, "caught(label)\nsys.exit(3)\n")
    assert (outcome.returncode, codes(outcome)) == (3, ["TL101"])
    assert "the program caught this fault; later it ended with exit code 3" in notes(outcome)


WORKERS = """
from torch.utils.data import DataLoader, Dataset

class Rows(Dataset):
    def __len__(self):
        return 4
    def __getitem__(self, at):
        if at == 1:
            index()
        return torch.zeros(1)

if __name__ == "__main__":
    batches = iter(DataLoader(Rows(), batch_size=1, num_workers=1))
    for _ in range(4):
        CALL
    {}["learning_rate"]
"""


def test_a_workers_fault_that_the_program_caught(tmp_path: Path) -> None:
    outcome = start(tmp_path, WORKERS.replace("CALL", "caught(lambda: next(batches))"))
    assert (codes(outcome), outcome.report["verdict"]) == ([], "unknown")
    assert "KeyError" in notes(outcome) and "TL105" in notes(outcome)
    outcome = start(tmp_path / "not", WORKERS.replace("CALL", "next(batches)"))
    assert codes(outcome) == ["TL105"]


@pytest.mark.parametrize("how", ["import atexit; atexit.register(index)", "import threading\n"
                                 "t = threading.Thread(target=index); t.start(); t.join()"])  # fmt: skip
def test_uncaught_is_not_handled_though_the_exit_code_is_0(tmp_path: Path, how: str) -> None:
    outcome = start(tmp_path, how + "\n")
    assert (outcome.returncode, codes(outcome)) == (0, ["TL105"])
    assert "the program caught" not in outcome.stderr and "handled" not in notes(outcome)
    text = runner.trapline([], [runner.PYTHON, tmp_path / "program.py"])
    assert "error[TL105]" in text.stderr


def test_faults_that_were_caught_are_counted_by_cause(tmp_path: Path) -> None:
    text = "for _ in range(60):\n    caught(index)\ncaught(label)\n"
    script = runner.write_program(tmp_path / "program.py", HEAD + text)
    outcome = runner.trapline([], [runner.PYTHON, script])
    assert outcome.returncode == 0
    expected = (
        "trapline: the program caught 61 faults (TL101, TL105); to see them: trapline run --report DIR -- ..."
    )
    *before, total = outcome.stderr.splitlines()
    assert total == expected
    # On a machine that is slow enough a fault is told while the program runs, too.
    caught = [line for line in before if not line.startswith("trapline: [TL105] ")]
    assert [line.partition("] ")[0] for line in caught] == [
        "trapline: caught: [TL105",
        "trapline: caught: [TL101",
    ]
    assert all("program.py:" in line for line in caught)


def test_a_killed_program_keeps_its_findings(tmp_path: Path) -> None:
    outcome = start(tmp_path, "import os\ncaught(index)\nos.kill(os.getpid(), 9)\n")
    assert (outcome.returncode, codes(outcome)) == (137, ["TL105"])
    assert "killed by signal 9" in notes(outcome)
    assert "whether the program had caught this fault before is not known" in notes(outcome)


SERVER = """
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.request import urlopen
from urllib.error import HTTPError

class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        try:
            index(int(self.path[1:]))
        except Exception as error:
            self.send_error(500)
    def log_message(self, *_):
        pass

server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
for value in (7, 8, 9):
    try:
        urlopen(f"http://127.0.0.1:{server.server_port}/{value}")
    except HTTPError:
        pass
print("asked", flush=True)
threading.Event().wait(100)
"""


def test_a_servers_fault_is_on_stderr_while_it_runs(tmp_path: Path) -> None:
    script = runner.write_program(tmp_path / "server.py", HEAD + SERVER)
    line = [str(runner.TRAPLINE), "run", "--", runner.PYTHON, str(script)]
    with open(tmp_path / "err", "wb") as err:
        process = subprocess.Popen(
            line, env=runner.environment(), stdout=subprocess.PIPE, stderr=err, start_new_session=True
        )
    try:
        assert process.stdout is not None and process.stdout.readline() == b"asked\n"
        deadline = time.monotonic() + 30
        while b"\n" not in (tmp_path / "err").read_bytes() and time.monotonic() < deadline:
            time.sleep(0.1)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    (said,) = (tmp_path / "err").read_text().splitlines()
    assert said.startswith("trapline: [TL105] x[index]: index[0] is 7")
    assert said.endswith("(server.py:7)")


def test_a_short_program_says_nothing_in_between(tmp_path: Path) -> None:
    outcome = start(tmp_path, "index()\n")
    assert "[TL105]" not in outcome.stderr


def test_a_fault_under_a_profiler_that_ends_well_is_not_handled(tmp_path: Path) -> None:
    """py-spy starts the program itself, and ends with 0 whatever became of it."""
    found = shutil.which("py-spy", path=f"{Path(runner.PYTHON).parent}:{os.environ['PATH']}")
    if found is None:
        pytest.skip("needs py-spy: pip install py-spy")
    script = runner.write_program(tmp_path / "program.py", HEAD + "index()\n")
    command = [found, "record", "-o", tmp_path / "profile.svg", "--", runner.PYTHON, script]
    outcome = runner.trapline_json(tmp_path / "out", command)
    if "Permission denied" in outcome.stderr:
        pytest.skip("py-spy may not look into processes here")
    assert outcome.returncode == 0
    assert (codes(outcome), outcome.report["verdict"], outcome.report["notes"]) == (["TL105"], "fault", [])
    assert "the program caught" not in runner.trapline([], command).stderr


def test_a_cpu_run_that_failed_before_anything_was_checked_says_so(tmp_path: Path) -> None:
    text = "if torch.cuda.device_count() < 2:\n    print('too few GPUs')\n    sys.exit(3)\n"
    script = runner.write_program(tmp_path / "program.py", HEAD + text)
    outcome = runner.trapline(["--cpu"], [runner.PYTHON, script])
    assert outcome.returncode == 3
    assert outcome.stderr.startswith("trapline: no operation that Trapline checks ran")
    assert runner.trapline([], [runner.PYTHON, script]).stderr == ""
    script = runner.write_program(tmp_path / "good.py", HEAD + "caught(lambda: index(2))\n")
    assert runner.trapline(["--cpu"], [runner.PYTHON, script]).stderr == ""
    script = runner.write_program(tmp_path / "well.py", HEAD + "print('nothing to check')\n")
    assert runner.trapline(["--cpu"], [runner.PYTHON, script]).stderr == ""
    script = runner.write_program(tmp_path / "raises.py", HEAD + "raise KeyError('LOCAL_RANK')\n")
    assert "no operation" not in runner.trapline(["--cpu"], [runner.PYTHON, script]).stderr


INSTALL = "import torch, trapline\ntrapline.install()\nw = torch.zeros(4, 2)\n"


@pytest.mark.parametrize(
    "line, code",
    [("w @ w", "TL201"), ("w[torch.tensor([9])]", "TL105")],
)
def test_install_prints_the_report_after_the_traceback(tmp_path: Path, line: str, code: str) -> None:
    script = runner.write_program(tmp_path / "program.py", INSTALL + line + "\n")
    python = str(runner.REPO / "python")
    alone = runner.plain([runner.PYTHON, str(script)], env=runner.environment(PYTHONPATH=python))
    assert alone.returncode == 1
    traceback, report = alone.stderr.split(f"error[{code}]: ")
    assert traceback.startswith("Traceback (most recent call last)")
    assert "--> " in report and "program.py:4" in report and "help: " in report
    below = runner.trapline([], [runner.PYTHON, script])
    assert below.stderr.count(f"error[{code}]: ") == 1


def test_a_cell_of_ipython_shows_the_report_below(tmp_path: Path) -> None:
    pytest.importorskip("IPython")
    script = runner.write_program(
        tmp_path / "cells.py",
        "from IPython.core.interactiveshell import InteractiveShell\n"
        "shell = InteractiveShell.instance()\n"
        f"for cell in ({INSTALL!r}, 'w @ w', 'print(1)'):\n    shell.run_cell(cell)\n",
    )
    python = str(runner.REPO / "python")
    done = runner.plain([runner.PYTHON, str(script)], env=runner.environment(PYTHONPATH=python))
    assert done.stderr.count("error[TL201]: ") == 1
    below = runner.trapline([], [runner.PYTHON, script])
    assert below.returncode == 0 and "error[TL201]" not in below.stderr
