"""Every example: broken it yields exactly one root finding, checked field by field; fixed it yields none."""

from __future__ import annotations

import importlib.util
import math
import sys
from pathlib import Path
from typing import Any

import e2e_runner as runner
import pytest
from e2e_cases import CASES, Case
from e2e_runner import Outcome

try:
    import jsonschema
except ImportError:  # tests/fakecuda wants some functions of this file only, on machines that lack it
    jsonschema = None
pytestmark = pytest.mark.skipif(jsonschema is None, reason="needs jsonschema")

every_case = pytest.mark.parametrize("case", CASES, ids=lambda c: c.id)
REPORT_LINES, REPORT_COLUMNS = 25, 80


def load_example(case: Case) -> Any:
    """The example as a module, for its data set."""
    path = runner.EXAMPLES / case.file
    spec = importlib.util.spec_from_file_location(f"example_{case.name}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def check_finding(case: Case, finding: dict[str, Any]) -> None:
    """All fields of the row against the finding, one by one."""
    source = runner.EXAMPLES / case.file
    assert (finding["code"], finding["cause"]) == (case.code, case.cause)
    assert finding["certainty"] == case.certainty
    assert finding["role"] == "root"
    assert finding["device_assert"] is case.device_assert
    assert finding["contained"] is True
    assert finding["op"] == case.op
    if case.argument is not None:
        assert finding["argument"] == case.argument
    check_place(case, finding, source)
    if case.value is not None:
        check_element(case, finding)
    if case.valid is not None:
        assert (finding["valid"]["min"], finding["valid"]["max"]) == case.valid
        assert tuple(finding["valid"].get("also", ())) == case.also
    if case.dtype is not None:
        assert finding["tensor"]["dtype"] == case.dtype
        assert finding["tensor"]["device"] == case.device
    if case.layer:
        layer = finding["layer"]
        assert {name: layer.get(name) for name in case.layer} == case.layer
    if case.sample:
        assert finding["sample"]["dataset_index"] >= 0
        assert finding["sample"]["batch"] >= 0
    assert finding["fix"], "a finding without advice"
    assert "\n" not in finding["summary"]


def check_place(case: Case, finding: dict[str, Any], source: Path) -> None:
    """Origin: the marked line, in the user's file, with its text; no deeper user frame is in the stack."""
    line = runner.marked_line(source)
    origin = finding["origin"]
    assert (origin["file"], origin["line"]) == (str(source), line)
    assert origin["code"].strip() == source.read_text(encoding="utf-8").splitlines()[line - 1].strip()
    assert origin["user"] is True
    user = [frame["line"] for frame in finding["stack"] if frame.get("user")]
    if case.surfaced:
        assert finding["surfaced"]["line"] == runner.marked_line(source, "# <- surfaces")
        assert finding["surfaced"]["file"] == str(source)
    else:
        assert user[-1] == line  # outermost first: the deepest user frame is the origin
    if "column" in origin:
        assert 1 <= origin["column"] < origin["end_column"] <= len(origin["code"]) + 1


def check_element(case: Case, finding: dict[str, Any]) -> None:
    element, shape = finding["element"], finding["tensor"]["shape"]
    value = element["value"]
    assert case.value(value) if callable(case.value) else value == case.value
    assert len(element["index"]) == len(shape)
    assert all(0 <= i < size for i, size in zip(element["index"], shape))
    assert element["total"] * case.repeats == math.prod(shape)
    assert 1 <= element["bad"] <= element["total"]


@every_case
@pytest.mark.needs_runs("json")
def test_broken_example_has_one_root_finding(case: Case, example: Any, schema: dict[str, Any]) -> None:
    outcome: Outcome = example("json", case.name)
    jsonschema.validate(outcome.report, schema)
    check_finding(case, runner.only_root(outcome))
    assert outcome.report is not None and outcome.report["command"] == "run"
    assert outcome.returncode == 1  # the program's own
    for written in outcome.written:
        jsonschema.validate(written, schema)


@pytest.mark.parametrize("case", [c for c in CASES if c.truth is not None], ids=lambda c: c.id)
@pytest.mark.needs_runs("json")
def test_named_sample_really_is_the_bad_one(case: Case, example: Any) -> None:
    finding = runner.only_root(example("json", case.name))
    assert case.truth is not None
    case.truth(load_example(case).build_dataset(False), finding)


@every_case
@pytest.mark.needs_runs("text")
def test_text_report_is_short_and_holds_the_facts(case: Case, example: Any) -> None:
    outcome: Outcome = example("text", case.name)
    assert outcome.returncode == 1
    before, code, after = outcome.stderr.partition(f"{case.code}")
    assert code, outcome.stderr
    report = before.splitlines()[-1:] + (code + after).splitlines()
    report = [report[0] + report[1], *report[2:]] if before and not before.endswith("\n") else report[1:]
    assert len(report) <= REPORT_LINES, "\n".join(report)
    assert [line for line in report if len(line) > REPORT_COLUMNS] == []
    text = "\n".join(report)
    assert "\x1b" not in text  # stderr is no terminal here
    words = " ".join(text.split())
    line = runner.marked_line(runner.EXAMPLES / case.file)
    assert f"{case.file}:{line}" in text
    for fact in case.says:
        assert fact in words, text
    for advice in case.never:
        assert advice not in words, text
    if case.value is not None and not callable(case.value):
        assert f"{case.argument}[" in text
        assert str(case.value).lower() in text.lower()
    assert "Traceback (most recent call last)" in before  # the program's own output comes first, complete


QUOTED = [c for c in CASES if c.name in ("image_classifier_head", "nan_to_index")]


@pytest.mark.parametrize("case", QUOTED, ids=lambda c: c.id)
@pytest.mark.needs_runs("text")
def test_readme_quotes_what_the_build_prints(case: Case, example: Any) -> None:
    readme = (runner.EXAMPLES / "README.md").read_text(encoding="utf-8")
    report = "error[" + example("text", case.name).stderr.partition("error[")[2]
    assert f"```text\n{report}```\n" in readme


@every_case
def test_readme_lists_the_example(case: Case) -> None:
    readme = (runner.EXAMPLES / "README.md").read_text(encoding="utf-8")
    rows = [line for line in readme.splitlines() if line.startswith(f"| [{case.file}]({case.file}) |")]
    assert len(rows) == 1 and rows[0].endswith(f"| {case.code} |")


@pytest.mark.parametrize("case", [c for c in CASES if c.sample], ids=lambda c: c.id)
@pytest.mark.needs_runs("json", "text")
def test_text_report_names_the_data_set_index(case: Case, example: Any) -> None:
    index = runner.only_root(example("json", case.name))["sample"]["dataset_index"]
    report = example("text", case.name).stderr.partition(case.code)[2]
    assert f".dataset[{index}] (batch " in report or f"\n   = sample:  dataset[{index}] (batch " in report, (
        report
    )


@every_case
@pytest.mark.needs_runs("fixed")
def test_fixed_example_runs_clean(case: Case, example: Any, schema: dict[str, Any]) -> None:
    outcome: Outcome = example("fixed", case.name)
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.trapline_lines == []
    assert outcome.written == []
    assert outcome.report is not None
    jsonschema.validate(outcome.report, schema)
    assert (outcome.report["verdict"], outcome.report["findings"]) == ("clean", [])
    assert outcome.stdout.splitlines()[0].startswith("epoch 1 ")


GUARDED = [
    c for c in CASES if c.name in ("image_classifier_head", "tokenizer_too_large", "bce_nan", "sampling_nan")
]


@pytest.mark.parametrize("case", GUARDED, ids=lambda c: c.id)
@pytest.mark.needs_runs("off", "json")
def test_without_the_guard_there_is_no_finding(case: Case, example: Any) -> None:
    """Findings come from contracts: PyTorch's own CPU message is there all the same, and names nothing."""
    outcome: Outcome = example("off", case.name)
    assert outcome.returncode == 1
    assert "Error: " in outcome.stderr  # PyTorch's own
    assert "DeviceAssertError" not in outcome.stderr
    assert outcome.written == []
    with pytest.raises(AssertionError):
        check_finding(case, runner.only_root(outcome))
    assert (
        outcome.stdout == example("json", case.name).stdout
    )  # the guard changes nothing that the program prints


def test_without_the_start_up_hook_there_is_no_finding(tmp_path: Path) -> None:
    """The same when the hook cannot reach the program."""
    case = GUARDED[0]
    command = ["env", "-u", "PYTHONPATH", runner.PYTHON, str(runner.EXAMPLES / case.file)]
    outcome = runner.trapline_json(tmp_path, command)
    assert outcome.returncode == 1
    assert outcome.written == []
    assert "IndexError: Target 195 is out of bounds." in outcome.stderr
    with pytest.raises(AssertionError):
        check_finding(case, runner.only_root(outcome))
