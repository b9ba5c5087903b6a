"""On the CPU the operation decides: the column of the table from runs, and every row in other sizes."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from conftest import Fault
from torch import tensor
from variants import AT_ENDS, PARTLY, REFUSES, column

HERE = Path(__file__).parent

# Without the guard, each in a child: what the operation does with the bad calls of conformance.py, and with
# those that show what a row of the table says of it.
RUNS = r"""
import os, signal, sys
sys.path[:0] = sys.argv[1:]
import torch
from torch import tensor
torch.set_num_threads(1)
from conformance import BAD_CALLS
A = torch.ops.aten
one, rows = torch.ones(()), torch.zeros(2, 3)
MORE = [
    ("nll_loss_backward.target", lambda: A.nll_loss_backward(
        torch.ones(2), rows, tensor([1, 7]), None, 0, -100, one)),
    ("nll_loss2d_backward.target", lambda: A.nll_loss2d_backward(
        torch.ones(1, 1, 2), torch.zeros(1, 2, 1, 2), tensor([[[0, 7]]]), None, 0, -100, one)),
    ("_embedding_bag.offsets", lambda: torch.embedding_bag(
        torch.zeros(9, 3, requires_grad=True), tensor([1, 2, 3]), tensor([0, 2, 1]), False, 2)),
    ("_embedding_bag_forward_only.offsets", lambda: torch.embedding_bag(
        torch.zeros(9, 3), tensor([1, 2, 3]), tensor([0, 4]))),
    ("embedding_renorm.indices", lambda: A.embedding_renorm(torch.ones(9, 2), tensor([-1]), 1.0, 2.0)),
    ("embedding_renorm_.indices", lambda: A.embedding_renorm_(torch.ones(9, 2), tensor([-1]), 1.0, 2.0)),
]
for contract, run in [(c.contract, c.run) for c in BAD_CALLS] + MORE:
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGSEGV, signal.SIG_DFL)  # torch's own death is no sanitizer's affair
        says = "silent"
        try:
            run()
        except NotImplementedError:
            says = "no kernel"
        except (IndexError, RuntimeError):
            says = "throws"
        print(contract, says, sep="\t", flush=True)
        os._exit(0)
    if os.waitpid(child, 0)[1] != 0:
        print(contract, "dies", sep="\t", flush=True)
"""


def test_the_column_is_what_runs_show():
    from trapline._guard import plan
    from trapline._library import paths

    folders = [str(HERE), str(HERE.parent / "python")]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", RUNS, *folders], capture_output=True, text=True, check=True
    )
    seen = {}
    for line in done.stdout.splitlines():
        contract, says = line.split("\t")
        seen.setdefault(contract, set()).add(says)
    table = column(plan.make_plans(paths.library()))
    assert len(seen) > 70
    for contract, says in seen.items():
        if says == {"no kernel"}:
            continue
        if table[contract] == REFUSES:
            assert says == {"throws"}, contract
        else:
            assert says & {"silent", "dies"}, contract
        if table[contract] in (PARTLY, AT_ENDS):
            assert "dies" not in says and "throws" in says, contract


def lines():
    done = subprocess.run(
        [sys.executable, "variants.py"],
        cwd=HERE,
        env={
            **os.environ,
            "PYTHONPATH": f"{HERE.parent.parent / 'python'}:{HERE.parent / 'python'}",
        },
        capture_output=True,
        text=True,
        check=True,
    )
    assert "did not run" not in done.stderr, done.stderr[:2000]
    return [json.loads(line) for line in done.stdout.splitlines()]


# Rows that object where nothing is read, which only a check on a device shows: it sees no other argument.
ONLY_SIZES_TELL = {
    ("_embedding_bag.indices", "offsets empty"),
    ("_embedding_bag.indices", "offsets dim 0 = 0"),
    ("_embedding_bag.indices", "every 2 = 0"),
    ("_embedding_bag_forward_only.indices", "offsets empty"),
    ("_embedding_bag_forward_only.indices", "offsets dim 0 = 0"),
    ("_embedding_bag_forward_only.indices", "every 2 = 0"),
    ("linalg_lu_solve.pivots", "B dim 1 = 0"),
    ("linalg_lu_solve.pivots", "every 1 = 0"),
}


def test_every_row_in_other_sizes_and_dtypes():
    """With and without the guard: the same refusals, PyTorch's words in findings, none where all is well."""
    from trapline._guard import plan
    from trapline._library import paths

    table = column(plan.make_plans(paths.library()))
    wrong, counts = [], {"fault": 0, "own": 0, "accepted": 0}
    for line in lines():
        if "guarded" not in line:
            continue  # PyTorch alone has died of it
        where = (line["contract"], line["variant"])
        plain, guarded, healed = line["plain"], line["guarded"], line["healed"]
        refuses = all(table[row] == REFUSES for row in line["objects"])
        if plain["raised"] is None:
            counts["accepted"] += 1
            if refuses and guarded["raised"] is not None:
                wrong.append((where, "reported, but PyTorch takes it", guarded["text"]))
            if refuses and line["objects"] and where not in ONLY_SIZES_TELL:
                wrong.append((where, "the row objects to what is not read", line["objects"]))
        elif guarded["raised"] is None:
            wrong.append((where, "lost", plain["text"]))
        elif not guarded["fault"]:
            counts["own"] += 1
            if (guarded["raised"], guarded["text"]) != (plain["raised"], plain["text"]):
                wrong.append((where, "another exception", guarded["text"], plain["text"]))
        else:
            counts["fault"] += 1
            if line["says"] != plain["text"] and not (line["says"] is None and not refuses):
                wrong.append((where, "other words", line["says"], plain["text"]))
            if healed is not None and healed["raised"] is not None:
                wrong.append((where, "a check of something else comes first", healed["text"]))
    assert not wrong
    assert counts["fault"] > 200 and counts["own"] > 300 and counts["accepted"] > 80, counts


