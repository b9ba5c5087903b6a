"""What the program computes for one place of its samples: as the `__getitem__` of its data set says it,
`return picture, orientation - 1, label`, or what it made the tensor of a TensorDataset of.
"""

from __future__ import annotations

import ast
import copy
from typing import Any, Optional

from trapline._fault.data import data_sets
from trapline._fault.program import calls, computed, holders, scope, texts


def sampled_facts(located: Any) -> Optional[dict[str, Any]]:
    """`name`, `text`, `line` and `file` of what stands at the place of the sample that the batch's tensor was
    put together of; where PyTorch's own collate function made the batch."""
    place = _place(located)
    data_set, indices = located.batch.loader.data_set(), located.batch.indices
    if place is None or data_set is None or not isinstance(indices, (list, tuple)) or not indices:
        return None
    try:
        base, _ = data_sets.base_of(data_set, indices[0])
    except (IndexError, KeyError, TypeError, ValueError):
        return None
    held = getattr(base, "tensors", None) if type(base).__name__ == "TensorDataset" else None
    if type(held) is tuple and len(held) == len(located.batch.parts):
        made = _one_by_one(held[place])
        return None if made is None else {**made, "of_sample": True}
    for kind, file in texts.classes(type(base)):
        found = [one for one in kind.body if isinstance(one, ast.FunctionDef) and one.name == "__getitem__"]
        given = None
        if len(found) == 1 and _size(found[0]) == len(located.batch.parts):
            given = texts.returned(found[0], place, file, entries=True)
        facts = None if given is None else computed.as_written(given)
        if facts is not None:
            return {**facts, "of_sample": True}
    return None


def _one_by_one(tensor: Any) -> Optional[dict[str, Any]]:
    """Of `y = torch.tensor([bucket(cards) for cards in hands])` what is computed for each."""
    for frame in holders.user_frames():
        for name, value in scope.variables(frame):
            bound = computed.binding(frame, name, scope.line_of(frame)) if value is tensor else None
            if bound is None:
                continue
            node = bound[0]
            while isinstance(node, ast.Call) and texts.called(node) in texts.WRAPS and node.args:
                node = node.args[0]
            if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
                each = ast.increment_lineno(copy.deepcopy(node.elt), calls.first_line(frame.f_code) - 1)
                return computed.as_written(texts.Returned(each, name, frame.f_code.co_filename))
    return None


def _size(function: Any) -> int:
    """How many parts the tuple or dictionary has that it returns; 0 where the text does not say."""
    returned = [node.value for node in texts.own_nodes(function) if isinstance(node, ast.Return)]
    value = returned[0] if len(returned) == 1 else None
    if isinstance(value, ast.Dict):
        return len(value.values)
    return len(value.elts) if isinstance(value, ast.Tuple) else 0


def _place(located: Any) -> Optional[int]:
    """Which of the sample's parts the tensor is made of; each part has to be one number, text or tensor."""
    batch = located.batch
    if not batch.loader.keeps_order or not batch.loader.batched:
        return None
    alive = [part() if callable(part) else part for part in batch.parts]
    nested = any(type(part) is tuple and part[0] != at for at, part in enumerate(alive))
    same = [at for at, part in enumerate(alive) if part is located.tensor]
    return same[0] if len(same) == 1 and not nested else None
