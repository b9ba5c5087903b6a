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


def pivots(*values):
    return torch.tensor(values, dtype=torch.int32)


def margins(target, op="multilabel_margin_loss_forward"):
    scores = torch.linspace(-1, 1, 6).view(2, 3)
    if op == "multilabel_margin_loss_forward":
        return F.multilabel_margin_loss(scores, target)
    is_target = torch.tensor([[1.0, 0, 0], [0, 1.0, 0]])
    return A.multilabel_margin_loss_backward(torch.ones(()), scores, target, 1, is_target)


def grouped(op, offs):
    left = torch.ones(4, 16, dtype=torch.bfloat16)
    right = torch.ones(2, 16, 16, dtype=torch.bfloat16)
    scales = () if op == "_grouped_mm" else (torch.ones(4), torch.ones(2, 16))
    return getattr(A, op)(left, right, *scales, torch.tensor(offs, dtype=torch.int32))


def plane(dims):
    return torch.arange(float(6**dims)).view(1, 1, *([6] * dims))


def bag_gradient(index):
    bags = torch.tensor([0, 0]), torch.tensor([2]), torch.tensor([0])
    return A._embedding_bag_dense_backward(torch.ones(1, 2), ints(0, index), *bags, 4, False, 0, None, -1)


def weights_gradient(index):
    rows = torch.arange(8.0).view(4, 2)
    return A._embedding_bag_per_sample_weights_backward(
        torch.ones(1, 2), rows, ints(0, index), ints(0), ints(0, 0), 0, -1
    )


def compressed(crow, col):
    A._validate_compressed_sparse_indices(True, ints(*crow), ints(*col), 2, 3, 2)
    return torch.zeros(1)


def segments(**where):
    return torch.segment_reduce(torch.arange(4.0), "sum", unsafe=True, **where)


def segments_gradient(**where):
    data = torch.arange(4.0)
    return A._segment_reduce_backward(torch.ones(2), torch.ones(2), data, "sum", **where)


def _count_cases():
    """Counts, lengths, ends, masks and pivots."""
    yield (
        "masked_scatter.mask",
        lambda: torch.zeros(3).masked_scatter(torch.tensor([True, False, True]), torch.ones(1)),
        2,
        1,
        lambda: torch.zeros(3).masked_scatter(torch.tensor([True, False, True]), torch.ones(2)),
    )
    yield (
        "masked_scatter_.mask",
        lambda: torch.zeros(2, 3).masked_scatter_(torch.tensor([[False], [True]]), torch.ones(2)),
        1,
        1,
        lambda: torch.zeros(2, 3).masked_scatter_(torch.tensor([[False], [True]]), torch.ones(3)),
    )
    for op, run in (("segment_reduce", segments), ("_segment_reduce_backward", segments_gradient)):
        yield (
            f"{op}.lengths",
            lambda run=run: run(lengths=ints(2, 3)),
            1,
            3,
            lambda run=run: run(lengths=ints(3, 1)),
        )
        yield (
            f"{op}.offsets",
            lambda run=run: run(offsets=ints(0, 2, 5)),
            2,
            5,
            lambda run=run: run(offsets=ints(0, 2, 4)),
        )
    for op in ("_grouped_mm", "_scaled_grouped_mm"):
        yield (
            f"{op}.offs",
            lambda op=op: grouped(op, [2, 5]),
            1,
            5,
            lambda op=op: grouped(op, [2, 4]),
        )
    check = "_validate_compressed_sparse_indices"
    yield (
        f"{check}.compressed_idx",
        lambda: compressed((0, 1, 3), (0, 1)),
        2,
        3,
        lambda: compressed((0, 1, 2), (0, 1)),
    )
    yield (
        f"{check}.plain_idx",
        lambda: compressed((0, 1, 2), (0, 3)),
        1,
        3,
        lambda: compressed((0, 1, 2), (0, 2)),
    )
    yield (
        "lu_unpack.LU_pivots",
        lambda: torch.lu_unpack(torch.eye(3), pivots(1, 0, 3)),
        1,
        0,
        lambda: torch.lu_unpack(torch.eye(3), pivots(3, 2, 3)),
    )
    yield (
        "linalg_lu_solve.pivots",
        lambda: torch.linalg.lu_solve(torch.eye(3), pivots(1, 2, 4), torch.ones(3, 1)),
        2,
        4,
        lambda: torch.linalg.lu_solve(torch.eye(3), pivots(3, 2, 3), torch.ones(3, 1)),
    )


def _rare_cases():
    for op in ("multilabel_margin_loss_forward", "multilabel_margin_loss_backward"):
        yield (
            f"{op}.target",
            lambda op=op: margins(ints(0, -1, 0, 1, 3, -1).view(2, 3), op),
            4,
            3,
            lambda op=op: margins(ints(0, -1, 0, 1, 2, -1).view(2, 3), op),
        )
    yield "_embedding_bag_dense_backward.indices", lambda: bag_gradient(4), 1, 4, lambda: bag_gradient(3)
    yield (
        "_embedding_bag_per_sample_weights_backward.indices",
        lambda: weights_gradient(4),
        1,
        4,
        lambda: weights_gradient(3),
    )
    for dims in (2, 3):
        name, ones = f"fractional_max_pool{dims}d_backward", [1] * dims
        backward = named(name)
        last, at = 6**dims, torch.zeros(1, 1, *ones, dtype=torch.int64)
        yield (
            f"{name}.indices",
            lambda r=backward, d=dims, o=ones, i=at + last: r(torch.ones(1, 1, *o), plane(d), [2] * d, o, i),
            0,
            last,
            lambda r=backward, d=dims, o=ones, i=at + last - 1: r(
                torch.ones(1, 1, *o), plane(d), [2] * d, o, i
            ),
        )
    yield (
        "binomial.count",
        lambda: torch.binomial(torch.tensor([5.0, -1.0]), torch.tensor([0.5, 0.5])),
        1,
        -1.0,
        lambda: torch.binomial(torch.tensor([5.0, 0.0]), torch.tensor([0.5, 0.5])),
    )
    yield (
        "binomial.prob",
        lambda: torch.binomial(torch.tensor([5.0, 5.0]), torch.tensor([NAN, 0.5])),
        0,
        NAN,
        lambda: torch.binomial(torch.tensor([5.0, 5.0]), torch.tensor([1.0, 0.0])),
    )


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
    yield (
        "embedding_renorm.indices",
        lambda: A.embedding_renorm(table(), ints(1, 6), 1.0, 2.0),
        1,
        6,
        lambda: A.embedding_renorm(table(), ints(1, 0), 1.0, 2.0),
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
    yield from _count_cases()
    yield from _rare_cases()
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
        "bernoulli.out.self",
        lambda: torch.bernoulli(torch.tensor([0.5, 1.5]), out=torch.empty(2)),
        1,
        1.5,
        lambda: torch.bernoulli(half, out=torch.empty(2)),
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
