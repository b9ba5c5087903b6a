"""How the tests run `trapline check` and read its report."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("TRAPLINE_BUILD_DIR", ROOT / "build"))
TRAPLINE = str(BUILD / "bin" / "trapline")
SCHEMA = json.loads((ROOT / "docs" / "finding.schema.json").read_text(encoding="utf-8"))


def run(*words: object, **options: Any) -> "subprocess.CompletedProcess[str]":
    command = [TRAPLINE, "check", *map(str, words)]
    return subprocess.run(command, capture_output=True, encoding="utf-8", check=False, **options)


def report(*words: object, exit_code: int) -> dict:
    """The report as JSON; asserts the exit code and, where jsonschema is there, the schema."""
    done = run(*words, "--format", "json")
    assert done.returncode == exit_code, (done.returncode, done.stdout, done.stderr)
    read = json.loads(done.stdout)
    try:
        import jsonschema
    except ImportError:
        return read
    jsonschema.validators.validator_for(SCHEMA)(SCHEMA).validate(read)
    return read


def only_finding(*words: object) -> dict:
    findings = report(*words, exit_code=1)["findings"]
    assert len(findings) == 1, [finding["summary"] for finding in findings]
    return findings[0]