CLASSES = torch.zeros(4, 3)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: torch.zeros(3).gather(0, tensor([[7]])), "same number of dimensions"),
        (lambda: torch.zeros(3, 3).index_put_((tensor([0, 5]),), torch.ones(7, 7, 7)), "shape mismatch"),
        (lambda: torch.zeros(3).scatter_(0, tensor([5]), torch.ones(1, dtype=torch.int64)), "dtype"),
        (lambda: torch.zeros(3).index_select(0, tensor([[5]])), "ector"),
        (lambda: F.nll_loss(CLASSES, tensor([0, 1, 7, 2]), weight=torch.ones(5)), "weight tensor should be"),
        (lambda: torch.embedding_bag(torch.zeros(2, 2, 2), tensor([2, 2]), tensor([0])), "2D Tensor"),
        (lambda: torch.zeros(3).index_add_(0, tensor([7]), torch.ones(5)), "should be equal to source"),
        (lambda: torch.zeros(1).expand(3).index_add_(0, tensor([7]), torch.ones(1)), "single memory loc"),
        (lambda: F.ctc_loss(torch.zeros(6, 2, 5).log_softmax(2), tensor([[9, 9], [9, 9]]), tensor([9, 9]),
                            tensor([2, 2])), "input_lengths"),
    ],
)  # fmt: skip
def test_a_check_of_sizes_and_dtypes_comes_first(guard, call, words):
    with pytest.raises((RuntimeError, IndexError), match=words) as raised:
        call()
    assert not isinstance(raised.value, Fault)
    assert not guard.violations


def test_what_is_written_to_and_drawn_stays_what_it_is(guard):
    target = torch.arange(6.0)
    view = target[::2]
    with pytest.raises(Fault):
        view.index_put_((tensor([0, 1, 9]),), tensor(7.0))
    out = torch.empty(0)
    with pytest.raises(Fault):
        torch.gather(torch.zeros(3), 0, tensor([1, 9]), out=out)
    assert torch.equal(target, torch.arange(6.0)) and out.shape == (0,)
    drawn = torch.ones(3)
    torch.manual_seed(1)
    with pytest.raises(Fault):
        drawn.bernoulli_(tensor([0.5, 0.5, 2.0]))
    after = torch.rand(3)
    torch.manual_seed(1)
    assert torch.equal(after, torch.rand(3)) and torch.equal(drawn, torch.ones(3))
    assert [v["torch_says"][:30] for v in guard.violations] == [
        "index 9 is out of bounds for d",
        "index 9 is out of bounds for d",
        "Expected p_in >= 0 && p_in <= ",
    ]


def test_a_sparse_tensor_without_rows_is_no_fault(guard):
    with torch.sparse.check_sparse_tensor_invariants(True):
        unwritten = tensor([94317789909904])
        none = torch.empty(0, dtype=torch.int64)
        torch.sparse_csr_tensor(unwritten, none, torch.empty(0), (0, 4))
        torch.empty((0, 4), layout=torch.sparse_csr)
    assert not guard.violations


def test_where_the_cpu_says_nothing_there_are_no_words(guard):
    scores = torch.zeros(6, 1, 5).log_softmax(2)
    with pytest.raises(Fault):
        F.ctc_loss(scores, tensor([[9, 3]]), tensor([6]), tensor([2]))
    with pytest.raises(Fault):
        torch.binomial(tensor([5.0]), tensor([math.nan]))
    assert all("torch_says" not in violation for violation in guard.violations)
