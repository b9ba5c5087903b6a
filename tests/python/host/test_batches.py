"""The sample, or the batch, of exceptions that say nothing about either."""

from __future__ import annotations

from typing import Any

import pytest

SETUP = (
    "import torch\nfrom trapline._fault.data import batches\nfrom trapline._exceptions import hooks\n"
    "batches.install()\nhooks.install()\n"
)
PICTURES = """
import torch
from torch.utils.data import DataLoader, Dataset, TensorDataset

class Pictures(Dataset):
    def __len__(self):
        return 12
    def __getitem__(self, i):
        return make(i)

train = Pictures()
"""


def test_a_data_set_that_fails_while_it_makes_a_sample(run: Any) -> None:
    finding = run(
        PICTURES + "def make(i):\n    return torch.rand(3, 4) @ torch.rand(5 if i == 7 else 4, 2)\n"
        "for x in DataLoader(train, batch_size=4):\n    pass\n",
        SETUP,
    ).finding
    assert finding["code"] == "TL201" and finding["op"] == "matmul"
    sample = finding["sample"]
    assert (sample["dataset_index"], sample["batch"], sample["row"]) == (7, 1, 3)
    assert sample["dataset"]["name"] == "train"


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("odd", ["i == 7", "i != 7"])
def test_the_sample_whose_shape_differs(run: Any, workers: int, odd: str) -> None:
    """A worker's own words are about the memory that it stacks in, and name no shape."""
    finding = run(
        PICTURES + f"def make(i):\n    return {{'image': torch.rand(3 if {odd} else 1, 4), 'y': i}}\n"
        f"for x in DataLoader(train, batch_size=4, num_workers={workers}):\n    pass\n",
        SETUP,
    ).finding
    usual, other = ("[1, 4]", "[3, 4]") if odd == "i == 7" else ("[3, 4]", "[1, 4]")
    assert finding["code"] == "TL201" and finding["op"] == "stack"
    assert f"`image` of entry 3 has {other}, the others have {usual}" in finding["summary"]
    sample = finding["sample"]
    assert (sample["dataset_index"], sample["row"], sample["batch"]) == (7, 3, 1)
    assert sample["by"] == "shape" and "one_of" not in sample
    assert not any("num_workers=0" in line for line in finding["fix"])


def test_two_samples_of_which_neither_is_usual(run: Any) -> None:
    finding = run(
        PICTURES + "def make(i):\n    return torch.rand(3 if i == 7 else 1, 4)\n"
        "for x in DataLoader(train, batch_size=2):\n    pass\n",
        SETUP,
    ).finding
    assert "entry 1 has [3, 4], entry 0 has [1, 4]" in finding["summary"]
    assert finding["sample"]["one_of"] == [6, 7] and finding["sample"]["of"] == 2


def test_what_the_users_own_collate_function_stacks(run: Any) -> None:
    """The lengths differ by right, and are padded; the one that is stacked is told by its shapes."""
    finding = run(
        PICTURES + "def make(i):\n    return torch.zeros(i + 1), torch.zeros(2 if i == 6 else 5)\n"
        "def collate(items):\n"
        "    words = torch.nn.utils.rnn.pad_sequence([words for words, _ in items], batch_first=True)\n"
        "    return words, torch.stack([boxes for _, boxes in items])\n"
        "for x in DataLoader(train, batch_size=4, num_workers=1, collate_fn=collate):\n    pass\n",
        SETUP,
    ).finding
    assert "`[1]` of entry 2 has [2], the others have [5]" in finding["summary"]
    assert finding["sample"]["dataset_index"] == 6
    assert finding["origin"]["code"].strip() == "return words, torch.stack([boxes for _, boxes in items])"


def test_a_row_of_a_workers_stream(run: Any) -> None:
    finding = run(
        "import torch\nfrom torch.utils.data import DataLoader, IterableDataset\n"
        "class Stream(IterableDataset):\n    def __iter__(self):\n        for i in range(12):\n"
        "            yield torch.zeros(2 if i == 6 else 5)\n"
        "for x in DataLoader(Stream(), batch_size=4, num_workers=1):\n    pass\n",
        SETUP,
    ).finding
    assert "entry 2 has [2], the others have [5]" in finding["summary"]
    assert (finding["sample"]["batch"], finding["sample"]["row"]) == (1, 2)


