"""Crash and restart, many times: nothing grows."""

import os
import signal
from pathlib import Path

import pytest
from faults import sh
from supervised import Supervised, until

CYCLES = 1000 if os.environ.get("TRAPLINE_LONG") == "1" else 60


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def threads(pid):
    return len(os.listdir(f"/proc/{pid}/task"))


def resident(pid):
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])  # KiB
    raise AssertionError(pid)


def zombies(pid):
    count = 0
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            words = (entry / "stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        count += words[0] == "Z" and int(words[1]) == pid
    return count


@pytest.mark.parametrize("flags", [[], ["--standby"]], ids=["alone", "standby"])
def test_nothing_grows(tmp_path, flags):
    # A crash that speaks, so that the log engine works each time; figures are taken at every 20th start.
    script = (
        "echo x >> starts; n=$(wc -l < starts)\n"
        "echo 'CUDA error: device-side assert triggered' >&2\n"
        "if [ $((n % 20)) = 0 ]; then touch at-$n; while [ -e at-$n ]; do sleep 0.01; done; fi\n"
        "kill -SEGV $$"
    )
    budget = ["--delay", "0", "--restarts", "100000"]
    run = Supervised(tmp_path, *budget, "--listen", f"unix:{tmp_path}/s", *flags, program=sh(script))
    pid = run.process.pid
    figures = []
    for n in range(20, CYCLES + 1, 20):
        until(lambda n=n: (tmp_path / f"at-{n}").exists(), 60)
        figures.append((descriptors(pid), threads(pid), resident(pid), zombies(pid)))
        (tmp_path / f"at-{n}").unlink()
    run.send(signal.SIGTERM)
    run.wait()
    run.gone()
    # A standby that is just there has its own pipes and threads.
    first, last = figures[0], figures[-1]
    assert last[0] <= first[0] + 10, figures
    assert last[1] <= first[1] + 4, figures
    # Memory goes up and down by a block of the log engine's; what would grow is the highest of it.
    highest = [max(figure[2] for figure in part) for part in (figures[: len(figures) // 2], figures)]
    assert highest[1] <= highest[0] + (512 if CYCLES >= 1000 else 2048), figures
    assert last[3] <= 1, figures
    assert max(figure[2] for figure in figures) < 32 * 1024
