"""What users read: every link leads somewhere, every session that a page shows is what the build prints."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("TRAPLINE_BUILD_DIR") or ROOT / "build").resolve()
sys.path.insert(0, str(ROOT / "scripts"))
import docs_links  # noqa: E402
import docs_output  # noqa: E402

PAGES = [str(path.relative_to(ROOT)) for path in docs_output.pages()]
# Why a session may be shown without being run: what it would take.
REASONS = (
    "needs a GPU",
    "needs libtorch and a compiler",
    "needs a cluster",
    "installs",
    "serves until",
    "done by tests/",
)


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def test_the_pages_are_all_there() -> None:
    assert {"README.md", "docs/explain.md", "docs/causes/label_out_of_range.md", "docs/start/log.md"} <= set(
        PAGES
    )


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    assert docs_links.broken(ROOT / page) == []


def test_a_broken_link_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "other.md").write_text(
        "# A `code` heading, twice\n# A `code` heading, twice\n", encoding="utf-8"
    )
    page = tmp_path / "page.md"
    page.write_text(
        "# Here\n[a](other.md) [b](other.md#a-code-heading-twice-1) [c](#here) [d](https://example.org/x)\n"
        "```\n[not a link](nowhere.md)\n```\n`[nor](this.md)`\n"
        '[e](gone.md) [f](other.md#gone) [g](#gone) <img src="gone.svg"> <source srcset="gone-too.svg">\n',
        encoding="utf-8",
    )
    assert docs_links.broken(page, tmp_path) == [
        "gone.md",
        "other.md#gone",
        "#gone",
        "gone.svg",
        "gone-too.svg",
    ]


@pytest.mark.parametrize("page", PAGES)
def test_sessions_are_marked(page: str) -> None:
    """What looks like a session or a report stands in a console block, where it is compared."""
    for name, body in re.findall(r"^```(\w*)\n(.*?)^```$", text_of(page), re.MULTILINE | re.DOTALL):
        if name == "console" or (page, name) == ("examples/README.md", "text"):  # that one: tests/e2e
            continue
        assert not re.search(r"^\$ |^error\[TL", body, re.MULTILINE), body
    for block in docs_output.blocks(text_of(page)):
        for step in block.steps:
            assert not step.shown or [line for line in step.shown if not line.startswith("...")], step.command


def test_what_is_not_run_says_why() -> None:
    found = [(page, block) for page in PAGES for block in docs_output.blocks(text_of(page))]
    not_run = [(page, block.not_run) for page, block in found if block.not_run is not None]
    assert [entry for entry in not_run if not entry[1].startswith(REASONS)] == []
    for _, reason in not_run:  # a test that does it instead is one that there is
        assert all((ROOT / named).exists() for named in re.findall(r"tests/[\w/.]*\w", reason)), reason
    print(f"{len(found) - len(not_run)} sessions are run, {len(not_run)} are only shown: {not_run}")
    assert len(not_run) < len(found) - len(not_run)


@pytest.mark.parametrize("page", [page for page in PAGES if docs_output.blocks(text_of(page))])
def test_sessions_print_what_is_shown(page: str) -> None:
    if "python" in "".join(s.command for b in docs_output.blocks(text_of(page)) for s in b.steps):
        pytest.importorskip("torch")
    assert docs_output.compare(ROOT / page, BUILD) == [], "run scripts/docs_output.py --write"


@pytest.mark.parametrize(
    ("shown", "printed", "equal"),
    [
        (["a", "b"], ["a", "b"], True),
        (["a"], ["a", "b"], False),
        (["..."], ["a", "b"], True),
        (["... (its own output)", "error[X]: y"], ["a", "b", "error[X]: y"], True),
        (["a", "...", "z"], ["a", "z"], True),
        (["a", "...", "z"], ["a", "b", "y"], False),
        ([], ["a"], False),
        (["a.c"], ["abc"], False),
    ],
)
def test_how_lines_are_compared(shown: list[str], printed: list[str], equal: bool) -> None:
    assert docs_output.matches(shown, printed) is equal


def test_a_page_is_mended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(docs_output, "ROOT", tmp_path)
    (tmp_path / "examples").mkdir()
    page = tmp_path / "page.md"
    page.write_text(
        "```console\n$ printf 'one\\ntwo\\nerror: new\\n'; exit 3\n... (skipped)\nerror: old\n"
        "$ echo $?\n0\n```\n"
        "```console\n# not run: needs a GPU\n$ false\nas it is\n```\n",
        encoding="utf-8",
    )
    assert len(docs_output.compare(page, BUILD)) == 2
    docs_output.compare(page, BUILD, write=True)
    assert docs_output.compare(page, BUILD) == []
    assert "... (skipped)\nerror: new\n$ echo $?\n3\n" in page.read_text(encoding="utf-8")
    assert "as it is" in page.read_text(encoding="utf-8")


@pytest.mark.skipif(
    importlib.util.find_spec("mkdocs") is None, reason="mkdocs is missing: the site is not built"
)
def test_the_site_builds_and_fetches_nothing(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "-q", "--strict", "-d", str(tmp_path / "site")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    fetched = re.compile(
        r"<(?:script|img|iframe)[^>]*\bsrc=.?https?:|<link[^>]*\brel=.?stylesheet[^>]*https?:"
    )
    pages = sorted(page for page in (tmp_path / "site").rglob("*.html") if page.name != "404.html")
    assert len(pages) > 50
    assert [page.name for page in pages if fetched.search(page.read_text(encoding="utf-8"))] == []
    for page in pages:  # what one page of the site asks of another is there
        text = page.read_text(encoding="utf-8")
        for target in re.findall(r'(?:href|src)="([^"#?:]+)(?:[#?][^"]*)?"', text):
            assert (page.parent / target).exists(), f"{page.relative_to(tmp_path)}: {target}"


def test_pictures_are_those_of_the_build() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "pictures"), "--check", "--build", str(BUILD)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "different: none\n"), done.stdout + done.stderr


def test_the_picture_of_the_report_is_the_report() -> None:
    drawn = (ROOT / "docs" / "pictures" / "report.ansi").read_text(encoding="utf-8")
    plain = "".join(line.rstrip() + "\n" for line in re.sub(r"\x1b\[[0-9;]*m", "", drawn).splitlines())
    assert plain.strip() in text_of("README.md"), "run scripts/pictures --record"


def test_every_cause_is_in_the_list() -> None:
    listed = set(docs_links.links(text_of("docs/causes.md")))
    assert listed == {f"causes/{page.name}" for page in (ROOT / "docs" / "causes").glob("*.md")}


def test_the_site_leads_to_every_page() -> None:
    """Pages are found by their place in mkdocs.yml; the causes by their list."""
    named = set(re.findall(r"^ +- .*: (\S+\.md)$", text_of("mkdocs.yml"), re.MULTILINE))
    here = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")}
    here = {page for page in here if not page.startswith("causes/")}
    coming = {page.removeprefix("docs/") for page in docs_links.COMING}
    assert here - named == set()
    assert {page for page in named if not page.startswith("repository/")} - here <= coming
