"""torch.compile: the lowered operations are checked, and the finding names the user's line."""

from __future__ import annotations

import proof
import torch
import torch.nn.functional as F
from proof import DEVICE, case, caught, usable

proof.guard()


def step(tokens: torch.Tensor, table: torch.Tensor, head: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    rows = F.embedding(tokens, table)
    return F.cross_entropy(rows @ head, labels)


def run(mode: str | None, tokens: list[int], labels: list[int]) -> float:
    compiled = torch.compile(step, mode=mode)
    torch.manual_seed(0)
    table, head = torch.randn(10, 4, device=DEVICE), torch.randn(4, 3, device=DEVICE)
    good = compiled(
        torch.tensor([1, 2], device=DEVICE), table, head, torch.tensor([0, 2], device=DEVICE)
    ).item()
    assert abs(good - step(*arguments_of([1, 2], table, head, [0, 2])).item()) < 1e-4
    return compiled(*arguments_of(tokens, table, head, labels)).item()


def arguments_of(tokens, table, head, labels):
    return torch.tensor(tokens, device=DEVICE), table, head, torch.tensor(labels, device=DEVICE)


@case
def bad_token_in_compiled_code() -> str:
    finding = caught(lambda: run(None, [1, 10], [0, 2]))
    assert finding["element"]["value"] == 10, finding["element"]
    assert "F.embedding" in finding["origin"]["code"], finding["origin"]
    usable()
    return finding["summary"]


@case
def bad_label_in_compiled_code() -> str:
    finding = caught(lambda: run(None, [1, 2], [0, 3]))
    assert finding["element"]["value"] == 3, finding["element"]
    assert "F.cross_entropy" in finding["origin"]["code"], finding["origin"]
    usable()
    return finding["summary"]


@case
def bad_token_with_cuda_graphs() -> str:
    if DEVICE.type != "cuda":
        raise proof.LeftOut("needs CUDA")
    finding = caught(lambda: run("reduce-overhead", [1, 10], [0, 2]))
    assert finding["element"]["value"] == 10, finding["element"]
    usable()
    return finding["summary"]


if __name__ == "__main__":
    raise SystemExit(proof.main())
