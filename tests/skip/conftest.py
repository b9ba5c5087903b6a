"""The guard of this process with --on-fault skip."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
os.environ.setdefault("TRAPLINE_BUILD_DIR", str(ROOT / "build"))
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests" / "python"), str(ROOT / "tests" / "e2e")]

try:
    import torch
except ImportError:  # scripts/test.sh says so
    torch = None
    collect_ignore_glob = ["test_*.py"]


class Skipping:
    """--on-fault skip as this process has it."""

    def __init__(self, folder: Path) -> None:
        self.quarantine = folder / "trapline-quarantine.jsonl"
        self.start()

    def start(self, limit: float = 100.0) -> None:
        from trapline._skip import loader, policy, quarantine

        policy.install("skip", limit)
        quarantine.install(str(self.quarantine))
        loader.install()

    def stop(self) -> None:
        from trapline._skip import loader, policy, quarantine

        loader.uninstall()
        quarantine.uninstall()
        policy.uninstall()

    def counts(self) -> tuple[int, int]:
        """(optimizer steps, how many of them were left out)"""
        from trapline._skip import ledger

        counts = ledger.counts()
        return counts["steps"], counts["skipped"]

    def entries(self) -> list[dict[str, Any]]:
        import json

        if not self.quarantine.exists():
            return []
        return [json.loads(line) for line in self.quarantine.read_text().splitlines()]


@pytest.fixture(scope="session")
def guard() -> Iterator[None]:
    import trapline

    trapline.install()
    yield
    trapline.uninstall()


@pytest.fixture
def skipping(guard: None, tmp_path: Path) -> Iterator[Skipping]:
    skipping = Skipping(tmp_path)
    yield skipping
    skipping.stop()


@pytest.fixture
def holding(skipping: Skipping, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Skipping]:
    """Steps with NaN are left out, too, as the watch says."""
    from trapline._skip import policy
    from trapline._watch import light

    monkeypatch.setenv("TRAPLINE_REPORT_DIR", str(tmp_path))
    light.uninstall()  # what the tests before it have left
    light.install()
    policy.by_watch(light.holding)
    yield skipping
    light.uninstall()


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """After four steps the watch looks at none: they are counted in C."""
    from trapline._watch import budget, watching

    monkeypatch.setattr(watching, "ALWAYS", 4)
    monkeypatch.setattr(budget, "_SHARE", 1e-9)


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)
