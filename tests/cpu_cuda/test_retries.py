"""Programs that catch every fault and go on, with late work as on a GPU: they end with what they would have
ended with had the bad batches never come, whenever the fault was noticed."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import ROOT

sys.path.append(str(ROOT / "tests" / "e2e"))
pytest.importorskip("jsonschema")

import e2e_runner as runner

BEGINNING = """
import torch
import torch.nn.functional as F
from torch import nn

device = "cuda"
batches = [(torch.randn(16, 8), torch.randint(0, 5, (16,))) for _ in range(24)]
BAD = {3, 4, 11, 23}


def labels(number, with_bad):
    given = batches[number][1].clone()
    if with_bad and number in BAD:
        given[7] = 5
    return given.to(device)


def numbers(with_bad):
    return [n for n in range(len(batches)) if with_bad or n not in BAD]


def network():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(8, 6), nn.ReLU(), nn.Linear(6, 5)).to(device)


def adam(model):
    return torch.optim.AdamW(model.parameters(), lr=0.01)
"""

ENDING = """

results, caught = train(True)
torch.cuda.synchronize()
expected, none = train(False)
print({name!r}, caught, none, all(torch.equal(a, b) for a, b in zip(results, expected)))
"""

LOOPS = {
    # zero_grad() comes last, as many write it: a fault in between skips it
    "zero_grad_last": """
def train(with_bad):
    model, caught = network(), 0
    optimizer = adam(model)
    for number in numbers(with_bad):
        try:
            F.cross_entropy(model(batches[number][0].to(device)), labels(number, with_bad)).backward()
            optimizer.step()
            optimizer.zero_grad()
        except IndexError:
            caught += 1
    return list(model.parameters()), caught
""",
    # a batch that failed is tried again, three times
    "tried_again": """
def train(with_bad):
    model, caught = network(), 0
    optimizer = adam(model)
    for number in numbers(with_bad):
        given = labels(number, with_bad)
        for _ in range(3):
            try:
                optimizer.zero_grad()
                loss = F.cross_entropy(model(batches[number][0].to(device)), given)
                loss.backward()
                assert loss.item() > 0
                optimizer.step()
                break
            except IndexError:
                caught += 1
    return list(model.parameters()), caught // 3
""",
    # the step itself is tried again, as a cell of a notebook is
    "steps_again": """
def train(with_bad):
    model, caught = network(), 0
    optimizer = adam(model)
    for number in numbers(with_bad):
        optimizer.zero_grad()
        try:
            loss = F.cross_entropy(model(batches[number][0].to(device)), labels(number, with_bad))
            loss.backward()
            optimizer.step()
        except IndexError:
            caught += 1
            optimizer.step()
    return list(model.parameters()), caught
""",
    "two_optimizers": """
def train(with_bad):
    head, body, caught = nn.Linear(6, 5).to(device), nn.Linear(8, 6).to(device), 0
    with torch.no_grad():
        for p in (*head.parameters(), *body.parameters()):
            p.fill_(0.1).add_(torch.linspace(0, 1, p.numel()).view(p.shape).to(device))
    optimizers = adam(head), adam(body)
    for number in numbers(with_bad):
        try:
            F.cross_entropy(head(body(batches[number][0].to(device))), labels(number, with_bad)).backward()
        except IndexError:
            caught += 1
        for optimizer in optimizers:
            try:
                optimizer.step()
                optimizer.zero_grad()
            except IndexError:
                caught += 1
    return [*head.parameters(), *body.parameters()], caught
""",
    "scaler": """
def train(with_bad):
    model, caught = network(), 0
    optimizer, scaler = adam(model), torch.amp.GradScaler(device, init_scale=16.0)
    for number in numbers(with_bad):
        optimizer.zero_grad()
        try:
            loss = F.cross_entropy(model(batches[number][0].to(device)), labels(number, with_bad))
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
        except IndexError:
            caught += 1
    return list(model.parameters()), caught
""",
    "checkpointed": """
from torch.utils.checkpoint import checkpoint


def train(with_bad):
    model, caught = network(), 0
    optimizer = adam(model)
    for number in numbers(with_bad):
        x, given = batches[number][0].to(device), labels(number, with_bad)
        try:
            checkpoint(lambda x: F.cross_entropy(model(x), given), x, use_reentrant=False).backward()
            optimizer.step()
            optimizer.zero_grad()
        except IndexError:
            caught += 1
    return list(model.parameters()), caught
""",
}


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    """What all loops of one program print, for two seeds at a time."""
    folder = tmp_path_factory.mktemp("retries")
    program = folder / "program.py"
    text = BEGINNING + "".join(loop + ENDING.format(name=name) for name, loop in LOOPS.items())
    program.write_text(text, encoding="utf-8")

    def run(seed):
        environment = runner.environment(TRAPLINE_CPU_LATE=str(seed))
        arguments = ["--cpu", "-o", str(folder / f"{seed}.json")]
        return runner.trapline(arguments, [runner.PYTHON, str(program)], environment)

    with ThreadPoolExecutor(max_workers=2) as pool:
        yield dict(zip((1, 2), pool.map(run, (1, 2))))


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_that_goes_on(name, seed, printed):
    assert f"{name} 4 0 True\n" in printed[seed].stdout, printed[seed].stderr
    assert printed[seed].returncode == 0
