"""Programs under `trapline run` on PyTorch's own CUDA: what training scripts do, and what the guard says.

Each is run with a bad value and without: with it there is one finding, at its line; without it none, and the
numbers are those of the run without Trapline.
"""

from __future__ import annotations

import textwrap

import e2e_runner as runner
import pytest

BEGINNING = """
import sys, torch, torch.nn.functional as F
from torch import nn
BAD = len(sys.argv) > 1
torch.manual_seed(0)
torch.use_deterministic_algorithms(False)
table = nn.Embedding(10, 8).cuda()
head = nn.Linear(8, 4).cuda()
parameters = [*table.parameters(), *head.parameters()]
ids = torch.tensor([1, 2, 10 if BAD else 3]).cuda()
labels = torch.tensor([0, 1, 2]).cuda()
def loss_of(i=ids):
    return F.cross_entropy(head(table(i)), labels)  # <- here
"""
PROGRAMS = {
    "amp_and_scaler": """
        scaler = torch.amp.GradScaler("cuda")
        optimizer = torch.optim.SGD(parameters, lr=0.1)
        for _ in range(3):
            with torch.autocast("cuda", dtype=torch.float16):
                loss = loss_of()
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        print(loss.item(), scaler.get_scale())
    """,
    "fused_adamw": """
        optimizer = torch.optim.AdamW(parameters, fused=True)
        for _ in range(3):
            optimizer.zero_grad()
            loss_of().backward()
            optimizer.step()
        print(loss_of().item())
    """,
    "foreach_and_clipping": """
        optimizer = torch.optim.Adam(parameters, foreach=True)
        for _ in range(3):
            optimizer.zero_grad()
            loss_of().backward()
            nn.utils.clip_grad_norm_(parameters, 0.5)
            optimizer.step()
        print(loss_of().item())
    """,
    "lbfgs": """
        optimizer = torch.optim.LBFGS(parameters, lr=0.1, max_iter=3)
        def closure():
            optimizer.zero_grad()
            loss = loss_of()
            loss.backward()
            return loss
        print(optimizer.step(closure).item())
    """,
    "checkpoint": """
        from torch.utils.checkpoint import checkpoint
        loss = checkpoint(loss_of, ids, use_reentrant=False)
        loss.backward()
        print(loss.item())
    """,
    "vmap": """
        print(torch.vmap(lambda i: table(i).sum())(ids).sum().item())  # <- here
    """,
    "func_grad": """
        values = {name: value.detach() for name, value in table.named_parameters()}
        def loss(values):
            return torch.func.functional_call(table, values, (ids,)).pow(2).sum()  # <- here
        print(torch.func.grad(loss)(values)["weight"].sum().item())
    """,
    "inference_mode": """
        with torch.inference_mode():
            print(loss_of().item())
    """,
    "workers_and_pinned_memory": """
        class Data(torch.utils.data.Dataset):
            def __len__(self): return 12
            def __getitem__(self, i): return torch.tensor(10 if BAD and i == 7 else i % 10)
        loader = torch.utils.data.DataLoader(Data(), 3, num_workers=2, pin_memory=True)
        print(sum(loss_of(batch.to("cuda", non_blocking=True)).item() for batch in loader))
    """,
    "cuda_graph": """
        still = torch.tensor([1, 2, 3]).cuda()
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            loss_of(still).backward()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            loss = loss_of(still)
            loss.backward()
        still.copy_(ids)
        graph.replay()
        print(loss.item())
    """,
    "two_streams_and_threads": """
        import threading
        def work(i):
            with torch.cuda.stream(torch.cuda.Stream()):
                for _ in range(20):
                    loss_of(i)
                torch.cuda.current_stream().synchronize()
        threads = [threading.Thread(target=work, args=(torch.tensor([1, 2, 3]).cuda(),)) for _ in range(2)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        print(loss_of().item())
    """,
    "ddp_on_gloo": """
        import os, torch.distributed as dist
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="0", RANK="0", WORLD_SIZE="1")
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        model = nn.parallel.DistributedDataParallel(nn.Sequential(table, head), device_ids=[0])
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(2):
            loss = F.cross_entropy(model(ids), labels)  # <- here
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(loss.item())
        dist.destroy_process_group()
    """,
    "save_and_numpy": """
        import io
        torch.save(loss_of(), io.BytesIO())
        print(float(loss_of().detach().cpu().numpy()))
    """,
    "compiled": """
        print(torch.compile(loss_of)(ids).item())
    """,
}


@pytest.fixture
def run(tmp_path):
    def start(text, *arguments, options=()):
        script = tmp_path / "program.py"
        script.write_text(BEGINNING + textwrap.dedent(text), encoding="utf-8")
        return runner.trapline_json(tmp_path / "run", [runner.PYTHON, str(script), *arguments], options)

    return start


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_bad_value_is_reported_at_its_line(name, run):
    outcome = run(PROGRAMS[name], "bad")
    finding = runner.only_root(outcome)
    assert outcome.returncode == 1, outcome.stderr
    assert finding["element"]["value"] == 10 and finding["contained"] is True
    assert "# <- here" in finding["origin"]["code"], finding["origin"]
    assert "device-side assert" not in outcome.stderr


@pytest.mark.parametrize("name", PROGRAMS)
def test_without_it_there_is_no_finding_and_the_same_number(name, run, tmp_path):
    outcome = run(PROGRAMS[name])
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.report["findings"] == []
    plain = runner.plain([runner.PYTHON, str(tmp_path / "program.py")])
    assert plain.stdout == outcome.stdout and plain.stdout, plain.stderr


def test_a_bad_batch_is_skipped(run):
    text = """
        optimizer = torch.optim.SGD(parameters, lr=0.1)
        for step in range(4):
            i = torch.tensor([1, 2, 10 if step == 2 else 3]).cuda()
            optimizer.zero_grad()
            loss_of(i).backward()
            optimizer.step()
        print(loss_of(torch.tensor([1, 2, 3]).cuda()).item())
    """
    outcome = run(text, options=["--on-fault", "skip"])
    assert outcome.returncode == 0 and "skipping this step" in outcome.stderr, outcome.stderr


def test_the_watch_names_the_layer(run):
    text = """
        model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(5):
            x = torch.randn(6, 4).cuda()
            if step == 3:
                x[2, 1] = float("nan")
            optimizer.zero_grad()
            model(x).pow(2).mean().backward()
            optimizer.step()
    """
    finding = runner.only_root(run(text, options=["--watch", "nan"]))
    assert (
        finding["code"] == "TL109" and finding["layer"]["name"] == "0" and "in step 4" in finding["summary"]
    )
