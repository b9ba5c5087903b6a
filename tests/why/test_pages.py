"""`trapline why`: the page of every cause (requirement E1), and docs/causes, which is made from it."""

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("TRAPLINE_BUILD_DIR", ROOT / "build"))
CAUSES = re.findall(r'"(TL\d{3})", "(\w+)"', (ROOT / "src/core/causes.def").read_text(encoding="utf-8"))
SLUGS = [slug for _, slug in CAUSES]
SECTIONS = [
    "What it means",
    "Why the traceback misleads",
    "How to see it",
    "Causes and fixes",
    "Example",
    "Workaround",
    "Prevention",
]


def why(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [str(BUILD / "bin" / "trapline"), "why", *words], capture_output=True, encoding="utf-8", check=False
    )


def test_causes_are_found() -> None:
    assert len(SLUGS) == 23


@pytest.mark.parametrize("slug", SLUGS)
def test_page_has_all_sections(slug: str) -> None:
    page = (ROOT / "docs" / "causes" / f"{slug}.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## (.+)$", page, re.MULTILINE)
    assert headings[: len(SECTIONS)] == SECTIONS
    assert set(headings[len(SECTIONS) :]) <= {"What the guard checks", "What programs print"}
    example = page.split("## Example\n")[1].split("\n## ")[0]
    assert example.count("```python\n") == 2 or example.strip().startswith("None")


@pytest.mark.parametrize("slug", SLUGS)
def test_docs_are_up_to_date(slug: str) -> None:
    """After a wanted change: scripts/pages.sh"""
    done = why(slug, "--markdown")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (ROOT / "docs" / "causes" / f"{slug}.md").read_text(encoding="utf-8")


def test_no_page_without_a_cause() -> None:
    assert {path.stem for path in (ROOT / "docs" / "causes").glob("*.md")} == set(SLUGS)
    assert {path.stem for path in (ROOT / "docs" / "causes" / "text").glob("*.md")} == set(SLUGS)


def prose(text: str) -> list[str]:
    """The lines that are not code: code keeps its own line breaks."""
    return [line for line in text.splitlines() if not line.startswith("    ")]


@pytest.mark.parametrize("slug", SLUGS)
def test_terminal_page_fits_80_columns(slug: str) -> None:
    text = why(slug).stdout
    assert max(map(len, prose(text))) <= 80
    assert "```" not in text and "\x1b" not in text


@pytest.mark.parametrize(
    "word", ["TL101", "tl101", "label_out_of_range", "label-out-of-range", "Label_Out_Of_Range"]
)
def test_spellings(word: str) -> None:
    assert why(word).stdout.startswith("TL101: class label outside the valid range\n")


def test_page_tells_what_the_tables_know() -> None:
    page = why("TL101", "--markdown").stdout
    assert "- `target` of `cross_entropy`: in [0, classes of `self`), or equal to `ignore_index`." in page
    assert "`aten::nll_loss_forward`" in page
    assert "t >= 0 && t < n_classes" in page
    assert "Target 10 is out of bounds" in page


def test_colour_only_when_asked() -> None:
    assert "\x1b[" in why("TL101", "--color", "always").stdout


@pytest.mark.parametrize(
    ("word", "line"),
    [
        ("TL110", "trapline: unknown cause 'TL110': did you mean TL101 (label_out_of_range)?"),
        ("out_of_memry", "trapline: unknown cause 'out_of_memry': did you mean TL401 (out_of_memory)?"),
        ("gibberish", "trapline: unknown cause 'gibberish': `trapline why` lists all causes"),
        ("\x1b[31m", "trapline: unknown cause '\\x1b[31m': `trapline why` lists all causes"),
    ],
)
def test_unknown_cause_is_one_line(word: str, line: str) -> None:
    done = why(word)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", line + "\n")


def test_list() -> None:
    done = why()
    assert done.returncode == 0
    for code, slug in CAUSES:
        assert re.search(rf"^{code}  {slug} ", done.stdout, re.MULTILINE)


def test_all() -> None:
    page = why("--all", "--markdown").stdout
    assert re.findall(r"^# (TL\d{3}): ", page, re.MULTILINE) == [code for code, _ in CAUSES]


def test_reader_that_goes_away_is_no_error() -> None:
    command = f'"{BUILD / "bin" / "trapline"}" why --all | head -1'
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