def test_what_a_worker_knows_of_a_data_set_that_fails(run: Any) -> None:
    """The operands and the sample come from the worker; its text has neither."""
    finding = run(
        PICTURES + "def make(i):\n    left = torch.rand(3, 5 if i == 7 else 4)\n"
        "    return left @ torch.ones(4, 2)\n"
        "for x in DataLoader(train, batch_size=4, num_workers=1):\n    pass\n",
        SETUP,
    ).finding
    assert finding["op"] == "matmul" and "left" in finding["summary"]
    sample = finding["sample"]
    assert (sample["dataset_index"], sample["row"], sample["batch"]) == (7, 3, 1)
    assert finding["origin"]["code"].strip() == "return left @ torch.ones(4, 2)"


LAST = """
import torch
from torch.utils.data import DataLoader, TensorDataset

data = TensorDataset(torch.rand(20, 5, 4))
layer, hidden = torch.nn.GRU(4, 6, batch_first=True), torch.zeros(1, 8, 6)
for (x,) in DataLoader(data, batch_size=8):
    CALL
"""


@pytest.mark.parametrize("call", ["layer(x, hidden)", "y = x.view(8, 20)", "x + torch.zeros(8, 1, 1)"])
def test_the_last_batch_is_shorter(run: Any, call: str) -> None:
    finding = run(LAST.replace("CALL", call), SETUP).finding
    assert finding["code"] == "TL201"
    assert finding["sample"]["batch"] == 2 and "row" not in finding["sample"]
    assert "drop_last=True" in finding["fix"][0]


def test_a_size_that_has_nothing_to_do_with_the_batch(run: Any) -> None:
    finding = run(LAST.replace("CALL", "if len(x) == 4: torch.rand(3, 7) @ torch.rand(5, 2)"), SETUP).finding
    assert "sample" not in finding
    assert not any("drop_last" in line for line in finding["fix"])


def test_nan_in_what_a_distribution_was_made_of(run: Any) -> None:
    finding = run(
        "import torch\nfrom torch.utils.data import DataLoader, TensorDataset\n"
        "seen = torch.rand(12, 3)\nseen[7, 1] = float('nan')\npolicy = torch.nn.Linear(3, 2)\n"
        "for (x,) in DataLoader(TensorDataset(seen), batch_size=4):\n"
        "    torch.distributions.Categorical(logits=policy(x))\n",
        SETUP,
    ).finding
    assert finding["code"] == "TL107"
    assert finding["sample"]["dataset_index"] == 7 and finding["sample"]["row"] == 3


TEXTS = """
import torch
from torch import nn
from torch.utils.data import DataLoader

class Texts(torch.utils.data.Dataset):
    def __len__(self):
        return len(LENGTHS)
    def __getitem__(self, i):
        return torch.arange(1, LENGTHS[i] + 1)

texts = Texts()

def collate(rows):
    return {"input_ids": nn.utils.rnn.pad_sequence(rows, batch_first=True)}

"""


def test_the_longest_text_of_a_batch_that_a_position_table_refuses(run: Any) -> None:
    finding = run(
        "LENGTHS = [5, 7, 9, 6, 8, 21, 4, 5]\n" + TEXTS + "class Model(nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n"
        "        self.embed = nn.Embedding(30, 4)\n        self.position_embeddings = nn.Embedding(16, 4)\n"
        "    def forward(self, input_ids):\n        e = self.embed(input_ids)\n"
        "        return e + self.position_embeddings.weight[: input_ids.shape[1]]\n"
        "model = Model()\n"
        "for batch in DataLoader(texts, batch_size=2, collate_fn=collate):\n    model(**batch)\n",
        SETUP,
    ).finding
    assert finding["code"] == "TL104"
    assert finding["sample"]["dataset_index"] == 5 and finding["sample"]["batch"] == 2


