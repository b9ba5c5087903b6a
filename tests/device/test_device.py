"""The guard on CUDA's key, with a device whose work is late, one behaviour at a time."""

from __future__ import annotations

import contextlib
import os
import threading

import late
import pytest
import torch
import torch.nn.functional as F
from programs import Fault, line_of

D = "cuda"
HERE = __file__


def ids(*values, dtype=torch.long):
    return torch.tensor(values, dtype=dtype).to(D)


@pytest.fixture
def table(guard):
    return torch.arange(30.0).view(10, 3).to(D)


@contextlib.contextmanager
def capture(graph, stream):
    """``torch.cuda.graph`` without the waiting that it does before."""
    with torch.cuda.stream(stream):
        graph.capture_begin()
        try:
            yield
        finally:
            graph.capture_end()


def caught(call):
    with pytest.raises(Fault) as raised:
        call()
    return raised.value.violation


def test_good_calls_compute_what_they_compute_without_the_guard(guard, table):
    index = torch.tensor([[1, 2], [9, 0]])
    host = table.cpu()
    for call in (
        lambda t, i: F.embedding(i, t),
        lambda t, i: t[i],
        lambda t, i: t.gather(1, i[:, :1]),
        lambda t, i: t.index_select(0, i.view(-1)),
        lambda t, i: t.clone().index_add_(0, i.view(-1), t[:4]),
    ):
        index_here = index if call(host, index % 3) is None else index % 3
        assert torch.equal(call(table, index_here.to(D)).cpu(), call(host, index_here))
    assert guard.counts()["launches"] > 0
    assert guard.violations == []


def test_a_fault_is_raised_where_the_result_is_read(guard, table):
    rows = F.embedding(ids(1, 12, -3), table)
    before = len(guard.violations)
    violation = caught(lambda: rows.sum().item())
    assert before == 0
    assert violation["contract"] == "embedding.indices"
    told = [violation["scan"][k] for k in ("bad", "total", "first", "value", "min", "max", "lo", "hi")]
    assert told == [2, 3, 1, 12, -3, 12, 0, 10]
    assert violation["contained"] is True
    assert violation["device"] == "cuda:0"
    assert violation["shape"] == [3] and violation["dtype"] == "int64"
    assert (
        line_of(violation, HERE)
        == test_a_fault_is_raised_where_the_result_is_read.__code__.co_firstlineno + 1
    )
    assert not late.poisoned()


@pytest.mark.parametrize(
    "read",
    [
        lambda t: t.sum().item(),
        lambda t: bool(t.sum() > 0),
        lambda t: t.cpu(),
        lambda t: t.tolist(),
        lambda t: t.nonzero(),
        lambda t: t.masked_select(t > 0),
        lambda t: t.unique(),
        lambda t: torch.equal(t, t),
        lambda t: t.to("cpu", torch.float64),
        lambda t: torch.empty(t.shape).copy_(t),
    ],
)
def test_every_way_to_read_raises(guard, table, read):
    rows = F.embedding(ids(1, 12), table)
    caught(lambda: read(rows))
    read(rows)  # without a graph nothing says that it came of that call; the rest of the program may go on


def test_waiting_raises(guard, table):
    for wait in ("synchronize", "stream", "event"):
        F.embedding(ids(1, 12), table)
        event = torch.cuda.Event()
        event.record(torch.cuda.default_stream())
        if wait == "synchronize":
            caught(torch.cuda.synchronize)
        elif wait == "stream":
            caught(torch.cuda.default_stream().synchronize)
        else:
            caught(event.synchronize)
    assert len(guard.violations) == 3


def test_uninstall_gives_back_what_was_replaced(guard):
    from trapline._guard import waits

    assert hasattr(torch.cuda.synchronize, "__trapline__")
    assert hasattr(torch.cuda.Stream.synchronize, "__trapline__")
    waits.uninstall()
    assert not hasattr(torch.cuda.synchronize, "__trapline__")
    assert not hasattr(torch.cuda.Stream.synchronize, "__trapline__")
    assert not hasattr(torch.cuda.Event.query, "__trapline__")


def test_copies_that_do_not_block_and_a_wait(guard, table):
    host, bad = torch.full((1, 3), -1.0).pin_memory(), ids(12)
    with late.held():
        host.copy_(F.embedding(bad, table), non_blocking=True)
        assert guard.violations == []
    caught(torch.cuda.synchronize)
    assert len(guard.violations) == 1


def test_the_next_guarded_call_raises(guard, table):
    F.embedding(ids(12), table)
    late.driver.fake_cuda_seed(0)
    index = ids(1)
    late.come()
    violation = caught(lambda: F.embedding(index, table))
    assert violation["scan"]["value"] == 12


def test_faults_come_in_order_of_launch(guard, table):
    indices = ids(12), ids(13), ids(4).view(1, 1)
    with late.held():
        F.embedding(indices[0], table)
        table.index_select(0, indices[1])
        table.gather(1, indices[2])
    told = [caught(torch.cuda.synchronize)["scan"]["value"] for _ in range(3)]
    assert told == [12, 13, 4]
    torch.cuda.synchronize()


