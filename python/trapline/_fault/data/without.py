"""A batch as if one of its samples had not been in it."""

from __future__ import annotations

from typing import Any, NamedTuple

from trapline._fault.data.batches import Batch

_FAR = 2  # times as long as any other, so that it is the longest by no chance


class Without(NamedTuple):
    count: int  # samples of the batch
    row: int  # of the one that is left out
    long: int = 0  # what all are filled up to, where it alone is that long
    short: int = 0  # and what they would have been filled up to

    @classmethod
    def of(cls, batch: Batch, count: int, row: int) -> Without:
        for part in batch.tensors():
            if part.dim() < 2 or len(part) != count or count < 2:
                continue
            filled = _lengths(part.detach())
            others = max(length for at, length in enumerate(filled) if at != row)
            if filled[row] == part.shape[1] and 0 < _FAR * others <= filled[row]:
                return cls(count, row, filled[row], others)
        return cls(count, row)

    def cut(self, tensor: Any) -> Any:
        import torch

        if tensor.dim() and len(tensor) == self.count:
            tensor = torch.cat([tensor[: self.row], tensor[self.row + 1 :]])
        for dim in range(1, tensor.dim() if self.long else 0):
            if tensor.shape[dim] == self.long:
                tensor = tensor.narrow(dim, 0, self.short)
        return tensor.contiguous()

    def items(self, values: list[Any]) -> list[Any]:
        if len(values) != self.count:
            return values
        return [item for at, item in enumerate(values) if at != self.row]


def _lengths(part: Any) -> list[int]:
    """Of each row up to where it holds the same number to its end: what it is filled up with."""
    import torch

    flat = part.reshape(len(part), part.shape[1], -1)
    differs = (flat != flat[:, -1:]).any(2)
    places = torch.arange(1, part.shape[1] + 1, device=part.device) * differs
    length = places.amax(1) + 0
    filler = flat[:, -1].reshape(len(part), -1)
    own = (filler != filler.mode(0).values).any(1)  # it ends with a number of its own
    return [part.shape[1] if is_own else int(one) for one, is_own in zip(length, own.tolist())]
