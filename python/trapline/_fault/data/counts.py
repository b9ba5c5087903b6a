"""How many classes or ids there are, by a source that has them all: the data set's own list, a tokenizer.

One batch does not tell. Attributes are read where reading runs no code of the user's; tokenizers are asked
for their length.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any, Optional

from trapline._fault.data import batches
from trapline._fault.program import scope

_VOCABULARIES = ("vocab", "vocabulary", "stoi", "word2idx", "word2id", "word_to_idx", "word_to_id",
                 "token2id", "token_to_id", "token2idx", "char2idx", "char_to_idx", "char_to_id",
                 "char2id")  # fmt: skip
_HOLDS_TOKENIZER = ("tokenizer", "processing_class")
_HIDDEN = re.compile(r"\.\w\w")  # no full stop among the characters of a script
_MAX_DEPTH = 8
_MAX_NAMES = 1000
Counted = dict[str, Any]


def classes(located: Any) -> Optional[Counted]:
    """By the data set that the batch came from."""
    data_set = _data_set(located)
    for _ in range(_MAX_DEPTH):
        found = _of_data_set(data_set)
        if found is not None:
            return found
        data_set = _static(data_set, "dataset")  # Subset, and wrappers of the user's
        if data_set is None:
            return None
    return None


def _data_set(located: Any) -> Any:
    if located is not None:
        return located.batch.loader.data_set()
    sets = {id(s): s for s in (batch.loader.data_set() for batch in batches.newest_first()) if s is not None}
    return next(iter(sets.values())) if len(sets) == 1 else None


def _of_data_set(data_set: Any) -> Optional[Counted]:
    if data_set is None:
        return None
    number = _static(data_set, "num_classes")
    if type(number) is int and number > 0:
        return {"count": number, "of": "the data set's num_classes"}
    for name in ("classes", "class_to_idx", "class_names"):
        names = _static(data_set, name)
        if type(names) in (list, tuple, dict) and names:
            hidden = _hidden(data_set, names)
            counted = {"count": len(names) - len(hidden), "of": f"the number of the data set's {name}"}
            return counted | ({"hidden": hidden[0]} if hidden and counted["count"] else {})
    for name, names in list(
        scope.members(data_set).items()
    ):  # folders, by whatever name the program has them
        if (
            type(names) in (list, tuple)
            and 2 < len(names) <= _MAX_NAMES
            and all(type(n) is str for n in names)
        ):
            hidden = [one for one in names if _HIDDEN.match(one)]
            if len(hidden) == 1:
                of = f"the number of the data set's {name}"
                return {"count": len(names) - 1, "of": of, "hidden": hidden[0]}
    if type(data_set).__module__.partition(".")[0] == "datasets":
        return _of_features(getattr(data_set, "features", None))
    return None


def _hidden(data_set: Any, names: Any) -> list[str]:
    """Folders that a notebook, a file manager or a cache left among those of a tree of pictures:
    torchvision's find_classes takes every folder for a class.
    """
    if not isinstance(_static(data_set, "root"), (str, os.PathLike)):
        return []
    return [name for name in names if isinstance(name, str) and _HIDDEN.match(name)]


def _of_features(features: Any) -> Optional[Counted]:
    """Hugging Face's ClassLabel; None when several features have classes."""
    found = {}
    for name, feature in dict(features or {}).items():
        one = getattr(feature, "feature", feature)  # of a list of labels
        number = getattr(one, "num_classes", None)
        if type(number) is int:
            found[name] = number
    if len(found) != 1:
        return None
    name, number = next(iter(found.items()))
    return {"count": number, "of": f"the number of classes of the data set's feature {name}"}


def _static(holder: Any, name: str) -> Any:
    """An attribute as it is stored: properties and __getattr__ do not run."""
    if holder is None:
        return None
    own = scope.members(holder)
    if name in own:
        return own[name]
    for kind in type(holder).__mro__:
        if name in kind.__dict__:
            value = kind.__dict__[name]
            return None if hasattr(type(value), "__get__") else value
    return None


def tokens(ids: Any, rows: Any) -> Optional[Counted]:
    """By the one tokenizer or vocabulary in reach; None when several differ, or when it is not the whole:
    some of the `ids` lie beyond it, and within a table of so many `rows`."""
    found = {counted["count"]: counted for counted in _tokenizers()}
    if not found:
        found = {counted["count"]: counted for counted in _vocabularies()}
    if len(found) != 1:
        return None
    only = next(iter(found.values()))
    if type(rows) is int and bool(((ids >= only["count"]) & (ids < rows)).any()):
        return None
    return only


def named_in(made: Any) -> Optional[Counted]:
    """The tokenizer that the text of a size names: `vocab_size=len(enc._mergeable_ranks)`."""
    words = {word for one in made or () for word in re.findall(r"[A-Za-z_]\w*", str(one.get("text", "")))}
    found = {one["count"]: one for one in _tokenizers() if _object_of(one["of"]) in words}
    return next(iter(found.values())) if len(found) == 1 else None


def _object_of(text: str) -> str:
    """`enc` of `enc.n_vocab`, `tokenizer` of `len(tokenizer)`."""
    return text.removeprefix("len(").rstrip(")").partition(".")[0]


def _tokenizers() -> Iterator[Counted]:
    for name, value in _held(_HOLDS_TOKENIZER):
        kinds = {f"{kind.__module__}.{kind.__name__}" for kind in type(value).__mro__}
        short = name if name.isidentifier() else "tokenizer"
        if "transformers.tokenization_utils_base.PreTrainedTokenizerBase" in kinds:
            yield {"count": len(value), "of": f"len({short})"}
        elif "tokenizers.Tokenizer" in kinds or "builtins.Tokenizer" in kinds:
            yield {"count": int(value.get_vocab_size()), "of": f"{short}.get_vocab_size()"}
        elif "tiktoken.core.Encoding" in kinds:
            yield {"count": int(value.n_vocab), "of": f"{short}.n_vocab"}


def _vocabularies() -> Iterator[Counted]:
    for name, value in _held(_VOCABULARIES):
        if type(value) is dict and value and name.rpartition(".")[2] in _VOCABULARIES:
            ids = list(value.values())
            if all(type(identifier) is int for identifier in ids):
                most = max(ids) + 1
                of = f"len({name})" if most == len(ids) else f"max({name}.values()) + 1"
                yield {"count": most, "of": of}


def _held(attributes: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    """Variables of the live frames, and those attributes of theirs."""
    seen = set()
    for frame in scope.live_frames():
        for name, value in scope.variables(frame):
            if id(value) in seen:
                continue
            seen.add(id(value))
            yield name, value
            held = scope.members(value)
            for attribute in attributes:
                if attribute in held:
                    yield f"{name}.{attribute}", held[attribute]
