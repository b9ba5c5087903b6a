"""Every report that Trapline writes is valid against docs/finding.schema.json."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

jsonschema = pytest.importorskip("jsonschema")

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("TRAPLINE_BUILD_DIR", ROOT / "build"))
CASES = sorted((ROOT / "tests" / "report" / "cases").glob("*.json"))
SCHEMA = json.loads((ROOT / "docs" / "finding.schema.json").read_text(encoding="utf-8"))


def check(report: Any) -> None:
    """Raises when the report breaks the schema."""
    jsonschema.validators.validator_for(SCHEMA)(SCHEMA).validate(report)


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.stem)
def test_case_is_valid_itself(case: Path) -> None:
    check(json.loads(case.read_text(encoding="utf-8")))


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.stem)
def test_report_of_run_is_valid(case: Path, tmp_path: Path) -> None:
    """A program leaves the case's report; what `run` makes of it must be valid and say the same."""
    output = tmp_path / "report.json"
    script = f'cp "{case}" "$TRAPLINE_REPORT_DIR/finding-host-1-1.json"; exit 1'
    command = [
        str(BUILD / "bin" / "trapline"),
        "run",
        "--format",
        "json",
        "-o",
        str(output),
        "--",
        "sh",
        "-c",
        script,
    ]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 1, done.stderr.decode()
    report = json.loads(output.read_text(encoding="utf-8"))
    check(report)
    given = json.loads(case.read_text(encoding="utf-8"))["findings"]
    assert report["verdict"] == ("fault" if given else "unknown")
    assert {f["cause"] for f in report["findings"]} == {f["cause"] for f in given}
    if given:
        assert report["findings"][0] == given[0]


def test_schema_can_fail() -> None:
    report = json.loads(CASES[0].read_text(encoding="utf-8"))
    report["verdict"] = "perhaps"
    with pytest.raises(jsonschema.ValidationError):
        check(report)