def test_a_tensor_is_checked_once_for_forward_and_backward(guard):
    logits = torch.randn(4, 5).to(D).requires_grad_()
    target = ids(0, 1, 4, 2)
    before = guard.counts()
    F.cross_entropy(logits, target).backward()
    after = guard.counts()
    assert after["launches"] - before["launches"] == 1
    assert after["reused"] - before["reused"] == 1
    F.cross_entropy(logits, target)  # autograd keeps it: nothing may have written to it
    assert guard.counts()["launches"] == after["launches"]
    target.add_(0)  # another version
    F.cross_entropy(logits, target)
    assert guard.counts()["launches"] == after["launches"] + 1
    with torch.no_grad():  # nobody says that it is unchanged, a kernel outside of torch may have written
        F.cross_entropy(logits, target)
    assert guard.counts()["launches"] == after["launches"] + 2


def test_forward_and_backward_of_a_bad_tensor_are_one_fault(guard):
    logits = torch.randn(4, 5).to(D).requires_grad_()
    target = ids(0, 9, 4, 2)
    with late.held():
        F.cross_entropy(logits, target).backward()
    assert caught(torch.cuda.synchronize)["scan"]["value"] == 9
    torch.cuda.synchronize()
    assert len(guard.violations) == 1
    assert torch.isfinite(logits.grad.cpu()).all()
    assert not late.poisoned()


def test_one_bad_tensor_in_two_operations_is_one_fault(guard, table):
    bad = ids(1, 12)
    with late.held():
        F.embedding(bad, table)
        F.embedding(bad, table)
    caught(torch.cuda.synchronize)
    torch.cuda.synchronize()
    F.embedding(bad, table)  # the program was told, and does it again
    caught(torch.cuda.synchronize)
    assert len(guard.violations) == 2


def test_the_optimizer_does_not_take_a_bad_step(guard):
    weight = torch.ones(10, 3).to(D).requires_grad_()
    optimizer = torch.optim.SGD([weight], lr=1.0)
    before = weight.detach().cpu()
    index = ids(1, 12)
    with late.held():
        F.embedding(index, weight).sum().backward()
    assert caught(optimizer.step)["scan"]["value"] == 12
    assert torch.equal(weight.detach().cpu(), before)
    optimizer.zero_grad()
    F.embedding(ids(1, 2), weight).sum().backward()
    optimizer.step()
    assert weight.detach().cpu()[1:3].eq(0).all() and not late.poisoned()


def test_the_program_goes_on_after_the_exception(guard, table):
    caught(lambda: F.embedding(ids(99), table).sum().item())
    left, right = torch.randn(4, 4), torch.randn(4, 4)
    assert torch.allclose((left.to(D) @ right.to(D)).cpu(), left @ right)
    assert F.embedding(ids(1), table).cpu().tolist() == [[3.0, 4.0, 5.0]]
    assert not late.poisoned()


def test_an_index_on_the_host_is_checked_at_once(guard, table):
    launches = guard.counts()["launches"]
    violation = caught(lambda: table[torch.tensor([1, 12])])
    assert violation["scan"]["value"] == 12 and "late" not in violation
    assert guard.counts()["launches"] == launches


def test_a_list_of_indices_on_both_sides(guard, table):
    assert table[torch.tensor([1]), ids(2)].cpu().tolist() == [5.0]
    violation = caught(table[torch.tensor([1]), ids(3)].cpu)
    assert (violation["scan"]["value"], violation["scan"]["list_position"]) == (3, 1)
    violation = caught(lambda: table[torch.tensor([-11]), ids(2)])
    assert (violation["scan"]["value"], violation["scan"]["list_position"]) == (-11, 0)
    mask = torch.tensor([True] + [False] * 9)
    assert table[mask.to(D), ids(2)].cpu().tolist() == [2.0]
    torch.cuda.synchronize()
    assert len(guard.violations) == 2


def test_the_callers_list_is_not_changed(guard, table):
    index = ids(1, 12)
    indices = [index, None]
    caught(lambda: torch.ops.aten.index.Tensor(table, indices).cpu())
    assert indices[0] is index and index.tolist() == [1, 12]


def test_nothing_to_index_is_raised_at_once_with_its_value(guard):
    empty = torch.empty(0, 3).to(D)
    violation = caught(lambda: F.embedding(ids(4), empty))
    assert violation["scan"]["value"] == 4 and violation["scan"]["hi"] == 0


def test_an_operation_that_no_value_heals_waits(guard):
    values = ids(1, 2)
    violation = caught(lambda: torch.repeat_interleave(values, ids(1, -2)))
    assert violation["scan"]["value"] == -2 and violation["contained"]
    assert torch.repeat_interleave(values, ids(1, 2)).tolist() == [1, 2, 2]
    assert not late.poisoned()


