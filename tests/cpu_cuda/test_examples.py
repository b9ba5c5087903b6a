"""The examples under ``trapline run --cpu``, where each of them finds a GPU: the finding is the CPU's.

With late work (TRAPLINE_CPU_LATE) the guard goes the way of a GPU: the same fault, line and element.
"""

from __future__ import annotations

import dataclasses
import os
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import ROOT

sys.path.append(str(ROOT / "tests" / "e2e"))
pytest.importorskip("jsonschema")

import e2e_runner as runner
import parity
from e2e_cases import CASES
from test_e2e_examples import check_element, check_finding, check_place, load_example

LONG = os.environ.get("TRAPLINE_LONG") == "1"  # all examples, otherwise the first
FIRST = ("image_classifier_head", "embedding_bag_categories", "bce_nan", "two_devices", "workers",
         "labels_one_based", "nan_to_index")  # fmt: skip
ON_CUDA = {"two_devices": {"op": "addmm", "says": ("cuda:0", "cpu", ".to(")}}


SELECTED = [case for case in CASES if LONG or case.name in FIRST]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """All runs, two at a time: most of each is the import of torch."""
    folder = tmp_path_factory.mktemp("examples")

    def run(case, late):
        options = ["--cpu", *(option for option in case.options if option != "--cpu")]
        command = [runner.PYTHON, str(runner.EXAMPLES / case.file)]
        environment = runner.environment(**({"TRAPLINE_CPU_LATE": "1"} if late else {}))
        return runner.trapline_json(folder / f"{case.name}-{late}", command, options, environment)

    with ThreadPoolExecutor(max_workers=2) as pool:
        yield {(case.name, late): pool.submit(run, case, late) for late in (False, True) for case in SELECTED}


def on_cuda(case):
    return dataclasses.replace(case, device="cuda:0", **ON_CUDA.get(case.name, {}))


@pytest.mark.parametrize("case", SELECTED, ids=lambda case: case.name)
def test_the_finding_is_that_of_the_cpu(case, outcomes):
    outcome = outcomes[case.name, False].result()
    finding = runner.only_root(outcome)
    assert outcome.returncode == 1
    check_finding(on_cuda(case), finding)
    if case.truth is not None:
        case.truth(load_example(case).build_dataset(False), finding)


@pytest.mark.parametrize("case", SELECTED, ids=lambda case: case.name)
def test_late_work_hides_no_fault(case, outcomes):
    outcome = outcomes[case.name, True].result()
    finding = runner.only_root(outcome)
    assert outcome.returncode == 1
    assert (finding["code"], finding["cause"], finding["contained"]) == (case.code, case.cause, True)
    if not case.device_assert:
        return
    check_place(case, finding if case.surfaced else without_surface(finding), source(case))
    if case.value is not None:
        check_element(case, finding)
    if case.valid is not None:
        assert (finding["valid"]["min"], finding["valid"]["max"]) == case.valid
    here = runner.only_root(outcomes[case.name, False].result())
    unlike = parity.differences(here, finding)
    assert [name for name in unlike if parity.explained(case.name, name) is None] == [], unlike


def source(case):
    return runner.EXAMPLES / case.file


def without_surface(finding):
    """Where a late fault was noticed is another line than where it was made."""
    return {key: value for key, value in finding.items() if key != "surfaced"}


WATCHED = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(5):
    x = torch.randn(6, 4).cuda()
    if step == 3:
        x[2, 1] = float("nan")
    loss = model(x).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize("late", [False, True])
def test_the_watch_names_step_and_layer(late, tmp_path):
    (tmp_path / "watched.py").write_text(WATCHED, encoding="utf-8")
    environment = runner.environment(**({"TRAPLINE_CPU_LATE": "1"} if late else {}))
    options, command = ["--cpu", "--watch", "nan"], [runner.PYTHON, str(tmp_path / "watched.py")]
    finding = runner.only_root(runner.trapline_json(tmp_path, command, options, environment))
    assert finding["code"] == "TL109" and finding["layer"]["name"] == "0"
    assert "in step 4" in finding["summary"]
