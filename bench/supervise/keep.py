"""Restarts a program as systemd and Kubernetes do, with their own rules and defaults; nothing of Trapline.

    keep.py --restart on-failure -- PROGRAM...                systemd: Restart=on-failure, RestartSec=100ms
    keep.py --liveness http://127.0.0.1:8000/healthz -- ...   Kubernetes: livenessProbe with its defaults

systemd.service(5): a unit is restarted when its process ends with an error, RestartSec=100ms later, and
given up after 5 starts in 10 s. Kubernetes (Configure Liveness, Readiness and Startup Probes): every 10 s,
1 s for an answer, 3 failures in a row; then SIGTERM, 30 s of grace, SIGKILL, and a start; the container's
restarts are put off by 10 s, doubled each time up to 300 s, but for the first.
"""

import argparse
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request

RESTART_SEC, BURST, INTERVAL = 0.1, 5, 10.0
PERIOD, TIMEOUT, FAILURES, GRACE = 10.0, 1.0, 3, 30.0
FIRST_BACK_OFF, LONGEST_BACK_OFF = 10.0, 300.0


def is_well(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT) as answer:
            return 200 <= answer.status < 400
    except (urllib.error.URLError, OSError):
        return False


def end(process: subprocess.Popen) -> None:
    process.terminate()
    try:
        process.wait(GRACE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def as_systemd(command: list[str]) -> int:
    starts: list[float] = []
    while True:
        now = time.monotonic()
        starts = [at for at in starts if now - at < INTERVAL] + [now]
        if len(starts) > BURST:
            return 1
        code = run(command).wait()
        if code in (0, -signal.SIGTERM):
            return 0
        time.sleep(RESTART_SEC)


def as_kubernetes(command: list[str], url: str) -> int:
    back_off = 0.0
    while True:
        process, failures = run(command), 0
        while failures < FAILURES and process.poll() is None:
            time.sleep(PERIOD)
            failures = 0 if is_well(url) else failures + 1
        if process.poll() is None:
            end(process)
        time.sleep(back_off)
        back_off = min(LONGEST_BACK_OFF, back_off * 2 or FIRST_BACK_OFF)


def run(command: list[str]) -> subprocess.Popen:
    process = subprocess.Popen(command)

    def stop(number: int, _: object) -> None:
        process.send_signal(number)
        process.wait()
        sys.exit(0)

    signal.signal(signal.SIGTERM, stop)
    return process


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--restart", choices=["on-failure"])
    parser.add_argument("--liveness", metavar="URL")
    parser.add_argument("command", nargs="+")
    given = parser.parse_args()
    return as_kubernetes(given.command, given.liveness) if given.liveness else as_systemd(given.command)


if __name__ == "__main__":
    sys.exit(main())
