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
REST = 2.0  # seconds after each command, to read
SHOWN = 30  # rows of the window


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
    """The session as a picture: rows come in when they came, the window scrolls; it plays once, then stands.

    Where the reader wants no motion, only the end is shown.
    """
    size, edge, bar = 13.0, 12.0, 28.0
    step = size * svg.HEIGHT
    rows = rows_of(recording)
    end = rows[-1][0] + 1
    width = 80 * size * svg.WIDTH + 2 * edge
    height = bar + SHOWN * step + 2 * edge
    offsets = [(0.0, 0)]
    body, style = "", []
    for number, (seconds, text) in enumerate(rows):
        drawn = svg.line(edge, (number + 0.8) * step, text, palette, size)
        body += drawn.replace("<text", f'<text class="r" style="animation-delay:{seconds:.2f}s"', 1)
        if number >= SHOWN:
            offsets.append((seconds, number + 1 - SHOWN))
    frames = "".join(
        f"{at / end * 100:.3f}%{{transform:translateY({-up * step:.1f}px)}}" for at, up in offsets
    )
    last = -offsets[-1][1] * step
    style = (
        ".r{opacity:0;animation:in 1ms linear forwards}@keyframes in{to{opacity:1}}"
        f".s{{transform:translateY({last:.1f}px);animation:up {end:.2f}s step-end forwards}}"
        f"@keyframes up{{{frames}100%{{transform:translateY({last:.1f}px)}}}}"
        "@media (prefers-reduced-motion:reduce){.r{animation:none;opacity:1}.s{animation:none}}"
    )
    window = svg.box(0.5, 0.5, width - 1, height - 1, palette.window, rx="8", stroke=palette.frame)
    window += svg.label(edge, 19, title, palette.soft, 12)
    window += (
        f'<svg x="0" y="{bar + edge:g}" width="{width:g}" height="{SHOWN * step:.1f}">'
        f'<g class="s" font-family="{svg.MONO}" font-size="{size:g}">\n{body}</g></svg>\n'
    )
    return svg.document(width, height, title, window, style)
