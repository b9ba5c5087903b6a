"""A process that forks while other threads are in the middle of a fault: the child must not wait for them."""

from __future__ import annotations

import os
from pathlib import Path

import e2e_runner as runner
import pytest

LONG = os.environ.get("TRAPLINE_LONG") == "1"
FORKS = 2000 if LONG else 50

# Torch itself can hang in such a child, also without Trapline: where it was forked out of torch's thread pool
# (so one thread for it), and where another thread was in the middle of the first call of an operation, of
# which torch makes things ready once (DispatchStubImpl::try_choose_cpu_impl; so a good call of each first).
# What the child does is looked at from outside, since a child that hangs says nothing.
FORKING = """
import faulthandler, os, signal, sys, threading, time
import torch
import torch.nn.functional as F

torch.set_num_threads(1)
F.cross_entropy(torch.zeros(2, 3), torch.tensor([0, 1]))
torch.zeros(3)[torch.tensor([1])]
FORKS, PATIENCE = int(sys.argv[1]), float(sys.argv[2])
stop = threading.Event()

def fault(value):
    try:
        F.cross_entropy(torch.zeros(2, 3), torch.tensor([0, value]))
    except IndexError:
        return True
    return False

def go_on_failing():
    value = 3
    while not stop.is_set():
        value += 1
        fault(value)

def in_child():
    if hung_at is not None:
        faulthandler.register(signal.SIGUSR1, hung_at, all_threads=True)
    good = fault(7) and fault(8)
    try:
        torch.zeros(3)[torch.tensor([9])]
        good = False
    except IndexError:
        pass
    os._exit(0 if good else 3)

hung_at = open(sys.argv[3], "w")
threads = [threading.Thread(target=go_on_failing, daemon=True) for _ in range(2)]
for thread in threads:
    thread.start()
ends = {}
for _ in range(FORKS):
    child = os.fork()
    if child == 0:
        in_child()
    deadline = time.monotonic() + PATIENCE
    while True:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            end = os.waitstatus_to_exitcode(status)
            break
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGUSR1)
            time.sleep(0.5)
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            end = "hung"
            break
        time.sleep(0.001)
    ends[end] = ends.get(end, 0) + 1
    if ends.get("hung", 0) >= 3:
        break
stop.set()
for thread in threads:
    thread.join()
print(ends)
"""


@pytest.mark.parametrize("mode", ["raise", "skip"])
def test_a_child_of_a_process_whose_threads_fault(tmp_path: Path, mode: str) -> None:
    script = runner.write_program(tmp_path / "forking.py", FORKING)
    stacks = tmp_path / "stacks"
    arguments = ["--report", tmp_path / "kept"]
    if mode == "skip":  # a loop without an optimizer: every fault is raised, and counted
        arguments += ["--on-fault", "skip", "--quarantine", tmp_path / "bad.jsonl"]
    outcome = runner.trapline(
        arguments,
        [runner.PYTHON, script, FORKS, 20, stacks],
        env=runner.environment(OMP_NUM_THREADS="1"),
        time_limit=3600 if LONG else runner.TIME_LIMIT,
    )
    assert outcome.stdout == f"{{0: {FORKS}}}\n", outcome.stderr + stacks.read_text()
