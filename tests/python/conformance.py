"""One bad call for every row of the contracts table: both adapters, native and pure, must catch all of them.

A new row in ``src/contracts/contracts.cpp`` wants a line here; ``tests/python/boot/test_conformance.py``
fails until there is one. A call is what a program would write where PyTorch has a public name for it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Callable

import torch
import torch.nn.functional as F
from torch import tensor

aten = torch.ops.aten
NAN, INF = math.nan, math.inf


@dataclass(frozen=True)
class BadCall:
    """A call that breaks one row, and what the adapter has to say of it."""

    contract: str
    run: Callable[[], Any]
    value: float
    first: int
    bad: int = 1


def zeros(*shape: int, **options: Any) -> torch.Tensor:
    return torch.zeros(*shape, **options)


def _bag(indices: list[int], offsets: list[int], grad: bool = True) -> torch.Tensor:
    table = torch.randn(10, 3, requires_grad=grad)
    return F.embedding_bag(tensor(indices), table, tensor(offsets), mode="sum")


def _ctc(**options: Any) -> torch.Tensor:
    scores = torch.randn(6, 2, 5, **options).log_softmax(2)
    return F.ctc_loss(scores, tensor([[1, 2], [9, 3]]), tensor([6, 6]), tensor([2, 2]))


def _ctc_backward() -> torch.Tensor:
    scores = torch.randn(6, 1, 5).log_softmax(2)
    loss, alpha = aten._ctc_loss(scores, tensor([[1, 2]]), [6], [2])
    return aten._ctc_loss_backward(torch.ones(1), scores, tensor([[1, 7]]), [6], [2], loss, alpha, 0)


def _grouped(op: str, ends: list[int]) -> torch.Tensor:
    left, right = zeros(4, 16, dtype=torch.bfloat16), zeros(2, 16, 16, dtype=torch.bfloat16)
    offs = tensor(ends, dtype=torch.int32)
    if op == "_grouped_mm":
        return aten._grouped_mm(left, right, offs)
    # As its kernel wants them: 8 bits, and the weights column by column.
    scales = torch.ones(4), torch.ones(2, 16)
    left, right = left.to(torch.float8_e4m3fn), right.to(torch.float8_e4m3fn)
    return aten._scaled_grouped_mm(left, right.transpose(-2, -1), *scales, offs)


def _margins(target: list[list[int]], **options: Any) -> torch.Tensor:
    return F.multilabel_margin_loss(torch.randn(len(target), 3, **options), tensor(target))


def _margins_backward(target: list[int]) -> torch.Tensor:
    scores, is_target = zeros(3), zeros(3)
    return aten.multilabel_margin_loss_backward(tensor(1.0), scores, tensor(target), 1, is_target)


def _pivots(*values: int) -> torch.Tensor:
    return tensor(values, dtype=torch.int32)


def _compressed(crow: list[int], col: list[int]) -> None:
    aten._validate_compressed_sparse_indices(True, tensor(crow), tensor(col), 2, 3, 2)


# Made in the call, as everything is that a call reads: the device that is the default then has it.
def _beyond() -> torch.Tensor:
    return tensor([0, 5, 1])  # 5 does not fit a dimension of 3


def _wrapped() -> torch.Tensor:
    return tensor([0, -4, 1])  # -4 does not fit a dimension of 3


BAD_CALLS = [
    BadCall(
        "nll_loss_forward.target", lambda: F.cross_entropy(torch.randn(4, 3), tensor([0, 1, 3, 2])), 3, 2
    ),
    BadCall(
        "nll_loss_forward.target", lambda: F.nll_loss(torch.randn(4, 3), tensor([0, -1, -100, -1])), -1, 1, 2
    ),
    BadCall(
        "nll_loss_backward.target",
        lambda: aten.nll_loss_backward(tensor(1.0), zeros(2, 3), tensor([1, 7]), None, 1, -100, tensor(2.0)),
        7,
        1,
    ),
    BadCall(
        "nll_loss2d_forward.target",
        lambda: F.cross_entropy(torch.randn(1, 2, 2, 2), tensor([[[0, 1], [255, 255]]])),
        255,
        2,
        2,
    ),
    BadCall(
        "nll_loss2d_backward.target",
        lambda: aten.nll_loss2d_backward(
            tensor(1.0), zeros(1, 2, 1, 2), tensor([[[0, 2]]]), None, 1, -100, tensor(2.0)
        ),
        2,
        1,
    ),
    BadCall("multi_margin_loss.target", lambda: F.multi_margin_loss(zeros(2, 3), tensor([0, 3])), 3, 1),
    BadCall(
        "multi_margin_loss_backward.target",
        lambda: aten.multi_margin_loss_backward(tensor(1.0), zeros(2, 3), tensor([0, 3]), 1, 1),
        3,
        1,
    ),
    BadCall("multilabel_margin_loss_forward.target", lambda: _margins([[2, -1, 9], [0, 3, -1]]), 3, 4),
    BadCall("multilabel_margin_loss_forward.target", lambda: _margins([[0, -2, -1]]), -2, 1),
    BadCall("multilabel_margin_loss_backward.target", lambda: _margins_backward([0, 7, -1]), 7, 1),
    BadCall("one_hot.self", lambda: F.one_hot(tensor([0, 4, 1]), 3), 4, 1),
    BadCall("_ctc_loss.targets", _ctc, 9, 2),
    BadCall("_ctc_loss.targets", lambda: _ctc(requires_grad=True), 9, 2),
    BadCall("_ctc_loss_backward.targets", _ctc_backward, 7, 1),
    BadCall("bincount.self", lambda: torch.bincount(tensor([0, -1, 2])), -1, 1),
    BadCall("embedding.indices", lambda: F.embedding(tensor([[1, 10]]), torch.randn(10, 2)), 10, 1),
    BadCall(
        "embedding.indices",
        lambda: F.embedding(tensor([1, -1], dtype=torch.int32), torch.randn(10, 2)),
        -1,
        1,
    ),
    BadCall(
        "embedding_renorm.indices",
        lambda: aten.embedding_renorm(zeros(10, 2), tensor([3, 10]), 1.0, 2.0),
        10,
        1,
    ),
    BadCall(
        "_embedding_bag_dense_backward.indices",
        lambda: aten._embedding_bag_dense_backward(
            torch.ones(1, 2), tensor([0, 9]), tensor([0, 0]), tensor([2]), tensor([0]), 4, False, 0, None
        ),
        9,
        1,
    ),
    BadCall(
        "_embedding_bag_per_sample_weights_backward.indices",
        lambda: aten._embedding_bag_per_sample_weights_backward(
            torch.ones(1, 2), torch.ones(4, 2), tensor([0, -1]), tensor([0]), tensor([0, 0]), 0
        ),
        -1,
        1,
    ),
    BadCall(
        "embedding_renorm_.indices",
        lambda: aten.embedding_renorm_(zeros(10, 2), tensor([10]), 1.0, 2.0),
        10,
        0,
    ),
    BadCall(
        "embedding_dense_backward.indices",
        lambda: aten.embedding_dense_backward(zeros(2, 3), tensor([0, 10]), 10, -1, False),
        10,
        1,
    ),
    BadCall("_embedding_bag.indices", lambda: _bag([1, 12, 3], [0, 2]), 12, 1),
    BadCall("_embedding_bag.offsets", lambda: _bag([1, 2, 3], [0, 4]), 4, 1),
    BadCall("_embedding_bag_forward_only.indices", lambda: _bag([1, 12, 3], [0, 2], grad=False), 12, 1),
    BadCall("_embedding_bag_forward_only.offsets", lambda: _bag([1, 2, 3], [0, 2, 1], grad=False), 1, 2),
    BadCall("index.indices", lambda: zeros(4, 3)[tensor([0, 4])], 4, 1),
    BadCall("index.indices", lambda: zeros(4, 3)[:, tensor([0, -4])], -4, 1),
    BadCall("_unsafe_index.indices", lambda: aten._unsafe_index(zeros(4), [tensor([4])]), 4, 0),
    BadCall("index_put.indices", lambda: zeros(4).index_put((_beyond(),), tensor(1.0)), 5, 1),
    BadCall("index_put_.indices", lambda: zeros(4).index_put_((_beyond(),), tensor(1.0)), 5, 1),
    BadCall(
        "_index_put_impl.indices", lambda: aten._index_put_impl(zeros(4), [_beyond()], tensor(1.0)), 5, 1
    ),
    BadCall(
        "_index_put_impl_.indices", lambda: aten._index_put_impl_(zeros(4), [_beyond()], tensor(1.0)), 5, 1
    ),
    BadCall(
        "_unsafe_index_put.indices", lambda: aten._unsafe_index_put(zeros(4), [_beyond()], tensor(1.0)), 5, 1
    ),
    BadCall("index_select.index", lambda: zeros(2, 3).index_select(1, _beyond()), 5, 1),
    BadCall("index_select.index", lambda: zeros(2, 3).index_select(-1, tensor([-1])), -1, 0),
    BadCall("gather.index", lambda: zeros(2, 3).gather(1, tensor([[0], [3]])), 3, 1),
    BadCall("scatter.index", lambda: zeros(3).scatter(0, _beyond(), 1.0), 5, 1),
    BadCall("scatter_.index", lambda: zeros(3).scatter_(0, _beyond(), torch.ones(3)), 5, 1),
    BadCall("scatter_add.index", lambda: zeros(3).scatter_add(0, _beyond(), torch.ones(3)), 5, 1),
    BadCall("scatter_add_.index", lambda: zeros(3).scatter_add_(0, _beyond(), torch.ones(3)), 5, 1),
    BadCall(
        "scatter_reduce.index", lambda: zeros(3).scatter_reduce(0, _beyond(), torch.ones(3), "sum"), 5, 1
    ),
    BadCall(
        "scatter_reduce_.index", lambda: zeros(3).scatter_reduce_(0, _beyond(), torch.ones(3), "amax"), 5, 1
    ),
    BadCall("index_add.index", lambda: zeros(3).index_add(0, _beyond(), torch.ones(3)), 5, 1),
    BadCall("index_add_.index", lambda: zeros(3).index_add_(0, _beyond(), torch.ones(3)), 5, 1),
    BadCall("index_reduce.index", lambda: zeros(3).index_reduce(0, _beyond(), torch.ones(3), "prod"), 5, 1),
    BadCall("index_reduce_.index", lambda: zeros(3).index_reduce_(0, _beyond(), torch.ones(3), "prod"), 5, 1),
    BadCall("index_copy.index", lambda: zeros(3).index_copy(0, _beyond(), torch.ones(3)), 5, 1),
    BadCall("index_copy_.index", lambda: zeros(3).index_copy_(0, _beyond(), torch.ones(3)), 5, 1),
    BadCall("index_fill.index", lambda: zeros(3).index_fill(0, _wrapped(), 1.0), -4, 1),
    BadCall("index_fill_.index", lambda: zeros(3).index_fill_(0, _wrapped(), 1.0), -4, 1),
    BadCall("take.index", lambda: zeros(3).take(_wrapped()), -4, 1),
    BadCall("put.index", lambda: zeros(3).put(_wrapped(), torch.ones(3)), -4, 1),
    BadCall("put_.index", lambda: zeros(3).put_(_wrapped(), torch.ones(3)), -4, 1),
    BadCall(
        "max_unpool2d.indices",
        lambda: F.max_unpool2d(zeros(1, 1, 1, 2), tensor([[[[0, 9]]]]), 1, 1, output_size=(1, 2)),
        9,
        1,
    ),
    BadCall(
        "max_unpool3d.indices",
        lambda: F.max_unpool3d(zeros(1, 1, 1, 1, 2), tensor([[[[[0, 9]]]]]), 1, 1, output_size=(1, 1, 2)),
        9,
        1,
    ),
    BadCall("repeat_interleave.repeats", lambda: torch.repeat_interleave(tensor([2, -1, 1])), -1, 1),
    BadCall(
        "repeat_interleave.repeats", lambda: torch.repeat_interleave(tensor([2, 1, 1]), output_size=3), 1, 2
    ),
    BadCall(
        "repeat_interleave.repeats",
        lambda: torch.repeat_interleave(_beyond(), tensor([2, 0, 1]), output_size=5),
        1,
        2,
    ),
    BadCall(
        "fractional_max_pool2d_backward.indices",
        lambda: aten.fractional_max_pool2d_backward(
            torch.ones(1, 1, 1, 1), zeros(1, 1, 3, 2), [2, 2], [1, 1], tensor([[[[6]]]])
        ),
        6,
        0,
    ),
    BadCall(
        "fractional_max_pool3d_backward.indices",
        lambda: aten.fractional_max_pool3d_backward(
            torch.ones(1, 1, 1, 1, 1), zeros(1, 1, 2, 2, 2), [2, 2, 2], [1, 1, 1], tensor([[[[[-1]]]]])
        ),
        -1,
        0,
    ),
    BadCall(
        "segment_reduce.lengths",
        lambda: torch.segment_reduce(zeros(4), "sum", lengths=tensor([2, -1, 3])),
        -1,
        1,
    ),
    BadCall(
        "segment_reduce.lengths",
        lambda: torch.segment_reduce(zeros(4), "sum", lengths=tensor([2, 3]), unsafe=True),
        3,
        1,
    ),
    BadCall(
        "segment_reduce.offsets",
        lambda: torch.segment_reduce(zeros(4), "sum", offsets=tensor([0, 2, 5])),
        5,
        2,
    ),
    BadCall(
        "_segment_reduce_backward.lengths",
        lambda: aten._segment_reduce_backward(
            torch.ones(2), torch.ones(2), zeros(4), "sum", lengths=tensor([2, 5])
        ),
        5,
        1,
    ),
    BadCall(
        "_segment_reduce_backward.offsets",
        lambda: aten._segment_reduce_backward(
            torch.ones(2), torch.ones(2), zeros(4), "sum", offsets=tensor([0, 3, 1])
        ),
        1,
        2,
    ),
    BadCall("_grouped_mm.offs", lambda: _grouped("_grouped_mm", [2, 5]), 5, 1),
    BadCall("_grouped_mm.offs", lambda: _grouped("_grouped_mm", [3, 2]), 2, 1),
    BadCall("_scaled_grouped_mm.offs", lambda: _grouped("_scaled_grouped_mm", [2, 5]), 5, 1),
    BadCall("masked_scatter.mask", lambda: zeros(3).masked_scatter(tensor([True] * 3), torch.ones(2)), 1, 2),
    BadCall(
        "masked_scatter_.mask",
        lambda: zeros(2, 2).masked_scatter_(tensor([[True], [False]]), torch.ones(1)),
        1,
        0,
    ),
    BadCall(
        "_validate_compressed_sparse_indices.compressed_idx", lambda: _compressed([0, 1, 3], [0, 1]), 3, 2
    ),
    BadCall("_validate_compressed_sparse_indices.plain_idx", lambda: _compressed([0, 1, 2], [0, 3]), 3, 1),
    BadCall("lu_unpack.LU_pivots", lambda: torch.lu_unpack(torch.eye(3), _pivots(1, 2, 4)), 4, 2),
    BadCall(
        "linalg_lu_solve.pivots",
        lambda: torch.linalg.lu_solve(torch.eye(3), _pivots(0, 2, 3), torch.ones(3, 1)),
        0,
        0,
    ),
    BadCall(
        "binary_cross_entropy.self", lambda: F.binary_cross_entropy(tensor([0.5, 1.5]), torch.ones(2)), 1.5, 1
    ),
    BadCall(
        "binary_cross_entropy.self", lambda: F.binary_cross_entropy(tensor([NAN, 0.5]), torch.ones(2)), NAN, 0
    ),
    BadCall(
        "binary_cross_entropy.target", lambda: F.binary_cross_entropy(zeros(2), tensor([1.0, -2.0])), -2.0, 1
    ),
    BadCall("multinomial.self", lambda: torch.multinomial(tensor([[0.5, 0.5], [INF, 1.0]]), 1), INF, 2),
    BadCall("multinomial.self", lambda: torch.multinomial(tensor([0.5, -0.5]), 1), -0.5, 1),
    BadCall("bernoulli_.p", lambda: torch.bernoulli(tensor([0.5, NAN])), NAN, 1),
    BadCall("bernoulli.out.self", lambda: torch.bernoulli(tensor([0.5, 2.0]), out=torch.empty(2)), 2.0, 1),
    BadCall("bernoulli.p", lambda: aten.bernoulli(zeros(2), tensor([0.5, 2.0])), 2.0, 1),
    BadCall("bernoulli_.p", lambda: zeros(2).bernoulli_(tensor([0.5, 2.0])), 2.0, 1),
    BadCall("poisson.self", lambda: torch.poisson(tensor([1.0, -1.0])), -1.0, 1),
    BadCall("binomial.count", lambda: torch.binomial(tensor([5.0, -5.0]), tensor([0.5, 0.5])), -5.0, 1),
    BadCall("binomial.prob", lambda: torch.binomial(tensor([5.0]), tensor([1.5])), 1.5, 0),
]

# Calls that are fine, close to the limits: no adapter may object.
GOOD_CALLS: list[Callable[[], Any]] = [
    lambda: F.cross_entropy(torch.ones(4, 3), tensor([0, 2, -100, 1])),
    lambda: F.embedding(tensor([0, 9]), torch.ones(10, 2)),
    lambda: zeros(4, 3)[tensor([3, -4]), None],
    lambda: zeros(4)[tensor([True, False, True, False])],
    lambda: zeros(3).take(tensor([-3, 2])),
    lambda: zeros(3).index_select(0, tensor([], dtype=torch.int64)),
    lambda: F.one_hot(tensor([0, 2])),
    lambda: F.binary_cross_entropy(tensor([0.0, 1.0]), tensor([1.0, 0.0])),
    lambda: zeros(3).copy_(tensor(2.0)),
    lambda: _margins([[2, -1, 0], [-1, 0, 0]], requires_grad=True).backward(),
    lambda: torch.repeat_interleave(tensor([2, 0, 1])),
    lambda: torch.repeat_interleave(tensor([2, 0, 1]), output_size=3),
    lambda: torch.repeat_interleave(zeros(2), tensor(2), output_size=4),
    lambda: torch.segment_reduce(zeros(4), "sum", lengths=tensor([2, 0, 2])),
    lambda: torch.segment_reduce(zeros(4), "sum", lengths=tensor([2, 1]), unsafe=True),
    lambda: torch.segment_reduce(zeros(4), "sum", offsets=tensor([1, 1, 4])),
    lambda: _grouped("_grouped_mm", [2, 4]),
    lambda: zeros(3).masked_scatter_(tensor([True, False, True]), torch.ones(2)),
    lambda: zeros(3).masked_scatter(tensor([[True, False, True], [False] * 3]), torch.ones(2)),
    lambda: torch.lu_unpack(torch.eye(3), _pivots(0, 9, 9), unpack_pivots=False),
    lambda: torch.lu_unpack(*torch.linalg.lu_factor(torch.randn(3, 4))),
    lambda: _compressed([0, 1, 2], [0, 2]),
    lambda: F.fractional_max_pool2d(
        zeros(1, 1, 6, 6), 2, output_size=3, _random_samples=tensor([[[7.0, -2]]])
    ),
    lambda: torch.ones(3, dtype=torch.int64).copy_(zeros(3)),
    lambda: zeros(3).masked_fill_(tensor([True, False, True]), INF),
    lambda: tensor([1.0, 2.0]).to(torch.int64),
    lambda: repr(tensor([1.5, INF])),
]
