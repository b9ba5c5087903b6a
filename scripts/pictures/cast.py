"""A terminal session as it was recorded, and its animated picture.

The recording is in the format of asciinema (version 2): a header, then [seconds, "o", text] for each piece of
output. Only what Trapline prints is understood: lines with SGR codes, no cursor movement.
"""

import json
import os
import pty
import select
import subprocess
import time
from pathlib import Path

import svg

TYPING = 0.03  # seconds a character; the prompt is ours, what follows is the command's
REST = 5.0  # seconds after each command, to read
HELD = 6.0  # seconds at the end
SHOWN = 30  # rows of the window
TIMES = 3  # how often the picture plays


def record(commands: list[str], folder: Path, environment: dict[str, str]) -> str:
    """Run the commands one after the other on a terminal of 80 columns; returns the recording."""
    events: list[list[object]] = []
    clock = 0.0
    for command in commands:
        for character in f"$ {command}":
            events.append([round(clock, 3), "o", character])
            clock += TYPING
        events.append([round(clock, 3), "o", "\r\n"])
        start = time.monotonic()
        master, slave = pty.openpty()
        os.set_blocking(master, False)
        with subprocess.Popen(
            ["bash", "-c", f"stty cols 80 rows {SHOWN}; exec {command}"],
            cwd=folder,
            env=environment,
            stdin=slave,
            stdout=slave,
            stderr=slave,
        ) as process:
            os.close(slave)
            while process.poll() is None or select.select([master], [], [], 0.05)[0]:
                if select.select([master], [], [], 0.05)[0]:
                    try:
                        text = os.read(master, 65536).decode("utf-8", "replace")
                    except OSError:
                        break
                    events.append([round(clock + time.monotonic() - start, 3), "o", text])
        os.close(master)
        clock += time.monotonic() - start + REST
    header = {"version": 2, "width": 80, "height": SHOWN, "env": {"TERM": "xterm-256color"}}
    return "".join(json.dumps(entry, ensure_ascii=False) + "\n" for entry in (header, *events))


def rows_of(recording: str) -> list[tuple[float, str]]:
    """The lines of a recording with the second at which each was complete."""
    found: list[tuple[float, str]] = []
    rest = ""
    for entry in recording.splitlines()[1:]:
        seconds, kind, text = json.loads(entry)
        if kind != "o":
            continue
        *lines, rest = (rest + text).replace("\r\n", "\n").split("\n")
        found += [(seconds, line) for line in lines]
    return found


def animated(recording: str, palette: svg.Palette, title: str) -> str:
    """The session as a picture: rows come in when they came, the window scrolls. It plays TIMES times.

    Where the reader wants no motion, only the end is shown, as afterwards.
    """
    size, edge, bar = 13.0, 12.0, 28.0
    step = size * svg.HEIGHT
    rows = rows_of(recording)
    rows = [(seconds - rows[0][0], text) for seconds, text in rows]  # never empty, not even before it plays
    end = rows[-1][0] + HELD
    width = 80 * size * svg.WIDTH + 2 * edge
    height = bar + SHOWN * step + 2 * edge
    play = f"{end:.2f}s step-end {TIMES} forwards"
    body, style, scrolled = "", "", "0%{transform:none}"
    for number, (seconds, text) in enumerate(rows):
        drawn = svg.line(edge, (number + 0.8) * step, text, palette, size)
        at = f"{seconds / end * 100:.2f}%"
        if number >= SHOWN:
            scrolled += f"{at}{{transform:translateY({(SHOWN - 1 - number) * step:.1f}px)}}"
        if drawn:
            body += drawn.replace("<text", f'<text class="r" style="animation-name:r{number}"', 1)
            style += f"@keyframes r{number}{{0%{{opacity:0}}{at},100%{{opacity:1}}}}"
    last = f"transform:translateY({min(0, SHOWN - len(rows)) * step:.1f}px)"
    style += (
        f".r{{animation:{play}}}.s{{{last};animation:s {play}}}@keyframes s{{{scrolled}100%{{{last}}}}}"
        "@media (prefers-reduced-motion:reduce){.r,.s{animation:none!important}}"
    )
    window = svg.box(0.5, 0.5, width - 1, height - 1, palette.window, rx="8", stroke=palette.frame)
    window += svg.label(edge, 19, title, palette.soft, 12)
    window += (
        f'<svg x="0" y="{bar + edge:g}" width="{width:g}" height="{SHOWN * step:.1f}">'
        f'<g class="s" font-family="{svg.MONO}" font-size="{size:g}">\n{body}</g></svg>\n'
    )
    return svg.document(width, height, title, window, style)
