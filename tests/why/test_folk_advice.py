"""docs/folk-advice.md says what happens, from runs (requirement E3): this runs every row of its tables."""

import re
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

ROOT = Path(__file__).resolve().parents[2]
ROW = re.compile(r"^\| `(?P<code>.+?)` \| (?P<says>.+) \|$")
NAMES = {"torch": torch, "nn": torch.nn, "F": torch.nn.functional}


def rows() -> list[tuple[str, str]]:
    text = (ROOT / "docs" / "folk-advice.md").read_text(encoding="utf-8")
    return [(match["code"], match["says"]) for match in map(ROW.match, text.splitlines()) if match]


def test_tables_are_found() -> None:
    assert len(rows()) >= 30


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("code", "says"), rows(), ids=[code for code, _ in rows()])
def test_row(code: str, says: str) -> None:
    happened = "no error"
    try:
        eval(code, dict(NAMES))
    except Exception as error:
        happened = f"{type(error).__name__}: {error}"
    expected = "no error" if says.startswith("no error") else says.strip("`")
    assert happened.startswith(expected)
