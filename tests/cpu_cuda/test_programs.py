"""Programs that are written for CUDA give what they give on the CPU, bit for bit."""

from __future__ import annotations

import pytest
import torch
from programs import PROGRAMS


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_a_program(program):
    results = []
    for device in ("cpu", "cuda"):
        torch.manual_seed(11)
        results.append(program(device))
    host, device = results
    assert len(host) == len(device) > 0
    assert all(tensor.is_cuda for tensor in device if tensor.dim() > 0)
    for number, (expected, got) in enumerate(zip(host, device)):
        assert torch.equal(expected, got.cpu()), (program.__name__, number)


def test_transformers():
    transformers = pytest.importorskip("transformers")
    results = []
    for device in ("cpu", "cuda"):
        torch.manual_seed(0)
        sizes = {"n_layer": 2, "n_head": 2, "n_embd": 16, "vocab_size": 40, "n_positions": 32}
        ends = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
        model = transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes, **ends)).to(device)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        for _ in range(2):
            ids = torch.randint(3, 40, (2, 9)).to(device)
            optimizer.zero_grad()
            model(ids, labels=ids).loss.backward()
            optimizer.step()
        made = model.eval().generate(ids[:, :3], max_new_tokens=6, do_sample=True, top_k=5)
        results.append([made.cpu(), *(p.detach().cpu() for p in model.parameters())])
    assert all(torch.equal(a, b) for a, b in zip(*results))
