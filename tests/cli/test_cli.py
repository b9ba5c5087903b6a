"""The trapline program from outside: exit codes, one-line errors, where output goes. Needs no torch."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("TRAPLINE_BUILD_DIR", ROOT / "build"))
TRAPLINE = str(BUILD / "bin" / "trapline")
CASE = ROOT / "tests" / "report" / "cases" / "label.json"


def trapline(*words: str, **options: object) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run(
        [TRAPLINE, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, **options
    )


def leave_finding(exit_code: int) -> list[str]:
    """A program that leaves a finding as a guarded process does."""
    return [
        "sh",
        "-c",
        f'echo out; cp "{CASE}" "$TRAPLINE_REPORT_DIR/finding-h-1-1.json"; echo err >&2; exit {exit_code}',
    ]


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ([], "trapline: no command: try `trapline run python train.py`, or see `trapline --help`"),
        (["rnu", "x"], "trapline: unknown command 'rnu': did you mean `trapline run`?"),
        (
            ["python", "x"],
            "trapline: unknown command 'python': to start that program write `trapline run python ...`",
        ),
        (["--verison"], "trapline: unknown command '--verison': see `trapline --help`"),
        (["run"], "trapline: no program to run: write it after the flags, e.g. trapline run python train.py"),
        (
            ["run", "--"],
            "trapline: no program to run: write it after the flags, e.g. trapline run python train.py",
        ),
        (["run", "pythn"], "trapline: cannot start 'pythn': not found on PATH: check the spelling"),
        (
            ["run", "--formt", "json", "true"],
            "trapline: `trapline run` has no flag '--formt': did you mean --format?",
        ),
        (
            ["run", "-o", "/no/such/file", "true"],
            "trapline: cannot write '/no/such/file': No such file or directory: choose another file with -o",
        ),
        (
            ["run", "--report", "/proc/self/x", "touch", "{tmp}/started"],
            "trapline: cannot write reports to '/proc/self/x': No such file or directory: "
            "choose another folder with --report DIR",
        ),
    ],
)
def test_own_errors_are_one_line_and_exit_2(words: list[str], error: str, tmp_path: Path) -> None:
    done = trapline(*[word.replace("{tmp}", str(tmp_path)) for word in words])
    assert done.stderr.decode() == error + "\n"
    assert done.returncode == 2
    assert done.stdout == b""
    assert not (tmp_path / "started").exists()


@pytest.mark.parametrize(
    "words", [["--format", "xml"], ["--steps", "0"], ["--steps", "x"], ["--color", "blue"], ["-o"]]
)
def test_bad_flag_values(words: list[str]) -> None:
    done = trapline("run", *words, "--", "true") if words != ["-o"] else trapline("run", "-o")
    assert done.returncode == 2
    assert done.stderr.startswith(b"trapline: ") and done.stderr.count(b"\n") == 1


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (
            ["run", "--steps", "0", "true"],
            "--steps must be a whole number, at least 1, not '0': see `trapline run --help`",
        ),
        (
            ["run", "--skip-limit", "x", "true"],
            "--skip-limit must be a number from 0 to 100, not 'x': see `trapline run --help`",
        ),
        (
            ["run", "--on-fault", "x", "true"],
            "--on-fault must be raise, skip or stop, not 'x': see `trapline run --help`",
        ),
        (["run", "-o"], "--output needs a value: FILE: see `trapline run --help`"),
        (["-v", "explain", "x"], "no command before '-v': flags follow the command: trapline explain -v ..."),
        (["check", "labels", "x"], "the number of classes is unknown: pass --classes N or --model DIR"),
    ],
)
def test_values_are_refused_in_plain_words(words: list[str], error: str) -> None:
    assert trapline(*words).stderr.decode() == f"trapline: {error}\n"


COMMANDS = [
    "run",
    "explain",
    "check labels",
    "check ids",
    "check model",
    "check dataset",
    "check finite",
    "why",
]


@pytest.mark.parametrize("command", ["", "check", *COMMANDS])
def test_help_fits_80_columns_and_speaks_one_language(command: str) -> None:
    text = trapline(*command.split(), "--help").stdout.decode()
    assert max(map(len, text.splitlines())) <= 80
    assert "-h,--help" not in text and "Options" not in text and "Positionals" not in text
    assert command in ("", "check") or "\nflags:\n  -h, --help " in text


def test_verbose_says_what_it_does_for_the_command() -> None:
    assert b"last operations" in b" ".join(trapline("run", "--help").stdout.split())
    for command in (["explain"], ["check", "labels"]):
        assert b"last operations" not in trapline(*command, "--help").stdout
    assert trapline("help", "check", "labels").stdout == trapline("check", "labels", "--help").stdout


def test_help_and_version() -> None:
    for words in ("--version", "-V", "version"):
        assert re.fullmatch(rb"trapline 0\.1\.0( \([0-9a-f]{7,}\+?\))?\n", trapline(words).stdout)
    for words in (["--help"], ["run", "--help"]):
        done = trapline(*words)
        assert done.returncode == 0 and done.stderr == b"" and b"usage: trapline" in done.stdout


@pytest.mark.parametrize("separator", [[], ["--"]])
def test_flags_after_the_program_are_the_programs(separator: list[str]) -> None:
    done = trapline("run", "--color=never", *separator, "printf", "%s|", "--help", "-o", "--", "-v", "--cpu")
    assert done.stdout == b"--help|-o|--|-v|--cpu|"
    assert done.returncode == 0


def test_output_is_byte_identical_and_input_passed() -> None:
    data = bytes(range(256)) * 4096
    done = trapline("run", "cat", input=data)
    assert done.stdout == data
    assert done.stderr == b"" and done.returncode == 0


def test_exit_codes() -> None:
    for code in (0, 1, 2, 77, 255):
        assert trapline("run", "sh", "-c", f"exit {code}").returncode == code
    done = trapline("run", "sh", "-c", "kill -SEGV $$")
    assert done.returncode == 139
    assert b"killed by signal 11" in done.stderr


def test_flags_reach_the_program(tmp_path: Path) -> None:
    done = trapline("run", "--cpu", "--steps", "7", "--report", str(tmp_path / "r"), "-v", "env")
    lines = done.stdout.decode().splitlines()
    assert "TRAPLINE_CPU=1" in lines and "TRAPLINE_STEPS=7" in lines
    assert "TRAPLINE_GUARD=1" in lines and f"TRAPLINE_REPORT_DIR={tmp_path / 'r'}" in lines
    assert any(line.startswith("PYTHONPATH=") and "/startup" in line for line in lines)


def test_report_follows_the_programs_output() -> None:
    done = trapline("run", *leave_finding(1))
    assert done.returncode == 1 and done.stdout == b"out\n"
    text = done.stderr.decode()
    assert text.startswith("err\n\nerror[TL102]: ")
    assert "--> train.py:41 in training_step" in text
    assert len(text.splitlines()) <= 26


def test_json_goes_to_standard_error_or_the_file(tmp_path: Path) -> None:
    done = trapline("run", "--format", "json", *leave_finding(1))
    assert done.stdout == b"out\n"
    assert json.loads(done.stderr.split(b"\n", 1)[1])["verdict"] == "fault"
    output = tmp_path / "r.json"
    done = trapline("run", "--format", "json", "-o", str(output), *leave_finding(1))
    title = "the model has fewer outputs than the data has classes"
    said = f"err\ntrapline: {title} (TL102): the report is in {output}\n"
    assert done.stderr.decode() == said
    assert json.loads(output.read_text())["findings"][0]["code"] == "TL102"
    done = trapline("run", "--format", "json", "-o", "-", *leave_finding(1))
    assert json.loads(done.stdout.split(b"\n", 1)[1])["verdict"] == "fault"


def test_a_handled_fault_is_told_in_short(tmp_path: Path) -> None:
    done = trapline("run", "--report", str(tmp_path / "reports"), *leave_finding(0))
    assert done.returncode == 0
    own, caught, total = done.stderr.decode().splitlines()
    assert own == "err" and caught.startswith("trapline: caught: [TL102] ")
    assert total == f"trapline: the program caught 1 fault (TL102); see {tmp_path / 'reports'}"


def test_report_folder_keeps_old_findings_apart(tmp_path: Path) -> None:
    assert trapline("run", "--report", str(tmp_path), *leave_finding(1)).returncode == 1
    assert (tmp_path / "finding-h-1-1.json").exists()
    done = trapline("run", "--format", "json", "--report", str(tmp_path), "true")
    assert json.loads(done.stderr)["findings"] == []


def test_a_run_in_which_nothing_was_guarded_is_not_clean(tmp_path: Path) -> None:
    done = trapline("run", "--format", "json", "-o", str(tmp_path / "r"), sys.executable, "-c", "pass")
    assert done.returncode == 0
    report = json.loads((tmp_path / "r").read_text())
    assert (report["verdict"], report["findings"]) == ("unknown", [])
    assert "none of its processes imported torch" in report["notes"][0]


def test_guard_that_was_not_loaded_is_said() -> None:
    done = trapline("run", sys.executable, "-I", "-c", "raise SystemExit(1)")
    assert done.returncode == 1
    assert b"python -I, -E, -S" in done.stderr and done.stderr.count(b"\n") == 1


def test_private_folder_is_removed(tmp_path: Path) -> None:
    done = trapline("run", *leave_finding(1), env={**os.environ, "TMPDIR": str(tmp_path)})
    assert done.returncode == 1
    assert list(tmp_path.iterdir()) == []


def test_every_option_of_run_is_read_in_the_guarded_process():
    table = (ROOT / "src" / "run" / "options.cpp").read_text()
    variables = re.findall(r'"(TRAPLINE_[A-Z_]+)"', table)
    assert len(variables) > 5
    readers = [path.read_text() for path in (ROOT / "python" / "trapline").rglob("*.py")]
    assert [name for name in variables if not any(f'"{name}"' in text for text in readers)] == []
