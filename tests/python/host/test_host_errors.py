# ruff: noqa: E501 (programs in strings)
"""Host-side look-alikes (requirements A8, A9, E3): real programs, field by field."""

from __future__ import annotations

from typing import Any

import pytest

SETUP = "import torch\nfrom trapline._exceptions import hooks\nhooks.install()\n"
HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"


def test_a8_column_of_outputs_against_flat_targets(run: Any) -> None:
    ended = run(
        HEAD
        + "model = nn.Linear(8, 1)\nloss_fn = nn.BCEWithLogitsLoss()\nx, y = torch.randn(4, 8), torch.ones(4)\n"
        "logits = model(x)\nloss = loss_fn(logits, y)\n",
        SETUP,
    )
    finding = ended.finding
    assert ended.code == 1
    assert finding["code"] == "TL201" and finding["cause"] == "shape_mismatch"
    assert finding["certainty"] == "determined" and finding["role"] == "root"
    assert finding["device_assert"] is False
    assert finding["op"] == "binary_cross_entropy_with_logits" and finding["argument"] == "target"
    assert finding["tensor"]["shape"] == [4]
    assert finding["origin"]["file"].endswith("program.py") and finding["origin"]["line"] == 8
    assert finding["fix"][0] == "use `logits.squeeze(1)`"
    assert "y has shape [4] but logits has shape [4, 1]" in finding["summary"]


def test_a8_unnamed_output_is_called_by_the_users_words(run: Any) -> None:
    ended = run(
        HEAD + "model = nn.Linear(8, 1)\nx, y = torch.randn(4, 8), torch.ones(4)\n"
        "loss = F.binary_cross_entropy_with_logits(model(x), y)\n",
        SETUP,
    )
    if "column" in ended.finding["origin"]:  # Python 3.11 and later know the expression
        assert ended.finding["fix"][0] == "use `model(x).squeeze(1)`"


def test_a8_linear_layer_by_its_qualified_name(run: Any) -> None:
    ended = run(
        HEAD + "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.classifier = nn.Sequential(nn.Linear(256, 10))\n"
        "    def forward(self, x):\n        return self.classifier(x)\nNet()(torch.randn(32, 400))\n",
        SETUP,
    )
    finding = ended.finding
    assert finding["op"] == "linear"
    assert finding["layer"] == {
        "name": "classifier.0",
        "type": "Linear",
        "attribute": "in_features",
        "value": 256,
        "needed": 400,
    }
    assert finding["origin"]["function"] == "Net.forward" or finding["origin"]["function"] == "forward"
    assert (
        finding["summary"]
        == "linear: x [32, 400] has 400 features but `classifier.0` Linear(256, 10) takes 256"
    )


def test_a8_mean_squared_error_names_input_and_target(run: Any) -> None:
    ended = run(HEAD + "out, y = torch.randn(4, 3), torch.randn(4, 2)\nF.mse_loss(out, y)\n", SETUP)
    assert ended.finding["op"] == "mse_loss"
    assert "y has shape [4, 2] but out has shape [4, 3]" in ended.finding["summary"]


CASES = [
    ("x.view(32, 256)", "shape_mismatch", "use `x.flatten(1)`: it gives [32, 400]"),
    ("torch.cat(pair)", "shape_mismatch", "the shapes are pair[0] [2, 3], pair[1] [2, 4]"),
    ("F.cross_entropy(scores, labels)", "dtype_mismatch", "use `labels.long()`, best once in the data set"),
    ("F.cross_entropy(scores, column)", "shape_mismatch", "use `column.squeeze(1)`"),
    (
        "nn.Conv2d(3, 8, 3)(images)",
        "shape_mismatch",
        "the channels come last in images: use `images.permute(0, 3, 1, 2)`",
    ),
    ("scores.backward()", "shape_mismatch", "reduce it first: `scores.mean().backward()` (or `.sum()`)"),
    ("scores[15]", "index_out_of_range", "use an index of at most 3; -1 is the last element"),
    ("scores.item()", "shape_mismatch", "reduce it first: `scores.mean().item()`"),
    ("scores.detach().sum(2)", "shape_mismatch", "use dim=1 (dim=-1 is the last)"),
    ("nn.Embedding(10, 2)(batch['labels'])", "dtype_mismatch", "use `batch['labels'].long()`"),
    (
        "nn.Linear(3, 2)(scores.double())",
        "dtype_mismatch",
        "use `scores.float()` in place of `scores.double()`",
    ),
    ("scores.numpy()", "not_cuda", "use `scores.detach().cpu().numpy()`"),
    ("F.mse_loss(meta, x)", "device_mismatch", "use `x.to(meta.device)`"),
    ("torch.distributions.Categorical(probs=nans)", "invalid_probability", "find the first NaN"),
]
DATA = """
x = torch.randn(32, 16, 5, 5)
scores = torch.randn(4, 3, requires_grad=True)
labels = torch.tensor([0., 1, 2, 0])
batch = {"labels": labels}
column = torch.zeros(4, 1, dtype=torch.long)
images = torch.randn(2, 8, 8, 3)
pair = torch.randn(2, 3), torch.randn(2, 4)
meta = torch.randn(32, 16, 5, 5, device="meta")
nans = torch.full((3,), float("nan"))
"""


def in_threads(lines: list[str]) -> str:
    """A program that runs each line in a thread of its own, one after the other."""
    text = HEAD + "import threading\n"
    for number, line in enumerate(lines):
        text += f"def case_{number}():\n    {line}\n"
        text += f"t = threading.Thread(target=case_{number}, name='case'); t.start(); t.join()\n"
    return text


