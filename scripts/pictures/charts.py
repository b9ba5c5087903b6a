"""The charts: what the guard costs (docs/overhead.md), and which of eight ranks failed (from `explain`)."""

import re
from typing import Any

import svg

NUMBER = re.compile(r"([+-]?\d+(?:\.\d+)?)")
# Rows of the table "A training step" that are drawn, and what a reader who does not know them needs.
STEP_ROWS = {
    "guard on": "Trapline's guard",
    "the same with `--on-fault skip`": "guard, --on-fault skip",
    "RecordFunction no-op": "RecordFunction, doing nothing",
    "TorchDispatchMode no-op": "TorchDispatchMode, doing nothing",
}


def step_costs(page: str) -> list[tuple[str, list[tuple[float, float]]]]:
    """What a step costs more, in percent, lowest and highest, row by row: tiny model, small model."""
    section = page.split("## A training step", 1)[1].split("\n## ", 1)[0]
    found = []
    for line in section.splitlines():
        cells = [cell.strip().replace("**", "") for cell in line.strip("|").split("|")]
        if cells[0] in STEP_ROWS:
            spans = [[float(number) for number in NUMBER.findall(cell)] for cell in cells[1:3]]
            found.append((STEP_ROWS[cells[0]], [(min(span), max(span)) for span in spans]))
    if len(found) != len(STEP_ROWS):
        raise ValueError(f"docs/overhead.md: rows are missing: {[name for name, _ in found]}")
    return found


def overhead(page: str, palette: svg.Palette) -> str:
    """Spans on a line of percent. What is beyond its end is cut, and says so."""
    left, right, most, least = 270.0, 620.0, 30.0, -2.0
    models = ("step of 0.21 ms", "step of 1.5 to 1.8 ms")

    def at(percent: float) -> float:
        return left + (min(percent, most) - least) / (most - least) * (right - left)

    body = svg.label(
        16, 26, "What a training step takes longer (CPU, percent)", palette.text, 15, font_weight="600"
    )
    y = 48.0
    for number, name in enumerate(models):
        body += svg.box(16 + number * 170, y - 10, 12, 12, palette.bars[number], rx="2")
        body += svg.label(34 + number * 170, y, name, palette.soft, 12)
    rows = step_costs(page)
    top, bottom = 66.0, 66.0 + 44 * len(rows)
    for tick in (0, 10, 20, 30):
        body += svg.box(at(tick), top, 1, bottom - top, palette.frame)
        body += svg.label(at(tick), bottom + 16, f"{tick} %", palette.soft, 11, text_anchor="middle")
    for number, (name, spans) in enumerate(rows):
        y = top + 44 * number
        weight = "600" if "guard" in name else "400"
        body += svg.label(left - 14, y + 26, name, palette.text, 13, text_anchor="end", font_weight=weight)
        for which, (low, high) in enumerate(spans):
            row = y + 6 + 17 * which
            start, end = at(low), at(high)
            if low > most:  # beyond the end of the line
                start = at(0)
                body += f'<path d="M{right:g} {row:g}l10 6l-10 6z" fill="{palette.bars[which]}"/>\n'
            body += svg.box(start, row, max(3, end - start), 12, palette.bars[which], rx="2")
            words = " to ".join(f"{number:+g}" if number else "0" for number in (low, high)) + " %"
            body += svg.label(max(end + 14, at(0) + 8), row + 10, words, palette.soft, 11)
    note = "Lowest to highest of three to six runs; how it was measured: docs/overhead.md"
    body += svg.label(16, bottom + 40, note, palette.soft, 11)
    height = bottom + 54
    frame = svg.box(0.5, 0.5, 739, height - 1, palette.page, rx="8", stroke=palette.frame)
    return svg.document(740, height, "What the guard costs in a training step", frame + body)


def ranks_in(words: str) -> set[int]:
    """The ranks that "ranks 0-4, 6, 7 waited for ..." names before its verb."""
    found: set[int] = set()
    for first, last in re.findall(r"(\d+)(?:-(\d+))?", words.split(" waited", maxsplit=1)[0]):
        found |= set(range(int(first), int(last or first) + 1))
    return found


def ranks(report: dict[str, Any], palette: svg.Palette) -> str:
    """A strip with a box for each rank of a job: which one failed first, and what the others did."""
    root = report["findings"][0]
    first, size = root["process"]["rank"], root["process"]["world_size"]
    waited: set[int] = set()
    for finding in report["findings"][1:]:
        if finding["cause"] == "peer_failure":
            waited |= ranks_in(finding["summary"])
    if waited | {first} != set(range(size)):
        raise ValueError(f"of {size} ranks only {sorted(waited | {first})} are known")
    wide, gap = 82.0, 8.0
    body = svg.label(16, 26, f"{size} ranks, one cause", palette.text, 15, font_weight="600")
    for rank in range(size):
        x, failed = 16 + rank * (wide + gap), rank == first
        body += svg.box(
            *(x, 42, wide, 56, palette.bad if failed else palette.window),
            rx="6",
            stroke=palette.bad if failed else palette.frame,
        )
        ink, quiet = (palette.page, palette.page) if failed else (palette.text, palette.soft)
        centre = x + wide / 2
        body += svg.label(centre, 66, f"rank {rank}", ink, 14, text_anchor="middle", font_weight="600")
        body += svg.label(centre, 85, root["code"] if failed else "waited", quiet, 12, text_anchor="middle")
    x = 16 + first * (wide + gap) + wide / 2
    body += f'<path d="M{x:g} 102l-7 12h14z" fill="{palette.bad}"/>\n'
    body += svg.label(
        min(x, 430),
        132,
        f"first: {root['summary']}",
        palette.bad,
        13,
        text_anchor="middle",
        font_weight="600",
    )
    width = 32 + size * wide + (size - 1) * gap
    frame = svg.box(0.5, 0.5, width - 1, 149, palette.page, rx="8", stroke=palette.frame)
    return svg.document(width, 150, f"Rank {first} failed first, the others waited", frame + body)
