"""Checks of compiled graphs on CUDA's key, with a device whose work is late.

There is no Inductor for this device: the graphs are those that Inductor would get, checks and all, and run as
they are. The guard's hooks on the dispatcher see their operations too; they get what the checks return.
"""

from __future__ import annotations

import json

import late
import pytest
import torch
import torch.nn.functional as F
from programs import Fault
from test_device import capture

D = "cuda"
HERE = __file__


@pytest.fixture
def compiling(guard, monkeypatch):
    """What `trapline.install()` does for torch.compile, with the adapter of `guard`."""
    import torch._inductor.compile_fx
    from trapline import _compile
    from trapline._guard import active

    monkeypatch.setattr(active, "adapter", guard.module)
    monkeypatch.setattr(active, "_kind", "native")
    monkeypatch.setattr(active, "_enabled", True)
    torch._dynamo.reset()
    _compile.install()
    yield guard
    _compile.uninstall()
    torch._dynamo.reset()


@pytest.fixture
def reporting(compiling, monkeypatch):
    """The same with the handler of `trapline run`: findings instead of violations."""
    from trapline._guard import active
    from trapline._skip import policy

    monkeypatch.setattr(active, "_answer", policy.answer)
    compiling.module.install(active.on_violation)
    yield compiling
    compiling.module.install(compiling.handle)


@pytest.fixture
def table(compiling):
    return torch.arange(30.0).view(10, 3).to(D)


GRAPHS = []


def as_traced(module, inputs):
    from torch._inductor.compile_fx import compile_fx

    def run_as_it_is(graph, example_inputs, **options):
        GRAPHS.append(graph.graph)

        def boxed(arguments):
            return graph(*arguments)

        boxed._boxed_call = True
        return boxed

    return compile_fx(module, inputs, inner_compile=run_as_it_is)


def ids(*values, dtype=torch.long):
    return torch.tensor(values, dtype=dtype).to(D)


def caught(call):
    with pytest.raises(Fault) as raised:
        call()
    return raised.value.violation


def embedding_site(rows, dims=1):
    """As table.describe writes it: the table's sizes are numbers, and it is not given to the check."""
    arguments = [["weight", ["tensor", "float32", 2, None]], ["indices", ["checked", "int64", dims]]]
    site = {"contract": "embedding.indices", "op": "aten::embedding", "overload": "", "args": arguments}
    return json.dumps({**site, "numbers": [rows, 3, *[None] * dims]})


def functions():
    """The check as graphs call it, and as the code that Inductor writes does."""
    return torch.ops.trapline.check.default, torch.ops.trapline.checked


def test_a_check_returns_the_healed_copy_and_waits_for_nothing(compiling):
    for check in functions():
        good, bad, site = ids(1, 2), ids(1, 12, -3), embedding_site(10)
        assert check(good, [], [2], site).cpu().tolist() == [1, 2]
        before = len(compiling.violations)
        with late.held():  # the device is behind, and nobody waits for it
            healed = check(bad, [], [3], site)
        assert len(compiling.violations) == before
        violation = caught(healed.cpu)
        assert violation["contract"] == "embedding.indices" and violation["contained"] is True
        assert [violation["scan"][k] for k in ("bad", "first", "value", "lo", "hi")] == [2, 1, 12, 0, 10]
        assert healed.cpu().tolist() == [1, 9, 0]
        assert bad.cpu().tolist() == [1, 12, -3]


def test_the_healed_copy_has_the_strides_of_the_argument(compiling):
    bad = ids(1, 12, 3, 4).view(2, 2).t()
    for check in functions():
        healed = check(bad, [], [2, 2], embedding_site(10, 2))
        assert caught(healed.cpu)["scan"]["value"] == 12
        assert healed.stride() == bad.stride() == (1, 2)
        assert healed.cpu().tolist() == [[1, 3], [9, 4]]


def test_an_index_into_nothing_is_raised_at_once(compiling):
    for check in functions():
        violation = caught(lambda check=check: check(ids(4), [], [1], embedding_site(0)))
        assert (violation["scan"]["value"], violation["scan"]["hi"]) == (4, 0)


def test_a_check_that_is_captured_speaks_at_every_replay(compiling):
    check, site = torch.ops.trapline.checked, embedding_site(10)
    stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    index = ids(1, 2)
    check(index, [], [2], site)
    torch.cuda.synchronize()
    with capture(graph, stream):
        rows = check(index, [], [2], site)
    for value in (3, 13, 4, 14):
        with torch.cuda.stream(stream):
            index.fill_(value)
        with torch.cuda.stream(stream):
            graph.replay()
        if value > 9:
            assert caught(stream.synchronize)["scan"]["value"] == value
        stream.synchronize()
        assert rows.cpu().tolist() == [min(value, 9)] * 2
    assert len(compiling.violations) == 2 and not late.poisoned()


