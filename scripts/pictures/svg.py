"""Pieces of pictures: two palettes, text on a grid of characters, a terminal window. No dependency."""

import re
from dataclasses import dataclass
from xml.sax.saxutils import escape, quoteattr

SANS = "system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif"
MONO = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', 'Liberation Mono', monospace"
WIDTH, HEIGHT = 0.602, 1.36  # of a character's cell, in sizes of the font


@dataclass(frozen=True)
class Palette:
    """Colours of a picture; `sgr` are those of the terminal's codes. Contrast on `window`: at least 4.5."""

    page: str
    window: str
    frame: str
    text: str
    soft: str
    bad: str
    good: str
    bars: tuple[str, str]
    sgr: dict[str, str]


PALETTES = {
    "light": Palette(
        *("#ffffff", "#f6f8fa", "#d0d7de", "#1f2328", "#59636e", "#cf222e", "#1a7f37"),
        bars=("#0969da", "#57606a"),
        sgr={"31": "#cf222e", "32": "#1a7f37", "33": "#7d4e00", "34": "#0550ae", "94": "#0550ae"},
    ),
    "dark": Palette(
        *("#0d1117", "#161b22", "#30363d", "#e6edf3", "#9198a1", "#ff7b72", "#3fb950"),
        bars=("#58a6ff", "#9198a1"),
        sgr={"31": "#ff7b72", "32": "#56d364", "33": "#e3b341", "34": "#79c0ff", "94": "#79c0ff"},
    ),
}
SGR = re.compile(r"\x1b\[([0-9;]*)m")


def document(width: float, height: float, title: str, body: str, style: str = "") -> str:
    """A picture of width x height units. The title is what a screen reader says."""
    css = f"<style>{style}</style>\n" if style else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
        f'height="{height:g}" role="img">\n<title>{escape(title)}</title>\n{css}{body}</svg>\n'
    )


def label(x: float, y: float, text: str, colour: str, size: float = 13, **attributes: str) -> str:
    """A line of proportional text; y is its base line."""
    more = "".join(f" {name.replace('_', '-')}={quoteattr(value)}" for name, value in attributes.items())
    return (
        f'<text x="{x:g}" y="{y:g}" font-family="{SANS}" font-size="{size:g}" fill="{colour}"{more}>'
        f"{escape(text)}</text>\n"
    )


def box(x: float, y: float, width: float, height: float, fill: str, **attributes: str) -> str:
    more = "".join(f" {name.replace('_', '-')}={quoteattr(value)}" for name, value in attributes.items())
    return f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" fill="{fill}"{more}/>\n'


def plain(text: str) -> str:
    """Text without its terminal codes."""
    return SGR.sub("", text)


def line(x: float, y: float, text: str, palette: Palette, size: float, columns: int = 10_000) -> str:
    """A line of a terminal with its SGR codes, cut at so many columns; y is its base line."""
    spans, column, colour, bold, faint = [], 0, None, False, False
    cell = size * WIDTH
    for number, part in enumerate(SGR.split(text)):
        if number % 2:
            for code in part.split(";"):
                if code in ("", "0"):
                    colour, bold, faint = None, False, False
                elif code in ("1", "2"):
                    bold, faint = bold or code == "1", faint or code == "2"
                else:
                    colour = palette.sgr.get(code, colour)
            continue
        shown = part[: max(0, columns - column)]
        if shown.strip():
            fill = colour or (palette.soft if faint else palette.text)
            weight = ' font-weight="600"' if bold else ""
            lead = len(shown) - len(shown.lstrip())
            word = shown.strip()
            spans.append(
                f'<tspan x="{x + (column + lead) * cell:.1f}" textLength="{len(word) * cell:.1f}" '
                f'lengthAdjust="spacingAndGlyphs" fill="{fill}"{weight}>{escape(word)}</tspan>'
            )
        column += len(part)
    return f'<text y="{y:.1f}" xml:space="preserve">{"".join(spans)}</text>\n' if spans else ""


def terminal(
    x: float,
    y: float,
    width: float,
    rows: list[str],
    palette: Palette,
    size: float,
    title: str,
    tall: float = 0,
) -> tuple[str, float]:
    """A terminal window at x, y, and its height, which is at least `tall`. Rows too wide for it are cut."""
    bar, edge = 28, 12
    height = max(tall, bar + edge + len(rows) * size * HEIGHT + edge)
    columns = int((width - 2 * edge) / (size * WIDTH))
    body = box(x, y, width, height, palette.window, rx="8", stroke=palette.frame)
    body += label(x + edge, y + 19, title, palette.soft, 12)
    body += f'<g font-family="{MONO}" font-size="{size:g}">\n'
    for number, text in enumerate(rows):
        body += line(x + edge, y + bar + edge + (number + 0.8) * size * HEIGHT, text, palette, size, columns)
    return body + "</g>\n", height