def test_a8_a9_fixes_name_the_users_tensors(run: Any) -> None:
    source = in_threads([line for line, _, _ in CASES]).replace(HEAD, HEAD + DATA)
    ended = run(source, SETUP)
    found = {report["findings"][0]["origin"]["function"]: report["findings"][0] for report in ended.reports}
    assert ended.code == 0
    for number, (line, cause, fix) in enumerate(CASES):
        finding = found.pop(f"case_{number}")
        assert finding["cause"] == cause, line
        assert any(text.startswith(fix) for text in finding["fix"]), (line, finding["fix"])
        assert finding["origin"]["code"] == f"    {line}"
    assert not found


def test_streams_and_exit_code_stay_the_same(run: Any) -> None:
    source = HEAD + "print('before')\ntorch.randn(2, 3) @ torch.randn(4, 5)\n"
    plain = run(source)
    guarded = run(source, SETUP)
    assert plain.reports == [] and len(guarded.reports) == 1
    assert (guarded.code, guarded.out, guarded.err) == (plain.code, plain.out, plain.err)
    assert "Traceback" in plain.err


def test_other_exceptions_pass_untouched(run: Any) -> None:
    source = in_threads(
        [
            "[1][5]",
            "{}['label']",
            "raise ValueError('Expected input batch_size (4) to match target batch_size (3).')",
            "raise KeyError(3)",
            "raise SystemExit(3)",
            "import numpy; numpy.zeros(3)[5]",
            "torch.zeros(2).sum().backward()",
        ]
    )
    plain, guarded = run(source), run(source, SETUP)
    assert guarded.reports == []
    assert (guarded.code, guarded.out, guarded.err) == (plain.code, plain.out, plain.err)
    assert plain.err.count("Traceback") == 6  # SystemExit ends a thread silently


@pytest.mark.parametrize("line, code", [("raise SystemExit(3)", 3), ("raise KeyboardInterrupt", -2)])
def test_exits_stay_exits(run: Any, line: str, code: int) -> None:
    ended = run(HEAD + line + "\n", SETUP)
    assert (ended.code, ended.reports) == (code, [])


def test_a_handled_exception_is_not_looked_at(run: Any) -> None:
    ended = run(
        HEAD + "try:\n    torch.ones(3) + torch.ones(4)\nexcept RuntimeError:\n    print('handled')\n", SETUP
    )
    assert (ended.code, ended.out, ended.reports) == (0, "handled\n", [])


def test_thread(run: Any) -> None:
    ended = run(
        HEAD
        + "import threading\nt = threading.Thread(target=lambda: torch.ones(3) + torch.ones(4))\nt.start()\nt.join()\n",
        SETUP,
    )
    assert ended.code == 0
    assert ended.finding["cause"] == "shape_mismatch"


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_child_process(run: Any, method: str) -> None:
    ended = run(
        HEAD + "import multiprocessing as mp\ndef work():\n    torch.ones(3) + torch.ones(4)\n"
        f"if __name__ == '__main__':\n    p = mp.get_context('{method}').Process(target=work)\n    p.start()\n    p.join()\n"
        "    print(p.exitcode)\n",
        SETUP,
    )
    assert ended.out == "1\n"
    assert ended.finding["origin"]["function"] == "work"
    assert "trapline" not in ended.err


def test_worker_of_a_data_loader(run: Any) -> None:
    ended = run(
        HEAD
        + "from torch.utils.data import Dataset, DataLoader\nclass D(Dataset):\n    def __len__(self):\n        return 4\n"
        "    def __getitem__(self, i):\n        return torch.zeros(3 + i)\n"
        "if __name__ == '__main__':\n    for batch in DataLoader(D(), batch_size=2, num_workers=1):\n        pass\n",
        SETUP,
    )
    assert ended.finding["op"] == "stack"
    assert any("collate_fn" in text for text in ended.finding["fix"])


def test_the_root_of_a_generic_wrapper_counts(run: Any) -> None:
    ended = run(
        HEAD
        + "try:\n    torch.ones(3) + torch.ones(4)\nexcept RuntimeError as error:\n    raise RuntimeError('step failed') from error\n",
        SETUP,
    )
    assert ended.finding["origin"]["line"] == 5
    other = run(
        HEAD + "try:\n    torch.ones(3) + torch.ones(4)\nexcept RuntimeError:\n    {}['fallback']\n",
        SETUP,
    )
    assert len(other.reports) == 1  # the first program's; the KeyError is the user's own


def test_a_replaced_excepthook_does_not_hide_it(run: Any) -> None:
    ended = run(
        HEAD + "import sys\nsys.excepthook = lambda *a: print('mine')\ntorch.ones(3) + torch.ones(4)\n", SETUP
    )
    assert (ended.code, ended.out) == (1, "mine\n")
    assert ended.finding["cause"] == "shape_mismatch"


def test_properties_and_getattr_of_the_user_are_never_called(run: Any) -> None:
    ended = run(
        HEAD
        + "class Bad:\n    @property\n    def x(self):\n        print('called')\n        return torch.ones(3)\n"
        "    def __getattr__(self, name):\n        print('called')\n        return torch.ones(3)\n"
        "bad = Bad()\ny = torch.ones(4)\nz = torch.ones(3)\n(lambda *a: y + z)(bad.x if False else 0)\n",
        SETUP,
    )
    assert ended.out == ""
    assert "y [4] and z [3]" in ended.finding["summary"]