def step(words, head, index, labels):
    hidden = F.embedding(index, words)  # <- word
    return F.cross_entropy(hidden @ head, labels)  # <- label


def line_of(marker):
    with open(HERE, encoding="utf-8") as file:
        lines = [n for n, text in enumerate(file, 1) if text.endswith(f"# <- {marker}\n")]
    assert len(lines) == 1
    return lines[0]


def parameters():
    torch.manual_seed(0)
    return torch.randn(10, 4).to(D).requires_grad_(), torch.randn(4, 5).to(D).requires_grad_()


def test_a_compiled_step_forward_and_backward(compiling):
    GRAPHS.clear()
    compiled = torch.compile(step, backend=as_traced, fullgraph=True)
    good, labels = ids(1, 2, 9), ids(0, 4, 2)
    results = []
    for function in (compiled, step):
        words, head = parameters()
        loss = function(words, head, good, labels)
        loss.backward()
        results.append([t.detach().cpu() for t in (loss, words.grad, head.grad)])
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(*results))  # decomposed: other rounding
    assert compiling.violations == []
    check = torch.ops.trapline.check.default
    forward, backward = (len(graph.find_nodes(op="call_function", target=check)) for graph in GRAPHS)
    assert (forward, backward) == (2, 0)  # the backward pass is given what the checks have returned
    words, head = parameters()
    violation = caught(lambda: compiled(words, head, ids(1, 12, 9), labels).item())
    assert "site" in violation["args"] and violation["scan"]["value"] == 12
    torch.cuda.synchronize()
    assert len(compiling.violations) == 1 and not late.poisoned()


@pytest.mark.parametrize("marker", ["word", "label"])
def test_the_report_is_that_of_the_program(reporting, marker):
    from trapline import DeviceAssertError

    compiled = torch.compile(step, backend=as_traced, fullgraph=True)
    words, head = parameters()
    index, labels = ids(1, 2, 9), ids(0, 4, 2)
    bad = index if marker == "word" else labels
    bad[1] = 77
    with pytest.raises(DeviceAssertError) as raised:
        compiled(words, head, index, labels).item()
    finding = raised.value.finding
    assert finding["op"] == {"word": "embedding", "label": "cross_entropy"}[marker]
    assert finding["element"]["value"] == 77 and finding["element"]["index"] == [1]
    assert finding["valid"]["max"] == {"word": 9, "label": 4}[marker]
    assert (finding["origin"]["file"], finding["origin"]["line"]) == (HERE, line_of(marker))
    assert finding["contained"] is True


def by_age(age, table):
    group = (age / 10).long()  # <- cast
    return table[group, :]


def test_a_cast_of_nan_is_remembered_with_its_line(compiling, table):
    from trapline._guard import active

    compiled = torch.compile(by_age, backend=as_traced, fullgraph=True)
    age = torch.tensor([1.0, float("nan")]).to(D)
    violation = caught(lambda: compiled(age, table).cpu())
    assert violation["scan"]["value"] == torch.iinfo(torch.long).min
    # The conversion itself is dispatched here, and remembered as well: it comes after the check.
    cast = active.remembered()[1]
    assert (cast["contract"], cast["shape"]) == ("copy_.src", [2])
    assert f"line {line_of('cast')}, in by_age" in cast["graph_stack"]


def pairs(table, first, second):
    return table[first, None, second]


def test_lists_of_indices(compiling, table):
    from trapline._compile import op

    compiled = torch.compile(pairs, backend=as_traced, fullgraph=True)
    assert compiled(table, ids(-10, 9), ids(2, -3)).cpu().tolist() == [[2.0], [27.0]]
    for first, second, value, position in ((ids(-11), ids(0), -11, 0), (ids(0), ids(3), 3, 2)):
        violation = caught(lambda a=first, b=second: compiled(table, a, b).cpu())
        assert violation["scan"]["value"] == value
        op.complete(violation)
        assert violation["scan"]["list_position"] == position
        assert violation["args"]["indices"][1] is None


def test_lengths_that_a_graph_has_as_numbers_are_brought_to_the_device(compiling):
    arguments = [
        ["log_probs", ["tensor", "float32", 3, None]],
        ["targets", ["checked", "int64", 2]],
        ["input_lengths", ["ints", 2]],
        ["target_lengths", ["ints", 2]],
    ]
    site = {"contract": "_ctc_loss.targets", "op": "aten::_ctc_loss", "overload": "", "args": arguments}
    numbers = [6, 2, 5, None, None, 6, 6, 2, 1]
    for check in functions():
        targets = ids(1, 9, 3, 9).view(2, 2)  # the last is padding
        healed = check(targets, [], [2, 2], json.dumps({**site, "numbers": numbers}))
        violation = caught(healed.cpu)
        assert [violation["scan"][k] for k in ("bad", "total", "first", "value")] == [1, 3, 1, 9]
        assert violation["contained"] and healed.cpu().tolist() == [[1, 4], [3, 9]]
