"""The links of the pages in Markdown that users read, as GitHub resolves them."""

import re
from pathlib import Path
from typing import Optional

ROOT = Path(__file__).resolve().parents[1]
# Pages that are being written elsewhere: that one is missing is not a mistake. Take out what is there.
COMING = ()
FENCED = re.compile(r"^(```+).*?^\1$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)")
LINK = re.compile(r"\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)|\b(?:src|srcset|href)=\"([^\"]+)\"")
HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*\s*$", re.MULTILINE)


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, by GitHub's rule."""
    found: set[str] = set()
    for heading in HEADING.findall(FENCED.sub("", text)):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
        slug = re.sub(r"[^\w\- ]", "", plain).strip().replace(" ", "-")
        number, name = 0, slug
        while name in found:
            number += 1
            name = f"{slug}-{number}"
        found.add(name)
    return found


def links(text: str) -> list[str]:
    """The targets of a page's links and pictures, in order, without those in code."""
    return [a or b for a, b in LINK.findall(CODE.sub("", FENCED.sub("", text)))]


def resolve(page: Path, link: str) -> Optional[Path]:
    """The file that a relative link leads to; None for an address."""
    if re.match(r"[a-z][a-z0-9+.-]*:", link):
        return None
    name = link.partition("#")[0]
    return (page.parent / name).resolve() if name else page.resolve()


def has(page: Path, anchor: str) -> bool:
    """Whether a page has a heading of that anchor, or a picture that mark."""
    if page.suffix == ".svg":  # which palette a picture of the site is for
        return anchor in ("only-light", "only-dark")
    return page.suffix == ".md" and anchor in anchors(page.read_text(encoding="utf-8"))


def broken(page: Path, root: Path = ROOT) -> list[str]:
    """The links of a page that lead nowhere: no such file below root, or no such heading in it."""
    found = []
    for link in links(page.read_text(encoding="utf-8")):
        target = resolve(page, link)
        if target is None:
            continue
        inside = target.is_relative_to(root.resolve())
        if inside and not target.exists() and str(target.relative_to(root.resolve())) in COMING:
            continue
        anchor = link.partition("#")[2]
        if not inside or not target.exists() or (anchor and not has(target, anchor)):
            found.append(link)
    return found
