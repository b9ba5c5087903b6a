"""C6: `--watch nan` names the step and the layer where NaN began, with a fault and without one."""

from __future__ import annotations

from pathlib import Path

import e2e_runner as runner
import pytest

TRAINING = """
import sys
import torch

torch.manual_seed(0)


class Head(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Linear(4, 8)
        self.score = torch.nn.Linear(8, 3)

    def forward(self, x):
        return self.score(self.body(x).log() if broken else self.body(x).relu())


broken = False
model = Head()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(6):
    x = torch.randn(16, 4)
    if step == 3 and "--fixed" not in sys.argv:
        x[5, 2] = float("nan")  # a missing value
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(x), torch.randint(0, 3, (16,)))
    loss.backward()
    optimizer.step()
if "--sample" in sys.argv:
    torch.multinomial(torch.softmax(model(torch.randn(2, 4)), dim=-1), 1)
print("done")
"""


def test_C6_training_that_ends_with_nan(tmp_path: Path) -> None:
    script = runner.write_program(tmp_path / "training.py", TRAINING)
    outcome = runner.trapline(["--watch", "nan"], [runner.PYTHON, script])
    assert (outcome.returncode, outcome.stdout) == (0, "done\n"), outcome.stderr
    assert "TL109" in outcome.stderr
    words = " ".join(outcome.stderr.split())  # the report wraps lines
    assert "the first NaN of this run was in step 4, in the output of `body` (Linear)" in words
    assert "handled" not in outcome.stderr


def test_C6_later_fault_names_where_the_nan_began(tmp_path: Path) -> None:
    script = runner.write_program(tmp_path / "training.py", TRAINING)
    command = [runner.PYTHON, script, "--sample"]
    outcome = runner.trapline_json(tmp_path, command, ["--watch", "nan"])
    assert outcome.returncode == 1
    assert outcome.report is not None
    (finding,) = outcome.report["findings"]
    assert finding["cause"] == "invalid_probability"
    assert finding["fix"][0] == "print the input of `body` in step 4"
    assert finding["evidence"][-1]["source"] == "watch"


def test_C6_nothing_is_said_of_a_good_training(tmp_path: Path) -> None:
    script = runner.write_program(tmp_path / "training.py", TRAINING)
    command = [runner.PYTHON, script, "--fixed", "--sample"]
    watched, plain = runner.trapline(["--watch", "nan"], command), runner.trapline([], command)
    assert watched.returncode == 0
    assert (watched.stdout, watched.stderr) == (plain.stdout, plain.stderr)


def test_unknown_watch_is_refused() -> None:
    outcome = runner.trapline(["--watch", "everything"], [runner.PYTHON, "-c", "pass"])
    assert outcome.returncode == 2
    assert "--watch" in outcome.stderr and "nan" in outcome.stderr


@pytest.mark.parametrize("options", [[], ["--watch", "light"]])
def test_C6_light_watch(tmp_path: Path, options: list[str]) -> None:
    script = runner.write_program(tmp_path / "training.py", TRAINING)
    outcome = runner.trapline(options, [runner.PYTHON, script])
    assert (outcome.returncode, outcome.stdout) == (0, "done\n"), outcome.stderr
    words = " ".join(outcome.stderr.split())
    assert "TL109" in words and "the first NaN of this run was in step 4, in what goes into Head" in words


def test_C6_nothing_is_watched_where_it_is_off(tmp_path: Path) -> None:
    script = runner.write_program(tmp_path / "training.py", TRAINING)
    outcome = runner.trapline(["--watch", "off"], [runner.PYTHON, script])
    assert (outcome.returncode, outcome.stdout, outcome.stderr) == (0, "done\n", "")


def test_C6_watch_stops(tmp_path: Path) -> None:
    script = runner.write_program(tmp_path / "training.py", TRAINING)
    outcome = runner.trapline(["--watch", "nan:stop"], [runner.PYTHON, script])
    assert (outcome.returncode, outcome.stdout) == (65, ""), outcome.stderr
    assert "stopped at the first NaN, after step 4" in outcome.stderr and "TL109" in outcome.stderr


COMPILED = """
import torch

model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
optimizer = torch.optim.Adam(model.parameters())
compiled = torch.compile(model, backend="eager")
for _ in range(4):
    optimizer.zero_grad()
    compiled(torch.randn(3, 4)).pow(2).mean().backward()
    optimizer.step()
print("done")
"""


def test_C6_nothing_is_said_of_a_compiled_training(tmp_path: Path) -> None:
    """PyTorch warns where a compiled module is called with global hooks."""
    script = runner.write_program(tmp_path / "compiled.py", COMPILED)
    outcome = runner.trapline([], [runner.PYTHON, script])
    assert (outcome.returncode, outcome.stdout, outcome.stderr) == (0, "done\n", "")


EMPTY_MEAN = """
import torch

model = torch.nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(4):
    labels = torch.full((8,), -100 if step == 2 else 1)
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(torch.ones(8, 4)), labels).backward()
    optimizer.step()
"""


def test_C6_a_mean_over_nothing_is_a_note(tmp_path: Path) -> None:
    script = runner.write_program(tmp_path / "empty.py", EMPTY_MEAN)
    outcome = runner.trapline_json(tmp_path, [runner.PYTHON, script], [])
    assert outcome.returncode == 0 and outcome.report is not None
    assert (outcome.report["verdict"], outcome.report["findings"]) == ("clean", [])
    note, advice = outcome.report["notes"]
    assert note.startswith("the first NaN of this run was in step 3, in the loss, by `nll_loss`")
    assert note.endswith("; its gradients were 0: no weight took harm")
    assert advice == (
        "help: `nll_loss` had nothing to average: the batch was empty, or every target was ignore_index, or "
        "of weight 0; find why nothing is left there; where that may happen, this term is 0: its sum, "
        "divided by the count with clamp(min=1)"
    )


SEEDED = """
import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))


def seed(layer, counts):
    with torch.no_grad():
        layer.weight[0].copy_(torch.log(counts))


def fit(steps):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(steps):
        loss = torch.nn.functional.cross_entropy(model(torch.randn(16, 4)), torch.randint(0, 3, (16,)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


fit(5)
seed(model[0], torch.tensor([1.0, 0.0, 2.0, 1.0]))
fit(3)
"""


def test_weights_that_a_function_of_the_file_writes_between_two_trainings(tmp_path: Path) -> None:
    script = runner.write_program(tmp_path / "seeded.py", SEEDED)
    outcome = runner.trapline_json(tmp_path, [runner.PYTHON, script])
    assert outcome.report is not None, outcome.stderr
    (finding,) = outcome.report["findings"]
    assert "step 6, in layer 0.weight, which the program itself has written besides" in finding["summary"]
    assert finding["origin"]["line"] == 1 + SEEDED[: SEEDED.index("layer.weight[0]")].count("\n")
