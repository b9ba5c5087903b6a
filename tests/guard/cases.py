"""One bad and one good call for every row of the contracts table, as the backend gets it.

A case is (contract id, bad call, index of the offending element, its value, good call).
"""

from __future__ import annotations

import functools
import math

import torch
import torch.nn.functional as F

A = torch.ops.aten
NAN = math.nan


def named(name):
    """An operation that this torch may not have; asked for only when the case runs."""

    def call(*args):
        return getattr(A, name)(*args)

    return call


def ints(*values):
    return torch.tensor(values)


def table():
    return torch.arange(30.0).view(6, 5)


def class_scores():
    return torch.linspace(-2, 2, 18).view(6, 3).log_softmax(1)


def labels(bad=None):
    target = ints(0, 1, 2, -100, 1, 0)
    if bad is not None:
        target[4] = bad
    return target


def nll_backward(target):
    scores = class_scores()
    weight = torch.tensor(5.0)
    return A.nll_loss_backward(torch.tensor(1.0), scores, target, None, 1, -100, weight)


def maps(bad=None):
    target = torch.arange(8).view(2, 2, 2) % 3
    if bad is not None:
        target[1, 0, 1] = bad
    return target


def map_scores():
    return torch.linspace(0, 1, 24).view(2, 3, 2, 2)


def ctc(targets):
    log_probs = torch.linspace(-1, 1, 60).view(6, 2, 5).log_softmax(2)
    return log_probs, targets, [6, 6], [3, 3], 0


def ctc_backward(targets):
    log_probs, _, inputs, lengths, blank = ctc(targets)
    good = ints(1, 2, 3, 1, 2, 3).view(2, 3)
    loss, alpha = A._ctc_loss(log_probs, good, inputs, lengths, blank)
    return A._ctc_loss_backward(torch.ones(2), log_probs, targets, inputs, lengths, loss, alpha, blank)


def bag(op, indices, offsets):
    return op(table(), indices, offsets)


def put_at(op, indices):
    return op(table(), [None, indices], torch.tensor(7.0))


def pooled(dims):
    return torch.ones(1, 1, *([1] * dims))


GOOD_INDEX = ints(0, 4, 2)
BAD_INDEX = ints(0, 4, 5)


def by_dim(op, *more, shape=(6, 3), bad=5, **keywords):
    """The bad and the good call of an operation (self, dim=1, index, ...) over a [6, 5] table."""
    good_index = torch.zeros(shape, dtype=torch.int64)
    bad_index = good_index.clone()
    bad_index.view(-1)[2] = bad
    return (
        lambda: op(table(), 1, bad_index, *more, **keywords),
        lambda: op(table(), 1, good_index, *more, **keywords),
    )


def _by_dim_cases():
    source = torch.ones(6, 3)
    for name, more, shape in (
        ("index_select", (), (3,)),
        ("gather", (), (6, 3)),
        ("scatter", (source,), (6, 3)),
        ("scatter_", (2.0,), (6, 3)),
        ("scatter_add", (source,), (6, 3)),
        ("scatter_add_", (source,), (6, 3)),
        ("scatter_reduce", (source, "sum"), (6, 3)),
        ("scatter_reduce_", (source, "amax"), (6, 3)),
        ("index_add", (source,), (3,)),
        ("index_add_", (source,), (3,)),
        ("index_reduce", (source, "prod"), (3,)),
        ("index_reduce_", (source, "mean"), (3,)),
        ("index_copy", (source,), (3,)),
        ("index_copy_", (source,), (3,)),
    ):
        bad, good = by_dim(named(name), *more, shape=shape)
        yield f"{name}.index", bad, 2, 5, good
    for name in ("index_fill", "index_fill_"):
        bad, good = by_dim(named(name), 1.5, shape=(3,), bad=-6)
        yield f"{name}.index", bad, 2, -6, good


def _index_put_cases():
    for name in ("index_put", "index_put_", "_index_put_impl", "_index_put_impl_", "_unsafe_index_put"):
        op = named(name)
        yield (
            f"{name}.indices",
            lambda op=op: put_at(op, BAD_INDEX),
            2,
            5,
            lambda op=op: put_at(op, -GOOD_INDEX),
        )


