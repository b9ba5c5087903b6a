"""Every example as it is, on `cuda`: broken it yields its finding, without `--cpu`; fixed it yields none."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import e2e_runner as runner
import pytest
from e2e_cases import CASES
from test_e2e_examples import check_element, check_place

every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """All runs, some at a time: most of each is the import of torch."""
    folder = tmp_path_factory.mktemp("examples")

    def run(case, fixed):
        options = [option for option in case.options if option != "--cpu"]
        command = [runner.PYTHON, str(runner.EXAMPLES / case.file), *(["--fixed"] if fixed else [])]
        return runner.trapline_json(folder / f"{case.name}-{fixed}", command, options)

    with ThreadPoolExecutor(max_workers=max(2, (os.cpu_count() or 2) // 2)) as pool:
        yield {(case.name, fixed): pool.submit(run, case, fixed) for case in CASES for fixed in (False, True)}


@every_case
def test_broken(case, outcomes):
    outcome = outcomes[case.name, False].result()
    finding = runner.only_root(outcome)
    assert outcome.returncode == 1
    assert (finding["code"], finding["cause"], finding["contained"]) == (case.code, case.cause, True)
    if not case.device_assert:
        return
    without_surface = {key: value for key, value in finding.items() if key != "surfaced"}
    place = finding if case.surfaced else without_surface
    check_place(case, place, runner.EXAMPLES / case.file)
    if case.value is not None:
        check_element(case, finding)
    if case.valid is not None:
        assert (finding["valid"]["min"], finding["valid"]["max"]) == case.valid


@every_case
def test_fixed(case, outcomes):
    outcome = outcomes[case.name, True].result()
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.trapline_lines == []
    assert (outcome.report["verdict"], outcome.report["findings"]) == ("clean", [])
