# ruff: noqa: E501 (programs in strings)
"""Which tensor is to be moved, and who keeps it; "meta" is the other device, so that no GPU is needed."""

from __future__ import annotations

from typing import Any

SETUP = "import torch\nfrom trapline._exceptions import hooks\nhooks.install()\n"
HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"
LOSS = HEAD + (
    "class Loss(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    "        self.register_buffer('weight', torch.ones(4))\n"
    "    def forward(self, out):\n        return F.mse_loss(out, self.weight)\n"
)
NET = HEAD + (
    "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    "        self.fc = nn.Linear(4, 4)\n        self.parts = [nn.Linear(4, 4)]\n        self.mask = torch.ones(4)\n"
    "    def forward(self, x):\n        BODY\n"
)


def test_a_loss_that_was_not_moved(run: Any) -> None:
    finding = run(LOSS + "criterion = Loss()\ncriterion(torch.ones(4, device='meta'))\n", SETUP).finding
    assert finding["code"] == "TL202"
    assert finding["fix"][0] == 'move `criterion` too: `criterion.to("meta")`'


def test_the_whole_model_where_it_is_on_the_cpu(run: Any) -> None:
    source = NET.replace("BODY", "return self.fc(x)") + "net = Net()\nnet(torch.ones(2, 4, device='meta'))\n"
    assert run(source, SETUP).finding["fix"][0] == (
        "move the whole model before training: `net.to(device)`, before the optimizer is made"
    )


def test_layers_in_a_plain_list(run: Any) -> None:
    source = NET.replace("BODY", "return self.parts[0](self.fc(x))")
    finding = run(source + "net = Net().to('meta')\nnet(torch.ones(2, 4, device='meta'))\n", SETUP).finding
    assert finding["fix"][0] == (
        "`self.parts` of Net is a plain list, and the modules in it do not move with the model: use"
        " `self.parts = nn.ModuleList(...)`"
    )


def test_a_plain_attribute(run: Any) -> None:
    source = NET.replace("BODY", "return F.mse_loss(self.fc(x), self.mask)")
    finding = run(source + "net = Net().to('meta')\nnet(torch.ones(2, 4, device='meta'))\n", SETUP).finding
    assert finding["summary"].endswith("self.mask is on cpu but x is on meta")
    assert finding["fix"][0] == (
        '`.to()` does not move plain attributes: in Net use `self.register_buffer("mask", ...)`'
    )


def test_a_part_that_came_after_the_move(run: Any) -> None:
    source = NET.replace("BODY", "return self.fc(x)") + (
        "net = nn.Sequential(nn.Linear(4, 4), Net()).to('meta')\nnet[1].fc = nn.Linear(4, 4)\n"
        "net(torch.ones(2, 4, device='meta'))\n"
    )
    fix = run(source, SETUP).finding["fix"][0]
    assert fix.startswith('1.fc.weight was not moved with the rest of the model: `net.to("meta")` after')


def test_nothing_is_moved_to_weights_without_data(run: Any) -> None:
    source = (
        NET.replace("BODY", "return self.fc(x)") + "net = Net().to('meta')\nx = torch.ones(2, 4)\nnet(x)\n"
    )
    finding = run(source, SETUP).finding
    assert finding["summary"].endswith(
        "fc.weight is on meta: it has a size and no data, so no checkpoint that was loaded has it"
    )
    assert finding["fix"][0].startswith("load a checkpoint that has `fc.weight`: model.load_state_dict(")
    assert not any("move the layer" in text or ".to(" in text for text in finding["fix"])


def test_an_exception_that_was_raised_from_the_error(run: Any) -> None:
    source = HEAD + (
        "def inner(a, b):\n    try:\n        return F.mse_loss(a, b)\n    except RuntimeError as error:\n"
        "        raise RuntimeError('other devices') from error\n"
        "def outer():\n    inner(torch.ones(2, device='meta'), torch.ones(2))\n\nouter()\n"
    )
    finding = run(source, SETUP, anew=True).finding
    functions = [frame["function"] for frame in finding["stack"]]
    assert functions[:3] == ["<module>", "outer", "inner"] and functions[3] == "mse_loss"
    assert finding["origin"]["line"] == 6


def test_a_library_that_raises_from_its_error_points_at_the_users_line(run: Any, tmp_path: Any) -> None:
    package = tmp_path / "startup" / "site-packages"
    package.mkdir(parents=True)
    (package / "metrics.py").write_text(
        "import torch.nn.functional as F\ndef compare(a, b):\n    try:\n        return F.mse_loss(a, b)\n"
        "    except RuntimeError as error:\n        raise RuntimeError('other devices') from error\n"
    )
    source = f"import sys\nsys.path.append({str(package)!r})\nimport torch, metrics\n" + (
        "x, y = torch.ones(2, device='meta'), torch.ones(2)\nmetrics.compare(x, y)\n"
    )
    finding = run(source, SETUP).finding
    assert finding["origin"]["code"] == "metrics.compare(x, y)"
    assert finding["fix"][0] == "use `y.to(x.device)`"


def test_a_librarys_tensor_goes_by_the_argument_that_it_was_made_from(run: Any) -> None:
    source = """
import torch
from trapline._exceptions import devices
given = torch.arange(6).reshape(2, 3)
view, copy, other = given[0], given.float().t(), torch.ones(5)
def name(tensor, called, *passed):
    operands = [{"name": called, "device": "cpu", "user": False}]
    devices.sources(operands, [tensor], passed)
    return operands[0].get("from")
print(name(view, "index", ("edges", "edge_index", given)))
print(name(copy, "mask", ("m.cpu()", "mask", given)))
print(name(copy, "weight", ("m.cpu()", "mask", given)))
print(name(other, "mask", ("m.cpu()", "mask", given)))
"""
    assert run(source, library=False).out == "edges\nm.cpu()\nNone\nNone\n"


def test_the_gpu_that_was_asked_for(run: Any) -> None:
    source = """
import sys, torch
from trapline._exceptions import devices
torch.cuda.device_count = lambda: 2
n, size, device, name = 3, 16, torch.device("cuda", 5), "cuda:7"
frame = sys._getframe()
for call in ("x.cuda(n)", "x.to(device)", "x.to(name)", "x.to('cuda:4')", "x.to('cuda:1')", "x.view(size)"):
    print(devices.asked([(frame, call)]).get("index"))
"""
    assert run(source, library=False).out == "3\n5\n7\n4\nNone\nNone\n"


def test_a_worker_without_the_users_code_points_at_the_loop(run: Any) -> None:
    source = HEAD + (
        "from torch.utils.data import DataLoader\n"
        "if __name__ == '__main__':\n"
        "    for batch in DataLoader([torch.zeros(3), torch.zeros(4)], batch_size=2, num_workers=1):\n        pass\n"
    )
    finding = run(source, SETUP).finding
    assert finding["op"] == "stack"
    assert finding["origin"]["line"] == 6
