"""What mkdocs does besides (mkdocs.yml): links that leave docs/ lead to copies below repository/ in the site.

A file that a page links to is copied; a page (.md) becomes a page; a link to a folder leads to its README, or
becomes text.
"""

import os
import re
import sys
from pathlib import Path

from mkdocs.structure.files import File, InclusionLevel

sys.path.insert(0, str(Path(__file__).resolve().parent))
import docs_links

ROOT = docs_links.ROOT
DOCS = ROOT / "docs"
COPIES = "repository"
PAGES = (
    "HACKING.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "README.md",
    "examples/README.md",
    "examples/server/README.md",
)
LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
FENCED = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)


def on_config(config):
    """Leave out of the navigation what is still being written elsewhere."""
    coming = {Path(page).name for page in docs_links.COMING if not (ROOT / page).exists()}
    for section in config.nav:
        for name, entries in section.items():
            if isinstance(entries, list):
                section[name] = [entry for entry in entries if not set(entry.values()) & coming]
    return config


def on_files(files, config):
    """Add the pages of the repository that are not in docs/, and what any page links to."""
    for name in PAGES:
        files.append(File.generated(config, f"{COPIES}/{name}", abs_src_path=str(ROOT / name)))
    linked = set()
    for page in [*DOCS.rglob("*.md"), *(ROOT / name for name in PAGES)]:
        for link in docs_links.links(page.read_text(encoding="utf-8")):
            target = docs_links.resolve(page, link)
            if target and target.is_file() and not target.is_relative_to(DOCS) and target.suffix != ".md":
                linked.add(target)
    for target in sorted(linked):
        name = f"{COPIES}/{target.relative_to(ROOT)}"
        file = File.generated(config, name, abs_src_path=str(target), inclusion=InclusionLevel.NOT_IN_NAV)
        files.append(file)
    for file in files:
        if file.src_uri.startswith("causes/") or file.src_uri.startswith(COPIES):
            file.inclusion = InclusionLevel.NOT_IN_NAV
    return files


def place(target: Path) -> str:
    """Where a file of the repository lies in the site's sources."""
    if target.is_relative_to(DOCS):
        return target.relative_to(DOCS).as_posix()
    return f"{COPIES}/{target.relative_to(ROOT).as_posix()}"


def on_page_markdown(markdown, page, config, files):
    """Turn links out of docs/ to those copies. Those in fenced blocks stay as they are."""
    here = page.file.src_uri
    source = ROOT / here[len(COPIES) + 1 :] if here.startswith(f"{COPIES}/") else DOCS / here

    def turned(match):
        text, link = match.groups()
        target = docs_links.resolve(source, link)
        if target is None or not target.is_relative_to(ROOT):
            return match.group()
        if not target.exists():  # mkdocs says so, unless it is coming
            return text if target.relative_to(ROOT).as_posix() in docs_links.COMING else match.group()
        if target.is_dir():
            target = target / "README.md"
        to = place(target)
        if files.get_file_from_path(to) is None:
            return text
        anchor = link.partition("#")[2]
        relative = os.path.relpath(to, os.path.dirname(here) or ".") if link[0] != "#" else ""
        return f"[{text}]({relative}{'#' + anchor if anchor else ''})"

    if here == f"{COPIES}/README.md":  # its pictures are HTML, with addresses of their own
        markdown = markdown.replace('"docs/pictures/', '"../pictures/')
    parts = FENCED.split(markdown)  # odd ones are code
    return "".join(part if number % 2 else LINK.sub(turned, part) for number, part in enumerate(parts))
