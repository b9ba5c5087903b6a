"""Programs under everything that sits above or beside the dispatcher's CPU kernels.

Each is a function of one index tensor: `run(indices)` gives tensors, and with one bad index the guard has to
name it. A program is (name, run, good indices, bad indices, contract, position, value).
"""

from __future__ import annotations

import warnings

import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

TABLE = torch.linspace(-1, 1, 30).view(10, 3)
GOOD = torch.tensor([1, 2, 9, 0])
BAD = torch.tensor([1, 2, 10, 0])


def loss_of(labels, table=None):
    """Forward and backward of an embedding and a cross entropy, with the gradient."""
    weight = (TABLE if table is None else table).clone().requires_grad_()
    loss = F.cross_entropy(F.embedding(labels, weight) @ weight.T, labels)
    loss.backward()
    return loss.detach(), weight.grad


def under(context, body):
    def run(indices):
        with context():
            return body(indices)

    return run


def embed(indices):
    return F.embedding(indices, TABLE) * 2


def deterministic(indices):
    torch.use_deterministic_algorithms(True)
    try:
        target = torch.zeros(10)
        target.index_put_((indices,), torch.ones(4), accumulate=True)
        return target.scatter_add(0, GOOD, torch.ones(4))
    finally:
        torch.use_deterministic_algorithms(False)


def out_argument(indices):
    out = torch.empty(4, 3)
    torch.index_select(TABLE, 0, indices, out=out)
    return out


def out_that_is_resized(indices):
    out = torch.empty(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.gather(TABLE[:, 0], 0, indices, out=out)
    return out


def two_tensor(indices):
    from torch.testing._internal.two_tensor import TwoTensor

    result = F.embedding(TwoTensor(indices, indices.clone()), TwoTensor(TABLE, TABLE.clone()))
    return result.a, result.b


class Wrapper(torch.Tensor):
    """A subclass that holds another tensor and unwraps in __torch_dispatch__."""

    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        bare = torch.utils._pytree.tree_map_only(Wrapper, lambda t: t.inner, (args, kwargs or {}))
        return torch.utils._pytree.tree_map_only(torch.Tensor, Wrapper, func(*bare[0], **bare[1]))


def wrapper(indices):
    return F.embedding(Wrapper(indices), Wrapper(TABLE)).inner


def nested(indices):
    parts = torch.nested.nested_tensor([indices, GOOD[:2]], layout=torch.jagged)
    return F.embedding(parts, TABLE).values()


def sparse_gradient(indices):
    weight = TABLE.clone().requires_grad_()
    F.embedding(indices, weight, sparse=True).sum().backward()
    return weight.grad.coalesce().to_dense()


def script(indices):
    @torch.jit.script
    def scripted(x, table):
        return torch.embedding(table, x) * 2

    return scripted(indices, TABLE)


def traced(indices):
    return torch.jit.trace(embed, (GOOD,), check_trace=False)(indices)


def exported(indices):
    class Model(torch.nn.Module):
        def forward(self, x):
            return F.embedding(x, TABLE)

    return torch.export.export(Model(), (GOOD,)).module()(indices)


def functional_call(indices):
    layer = torch.nn.Embedding(10, 3)
    return torch.func.functional_call(layer, {"weight": TABLE}, (indices,))


def gradient_of_a_function(indices):
    return torch.func.grad(lambda table: F.cross_entropy(F.embedding(GOOD, table), indices % 11))(
        TABLE @ WIDE
    )


WIDE = torch.linspace(0, 1, 30).view(3, 10)


def per_sample_gradients(indices):
    def loss(table, label):
        return F.cross_entropy(table[0].unsqueeze(0), label.unsqueeze(0))

    return torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(TABLE @ WIDE, indices)


def jacobian(indices):
    return torch.func.jacrev(lambda table: F.embedding(indices, table).sum(0))(TABLE)


def forward_mode(indices):
    return torch.func.jvp(lambda table: F.embedding(indices, table), (TABLE,), (torch.ones_like(TABLE),))


def checkpointed(indices):
    weight = TABLE.clone().requires_grad_()
    body = checkpoint(lambda w: F.embedding(indices, w).relu(), weight, use_reentrant=False)
    body.sum().backward()
    return body.detach(), weight.grad


def hooks(indices):
    layer = torch.nn.Embedding.from_pretrained(TABLE, freeze=False)
    layer.register_forward_pre_hook(lambda module, args: (args[0] + 0,))
    layer.register_forward_hook(lambda module, args, result: result * 2)
    layer.weight.register_hook(lambda grad: grad * 3)
    result = layer(indices)
    result.sum().backward()
    return result.detach(), layer.weight.grad


def saved_tensor_hooks(indices):
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t + 0, lambda t: t):
        return loss_of(indices)