def cases():
    yield (
        "nll_loss_forward.target",
        lambda: F.cross_entropy(class_scores(), labels(3)),
        4,
        3,
        lambda: F.cross_entropy(class_scores(), labels()),
    )
    yield "nll_loss_backward.target", lambda: nll_backward(labels(-1)), 4, -1, lambda: nll_backward(labels())
    yield (
        "nll_loss2d_forward.target",
        lambda: F.cross_entropy(map_scores(), maps(255)),
        5,
        255,
        lambda: F.cross_entropy(map_scores(), maps(255), ignore_index=255),
    )
    yield (
        "nll_loss2d_backward.target",
        lambda: A.nll_loss2d_backward(torch.ones(()), map_scores(), maps(4), None, 2, -100, torch.ones(())),
        5,
        4,
        lambda: A.nll_loss2d_backward(torch.ones(()), map_scores(), maps(), None, 2, -100, torch.ones(())),
    )
    yield (
        "multi_margin_loss.target",
        lambda: F.multi_margin_loss(class_scores()[:2], ints(0, 3)),
        1,
        3,
        lambda: F.multi_margin_loss(class_scores()[:2], ints(0, 2)),
    )
    yield (
        "multi_margin_loss_backward.target",
        lambda: A.multi_margin_loss_backward(torch.ones(()), class_scores()[:2], ints(-1, 0), 1, 1),
        0,
        -1,
        lambda: A.multi_margin_loss_backward(torch.ones(()), class_scores()[:2], ints(1, 0), 1, 1),
    )
    yield "one_hot.self", lambda: F.one_hot(ints(0, 3, 1), 3), 1, 3, lambda: F.one_hot(ints(0, 2, 1), 3)
    yield (
        "_ctc_loss.targets",
        lambda: A._ctc_loss(*ctc(ints(1, 2, 9, 1, 2, 3).view(2, 3))),
        2,
        9,
        lambda: A._ctc_loss(*ctc(ints(1, 2, 3, 1, 2, 3).view(2, 3))),
    )
    yield (
        "_ctc_loss_backward.targets",
        lambda: ctc_backward(ints(1, 2, 3, 5, 2, 3).view(2, 3)),
        3,
        5,
        lambda: ctc_backward(ints(1, 2, 3, 1, 2, 3).view(2, 3)),
    )
    yield "bincount.self", lambda: torch.bincount(ints(1, -2)), 1, -2, lambda: torch.bincount(ints(1, 2))
    yield (
        "embedding.indices",
        lambda: F.embedding(ints(1, 6), table()),
        1,
        6,
        lambda: F.embedding(ints(1, 5), table()),
    )
    yield (
        "embedding_renorm_.indices",
        lambda: A.embedding_renorm_(table(), ints(1, -1), 1.0, 2.0),
        1,
        -1,
        lambda: A.embedding_renorm_(table(), ints(1, 0), 1.0, 2.0),
    )
    yield (
        "embedding_dense_backward.indices",
        lambda: A.embedding_dense_backward(torch.ones(2, 3), ints(1, 9), 4, -1, False),
        1,
        9,
        lambda: A.embedding_dense_backward(torch.ones(2, 3), ints(1, 3), 4, -1, False),
    )
    for op in ("_embedding_bag", "_embedding_bag_forward_only"):
        run = named(op)
        good, bad_index, bad_offset = (
            functools.partial(bag, run, ints(0, index, 2), ints(0, offset))
            for index, offset in ((5, 2), (7, 2), (5, 4))
        )
        yield f"{op}.indices", bad_index, 1, 7, good
        yield f"{op}.offsets", bad_offset, 1, 4, good
    yield ("index.indices", lambda: table()[:, BAD_INDEX], 2, 5, lambda: table()[:, -GOOD_INDEX])
    yield (
        "_unsafe_index.indices",
        lambda: A._unsafe_index(table(), [None, BAD_INDEX]),
        2,
        5,
        lambda: A._unsafe_index(table(), [None, GOOD_INDEX]),
    )
    yield from _index_put_cases()
    yield from _by_dim_cases()
    yield "take.index", lambda: table().take(ints(0, 30)), 1, 30, lambda: table().take(ints(0, -30))
    for name in ("put", "put_"):
        op = named(name)
        yield (
            f"{name}.index",
            lambda op=op: op(table(), ints(0, -31), torch.ones(2)),
            1,
            -31,
            lambda op=op: op(table(), ints(0, 29), torch.ones(2)),
        )
    yield (
        "max_unpool2d.indices",
        lambda: A.max_unpool2d(pooled(2), torch.full((1, 1, 1, 1), 4), [2, 2]),
        0,
        4,
        lambda: A.max_unpool2d(pooled(2), torch.full((1, 1, 1, 1), 3), [2, 2]),
    )
    unpool3 = ([2, 2, 2], [2, 2, 2], [0, 0, 0])
    yield (
        "max_unpool3d.indices",
        lambda: A.max_unpool3d(pooled(3), torch.full((1, 1, 1, 1, 1), 8), *unpool3),
        0,
        8,
        lambda: A.max_unpool3d(pooled(3), torch.full((1, 1, 1, 1, 1), 7), *unpool3),
    )
    yield (
        "repeat_interleave.repeats",
        lambda: torch.repeat_interleave(ints(1, -1)),
        1,
        -1,
        lambda: torch.repeat_interleave(ints(1, 2)),
    )
    half = torch.tensor([0.5, 0.25])
    yield (
        "binary_cross_entropy.self",
        lambda: F.binary_cross_entropy(torch.tensor([0.5, 1.5]), half),
        1,
        1.5,
        lambda: F.binary_cross_entropy(half, half),
    )
    yield (
        "binary_cross_entropy.target",
        lambda: F.binary_cross_entropy(half, torch.tensor([2.0, 0.0])),
        0,
        2.0,
        lambda: F.binary_cross_entropy(half, torch.tensor([1.0, 0.0])),
    )
    yield (
        "multinomial.self",
        lambda: torch.multinomial(torch.tensor([[0.5, 0.5], [0.5, NAN]]), 1),
        3,
        NAN,
        lambda: torch.multinomial(torch.tensor([[0.5, 0.5], [0.0, 2.0]]), 1),
    )
    yield (
        "bernoulli.p",
        lambda: A.bernoulli.Tensor(torch.zeros(2), torch.tensor([0.5, -0.5])),
        1,
        -0.5,
        lambda: A.bernoulli.Tensor(torch.zeros(2), half),
    )
    yield (
        "bernoulli_.p",
        lambda: torch.zeros(2).bernoulli_(torch.tensor([0.5, NAN])),
        1,
        NAN,
        lambda: torch.zeros(2).bernoulli_(half),
    )
    yield (
        "poisson.self",
        lambda: torch.poisson(torch.tensor([1.0, -3.0])),
        1,
        -3.0,
        lambda: torch.poisson(torch.tensor([1.0, 3.0])),
    )
