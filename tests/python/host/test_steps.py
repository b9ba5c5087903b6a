"""`--steps N`: the program ends cleanly after N optimizer steps."""

from __future__ import annotations

from typing import Any

SETUP = "import torch\nfrom trapline import _steps\n_steps.install(3)\n"
LINE = "trapline: stopped after 3 optimizer steps (--steps)\n"
TRAIN = """
import atexit, torch
from torch.utils.data import DataLoader, TensorDataset
atexit.register(lambda: print("atexit"))
w = torch.nn.Parameter(torch.ones(2))
optimizers = [torch.optim.SGD([w], lr=0.1), torch.optim.Adam([w])]
def main():
    try:
        for epoch in range(100):
            for (x,) in DataLoader(TensorDataset(torch.randn(8, 2)), batch_size=4, num_workers=1):
                for optimizer in optimizers:
                    (w * x).sum().backward()
                    optimizer.step()
                    print("step")
    finally:
        print("finally")
"""


def test_stops_after_n_steps_of_any_optimizer(run: Any) -> None:
    ended = run(TRAIN + "if __name__ == '__main__':\n    main()\n    print('never')\n", SETUP, library=False)
    assert (ended.code, ended.out, ended.err) == (0, "step\nstep\nfinally\natexit\n", LINE)


def test_stops_from_a_thread(run: Any) -> None:
    source = TRAIN + (
        "import threading, time\nif __name__ == '__main__':\n"
        "    t = threading.Thread(target=main, daemon=True)\n    t.start()\n"
        "    while True:\n        time.sleep(0.01)\n"
    )
    ended = run(source.replace("num_workers=1", "num_workers=0"), SETUP, library=False)
    assert ended.code == 0
    assert ended.err == LINE
    assert ended.out.count("step\n") == 2 and "atexit" in ended.out


def test_a_closure_and_a_zero_limit(run: Any) -> None:
    source = (
        "import torch\nw = torch.nn.Parameter(torch.ones(2))\no = torch.optim.LBFGS([w])\n"
        "def closure():\n    o.zero_grad()\n    loss = (w ** 2).sum()\n    loss.backward()\n    return loss\n"
        "for i in range(5):\n    o.step(closure)\nprint('end')\n"
    )
    assert run(source, SETUP, library=False).out == ""
    assert run(source, SETUP.replace("3", "0"), library=False).out == "end\n"
