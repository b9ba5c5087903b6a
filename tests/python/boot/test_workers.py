"""Processes that a program makes itself: DataLoader workers under every start method, and plain forks."""

from __future__ import annotations

import multiprocessing

import pytest

pytest.importorskip("torch")

PROGRAM = """\
import sys
import torch
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset):
    def __init__(self):
        self.table = torch.arange(10.0)

    def __len__(self):
        return 4

    def __getitem__(self, index):
        return self.table[torch.tensor([index * 4])]  # 0, 4, 8, 12


if __name__ == "__main__":
    import trapline

    loader = DataLoader(Rows(), num_workers=1, multiprocessing_context=sys.argv[1])
    try:
        for row in loader:
            print(row.item())
    except trapline.DeviceAssertError as error:
        text = str(error)
        print("caught", "DeviceAssertError" in text, "12" in text, "DataLoader worker process 0" in text)
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_dataloader_worker_is_guarded(guarded, library, method):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {method} here")
    script = guarded.script("train.py", PROGRAM)
    done = guarded.run(str(script), method)
    assert done.stdout == "0.0\n4.0\n8.0\ncaught True True True\n", done.stderr
    # The child of a fork needs no marker; a spawned one has imported torch itself.
    assert len(list(guarded.reports.glob("guard-*.json"))) == (1 if method == "fork" else 2)
    assert len(list(guarded.reports.glob("finding-*.json"))) == 1


def test_fork_while_another_thread_holds_the_lock(guarded, library):
    program = """\
    import os, threading
    import torch, trapline
    from trapline import _boot
    held, done = threading.Event(), threading.Event()

    def hold():
        with _boot._lock:
            held.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    child = os.fork()
    if child == 0:
        trapline.set_enabled(False)
        os._exit(5)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    done.set()
    thread.join()
    """
    done = guarded.run(str(guarded.script("fork.py", program)))
    assert done.stdout == "5\n", done.stderr
