"""`trapline run --on-fault` as a user runs it: exit codes, the line at the end, two runs, two ranks."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import e2e_runner as runner
import pytest

LOOP = """
import sys
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

def main():
    torch.manual_seed(0)
    x, y = torch.randn(64, 4), torch.randint(0, 3, (64,))
    y[17], y[18] = 7, -2
    net = torch.nn.Linear(4, 3)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    count = 0
    for a, b in DataLoader(TensorDataset(x, y), batch_size=8, num_workers=int(sys.argv[1])):
        optimizer.zero_grad()
        F.cross_entropy(net(a), b).backward()
        optimizer.step()
        count += 1
    print(count, "batches,", a.shape[0], "in the last")

if __name__ == "__main__":
    main()
"""

IN_A_WORKER = """
import torch
from torch.utils.data import DataLoader, Dataset

class Lookup(Dataset):
    def __len__(self):
        return 4
    def __getitem__(self, index):
        return torch.arange(3.0)[torch.tensor([index])]

if __name__ == "__main__":
    torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1)
    for batch in DataLoader(Lookup(), batch_size=1, num_workers=1):
        print(batch.item(), flush=True)
"""

RANKS = """
import contextlib, sys
import torch
import torch.distributed as dist
import torch.nn.functional as F

def main(folder, how):
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
    if how.startswith("fsdp2"):
        from torch.distributed.fsdp import fully_shard
        fully_shard(net)
        ranked = net
    elif how.startswith("fsdp1"):
        from torch.distributed.fsdp import FullyShardedDataParallel
        ranked = FullyShardedDataParallel(net, device_id=torch.device("cpu"))
    else:
        ranked = torch.nn.parallel.DistributedDataParallel(net)
    optimizer = torch.optim.AdamW(ranked.parameters(), lr=0.05)
    generator = torch.Generator().manual_seed(rank)
    for step in range(5):
        x = torch.randn(6, 4, generator=generator)
        y = torch.randint(0, 3, (6,), generator=generator)
        if step == 2 and how.endswith("without"):
            continue
        if step == 2 and rank == 1 and "nan" in how:
            x[4] = float("nan")
        elif step == 2 and rank == 1:
            y[4] = 3
        optimizer.zero_grad()
        F.cross_entropy(ranked(x), y).backward()
        optimizer.step()
    whole = contextlib.nullcontext()
    if how.startswith("fsdp1"):
        whole = FullyShardedDataParallel.summon_full_params(ranked)
    with whole:
        values = [p.full_tensor() if hasattr(p, "full_tensor") else p for p in net.parameters()]
        torch.save([v.detach() for v in values], f"{folder}/{how}-{rank}.pt")
    dist.destroy_process_group()

main(*sys.argv[1:])
"""

# Its threads would still run when the interpreter ends, and one that wants the GIL then aborts the process.
THREADS_OF_A_GROUP = """
import os
import torch
import torch.distributed as dist

def threads():
    names = [open(f"/proc/self/task/{task}/comm").read() for task in os.listdir("/proc/self/task")]
    return sum(name.startswith("pt_gloo_runloop") for name in names)

weight = torch.nn.Parameter(torch.zeros(3))
optimizer = torch.optim.SGD([weight], lr=0.1)
for turn in range(2):
    where = {"rank": int(os.environ["RANK"]), "world_size": 2}
    dist.init_process_group("gloo", init_method=f"file://{os.getcwd()}/store{turn}", **where)
    before = threads()
    weight.sum().backward()
    optimizer.step()  # the ranks agree, over a group of the guard's own
    agreed = threads()
    dist.destroy_process_group()
    os.write(1, f"{before < agreed} {threads()}\\n".encode())  # one write: the ranks share the pipe
