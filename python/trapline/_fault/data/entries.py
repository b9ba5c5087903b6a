"""The statement of the program that made the numbers of a batch: in its collate function, in `__getitem__` of
its data set, or what a TensorDataset was made of. By the text; no sample is made.
"""

from __future__ import annotations

import ast
from types import CodeType, FunctionType, MethodType
from typing import Any, NamedTuple, Optional

from trapline._fault.data import batches, columns, data_sets, hand
from trapline._fault.data.casts import storage_pointer
from trapline._fault.program import entering, holders, origins, scope, texts
from trapline._fault.program.creations import At
from trapline._fault.program.origins import Path, Records

Facts = dict[str, Any]
_GIVES = ("__getitem__", "__iter__")
Through = list[tuple[Any, str]]  # the object, and its member


def entry_facts(variable: str, tensor: Any) -> Optional[Facts]:
    """`name`, `text`, `file` and `line`; `counts_batch`: the collate function counts the records, and no
    record has these numbers."""
    found = entering.entered(variable, tensor)
    at = None if found is None else _of(found.source, found.path)
    if found is None or at is None:
        return None
    facts, loader = origins.facts_of(at), _loader(found.source)
    collate = None if loader is None else _collate_of(loader[1])
    if collate is not None and at.function is collate.function and "arange(" in facts["text"]:
        facts["counts_batch"] = True
    return facts


class Column(NamedTuple):
    """What a member of a data set holds, of which the text says that a batch's numbers are entries."""

    data_set: Any
    values: Any


def column_of(tensor: Any) -> Optional[Column]:
    """Whole numbers, one for each record of the data set or of a longer one."""
    found = entering.entered("", tensor)
    through: list[tuple[Any, str]] = []
    if found is None:
        return None
    _of(found.source, found.path, through)
    if not through:
        return None
    data_set, member = through[0]
    held = scope.members(data_set).get(member)
    if type(held) not in (list, tuple) and not holders.is_array(held):
        return None
    values = columns.as_tensor(held, len(held)) if len(held) else None
    return None if values is None or values.dtype.is_floating_point else Column(data_set, values)


def _of(source: Any, path: Path, through: Optional[Through] = None) -> Optional[At]:
    loader = _loader(source)
    if loader is not None:
        return _of_batches(*loader, path, through)
    if isinstance(source, entering.Called):
        function = _function(source.name)
        found = None if function is None else _returned(function, path)
        return found if isinstance(found, At) else None
    return None if isinstance(source, entering.Handed) else _of_records(source, path, through)


def _loader(source: Any) -> Optional[tuple[Any, Any]]:
    """The data set and the collate function of what gives out batches; None where it is no loader."""
    from torch.utils.data import DataLoader

    if isinstance(source, DataLoader):
        return source.dataset, source.collate_fn
    # A library has the loader, or it was made where the loop begins: it gave the last batch.
    of_library = isinstance(source, entering.Handed) and _is_of(source.value)
    newest = next(iter(batches.newest_first()), None)
    if newest is None or not (of_library or source == entering.Called("DataLoader")):
        return None
    return newest.loader.data_set(), newest.loader.collate()


def _is_of(value: Any) -> bool:
    """The newest batch has one of these tensors."""
    newest = next(iter(batches.newest_first()), None)
    own = {storage_pointer(part) for part in newest.tensors()} - {0} if newest is not None else set()
    parts = hand.items_of(value)
    return any(scope.is_tensor(part) and storage_pointer(part) in own for part in parts)


def _of_batches(data_set: Any, collate: Any, path: Path, through: Optional[Through]) -> Optional[At]:
    function = _collate_of(collate)
    if function is not None:
        at = _returned(function, path, collate=function.function)
        if not isinstance(at, Records):
            return at
        path = at.path
    elif _own_collate(collate) is not None:
        return None  # its text is not to be had
    return _of_records(data_set, path, through)


def _own_collate(collate: Any) -> Optional[FunctionType]:
    """Any but PyTorch's: a function, a method, or what an object of the program's is called by."""
    made = collate.__func__ if isinstance(collate, MethodType) else collate
    if not isinstance(made, FunctionType) and texts.is_users_class(type(made)):
        made = type(made).__dict__.get("__call__", made)
    own = isinstance(made, FunctionType) and made.__module__ != "torch.utils.data._utils.collate"
    return made if own else None


def _collate_of(collate: Any) -> Optional[At]:
    made = _own_collate(collate)
    return None if made is None else _function(made.__name__, made.__code__)


def _function(name: str, code: Optional[CodeType] = None) -> Optional[At]:
    """The text of a function of the program's: its only one of that name, or that of the code."""
    if code is not None:
        around = texts.function_of(code)
        return None if around is None else At(around[0], code.co_filename, *around)
    found = [At(function, file, function, kind) for file, function, kind in texts.defined(name)]
    return found[0] if len(found) == 1 else None


def _returned(at: At, path: Path, collate: Any = None, members: Optional[list[str]] = None) -> Any:
    """What a function returns, or gives out one by one."""
    given = [
        node.value
        for node in texts.own_nodes(at.function)
        if isinstance(node, (ast.Return, ast.Yield)) and node.value is not None
    ]
    if len(given) != 1:
        return None
    return origins.origin(at._replace(node=given[0], name=""), path, collate, members)


def _of_records(data_set: Any, path: Path, through: Optional[Through]) -> Optional[At]:
    base, _ = data_sets.unwrap(data_set)
    members: list[str] = []
    found: Any = None
    if type(base).__name__ == "TensorDataset" and path and type(path[0]) is int:
        found = _of_tensors(base, path)
    elif type(base) in (list, tuple):
        found = _of_list(base, path)
    else:
        own = (one for one in type(base).__mro__ if any(name in vars(one) for name in _GIVES))
        for kind, file in texts.classes(next(own, object)):
            found = _of_class(kind, file, path, members)
    if through is not None:
        through += [(base, member) for member in members]
    return found if isinstance(found, At) else None


def _of_class(kind: Any, file: str, path: Path, members: list[str]) -> Any:
    for function in kind.body:
        if isinstance(function, ast.FunctionDef) and function.name in _GIVES:
            return _returned(At(function, file, function, kind), path, members=members)
    return None


def _of_tensors(base: Any, path: Path) -> Any:
    """The tensor that a TensorDataset was given: by the one call that makes such a one."""
    held = base.tensors
    place = path[0]
    made = [
        At(call.args[place], file, function, kind)
        for file, function, kind, call in texts.calls_of("TensorDataset")
        if len(call.args) == len(held) > place and not any(isinstance(a, ast.Starred) for a in call.args)
    ]
    if len(made) > 1:
        named = {
            name
            for frame in holders.user_frames()
            for name, value in scope.variables(frame)
            if value is held[place]
        }
        made = [at for at in made if isinstance(at.node, ast.Name) and at.node.id in named]
    return origins.origin(made[0], path[1:]) if len(made) == 1 else None


def _of_list(records: Any, path: Path) -> Any:
    """A list of the program's own, by the variable that holds it."""
    for frame in holders.user_frames():
        for name, value in scope.variables(frame):
            if value is records and frame.f_code.co_name == "<module>":
                node = ast.Name(name, ast.Load(), lineno=scope.line_of(frame), col_offset=0)
                return origins.origin(At(node, frame.f_code.co_filename, None, None), path)
    return None
