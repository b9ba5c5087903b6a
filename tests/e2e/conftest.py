"""Fixtures of the end-to-end tests: they need torch in this Python and a build (TRAPLINE_BUILD_DIR)."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Callable

import e2e_runner as runner
import pytest
from e2e_cases import CASES
from e2e_runner import Outcome

if importlib.util.find_spec("torch") is None:  # scripts/test.sh says so
    collect_ignore_glob = ["test_*.py"]

Start = Callable[[str, str], Outcome]

# Whoever starts the tests in the background of a script, or by nohup, has them ignored, and so would all
# programs here.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)
signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(scope="session", autouse=True)
def finished_build() -> None:
    """Fails at once without a build, and lets the guard build its adapter before any test reads stderr."""
    if not runner.TRAPLINE.exists():
        pytest.fail(f"{runner.TRAPLINE} is missing: build it or set TRAPLINE_BUILD_DIR", pytrace=False)
    first = runner.trapline([], [runner.PYTHON, "-c", "import torch"])
    assert first.returncode == 0, first.stderr


@pytest.fixture(scope="session")
def schema() -> dict[str, Any]:
    return json.loads((runner.REPO / "docs" / "finding.schema.json").read_text(encoding="utf-8"))


def _run_example(kind: str, name: str, folder: Path) -> Outcome:
    case = next(c for c in CASES if c.name == name)
    command = [runner.PYTHON, str(runner.EXAMPLES / case.file)]
    options = list(case.options)
    if kind == "json":
        return runner.trapline_json(folder / name, command, options)
    if kind == "fixed":
        return runner.trapline_json(folder / f"{name}-fixed", [*command, "--fixed"], options)
    if kind == "text":
        return runner.trapline(options, command, cwd=runner.REPO)
    if kind == "off":
        return runner.trapline_json(
            folder / f"{name}-off", command, options, runner.environment(TRAPLINE_OFF="1")
        )
    return runner.plain(command)


@pytest.fixture(scope="session", autouse=True)
def example(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, finished_build: None
) -> Iterator[Start]:
    """`example(kind, name)`: the outcome of one run of an example.

    All runs that the session needs are started here, a few at a time, and go on beside the other tests: most
    of a run is the import of torch.
    """
    folder = tmp_path_factory.mktemp("examples")
    runs: dict[Any, Future[Outcome]] = {}
    with ThreadPoolExecutor(max_workers=max(2, (os.cpu_count() or 2) // 2)) as pool:

        def start(kind: str, name: str) -> Future[Outcome]:
            if (kind, name) not in runs:
                runs[kind, name] = pool.submit(_run_example, kind, name, folder)
            return runs[kind, name]

        for item in request.session.items:
            case = getattr(item, "callspec", None) and item.callspec.params.get("case")
            marker = item.get_closest_marker("needs_runs")
            if case is not None and marker is not None:
                for kind in marker.args:
                    start(kind, case.name)
        yield lambda kind, name: start(kind, name).result()
        for future in runs.values():
            future.cancel()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.path.name == "test_e2e_examples.py")  # last: their runs have begun


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "needs_runs(kinds): runs of the example that the test will ask for")
