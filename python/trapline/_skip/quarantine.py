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
import stat
import threading
from typing import Any

from trapline._fault.data import data_sets
from trapline._fault.write import process_facts
from trapline._library import forks
from trapline._library.say import say

_lock = threading.Lock()
_path: str | None = None
_found: dict[str, set[int]] = {}  # those that were in the file at the start
_said: set[str] = set()  # data sets of which was said how much is left out
_bad: dict[str, set[int]] = {}  # data set's identity -> indices
_complained = False
_unwritten = False  # the file takes no lines
_MAX_BYTES = 512 << 20  # of the file; a line is some hundred
_MAX_LINE = 1 << 20


def install(path: str) -> None:
    """Read the file at ``path``, where there is one: loaders leave out what it names (:mod:`.loader`)."""
    global _path, _unwritten
    _path = os.path.abspath(path)
    _unwritten = False
    _said.clear()
    _bad.clear()
    _read(_path)
    _found.clear()
    _found.update({identity: set(indices) for identity, indices in _bad.items()})
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


def written_to() -> str | None:
    """The same, where it has taken every line so far."""
    return None if _unwritten else _path


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
    _append(path, _lines_of(data_set, samples, finding), links=False)  # its name can be told before


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


def from_file(data_set: Any) -> set[int]:
    """Those of :func:`bad_indices` that an earlier run has found: this one has said its own."""
    base, chosen = data_sets.unwrap(data_set)
    old = _found.get(_identity(describe(base)), set())
    return set(old) if chosen is None else {at for at, inner in enumerate(chosen) if inner in old}


def say_left_out(data_set: Any, bad: set[int]) -> None:
    """One line for each data set, by the first rank: that a stale file removes data must be seen."""
    try:
        whole = len(data_set)
    except TypeError:
        whole = None
    key = _identity(describe(data_set))
    if key in _said or process_facts().get("rank", 0) != 0:
        return
    _said.add(key)
    count = f"{len(bad):,}" + ("" if whole is None else f" of {whole:,}")
    plural = "s" if whole not in (None, 1) or len(bad) != 1 else ""
    say(f"quarantine: {count} sample{plural} left out, as {_path} says")


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
        # Not blocking: a pipe would be waited for.
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    except OSError as error:
        _complain(f"{path} cannot be read: {error.strerror}: its samples are not skipped")
        return
    with os.fdopen(file, "rb") as lines:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            _complain(f"{path} is no regular file: name another with --quarantine FILE: no sample is skipped")
            return
        try:
            _take_all(path, lines)
        except OSError as error:
            _complain(
                f"{path} cannot be read to its end: {error.strerror}: the samples behind are not skipped"
            )


def _take_all(path: str, lines: Any) -> None:
    damaged, first, number, room = 0, 0, 0, _MAX_BYTES
    while room > 0:
        line = lines.readline(min(room, _MAX_LINE))
        if not line:
            break
        room -= len(line)
        number += 1
        if line.strip() and not _take(line.decode("utf-8", "replace")):
            damaged += 1
            first = first or number
        while room > 0 and not line.endswith(b"\n"):  # the rest of a line that is too long
            line = lines.readline(min(room, _MAX_LINE))
            if not line:
                break
            room -= len(line)
    if room <= 0:
        limit = f"{_MAX_BYTES >> 20} MiB"
        _complain(f"{path} is larger than {limit}: what stands behind line {number} is not skipped")
    elif damaged:
        plural = "" if damaged == 1 else f" and {damaged - 1} more"
        _complain(f"{path}: line {first}{plural} cannot be read: skipped: fix or delete it")


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


def _append(path: str, lines: list[dict[str, Any]], links: bool = True) -> None:
    global _unwritten
    text = "".join(json.dumps(line, default=str) + "\n" for line in lines)
    try:
        torn = False
        if os.path.isfile(path) and os.path.getsize(path):
            with open(path, "rb") as file:
                file.seek(-1, os.SEEK_END)
                torn = file.read(1) != b"\n"
        # One write at the end: the ranks of a job may share the file.
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(path, flags | (0 if links else os.O_NOFOLLOW), 0o644)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise OSError(0, "it is no regular file")
            whole = (("\n" if torn else "") + text).encode()
            if os.write(descriptor, whole) < len(whole):
                raise OSError(0, "there is no room for the whole line")
        finally:
            os.close(descriptor)
    except OSError as error:
        _unwritten = True
        _complain(f"cannot write {path}: {error.strerror}: choose another file with --quarantine FILE")


def _complain(text: str) -> None:
    global _complained
    if _complained:
        return
    _complained = True
    say(f"quarantine: {text}")
