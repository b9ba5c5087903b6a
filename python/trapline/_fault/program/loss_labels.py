"""Whether an index is the labels of a loss: a scatter, a gather or an index put that makes them one-hot.

Said where a frame of the call runs a class that is called a loss, or a function that is called one_hot and
the like, and a frame up to it holds the index under the name of labels. What is indexed may tell as well: a
softmax that a gradient flows through, one value of each row, is looked up by classes.
"""

from __future__ import annotations

import re
from types import FrameType
from typing import Any

from trapline._fault.program import scope

_MAX_FRAMES = 32
_CLASS = re.compile(
    r"Loss(?:es)?(?![a-z])|Criterion$|LabelSmooth|CrossEntropy|Focal|Dice|^(?:Mixup|CutMix|MixUp|Cutmix)"
)
_FUNCTION = re.compile(
    r"one_?hot|label_?smooth|smooth_?(?:label|target)|mix_?up|cut_?mix|(?:^|_)loss$|^(?:dice|focal)(?:_|$)"
    r"|cross_entropy"
)
_LABELS = re.compile(
    r"^(?:y|y_true|y_b|gt|truth)$|(?:^|_)(?:labels?|targets?|class(?:es)?|gt|truth|true|annotations?)(?:_|$)"
)
# numbers of samples, of places: a loss that keeps a table of them indexes by what is no label
_OTHERS = re.compile(r"(?:^|_)(?:idx|index|indices|position|positions|len|length|lengths|weights?)(?:_|$)")


_SOFTMAX = re.compile(r"(?:Log)?Softmax")
_VIEWS = re.compile(r"View|Reshape|Unsqueeze|Squeeze|Transpose|Permute|TBackward|Neg|Exp|Clamp|LogBackward")


def are_labels(index: Any, batch_part: Any, indexed: Any = None) -> bool:
    """`index`, `indexed`: of the operation; `batch_part`: the tensor of the loader's batch that holds it."""
    found, scores = False, _are_scores(indexed)
    for frame in scope.live_frames()[:_MAX_FRAMES]:
        found = found or _holds_labels(frame, index, batch_part)
        if found and scores:
            return True
        if _is_loss(frame):
            # the frame that called it may be the one with the name: one_hot(x, ...) of one_hot(target, ...)
            return found or (frame.f_back is not None and _holds_labels(frame.f_back, index, batch_part))
    return False


def _are_scores(tensor: Any) -> bool:
    node = getattr(tensor, "grad_fn", None) if scope.is_tensor(tensor) else None
    for _ in range(4):
        if node is None or _SOFTMAX.match(node.name()):
            return node is not None
        if not _VIEWS.match(node.name()):
            return False
        node = node.next_functions[0][0]
    return False


def _is_loss(frame: FrameType) -> bool:
    holder = frame.f_locals.get("self")
    return bool(
        _FUNCTION.search(frame.f_code.co_name)
        or (holder is not None and _CLASS.search(type(holder).__name__))
    )


def _holds_labels(frame: FrameType, index: Any, batch_part: Any) -> bool:
    pointers = {_pointer(index), _pointer(batch_part)} - {0}
    for name, value in scope.variables(frame):
        if type(value) is dict:  # a detector's targets: {"boxes": ..., "labels": ...}
            if any(part is batch_part and is_name_of_labels(str(key)) for key, part in list(value.items())):
                return True
            continue
        if not scope.is_tensor(value) or not is_name_of_labels(name):
            continue
        if value is index or value is batch_part or _pointer(value) in pointers:
            return True
    return False


def is_name_of_labels(name: str) -> bool:
    return _LABELS.search(name) is not None and _OTHERS.search(name) is None


def _pointer(tensor: Any) -> int:
    if not scope.is_tensor(tensor) or not tensor.numel():
        return 0
    try:
        return int(tensor.untyped_storage().data_ptr())
    except (AttributeError, RuntimeError, ValueError, NotImplementedError):
        return 0
