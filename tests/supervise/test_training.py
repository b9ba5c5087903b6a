"""Training under supervision: what is retried, what stops, and a bad sample that is set aside."""

import json
import subprocess
from pathlib import Path

import pytest
from supervised import ROOT, TRAPLINE, Supervised

torch = pytest.importorskip("torch")

PYTHON = ROOT / ".venv" / "bin" / "python"

TRAIN = """
import os, sys, torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

class Flowers(Dataset):
    def __init__(self, bad):
        g = torch.Generator().manual_seed(0)
        self.x = torch.randn(96, 8, generator=g)
        self.y = torch.randint(0, 5, (96,), generator=g)
        self.y[bad] = 9
    def __len__(self): return len(self.y)
    def __getitem__(self, i): return self.x[i], self.y[i]

MODE, SAVE = sys.argv[1], sys.argv[2]
BAD = [57]
train = Flowers(BAD)
torch.manual_seed(1)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 5 if MODE != "head" else 4))
rank, world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
order = list(range(rank, 96, world))
if world > 1:
    import torch.distributed as dist
    dist.init_process_group("gloo")
    net = nn.parallel.DistributedDataParallel(model)
else:
    net = model
if MODE == "peer" and not os.path.exists(SAVE + ".once"):
    if rank == 0:
        open(SAVE + ".once", "w").close()
        os.kill(os.getpid(), 9)
if MODE == "head": train.y[BAD] = 0
# Several ranks: the one before it stands in its place (docs/skip.md).
if MODE == "without": order = [i if i not in BAD else i - world for i in order if world > 1 or i not in BAD]
opt = torch.optim.SGD(net.parameters(), 0.1)
for x, y in DataLoader(train, batch_size=48 // world, sampler=order):
    if MODE == "peer": y = y.clamp(max=4)
    loss = nn.functional.cross_entropy(net(x), y)
    opt.zero_grad(); loss.backward(); opt.step()
if rank == 0: torch.save(model.state_dict(), SAVE)
if world > 1: os._exit(0)  # gloo's threads now and then abort the interpreter's end, without the guard too
"""


@pytest.fixture
def train(tmp_path):
    file = tmp_path / "train.py"
    file.write_text(TRAIN)

    def command(mode, ranks=1, save="weights.pt"):
        start = [str(PYTHON)]
        if ranks > 1:
            start += [
                "-m",
                "torch.distributed.run",
                "--nproc-per-node",
                str(ranks),
                "--standalone",
                "--log-dir",
                "logs",
            ]
        return [*start, str(file), mode, str(tmp_path / save)]

    return command


def weights(tmp_path, name):
    return torch.load(tmp_path / name)


def same(one, other):
    return all(torch.equal(one[key], other[key]) for key in one) and one.keys() == other.keys()


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_bad_sample_is_set_aside_and_the_weights_are_those_without_it(tmp_path, train, ranks):
    run = Supervised(tmp_path, "--delay", "0.05", program=train("with", ranks))
    assert run.wait(180) == 0, run.err[-3000:]
    run.gone()
    assert "quarantine: TL101 comes back with the same label; its sample is set aside in" in run.err
    (line,) = (tmp_path / "trapline-quarantine.jsonl").read_text().splitlines()
    assert json.loads(line)["dataset_index"] == 57
    subprocess.run(train("without", ranks, "without.pt"), check=True, cwd=tmp_path, capture_output=True)
    assert same(weights(tmp_path, "weights.pt"), weights(tmp_path, "without.pt"))


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_head_that_is_too_small_stops_at_once(tmp_path, train, ranks):
    run = Supervised(tmp_path, "--delay", "0.05", program=train("head", ranks))
    assert run.wait(180) == 65, run.err[-3000:]
    run.gone()
    assert run.decisions == ["stop"]
    assert run.codes[0] == "TL102"
    assert not (tmp_path / "trapline-quarantine.jsonl").exists()


def test_a_rank_that_was_killed_is_tried_again(tmp_path, train):
    run = Supervised(tmp_path, "--delay", "0.05", program=train("peer", 2))
    assert run.wait(180) == 0, run.err[-3000:]
    run.gone()
    assert "trapline: retry: " in run.err
    assert (tmp_path / "weights.pt").exists()


def test_the_first_rank_is_the_jobs_and_survives_its_peers(tmp_path, train):
    """Sample 57 is rank 1's; torchrun then ends rank 0, which waits for it."""
    run = Supervised(tmp_path, "--delay", "0.05", "--report", "reports", program=train("with", 2))
    assert run.wait(180) == 0, run.err[-3000:]
    first = tmp_path / "reports" / "start-0001"
    done = subprocess.run(
        [TRAPLINE, "explain", "--format", "json", first], capture_output=True, text=True, check=False
    )
    root, *others = json.loads(done.stdout)["findings"]
    assert (root["code"], root["process"]["rank"], root["sample"]["dataset_index"]) == ("TL101", 1, 57)
    assert all(one["role"] == "consequence" for one in others)


def test_each_start_keeps_its_findings(tmp_path, train):
    run = Supervised(tmp_path, "--delay", "0.05", "--report", "reports", program=train("with"))
    assert run.wait(120) == 0, run.err[-3000:]
    assert list((tmp_path / "reports" / "start-0001").glob("finding-*.json"))
    assert not list((tmp_path / "reports" / "start-0002").glob("finding-*.json"))
    assert (tmp_path / "reports" / "trapline-quarantine.jsonl").exists()


def test_a_fault_that_was_handled_is_not_blamed_for_a_crash(tmp_path):
    (tmp_path / "handled.py").write_text(
        "import os, time, torch\n"
        "table = torch.nn.Embedding(10, 4)\n"
        "try: table(torch.tensor([1, 99]))\n"
        "except IndexError: print('handled')\n"
        "time.sleep(0.2)\n"
        "os.kill(os.getpid(), 11)\n"
    )
    run = Supervised(tmp_path, "--delay", "0.05", "--restarts", "0", program=[str(PYTHON), "handled.py"])
    assert run.wait(120) == 70
    assert run.out == "handled\n"
    assert "trapline: stop: SIGSEGV ended it, and nothing tells why; no restart is allowed" in run.err


def test_dry_run_says_what_would_be_done(tmp_path, train):
    report = tmp_path / "report.json"
    subprocess.run(
        [TRAPLINE, "run", "--format", "json", "-o", report, "--", *train("head")],
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    done = subprocess.run(
        [TRAPLINE, "supervise", "--dry-run", report], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (
        0,
        "stop: TL102 comes back until the model's head and the classes fit\n",
    )
    (tmp_path / "policy.toml").write_text("[decide]\nTL102 = 'retry'\n")
    done = subprocess.run(
        [TRAPLINE, "supervise", "--policy", tmp_path / "policy.toml", "--dry-run", report],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "retry: the policy says so of TL102\n")
    done = subprocess.run(
        [TRAPLINE, "supervise", "--dry-run", Path(__file__)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2 and "is no report" in done.stderr
