"""A C++ program under `trapline run`: cause, element, range, and the line of main.cpp."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import e2e_runner as runner
import pytest

MAIN = runner.EXAMPLES / "libtorch_classifier" / "main.cpp"
HEADLINE = (
    "cross_entropy: target[2] is 3, but the input has 3 classes: valid labels are [0, 3); "
    "labels look 1-based: they run from 1 to 3 in the 30 of this call"
)


@pytest.fixture(autouse=True)
def ready(guard: Path, program: Path) -> None:
    """Both are built before any test runs."""


def test_the_report(program, tmp_path):
    outcome = runner.trapline_json(tmp_path, [program])
    assert outcome.returncode == 1
    assert outcome.stderr.splitlines()[0] == f"training failed: {HEADLINE}"  # what() of the exception
    finding = runner.only_root(outcome)
    assert (finding["code"], finding["cause"]) == ("TL101", "label_out_of_range")
    assert finding["summary"] == HEADLINE
    assert (finding["op"], finding["argument"]) == ("cross_entropy", "target")
    element = finding["element"]
    assert (element["index"], element["value"], element["bad"], element["total"]) == ([2], 3, 10, 30)
    assert (element["min"], element["max"]) == (1, 3)
    assert (finding["valid"]["min"], finding["valid"]["max"]) == (0, 2)
    assert finding["tensor"] == {"device": "cpu", "dtype": "int64", "shape": [30]}
    origin = finding["origin"]
    assert Path(origin["file"]).resolve() == MAIN
    assert origin["line"] == runner.marked_line(MAIN, "// <- here")
    assert origin["function"].endswith("train")
    text = MAIN.read_text().splitlines()[origin["line"] - 1]
    assert text[origin["column"] - 1 : origin["end_column"] - 1] == (
        "torch::nn::functional::cross_entropy(net.forward(x), y)"
    )
    users = [frame["function"].rpartition("::")[2] for frame in finding["stack"] if frame.get("user")]
    assert users == ["main", "train"]
    assert finding["fix"][0].startswith("see first what has number 0: ")
    assert finding["fix"][1] == (
        "if nothing has it, they are counted from 1: labels = labels - 1, best once in the data set"
    )


def test_the_report_as_text(program):
    outcome = runner.trapline([], [program])
    assert "error[TL101]: cross_entropy: target[2] is 3" in outcome.stderr
    line = runner.marked_line(MAIN, "// <- here")
    assert re.search(rf"main\.cpp:{line}\s+in ", outcome.stderr)  # a long path has a line of its own


def test_the_fixed_program_runs_untouched(program):
    outcome = runner.trapline([], [program, "--fixed"])
    plain = runner.plain([program, "--fixed"])
    assert (outcome.returncode, outcome.stdout, outcome.stderr) == (0, plain.stdout, "")
    assert outcome.stdout.startswith("loss ")


def test_without_the_guard(program):
    outcome = runner.trapline([], [program], env=runner.environment(TRAPLINE_OFF="1"))
    assert "Target 3 is out of bounds" in outcome.stderr
    # The line that says so stands above the program's own output: the last one leads there.
    assert outcome.stderr.splitlines()[-1].startswith("trapline: the program failed without a fault that")


def test_an_unguarded_run_that_ends_well_says_why(tmp_path):
    outcome = runner.trapline_json(tmp_path, ["true"], env=runner.environment(TRAPLINE_LIBTORCH="1"))
    assert (outcome.returncode, outcome.stderr, outcome.report["verdict"]) == (0, "", "unknown")
    (note,) = outcome.report["notes"]
    assert "none of its processes had a guard for its libtorch" in note


def test_without_debug_information(program, tmp_path):
    stripped = tmp_path / "classifier"
    shutil.copy(program, stripped)
    subprocess.run(["strip", "--strip-all", str(stripped)], check=True)
    finding = runner.only_root(runner.trapline_json(tmp_path, [stripped]))
    assert finding["summary"] == HEADLINE
    assert "origin" not in finding


def test_stop(program):
    outcome = runner.trapline(["--on-fault", "stop"], [program])
    assert outcome.returncode == 65
    assert f"trapline: stopped: {HEADLINE}" in outcome.stderr
    assert "training failed" not in outcome.stderr


def test_skip_is_raised_and_said(program, tmp_path):
    outcome = runner.trapline_json(tmp_path, [program], ["--on-fault", "skip"])
    assert outcome.returncode == 1
    note = "--on-fault skip is for Python programs: this C++ program's faults are raised"
    assert note in outcome.report["notes"]


def test_a_script_that_starts_the_program(program):
    command = ["sh", "-c", f"echo here; exec '{program}'"]
    by_name = runner.trapline([], ["sh", "-c", 'exec "$0"', program])  # the word is there to be seen
    assert HEADLINE in by_name.stderr
    asked = runner.trapline([], command, env=runner.environment(TRAPLINE_LIBTORCH="1"))
    assert asked.stdout == "here\n"
    assert HEADLINE in asked.stderr


def test_a_libtorch_without_a_guard(program, libtorch, tmp_path):
    preload = runner.BUILD / "lib" / "libtrapline_preload.so"
    done = subprocess.run(
        [str(program), "--fixed"],
        env=runner.environment(LD_PRELOAD=str(preload), TRAPLINE_LIBTORCH_DIRS=f"::{tmp_path}"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    cpu = (libtorch / "lib" / "libtorch_cpu.so").resolve()
    assert done.stderr == (
        f"trapline: libtorch: no guard for {cpu}: this process is not guarded: build it once with: "
        f"python3 _build_libtorch.py --libtorch {cpu}\n"
    )


def test_other_programs_are_not_touched():
    outcome = runner.trapline([], ["sh", "-c", 'echo "[$LD_PRELOAD$TRAPLINE_LIBTORCH_DIRS]"'])
    assert outcome.stdout == "[]\n"


def test_the_builder_says_what_is_missing(tmp_path):
    builder = runner.REPO / "python" / "trapline" / "_build_libtorch.py"
    done = subprocess.run(
        [runner.PYTHON, str(builder), "--libtorch", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == (
        f"trapline: libtorch: {tmp_path} has no lib/libtorch_cpu.so: name the folder that holds include/ and "
        "lib/ of the libtorch that the program is built with\n"
    )


def test_a_damaged_guard_costs_one_line(program, guard, tmp_path):
    (tmp_path / guard.name).write_bytes(b"no library")
    preload = runner.BUILD / "lib" / "libtrapline_preload.so"
    done = subprocess.run(
        [str(program), "--fixed"],
        env=runner.environment(LD_PRELOAD=str(preload), TRAPLINE_LIBTORCH_DIRS=str(tmp_path)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"trapline: libtorch: {tmp_path / guard.name}: ")
    assert line.endswith(": this process is not guarded: build it again")


def test_the_report_folder_has_a_marker(program, tmp_path):
    runner.trapline(["--report", tmp_path], [program, "--fixed"])
    (marker,) = tmp_path.glob("guard-*.json")
    assert json.loads(marker.read_text())["adapter"] == "libtorch"


HANDLED = "embedding: input[0] is 7, but the table has 3 rows: valid ids are [0, 3)"


def test_a_fault_that_is_caught_is_a_fault(handled, tmp_path):
    for how in ("nothing", "no environment"):
        outcome = runner.trapline_json(tmp_path / how, [handled, how])
        assert (outcome.returncode, outcome.stdout) == (0, "caught\n")
        assert outcome.stderr.startswith("trapline: the program caught 1 fault (TL103); see ")
        assert (outcome.report["verdict"], runner.only_root(outcome)["summary"]) == ("fault", HANDLED)


def test_a_fault_that_no_file_takes_is_handed_over(handled, tmp_path):
    outcome = runner.trapline_json(tmp_path, [handled, "no bytes"])
    assert (outcome.returncode, outcome.stdout) == (0, "caught\n")
    assert (outcome.report["verdict"], runner.only_root(outcome)["summary"]) == ("fault", HANDLED)


def test_a_fault_that_is_in_no_file_is_not_clean(handled, tmp_path):
    outcome = runner.trapline_json(tmp_path, [handled, "no descriptors"])
    assert (outcome.returncode, outcome.stdout) == (0, "caught\n")
    assert (outcome.report["verdict"], outcome.report["findings"]) == ("unknown", [])
    (note,) = outcome.report["notes"]
    assert note.startswith("process ")
    assert note.endswith(": findings could not be written: its own output tells them")
    complaint, said = outcome.stderr.splitlines()
    assert complaint.startswith("trapline: cannot write the report into ")
    assert said.startswith(f"trapline: [TL103] {HANDLED}")
