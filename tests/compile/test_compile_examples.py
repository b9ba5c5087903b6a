"""Every example, compiled by Inductor for the CPU: cause and origin are those that it has without a compiler.

`compiled_example.py` says what is compiled: nothing of `two_devices`, where no model is moved as a whole.
TRAPLINE_LONG=1 runs all examples, otherwise the ten of FIRST.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

pytest.importorskip("jsonschema")

import e2e_runner as runner
from conftest import HERE, LONG
from e2e_cases import CASES
from test_e2e_examples import check_finding, check_place

# What torch.compile itself makes different, and which fields are compared all the same.
DIFFERENT = {
    "linear_shape": (
        "the error is one of the trace, which knows shapes and no layers",
        ("code", "cause", "origin"),
    ),
    "categorical_nan": (
        "compiled code leaves out the validation of distributions: the NaN is found where it is drawn from",
        ("code", "cause"),
    ),
}
FIRST = (
    "bce_nan",
    "bce_without_sigmoid",
    "embedding_bag_categories",
    "float_labels",
    "gather_index",
    "hardcoded_cuda",
    "labels_one_based",
    "linear_shape",
    "nan_to_index",
    "workers",
)
SELECTED = [case for case in CASES if LONG or case.name in FIRST]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """All runs, two at a time: most of each is the compilation."""
    folder = tmp_path_factory.mktemp("compiled")
    runner.TIME_LIMIT = 600

    def run(case):
        command = [runner.PYTHON, str(HERE / "compiled_example.py"), str(runner.EXAMPLES / case.file)]
        return runner.trapline_json(folder / case.name, command, list(case.options))

    with ThreadPoolExecutor(max_workers=2) as pool:
        yield {case.name: pool.submit(run, case) for case in SELECTED}


@pytest.mark.parametrize("case", SELECTED, ids=lambda case: case.name)
def test_compiled_example(case, outcomes):
    outcome = outcomes[case.name].result()
    finding = runner.only_root(outcome)
    assert outcome.returncode == 1
    if case.name not in DIFFERENT:
        check_finding(case, finding)
        return
    _, compared = DIFFERENT[case.name]
    assert (finding["code"], finding["cause"]) == (case.code, case.cause)
    if "origin" in compared:
        check_place(case, finding, runner.EXAMPLES / case.file)


def test_the_table_of_differences_is_about_examples():
    assert set(DIFFERENT) | set(FIRST) <= {case.name for case in CASES}
