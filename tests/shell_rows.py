"""Tables of cases that are lines of bash. In a file NAME.rows an entry is its name behind "# ", the lines,
and what is expected behind "=> "."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


class Row(NamedTuple):
    table: str
    name: str
    script: str
    expected: list[str]

    def __str__(self) -> str:
        return f"{self.table}: {self.name}"


def read_rows(file: Path) -> list[Row]:
    rows = []
    for entry in file.read_text(encoding="utf-8").split("\n\n"):
        name, *script, expected = entry.strip().splitlines()
        assert name.startswith("# ") and expected.startswith("=> "), entry
        rows.append(Row(file.stem, name[2:], "\n".join(script), expected[3:].split()))
    return rows
