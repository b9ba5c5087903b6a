"""Every way by which a program comes to see a value of the device: it is told of a fault before. The list
stands in docs/guard-device.md ("Windows")."""

from __future__ import annotations

import copy
import io
import pickle

import late
import pytest
import torch
import torch.nn.functional as F
from programs import Fault

D = "cuda"


@pytest.fixture
def rows(guard):
    """Rows of a table, one of them by a bad index; nobody was told yet."""
    table, index = torch.arange(30.0).view(10, 3).to(D), torch.tensor([1, 12]).to(D)
    late.busy(milliseconds=20)  # or the call's own last look may tell it already
    return F.embedding(index, table)


def pinned_copy(tensor):
    return torch.empty(tensor.shape).pin_memory().copy_(tensor, non_blocking=True)


def pinned_and_event(tensor):
    host, event = pinned_copy(tensor), torch.cuda.Event()
    event.record()
    event.synchronize()
    return host


def pinned_and_queries(tensor):
    host, event = pinned_copy(tensor), torch.cuda.Event()
    event.record()
    while not event.query():
        pass
    return host


def stream_queries(tensor):
    host = pinned_copy(tensor)
    while not torch.cuda.current_stream().query():
        pass
    return host


def saved(tensor):
    file = io.BytesIO()
    torch.save(tensor, file)
    return file


SEEN = {
    "print": lambda t: print(t, end=""),
    "repr": repr,
    "format": lambda t: f"{t.sum():.3f}",
    "item": lambda t: t.sum().item(),
    "float": lambda t: float(t.sum()),
    "int": lambda t: int(t.sum()),
    "bool": lambda t: bool(t.sum()),
    "tolist": lambda t: t.tolist(),
    "cpu": lambda t: t.cpu(),
    "to": lambda t: t.to("cpu"),
    "to, not blocking": lambda t: (t.to("cpu", non_blocking=True), torch.cuda.synchronize()),
    "numpy": lambda t: t.cpu().numpy(),
    "numpy(force)": lambda t: t.numpy(force=True),
    "iteration": lambda t: [float(x) for x in t.flatten()],
    "save": saved,
    "pickle": pickle.dumps,
    "compare": lambda t: torch.equal(t, t + 1),
    "allclose": lambda t: torch.allclose(t, t + 1),
    "as an index on the host": lambda t: torch.arange(3)[t.long()[0, 0].cpu()],
    "if any": lambda t: 1 if (t > 0).any() else 0,
    "nonzero": lambda t: t.nonzero(),
    "where(one argument)": lambda t: torch.where(t > 0),
    "mask": lambda t: t[t > 0],
    "unique": lambda t: t.unique(),
    "pinned copy and event": pinned_and_event,
    "pinned copy and queries of the event": pinned_and_queries,
    "pinned copy and queries of the stream": stream_queries,
    "pinned copy and synchronize": lambda t: (pinned_copy(t), torch.cuda.synchronize()),
    "out= on the host": lambda t: torch.empty(t.shape).copy_(t),
    "set in the host's tensor": lambda t: torch.zeros(2, 3).__setitem__(slice(None), t.cpu()),
    "__dlpack__": lambda t: t.__dlpack__(),
    "to_dlpack": lambda t: torch.utils.dlpack.to_dlpack(t.view(-1)),
    "from_dlpack": torch.from_dlpack,
    "__cuda_array_interface__": lambda t: t.__cuda_array_interface__,
    "state_dict to the host": lambda t: {"w": t}["w"].cpu(),
}
NOT_SEEN = {
    "deepcopy": copy.deepcopy,
    "clone": lambda t: t.clone(),
    "data_ptr": lambda t: t.data_ptr(),
}


@pytest.mark.parametrize("how", SEEN)
def test_it_is_told_before(guard, rows, how):
    with pytest.raises(Fault) as raised:
        SEEN[how](rows)
    assert raised.value.violation["scan"]["value"] == 12
    assert len(guard.violations) == 1 and not late.poisoned()


@pytest.mark.parametrize("how", NOT_SEEN)
def test_what_shows_no_value_raises_nothing(guard, rows, how):
    NOT_SEEN[how](rows)
    assert guard.violations == []
