"""docs/coverage.md: every assertion in device code that a user can reach, and the contracts before it.

Generated here, since only the running torch knows how many overloads a contract hooks;
``TRAPLINE_UPDATE_DOCS=1`` writes it again. With another torch than the one that the page names, only the join
is compared.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from pathlib import Path

import torch
from cases import cases

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "coverage.md"
RAW = re.compile(r'R"~\((.*?)\)~"|"((?:[^"\\]|\\.)*)"|\bk(User|Rare|Internal)\b', re.DOTALL)
CALL = re.compile(r"^(TRAPLINE_\w+)\((.*?)\)\s*(?=^TRAPLINE_|^//|\Z|^\s*$)", re.DOTALL | re.MULTILINE)

KINDS = {
    "guarded": "contracts stand before it",
    "user": "the user's own assertion",
    "internal": "no argument of a user can be wrong",
    "host": "an exception says it before",
    "machine": "not a value but the machine",
    "compile": "the pass over compiled graphs stands there",
    "gone": "in no torch that Trapline runs with",
    "project": "another project's operation",
    "open": "not covered",
}


def rows(path: Path) -> list[tuple[str, list[str]]]:
    """The macro calls of a table: name and string arguments; neighbouring strings of C are one."""
    found = []
    for name, body in CALL.findall(path.read_text(encoding="utf-8")):
        words, last = [], None
        for match in RAW.finditer(body):
            text = match[1] if match[1] is not None else match[2] if match[2] is not None else match[3]
            joined = last is not None and body[last : match.start()].strip() == ""
            if joined:
                words[-1] += text
            else:
                words.append(text)
            last = match.end()
        found.append((name, words))
    return found


def sites() -> list[list[str]]:
    """(file, condition, operation, argument, reach) of the catalogue's rows that are not internal."""
    found = []
    for name, words in rows(ROOT / "src/catalogue/asserts_torch.def"):
        assert name == "TRAPLINE_ASSERT"
        reach = next(word for word in words[8:] if word in {"User", "Rare", "Internal"})
        if reach != "Internal":
            found.append([words[0], words[4], words[5], words[6], reach])
    return found


def matching(coverage: list[list[str]], site: list[str]) -> int:
    """The row of coverage.def for a site, as find_coverage() of src/contracts finds it."""
    file, condition, op, argument, _ = site
    best, best_says = -1, -1
    for at, row in enumerate(coverage):
        fits = (
            row[0] in ("", file) and row[1] in ("*", op) and row[2] in ("*", argument) and row[3] in condition
        )
        says = 4 * bool(row[0]) + 2 * bool(row[3]) + (row[2] != "*")
        if fits and says > best_says:
            best, best_says = at, says
    return best


def overloads_of(hooked: list[str], contracts: list[str]) -> int:
    operations = {contract.partition(".")[0] for contract in contracts}
    return sum(name.removeprefix("aten::").partition(".")[0] in operations for name in hooked)


def count_tests(contracts: list[str]) -> int:
    import conformance

    named = [case[0] for case in cases()] * 2 + [call.contract for call in conformance.BAD_CALLS] * 2
    return sum(name in contracts for name in named)


def render(hooked: list[str]) -> str:
    table = rows(ROOT / "src/contracts/coverage.def")
    coverage = [words for name, words in table if name == "TRAPLINE_COVERAGE"]
    silent = [words for name, words in table if name == "TRAPLINE_SILENT"]
    count: Counter[int] = Counter()
    files: dict[int, set[str]] = {}
    every = sites()
    for site in every:
        at = matching(coverage, site)
        count[at] += 1
        files.setdefault(at, set()).add(site[0])
    kinds: Counter[str] = Counter()
    for at, row in enumerate(coverage):
        kinds[row[5]] += count[at]
    named = {id for row in [*(r[4] for r in coverage), *(r[1] for r in silent)] for id in row.split()}
    text = [
        "# What stands before each assertion",
        "",
        "Generated from `src/contracts/coverage.def` and `src/catalogue/asserts_torch.def` by "
        "`tests/guard/test_coverage.py`:",
        f"{len(every)} assertions in PyTorch's device code that a user's call can reach,",
        f"{len(silent)} places that go wrong without one, {len(named)} contracts.",
        f"Overloads: those that the guard hooks in torch {torch.__version__}, {len(hooked)} in all.",
        "Tests: a bad and a good call per contract, and all calls of the conformance table in both adapters.",
        "The calls of the conformance table were seen on a GPU ([gpu.md](gpu.md));",
        "[contracts.md](contracts.md) says what of a contract is looked at in device memory.",
        "",
        "| class | meaning | assertions |",
        "|---|---|---|",
        *(f"| {kind} | {meaning} | {kinds[kind]} |" for kind, meaning in KINDS.items()),
        "",
        "## Assertions",
        "",
        "| operation, argument | files | sites | contracts or why not | overloads | tests |",
        "|---|---|---|---|---|---|",
    ]
    for at, row in enumerate(coverage):
        where = ", ".join(filter(None, (row[1].replace("*", ""), row[2].replace("*", "")))) or "-"
        names = ", ".join(f"`{name}`" for name in sorted(files.get(at, ())) if name) or "-"
        text.append(line(where if not row[3] else f"{where}: `{row[3]}`", names, count[at], row[4:], hooked))
    text += [
        "",
        "## Without an assertion",
        "",
        "| what | contracts or why not | overloads | tests |",
        "|---|---|---|---|",
        *(line(row[0], None, None, row[1:], hooked) for row in silent),
    ]
    return "\n".join(text) + "\n"


def line(what: str, files: str | None, number: int | None, row: list[str], hooked: list[str]) -> str:
    contracts, kind, reason = row[0].split(), row[1], row[2]
    said = ", ".join(f"`{contract}`" for contract in contracts) or f"{kind}: {reason}"
    if contracts and reason:
        said += f" ({reason})"
    counts = [overloads_of(hooked, contracts), count_tests(contracts)] if contracts else ["-", "-"]
    middle = [] if files is None else [files, number]
    return "| " + " | ".join(str(cell) for cell in [what, *middle, said, *counts]) + " |"


def test_page_is_up_to_date(guard):
    wanted = render(guard.module.info()["overloads"])
    if os.environ.get("TRAPLINE_UPDATE_DOCS"):
        PAGE.write_text(wanted, encoding="utf-8")
    text = PAGE.read_text(encoding="utf-8")
    if f"hooks in torch {torch.__version__}," not in text:  # other overloads: compare all but the counts
        cells = re.compile(r"\| (\d+|-) \| (\d+|-) \|$|^Overloads: .*$", re.MULTILINE)
        wanted, text = cells.sub("", wanted), cells.sub("", text)
    assert text == wanted, "run again with TRAPLINE_UPDATE_DOCS=1"


def test_every_site_has_a_row():
    coverage = [
        words for name, words in rows(ROOT / "src/contracts/coverage.def") if name == "TRAPLINE_COVERAGE"
    ]
    assert [site for site in sites() if matching(coverage, site) < 0] == []
    assert len(sites()) > 230


def test_every_contract_hooks_something(guard):
    hooked = {name.removeprefix("aten::").partition(".")[0] for name in guard.module.info()["overloads"]}
    wanted = {case[0].partition(".")[0] for case in cases()}
    missing = {op for op in wanted - hooked if torch._C._jit_get_schemas_for_operator(f"aten::{op}")}
    assert missing == set()
