"""The quarantine file: one JSON line per bad sample, and the DataLoaders that leave those samples out.

A line names the sample (``dataset_index``), why it is there (``code``, ``cause``, ``op``, ``argument``,
``value``, ``valid``, ``count``), ``when`` (UTC), and the data set it belongs to: its class, length, and what
tells it from another of the same class (names, flags and shapes among its attributes). Only loaders of such a
data set leave the sample out. An index counts through ``torch.utils.data.Subset``: ``base_index`` is that of
the data set below.

Loaders are map style: an iterable data set has no indices. A file that is damaged costs its damaged lines,
never the run.
"""

from __future__ import annotations

import datetime
import json
import os
import threading
from typing import Any

from trapline._fault.data import data_sets
from trapline._library import forks
from trapline._library.say import say

_lock = threading.Lock()
_path: str | None = None
_bad: dict[str, set[int]] = {}  # data set's identity -> indices
_complained = False


def install(path: str) -> None:
    """Read the file at ``path``, where there is one: loaders leave out what it names (:mod:`.loader`)."""
    global _path
    _path = os.path.abspath(path)
    _bad.clear()
    _read(_path)
    forks.in_child(_fresh_lock)


def _fresh_lock() -> None:
    global _lock
    _lock = threading.Lock()


def uninstall() -> None:
    """Forget the file, and what it names."""
    global _path
    _path = None
    _bad.clear()


def path() -> str | None:
    """The quarantine file's absolute path; None without one."""
    return _path


def add(data_set: Any, samples: list[dict[str, Any]], finding: dict[str, Any]) -> list[tuple[str, int]]:
    """Write down the samples that are new. Each has ``dataset_index``, ``value`` and ``count``.

    Returns:
        (identity, base index) of all of them, new or not.
    """
    base, chosen = data_sets.unwrap(data_set)
    identity = _identity(describe(base))
    named, new = [], []
    with _lock:
        known = _bad.setdefault(identity, set())
        for sample in samples:
            inner = _inner(sample, chosen)
            named.append((identity, inner))
            if inner not in known:
                known.add(inner)
                new.append(sample)
        if new and _path is not None:
            _append(_path, _lines_of(data_set, new, finding))
    return named


def propose(path: str, data_set: Any, samples: list[dict[str, Any]], finding: dict[str, Any]) -> None:
    """Write the same lines to another file: somebody else decides whether the samples are left out."""
    _append(path, _lines_of(data_set, samples, finding))


def _inner(sample: dict[str, Any], chosen: Any) -> int:
    index = sample["dataset_index"]
    return int(index if chosen is None else chosen[index])


def _lines_of(data_set: Any, samples: list[dict[str, Any]], finding: dict[str, Any]) -> list[dict[str, Any]]:
    base, chosen = data_sets.unwrap(data_set)
    described = describe(base)
    now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds").replace("+00:00", "Z")
    lines = []
    for sample in samples:
        line = {"dataset_index": sample["dataset_index"]}
        inner = _inner(sample, chosen)
        if chosen is not None:
            line["base_index"] = inner
        for name in ("code", "cause", "op", "argument", "valid"):
            if finding.get(name) is not None:
                line[name] = finding[name]
        line.update(value=sample["value"], count=sample["count"], when=now, dataset=described)
        file = _file_of(base, inner)
        if file is not None:
            line["file"] = file
        lines.append(line)
    return lines


def bad_indices(data_set: Any) -> set[int]:
    """Which indices of ``data_set`` are in quarantine."""
    if not _bad:
        return set()
    base, chosen = data_sets.unwrap(data_set)
    bad = _bad.get(_identity(describe(base)))
    if not bad:
        return set()
    return set(bad) if chosen is None else {at for at, inner in enumerate(chosen) if inner in bad}


# Data sets ----------------------------------------------------------------------------------------


def describe(data_set: Any) -> dict[str, Any]:
    """What a data set is told by in another run: class, length, and its names, flags and shapes."""
    kind = type(data_set)
    described: dict[str, Any] = {"class": f"{kind.__module__}.{kind.__qualname__}"}
    try:
        described["length"] = len(data_set)
    except TypeError:
        pass
    marks: dict[str, Any] = {}
    for name, value in sorted(getattr(data_set, "__dict__", {}).items()):
        mark = _mark(value)
        if mark is not None:
            marks[name] = mark
    if marks:
        described["marks"] = marks
    return described


def _mark(value: Any) -> Any:
    if isinstance(value, bool):
        return value
    if isinstance(value, (str, os.PathLike)):
        return os.path.basename(os.fspath(value).rstrip("/"))  # the data may lie elsewhere next time
    if isinstance(value, (list, tuple)) and 0 < len(value) <= 8:
        marks = [_mark(item) for item in value]
        return marks if all(mark is not None for mark in marks) else None
    shape = getattr(value, "shape", None)
    if shape is not None and hasattr(value, "dtype"):
        return f"{value.dtype} {list(shape)}"
    return None


def _identity(described: dict[str, Any]) -> str:
    return json.dumps(described, sort_keys=True, default=str)


def _file_of(data_set: Any, index: int) -> str | None:
    """The file that a sample comes from, where the data set says so."""
    file = data_sets.file_of(data_set, index)
    if file is not None:
        return file
    try:
        for cached in getattr(data_set, "cache_files", None) or ():  # Hugging Face
            return str(cached["filename"])
    except Exception:
        pass
    return None


# The file -----------------------------------------------------------------------------------------


def _read(path: str) -> None:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()
    except FileNotFoundError:
        return
    except OSError as error:
        _complain(f"{path} cannot be read: {error.strerror}: its samples are not skipped")
        return
    damaged = []
    for number, line in enumerate(lines, 1):
        if line.strip() and not _take(line):
            damaged.append(number)
    if damaged:
        plural = "" if len(damaged) == 1 else f" and {len(damaged) - 1} more"
        _complain(f"{path}: line {damaged[0]}{plural} cannot be read: skipped: fix or delete it")


def _take(line: str) -> bool:
    try:
        entry = json.loads(line)
        index = entry.get("base_index", entry["dataset_index"])
        described = entry["dataset"]
        if isinstance(index, bool) or not isinstance(index, int) or not isinstance(described, dict):
            return False
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return False
    _bad.setdefault(_identity(described), set()).add(index)
    return True


def _append(path: str, lines: list[dict[str, Any]]) -> None:
    text = "".join(json.dumps(line, default=str) + "\n" for line in lines)
    try:
        torn = False
        if os.path.exists(path) and os.path.getsize(path):
            with open(path, "rb") as file:
                file.seek(-1, os.SEEK_END)
                torn = file.read(1) != b"\n"
        # One write at the end: the ranks of a job may share the file.
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            os.write(descriptor, (("\n" if torn else "") + text).encode())
        finally:
            os.close(descriptor)
    except OSError as error:
        _complain(f"cannot write {path}: {error.strerror}: choose another file with --quarantine FILE")


def _complain(text: str) -> None:
    global _complained
    if _complained:
        return
    _complained = True
    say(f"quarantine: {text}")