def test_a_call_that_the_operation_refuses_by_itself_is_no_fault(guard, table):
    bad = ids(1, 99)
    with pytest.raises(RuntimeError, match="same number of dimensions") as raised:
        table.gather(0, bad)
    assert not isinstance(raised.value, Fault)
    torch.zeros(1).to(D).sum().item()
    assert guard.violations == []
    # The same tensor in a call that is made.
    violation = caught(lambda: table.index_select(0, bad).sum().item())
    assert (violation["contract"], violation["scan"]["value"]) == ("index_select.index", 99)


def test_a_nan_that_becomes_an_integer_is_remembered(guard, table):
    index = torch.tensor([1.0, float("nan")]).to(D).long()
    violation = caught(lambda: F.embedding(index, table).cpu())
    remembered = guard.module.remembered()[0]
    assert remembered["contract"] == "copy_.src"
    assert remembered["shape"] == [2]
    own = test_a_nan_that_becomes_an_integer_is_remembered.__code__.co_firstlineno
    assert line_of(remembered, HERE) == own + 1
    assert violation["scan"]["value"] == torch.iinfo(torch.long).min
    assert len(guard.violations) == 1


def test_a_fault_belongs_to_its_thread(guard, table):
    names = []

    def work():
        names.append(threading.get_native_id())
        F.embedding(ids(12), table)
        late.come()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    F.embedding(ids(1), table)  # not this thread's
    assert guard.violations == []
    violation = caught(torch.cuda.synchronize)  # its own thread never comes by
    assert violation["thread"].endswith(f"/{names[0]}")


def test_an_exception_in_backward(guard, table):
    class Lookup(torch.autograd.Function):
        @staticmethod
        def forward(ctx, value):
            return value * 2

        @staticmethod
        def backward(ctx, gradient):
            rows = F.embedding(ids(12), table)
            return gradient * rows.sum().item()

    value = torch.ones(3).to(D).requires_grad_()
    violation = caught(Lookup.apply(value).sum().backward)
    assert violation["scan"]["value"] == 12
    assert not late.poisoned()


def test_a_backward_call_shows_the_line_of_its_forward_call(guard):
    weight = torch.ones(10, 3).to(D).requires_grad_()
    index = ids(1, 2)
    loss = F.embedding(index, weight).sum()
    guard.module.device_step()  # a step of another optimizer: the healed copies are gone
    index.data.fill_(12)  # unseen by autograd
    violation = caught(lambda: (loss.backward(), torch.cuda.synchronize()))
    assert violation["contract"] == "embedding_dense_backward.indices"
    assert violation["backward"] is True
    own = test_a_backward_call_shows_the_line_of_its_forward_call.__code__.co_firstlineno
    assert line_of(violation, HERE) == own + 3


def test_a_child_of_fork_leaves_the_device_alone(guard, table):
    F.embedding(ids(12), table)
    pid = os.fork()
    if pid == 0:
        before = len(guard.violations)
        guard.module.device_poll(False)
        guard.module.device_step()
        ok = guard.module.device_remaining() == [] and len(guard.violations) == before
        try:
            F.embedding(torch.tensor([1, 12]), torch.ones(10, 3))
        except Fault:  # what is in host memory is guarded as before
            os._exit(0 if ok else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    caught(torch.cuda.synchronize)


def test_nothing_is_raised_while_a_graph_is_captured(guard, table):
    stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    F.embedding(ids(12), table)
    index = ids(1, 2)
    late.come()
    with capture(graph, stream):
        rows = F.embedding(index, table)
        guard.module.device_poll(False)
        guard.module.device_step()
    assert guard.violations == []
    assert caught(torch.cuda.synchronize)["scan"]["value"] == 12
    for value in (3, 13, 14):
        with torch.cuda.stream(stream):
            index.fill_(value)
        with torch.cuda.stream(stream):
            graph.replay()
        if value < 10:
            stream.synchronize()
            assert rows.cpu().tolist() == [[9.0, 10.0, 11.0]] * 2
        else:
            assert caught(stream.synchronize)["scan"]["value"] == value
    assert len(guard.violations) == 3 and not late.poisoned()


def test_what_nobody_was_told_of_remains(guard, table):
    indices = ids(12), ids(13)
    with late.held():
        for index in indices:
            F.embedding(index, table)
    remaining = guard.module.device_remaining()
    assert [error.violation["scan"]["value"] for error in remaining] == [12, 13]
    assert guard.module.device_remaining() == []


def test_a_tensor_that_is_gone_or_changed_is_not_shown(guard, table):
    F.embedding(ids(12), table)
    violation = caught(torch.cuda.synchronize)
    assert violation["tensor"].tolist() == [12]  # its content was kept
    assert violation["args"]["indices"].tolist() == [12]
    assert violation["args"]["weight"] is table
    F.embedding(torch.full((1 << 18,), 12).to(D), table)  # 2 MiB are too much to keep
    violation = caught(torch.cuda.synchronize)
    assert violation["tensor"] is None and violation["args"]["indices"] is None
    assert violation["shapes"]["indices"] == [1 << 18]
    index = ids(12)
    F.embedding(index, table)
    index.fill_(0)
    violation = caught(torch.cuda.synchronize)
    assert violation["tensor"] is None and violation["args"]["indices"] is index