def complex_table(indices):
    return torch.view_as_real(torch.complex(TABLE, -TABLE).conj()[indices])


def strided(indices):
    return F.embedding(torch.stack([indices, GOOD], 1)[:, 0], TABLE.t().contiguous().t())


def broadcast_index(indices):
    return TABLE[indices.view(4, 1), torch.tensor([0, -1])]


def small_integers(indices):
    return F.embedding(indices.int(), TABLE)


def quantized_beside(indices):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other = torch.quantize_per_tensor(TABLE, 0.1, 0, torch.quint8)
    return other.index_select(0, GOOD).dequantize(), embed(indices)


def inplace_view(indices):
    base = TABLE.clone()
    base[2:].index_fill_(0, indices - 2, 7.0)
    return base


def on_another_stream_of_autograd(indices):
    """Two backward passes from threads of their own."""
    import threading

    results, errors = [None, None], []

    def work(at):
        try:
            results[at] = loss_of(indices)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(at,)) for at in range(2)]
    for thread in threads:
        thread.start()
        thread.join()
    if errors:
        raise errors[0]
    return [*results[0], *results[1]]


EMBED = "embedding.indices"
PROGRAMS = [
    ("plain", embed, GOOD, BAD, EMBED, 2, 10),
    ("training", loss_of, GOOD, BAD, EMBED, 2, 10),
    ("no_grad", under(torch.no_grad, embed), GOOD, BAD, EMBED, 2, 10),
    ("inference_mode", under(torch.inference_mode, embed), GOOD, BAD, EMBED, 2, 10),
    (
        "autocast",
        under(lambda: torch.autocast("cpu", dtype=torch.bfloat16), loss_of),
        GOOD,
        BAD,
        EMBED,
        2,
        10,
    ),
    ("anomaly_mode", under(torch.autograd.detect_anomaly, loss_of), GOOD, BAD, EMBED, 2, 10),
    ("deterministic", deterministic, GOOD, BAD, "index_put_.indices", 2, 10),
    ("out", out_argument, GOOD, BAD, "index_select.index", 2, 10),
    ("out_resized", out_that_is_resized, GOOD, BAD, "gather.index", 2, 10),
    ("vmap", lambda i: torch.func.vmap(embed)(i.view(2, 2)), GOOD, BAD, EMBED, 2, 10),
    ("functionalize", torch.func.functionalize(embed), GOOD, BAD, EMBED, 2, 10),
    ("two_tensor", two_tensor, GOOD, BAD, EMBED, 2, 10),
    ("wrapper_subclass", wrapper, GOOD, BAD, EMBED, 2, 10),
    ("jagged", nested, GOOD, BAD, EMBED, 2, 10),
    ("sparse_gradient", sparse_gradient, GOOD, BAD, EMBED, 2, 10),
    ("quantized", quantized_beside, GOOD, BAD, EMBED, 2, 10),
    ("export", exported, GOOD, BAD, EMBED, 2, 10),
    ("script", script, GOOD, BAD, EMBED, 2, 10),
    ("trace", traced, GOOD, BAD, EMBED, 2, 10),
    ("functional_call", functional_call, GOOD, BAD, EMBED, 2, 10),
    ("func_grad", gradient_of_a_function, GOOD, BAD, "nll_loss_forward.target", 2, 10),
    ("per_sample_gradients", per_sample_gradients, GOOD, BAD, "gather.index", 2, 10),
    ("jacrev", jacobian, GOOD, BAD, EMBED, 2, 10),
    ("jvp", forward_mode, GOOD, BAD, EMBED, 2, 10),
    ("checkpoint", checkpointed, GOOD, BAD, EMBED, 2, 10),
    ("module_hooks", hooks, GOOD, BAD, EMBED, 2, 10),
    ("saved_tensor_hooks", saved_tensor_hooks, GOOD, BAD, EMBED, 2, 10),
    ("complex", complex_table, GOOD, BAD, "index.indices", 2, 10),
    ("strided", strided, GOOD, BAD, EMBED, 2, 10),
    ("broadcast_index", broadcast_index, GOOD, BAD, "index.indices", 2, 10),
    ("int32", small_integers, GOOD, BAD, EMBED, 2, 10),
    ("view", inplace_view, GOOD.clamp(min=2), BAD.clamp(min=2), "index_fill_.index", 2, 8),
    ("threads", on_another_stream_of_autograd, GOOD, BAD, EMBED, 2, 10),
]
