"""``pytest --trapline``: tests run under the guard, and a test that fails of a fault shows the finding.

The wheel registers it with pytest; elsewhere ``-p trapline.pytest_plugin`` does. Not asked for, it adds two
options and a marker, and imports nothing. Exceptions that a test expects (``pytest.raises(IndexError)``) are
its own affair: nothing is printed for a test that passes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from typing import Any, Optional

import pytest

from trapline._library import say

_MARKER = "trapline(off=True): under --trapline, run this test without the guard"


def pytest_addoption(parser: Any) -> None:
    group = parser.getgroup("trapline")
    group.addoption("--trapline", action="store_true", help="guard the tests; a fault shows its finding")
    group.addoption(
        "--trapline-report", metavar="DIR", help="write each finding there, too (docs/finding.schema.json)"
    )


def pytest_configure(config: Any) -> None:
    config.addinivalue_line("markers", _MARKER)
    if config.getoption("--trapline") or config.getoption("--trapline-report"):
        config.pluginmanager.register(_Guarded(config), "trapline-guarded")


class _Guarded:
    """The plugin when it was asked for."""

    def __init__(self, config: Any) -> None:
        import trapline

        folder = config.getoption("--trapline-report")
        self.folder = None if folder is None else os.path.abspath(folder)
        self.compact = config.getoption("tbstyle") == "auto" and not config.getoption("fulltrace")
        say.present_with(lambda finding: None)  # pytest shows them, with its own results
        try:
            if self.folder is not None:
                os.makedirs(self.folder, exist_ok=True)
            trapline.install()
        except (ImportError, RuntimeError, OSError) as problem:
            raise pytest.UsageError(f"--trapline: {problem}") from None

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: Any) -> Generator[None, Any, Any]:
        """The guard is off around a test that says so, fixtures included."""
        from trapline import _boot

        marker = item.get_closest_marker("trapline")
        if marker is None or not marker.kwargs.get("off"):
            return (yield)
        before = _boot.set_enabled(False)
        if not _boot.is_active():
            _boot.uninstall()  # should the test import torch
        try:
            return (yield)
        finally:
            _boot.install()
            if before:
                _boot.set_enabled(True)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: Any, call: Any) -> Generator[None, Any, Any]:
        return self._with_finding((yield), call)

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector: Any) -> Generator[None, Any, Any]:
        """A fault while a module of tests is imported."""
        report = yield
        return self._with_finding(report, getattr(report, "call", None))

    def _with_finding(self, report: Any, call: Any) -> Any:
        if report.failed and call is not None and call.excinfo is not None:
            finding = _finding_of(call.excinfo.value)
            if finding:
                self._show(report, finding)
        return report

    def _show(self, report: Any, finding: dict[str, Any]) -> None:
        from trapline._library import diagnose
        from trapline._library.report import NotWritten, write_finding

        text = diagnose.render(finding)
        if not (self.compact and _replace_traceback(report, finding, text)):
            report.sections.append(("trapline", text))
        if self.folder is not None:
            try:
                write_finding(self.folder, finding, [f"the test is {report.nodeid}"], always=True)
            except NotWritten as problem:
                report.sections.append(("trapline", str(problem)))


def _finding_of(error: BaseException) -> Optional[dict[str, Any]]:
    """What Trapline says of an exception that ended a test; None: nothing."""
    if "torch" not in sys.modules:
        return None
    from trapline._exceptions import hooks

    return hooks.explain(error, "cell")


def _replace_traceback(report: Any, finding: dict[str, Any], text: str) -> bool:
    """Shows the finding in the traceback's place, where pytest's own is one of the usual kind."""
    try:
        from _pytest._code.code import ExceptionChainRepr, ReprFileLocation, ReprTracebackNative
    except ImportError:
        return False
    crash = getattr(report.longrepr, "reprcrash", None)
    if not isinstance(report.longrepr, ExceptionChainRepr) or crash is None:
        return False
    origin = finding.get("origin") or {}
    place = ReprFileLocation(
        origin.get("file") or crash.path, origin.get("line") or crash.lineno, crash.message
    )
    lines = text.splitlines(keepends=True)
    report.longrepr = ExceptionChainRepr([(ReprTracebackNative(lines), place, None)])
    return True