"""


TWO_RANKS = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]


@pytest.fixture
def loop(tmp_path: Path) -> list[str]:
    return [runner.PYTHON, str(runner.write_program(tmp_path / "loop.py", LOOP)), "0"]


def skips(outcome: runner.Outcome) -> str:
    """The line at the end of a run that skipped."""
    (line,) = [line for line in outcome.stderr.splitlines() if "optimizer step" in line]
    return line


def test_skip_and_a_second_run(loop, tmp_path):
    options = ["--on-fault", "skip", "--report", tmp_path / "kept"]
    first = runner.trapline(options, loop)
    assert first.returncode == 0, first.stderr
    assert first.stdout == "8 batches, 8 in the last\n"
    assert "trapline: skipping this step: cross_entropy: target[1] is 7" in first.stderr
    quarantine = tmp_path / "kept" / "trapline-quarantine.jsonl"
    assert skips(first) == (
        f"trapline: 1 of 8 optimizer steps was skipped (12 %), 2 samples are in {quarantine} (TL101): "
        f"see {tmp_path}/kept"
    )
    entries = [json.loads(line) for line in quarantine.read_text().splitlines()]
    assert [(e["dataset_index"], e["value"]) for e in entries] == [(17, 7), (18, -2)]

    second = runner.trapline(options, loop)
    assert (second.returncode, second.stdout) == (0, "8 batches, 6 in the last\n")
    left_out = f"trapline: quarantine: 2 of 64 samples left out, as {quarantine} says"
    assert second.trapline_lines == [left_out]

    # Leaving out what is known needs no --on-fault.
    third = runner.trapline(["--quarantine", quarantine], loop)
    assert (third.returncode, third.stdout) == (0, "8 batches, 6 in the last\n")


NAN = LOOP.replace("y[17], y[18] = 7, -2", "x[17, 1] = float('nan')")


def test_skip_of_a_step_that_is_not_finite(tmp_path):
    assert NAN != LOOP
    program = [runner.PYTHON, str(runner.write_program(tmp_path / "nan.py", NAN)), "0"]
    options = ["--on-fault", "skip", "--report", tmp_path / "kept"]
    first = runner.trapline(options, program)
    assert (first.returncode, first.stdout) == (0, "8 batches, 8 in the last\n")
    quarantine = tmp_path / "kept" / "trapline-quarantine.jsonl"
    text = " ".join(first.stderr.split())
    assert text.startswith(
        "trapline: skipping this step: the first NaN of this run was in step 3, in the data: a[1, 1] is NaN: "
        "ignore its loss error[TL109]: the first NaN of this run was in step 3, in the data: a[1, 1] is NaN "
        "= sample: sample 17 of"
    )
    assert "1 of 8 optimizer steps was skipped (12 %), 1 sample is in" in text
    (entry,) = [json.loads(line) for line in quarantine.read_text().splitlines()]
    assert (entry["dataset_index"], entry["code"], entry["value"]) == (17, "TL109", "nan")

    second = runner.trapline(options, program)
    assert (second.returncode, second.stdout) == (0, "8 batches, 7 in the last\n")
    assert second.trapline_lines == [f"trapline: quarantine: 1 of 64 samples left out, as {quarantine} says"]

    unwatched = runner.trapline(["--on-fault", "skip", "--watch", "off"], program, cwd=tmp_path)
    assert (unwatched.returncode, unwatched.trapline_lines) == (0, [])


def test_a_report_tells_the_step_that_was_not_finite(tmp_path):
    program = [runner.PYTHON, str(runner.write_program(tmp_path / "nan.py", NAN)), "0"]
    outcome = runner.trapline_json(tmp_path, program, ["--on-fault", "skip"])
    assert outcome.returncode == 0
    finding = runner.only_root(outcome)
    assert (finding["code"], finding["sample"]["dataset_index"]) == ("TL109", 17)


def test_the_file_lies_where_the_program_was_started(loop, tmp_path):
    outcome = runner.trapline(["--on-fault", "skip"], [*loop[:2], "2"], cwd=tmp_path)
    assert outcome.returncode == 0, outcome.stderr
    assert len((tmp_path / "trapline-quarantine.jsonl").read_text().splitlines()) == 2


def test_a_json_report_says_what_was_skipped(loop, tmp_path):
    outcome = runner.trapline_json(tmp_path, loop, ["--on-fault", "skip"])
    assert outcome.returncode == 0
    finding = runner.only_root(outcome)
    assert finding["sample"]["dataset_index"] == 17
    assert outcome.report["notes"][0].startswith(
        "1 of 8 optimizer steps was skipped (12 %), 2 samples are in "
    )


def test_above_the_limit_the_run_fails_with_the_report(loop, tmp_path):
    options = ["--on-fault", "skip", "--skip-limit", "0.5"]
    outcome = runner.trapline(options, loop, cwd=tmp_path)
    assert outcome.returncode == 1
    assert "1 of 3 optimizer steps had to be skipped: more than 0.5 %" in outcome.stderr
    assert "error[TL101]" in outcome.stderr
    assert outcome.stdout == ""


def test_stop(loop, tmp_path):
    outcome = runner.trapline(["--on-fault", "stop"], loop, cwd=tmp_path)
    assert outcome.returncode == 65
    assert "Traceback" not in outcome.stderr
    assert "trapline: stopped: cross_entropy: target[1] is 7" in outcome.stderr
    assert "error[TL101]" in outcome.stderr
    assert not (tmp_path / "trapline-quarantine.jsonl").exists()


def test_a_fault_in_a_worker_is_raised(tmp_path):
    program = runner.write_program(tmp_path / "worker.py", IN_A_WORKER)
    outcome = runner.trapline(["--on-fault", "skip"], [runner.PYTHON, str(program)], cwd=tmp_path)
    assert outcome.returncode == 1
    assert outcome.stdout == "0.0\n1.0\n2.0\n"
    assert "DeviceAssertError" in outcome.stderr


def test_flags_that_make_no_sense():
    limit = runner.trapline(["--skip-limit", "5"], ["true"])
    assert (limit.returncode, limit.stderr) == (
        2,
        "trapline: --skip-limit has nothing to limit: no step is skipped: add --on-fault skip\n",
    )
    mode = runner.trapline(["--on-fault", "ignore"], ["true"])
    assert mode.returncode == 2
    assert len(mode.stderr.splitlines()) == 1


def run_ranks(program: Path, folder: Path, how: str) -> runner.Outcome:
    """torch's gloo threads may abort a rank whose interpreter is ending: twice in 260 runs of FSDP1 without
    the guard. Everything is done by then, so that such a run is repeated.
    """
    for attempt in range(3):
        outcome = runner.trapline(
            ["--on-fault", "skip", "--report", folder / f"{how}-report{attempt}"],
            [*TWO_RANKS, str(program), str(folder), how],
            env=runner.environment(OMP_NUM_THREADS="1"),
        )
        if "terminate called without an active exception" not in outcome.stderr:
            break
    return outcome


@pytest.mark.parametrize("how", ["ddp", "fsdp1", "fsdp2", "ddp-nan", "fsdp1-nan", "fsdp2-nan"])
def test_ranks_agree(tmp_path, how):
    """The bad row is on one rank; both leave the step out and end with the weights of a run without it."""
    import torch

    program = runner.write_program(tmp_path / "ranks.py", RANKS)
    outcomes = {}
    for which in (how, f"{how}-without"):
        outcomes[which] = run_ranks(program, tmp_path, which)
        assert outcomes[which].returncode == 0, outcomes[which].stderr
    left, right, clean = (
        torch.load(tmp_path / name) for name in (f"{how}-0.pt", f"{how}-1.pt", f"{how}-without-0.pt")
    )
    for a, b, c in zip(left, right, clean):
        assert torch.equal(a, b)
        assert torch.equal(a, c)
    assert "2 of 10 optimizer steps were skipped (20 %)" in skips(outcomes[how])
    lines = [line for line in outcomes[how].stderr.splitlines() if "skipping this step" in line]
    assert len(lines) == 1  # by the rank that has the bad row


def test_destroy_process_group_ends_the_threads_of_ours_too(tmp_path):
    program = runner.write_program(tmp_path / "threads.py", THREADS_OF_A_GROUP)
    outcome = runner.trapline(
        ["--on-fault", "skip"],
        [*TWO_RANKS, str(program)],
        cwd=tmp_path,
        env=runner.environment(OMP_NUM_THREADS="1"),
    )
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stdout.split("\n") == ["True 0"] * 4 + [""]
