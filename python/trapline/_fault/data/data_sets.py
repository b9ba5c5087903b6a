"""What lies below a data set: Subset, random_split and ConcatDataset led back to their base; a sample's file.

One place for the quarantine file and for reports. Only attributes are read: no sample is made.
"""

from __future__ import annotations

import os
import re
import sys
from bisect import bisect_right
from typing import Any

_DEPTH = 8  # a Subset of a Subset of ...
_PATHS = (  # lists with one file per sample
    *("files", "paths", "image_paths", "img_paths", "image_files", "img_files"),
    *("filenames", "file_names", "file_paths", "file_list", "image_list"),
)
_MIXED = ("samples", "imgs", "images")  # torchvision's names for such lists; elsewhere they may hold texts
_FILE = re.compile(r"\S+\.\w{1,8}")
_LONGEST = 4096


def _kind(name: str) -> Any:
    return getattr(sys.modules.get("torch.utils.data"), name, ())


def unwrap(data_set: Any) -> tuple[Any, list[int] | None]:
    """The data set below Subsets, and the index in it for each index of this one (None: the same)."""
    chosen: list[int] | None = None
    for _ in range(_DEPTH):
        if not isinstance(data_set, _kind("Subset")):
            break
        own = [int(i) for i in data_set.indices]
        chosen = own if chosen is None else [own[i] for i in chosen]
        data_set = data_set.dataset
    return data_set, chosen


def below(data_set: Any) -> Any:
    """The records that a data set shows: what lies below Subsets and views of the user's, which keep it as
    `dataset`."""
    for _ in range(_DEPTH):
        held = getattr(data_set, "__dict__", None)
        inner = held.get("dataset") if type(held) is dict else None
        if inner is None or not hasattr(type(inner), "__getitem__"):
            break
        data_set = inner
    return data_set


def base_of(data_set: Any, index: int) -> tuple[Any, int]:
    """The data set that one sample really comes from, and its index there; the same when none is below."""
    for _ in range(_DEPTH):
        if isinstance(data_set, _kind("Subset")):
            data_set, index = data_set.dataset, int(data_set.indices[index])
        elif isinstance(data_set, _kind("ConcatDataset")):
            ends = data_set.cumulative_sizes
            index = index + ends[-1] if index < 0 else index
            part = bisect_right(ends, index)
            data_set, index = data_set.datasets[part], index - (ends[part - 1] if part else 0)
        else:
            break
    return data_set, index


def file_of(data_set: Any, index: int) -> str | None:
    """The file that a sample of a base data set is made of, where a list with one entry per sample says."""
    try:
        for name in (*_MIXED, *_PATHS):
            entries = getattr(data_set, name, None)
            if isinstance(entries, (list, tuple)) and len(entries) == len(data_set):
                entry = entries[index]
                path = _path(entry[0] if isinstance(entry, (list, tuple)) else entry)
                if path is not None and (name in _PATHS or _FILE.fullmatch(path) or os.path.exists(path)):
                    return path
        if type(data_set) is list:
            return path_in(data_set[index])
    except Exception:
        pass
    return None


_KEYS = ("path", "file", "file_path", "filename", "file_name", "image_path", "img_path", "audio_path")


def path_in(row: Any) -> str | None:
    """The path that a sample in the form of a dictionary carries."""
    if isinstance(row, dict):
        for key in _KEYS:
            path = _path(row.get(key))
            if path is not None:
                return path
    return None


def _path(entry: Any) -> str | None:
    text = os.fspath(entry) if isinstance(entry, (str, os.PathLike)) else None
    return text if isinstance(text, str) and 0 < len(text) < _LONGEST and "\n" not in text else None