def test_the_batch_that_is_the_first_to_be_refused(run: Any) -> None:
    program = (
        PICTURES + "def make(i):\n    return torch.rand(1, 27 if i == ODD else 32)\n"
        "for x in DataLoader(train, batch_size=1):\n    x + torch.zeros(1, 1, 32)\n"
    )
    finding = run(program.replace("ODD", "5"), SETUP).finding
    assert finding["code"] == "TL201"
    assert finding["sample"]["dataset_index"] == 5 and finding["sample"]["batch"] == 5
    # The first batch of all: nothing tells that the others are any different.
    first = run(program.replace("ODD", "0"), SETUP).reports[-1]["findings"][0]
    assert first["sample"]["by"] == "hand" and first["sample"]["one_of"] == [0]


MANY = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

train = TensorDataset(torch.rand(20, 6), torch.arange(20) % 3)
loader = DataLoader(train, batch_size=4)
val_loader = DataLoader(TensorDataset(torch.rand(9, 6)), batch_size=3)
layer = nn.Linear(6, 3)

def step(batch):
    h = layer(batch["x"]).sum(0)
    return h + torch.ones(7)
def late(batch):
    h = layer(batch["x"])
    return h @ torch.ones(4, 5)
class Rows:
    def __init__(self, x):
        self.x = x
def graphs(rows):
    return Rows(torch.stack([x for x, _ in rows]))
def stop(at, run):
    return run() if at == 2 else None
"""


@pytest.mark.parametrize(
    ("program", "code"),
    [
        # the line names a tensor of the batch, or what was made of it
        ("for i, (x, y) in enumerate(loader):\n    i == 2 and nn.functional.mse_loss(x[:, :2], x)", "TL201"),
        ("for i, (x, y) in enumerate(loader):\n    i == 2 and layer(x.double())", "TL203"),
        (
            "it, i = iter(loader), 0\nwhile True:\n    x, y = next(it)\n    z = (x * 2).reshape(4, 3, 2)\n"
            "    i == 2 and z @ torch.ones(4, 7, 2)\n    i += 1",
            "TL201",
        ),
        ("[stop(i, lambda: layer(x.flatten() * 2)) for i, (x, y) in enumerate(loader)]", "TL201"),
        # a function was given it, in a dictionary; the loop's `with` has been left by then
        (
            "for i, (x, y) in enumerate(loader):\n    with torch.enable_grad():\n"
            "        i == 2 and late({'x': x, 'y': y})",
            "TL201",
        ),
        (
            "with torch.enable_grad():\n    for i, (x, y) in enumerate(loader):\n"
            "        h = layer(x)\n        i == 2 and h @ torch.ones(4, 5)",
            "TL201",
        ),
        # an object of the user's own class; another loader's batch in the same function
        (
            "for i, b in enumerate(DataLoader(train, batch_size=4, collate_fn=graphs)):\n"
            "    h = layer(b.x)\n    i == 2 and h @ torch.ones(4, 5)",
            "TL201",
        ),
        (
            "for i, (x, y) in enumerate(loader):\n    for (v,) in val_loader: pass\n"
            "    h = layer(x)\n    i == 2 and h @ torch.ones(4, 5)",
            "TL201",
        ),
    ],
)
def test_the_batch_that_was_worked_on(run: Any, program: str, code: str) -> None:
    finding = run(MANY + program + "\n", SETUP).finding
    assert finding["code"] == code
    sample = finding["sample"]
    assert (sample["by"], sample["batch"], sample["of"]) == ("hand", 2, 4)
    assert sample["one_of"] == [8, 9, 10, 11] and sample["dataset"]["name"] == "train"
    assert not any("look at sample" in line for line in finding["fix"])  # none is at fault


@pytest.mark.parametrize(
    "program",
    [
        "for x, y in loader: pass\ntorch.rand(4, 3) @ torch.rand(4, 3)",  # the loop is over
        "for x, y in loader: pass\nelse:\n    torch.rand(4, 3) @ torch.rand(4, 3)",
        "for x, y in loader:\n    step({'x': x})",  # summed over the batch: no rows are left
        "x, y = next(iter(loader))\nz = torch.rand(4, 3) @ torch.rand(4, 3)",
        "for (x, y), (v,) in zip(loader, val_loader):\n    h = layer(x)\n    h @ torch.ones(4, 5)",  # of two
    ],
)
def test_no_batch_that_the_call_was_not_made_for(run: Any, program: str) -> None:
    finding = run(MANY + program + "\n", SETUP).finding
    assert finding["code"] == "TL201" and "sample" not in finding
