"""The README shows what really comes out: its report is compared with a run of the same program."""

import re

import e2e_runner as runner


def test_the_report_in_the_readme_is_real() -> None:
    readme = (runner.REPO / "README.md").read_text(encoding="utf-8")
    shown = re.search(r"^error\[.*?(?=^```)", readme, re.MULTILINE | re.DOTALL)
    assert shown, "README.md shows no report"
    outcome = runner.trapline([], [runner.PYTHON, "examples/image_classifier_head.py"], cwd=runner.REPO)
    assert outcome.returncode == 1
    report = outcome.stderr[outcome.stderr.index("error[") :]
    assert report.rstrip() == shown.group().rstrip()
