"""The text of the user's program, parsed: its modules, the classes and functions in them, and their calls."""

from __future__ import annotations

import ast
import re
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from functools import lru_cache
from types import CodeType, ModuleType
from typing import Any, NamedTuple, Optional

from trapline._fault.program import places, scope, source

_MAX_FILES = 100
_MAX_TREES = 512
_MAX_FUNCTIONS = 4096
_MAX_CHARACTERS = 300_000
FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)


# Each makes a tensor of the numbers that it is given.
WRAPS = {"tensor", "as_tensor", "from_numpy", "asarray", "LongTensor", "IntTensor", "FloatTensor", "Tensor"}


class Returned(NamedTuple):
    """What a function returns: the expression, the name that it has there, and its file."""

    node: ast.expr
    name: str
    file: str


def user_files() -> list[str]:
    """The files of the user's own modules, those that run now first."""
    files = [frame.f_code.co_filename for frame in scope.live_frames() if places.is_user(frame.f_code)]
    files += filter(None, map(_file_of, list(sys.modules.values())))
    return list(dict.fromkeys(files))[:_MAX_FILES]


def _file_of(module: Any) -> Optional[str]:
    """Of a module of the user's."""
    file = scope.members(module).get("__file__") if isinstance(module, ModuleType) else None
    is_text = isinstance(file, str) and file.endswith(".py")
    is_users = is_text and not places.is_own(file) and not places.is_library_file(file)
    return file if is_users else None


def is_users_class(kind: type) -> bool:
    """By its own functions, or by the file of its module, as a record may have none."""
    codes = (getattr(one, "__code__", None) for one in vars(kind).values())
    in_file = _file_of(sys.modules.get(kind.__module__)) is not None
    return in_file or any(code is not None and places.is_user(code) for code in codes)


def user_trees() -> Iterator[tuple[str, Any]]:
    """(file, its tree) of each of them that can be read."""
    for file in user_files():
        tree = tree_of(file)
        if tree is not None:
            yield file, tree


@lru_cache(maxsize=_MAX_FILES)
def tree_of(file: str) -> Optional[ast.Module]:
    """The tree of a file that still is what the process ran; of a cell of a notebook, too."""
    text = source.text(file)
    if not text or len(text) > _MAX_CHARACTERS:
        return None
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def classes(kind: type) -> Iterator[tuple[Any, str]]:
    """(definition, file) of a class of the user's; nothing where its name is another's in that file, too."""
    module = sys.modules.get(kind.__module__)
    file = getattr(module, "__file__", None) if isinstance(module, ModuleType) else None
    if not isinstance(file, str) or places.is_library_file(file):
        return
    tree = tree_of(file)
    named = [
        node
        for node in (nodes_of(tree) if tree is not None else ())
        if isinstance(node, ast.ClassDef) and node.name == kind.__name__
    ]
    if len(named) == 1:
        yield named[0], file


# What is asked of each file many times for one fault is looked up once.
@lru_cache(maxsize=_MAX_TREES)
def nodes_of(tree: Any) -> tuple[Any, ...]:
    """Everything in a file or a function, as ast.walk() goes through it."""
    return tuple(ast.walk(tree))


@lru_cache(maxsize=_MAX_FILES)
def functions(tree: Any) -> tuple[tuple[Any, Any], ...]:
    """(function, the class around it) of each function in a file; (None, None) for the file's own lines."""
    found = [(None, None)]
    waiting: deque[tuple[Any, Any]] = deque((node, None) for node in tree.body)
    while waiting:
        node, kind = waiting.popleft()
        if isinstance(node, FUNCTION):
            found.append((node, kind))
            kind = None
        inside = node if isinstance(node, ast.ClassDef) else kind
        waiting.extend((part, inside) for part in ast.iter_child_nodes(node))
    return tuple(found)


def function_of(code: CodeType) -> Optional[tuple[Any, Any]]:
    """(function, class) of code in a file of the program's."""
    tree = tree_of(code.co_filename)
    for function, kind in functions(tree) if tree is not None else ():
        if function is None or function.name != code.co_name:
            continue
        first = function.lineno - len(function.decorator_list)
        if first <= code.co_firstlineno <= function.lineno:
            return function, kind
    return None


def given_to(value: ast.expr, file: str, line: int) -> str:
    """What the assignment on a line gives a value to, `cos, sin`; empty where that is a part of another."""
    tree, text = tree_of(file), ast.unparse(value)
    for node in nodes_of(tree) if tree is not None else ():
        if isinstance(node, ast.Assign) and node.lineno == line and ast.unparse(node.value) == text:
            return ast.unparse(node.targets[0]).strip("()")
    return ""


def defined(name: str) -> list[tuple[str, Any, Any]]:
    """(file, function, class) of the program's own functions of that name."""
    return [
        (file, function, kind)
        for file, tree in user_trees()
        for function, kind in functions(tree)
        if function is not None and function.name == name
    ]


def calls_of(name: str) -> Iterator[tuple[str, Any, Any, ast.Call]]:
    """(file, function, class, call) of each call of that name in the program."""
    for file, tree in user_trees():
        for function, kind in functions(tree):
            for node in own_nodes(function if function is not None else tree):
                if isinstance(node, ast.Call) and called(node) == name:
                    yield file, function, kind, node


def called(call: ast.Call) -> str:
    """The name of what is called: of `torch.log(x)` and `x.log()` the last one."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


@lru_cache(maxsize=_MAX_FUNCTIONS)
def own_nodes(around: Any) -> tuple[Any, ...]:
    """Everything in a function or a file, without what stands in functions in it."""
    found = []
    waiting = deque(ast.iter_child_nodes(around))
    while waiting:
        node = waiting.popleft()
        found.append(node)
        if not isinstance(node, FUNCTION):
            waiting.extend(ast.iter_child_nodes(node))
    return tuple(found)


def returned_by(name: str, place: Optional[int]) -> Optional[Returned]:
    """What the one function of that name in the program returns, by its one `return`; of a tuple what stands
    at the place. A variable there is followed to its one assignment."""
    found = defined(name)
    return returned(found[0][1], place, found[0][0]) if len(found) == 1 else None


def returned(function: Any, place: Optional[int], file: str, entries: bool = False) -> Optional[Returned]:
    """The same of a function that is known. `entries`: of a dictionary the entry at the place, too."""
    inside = own_nodes(function)
    returns = [node.value for node in inside if isinstance(node, ast.Return)]
    value = returns[0] if len(returns) == 1 else None
    key = ""
    if entries and place is not None and isinstance(value, ast.Dict) and place < len(value.values):
        key = str(getattr(value.keys[place], "value", ""))
        value = value.values[place]
    elif place is not None:
        value = value.elts[place] if isinstance(value, ast.Tuple) and place < len(value.elts) else None
    while isinstance(value, ast.Call) and called(value) in WRAPS and value.args:
        value = value.args[0]  # torch.from_numpy(decile)
    if value is None:
        return None
    name = value.id if isinstance(value, ast.Name) else key
    made = _assigned(inside, value)
    return None if isinstance(value, ast.Name) and made is value else Returned(made, name, file)


def entries(key: str) -> list[Returned]:
    """What the program gives to an entry or a member of that name: in dictionaries, as a keyword, and by
    `x["key"] = ...`; a variable of the function there is followed to its one assignment."""
    found = []
    for file, tree in user_trees():
        for function, _ in functions(tree):
            inside = own_nodes(function if function is not None else tree)
            for value in _given(inside, key):
                found.append(Returned(_assigned(inside, value), key, file))
    return found


def _given(nodes: Iterable[Any], key: str) -> Iterator[ast.expr]:
    for node in nodes:
        if isinstance(node, ast.Dict):
            pairs = zip(node.keys, node.values)
            yield from (v for k, v in pairs if isinstance(k, ast.Constant) and k.value == key)
        elif isinstance(node, ast.Call):
            name = called(node)
            if name == "dict" or name[:1].isupper():  # of a class: Data(x=...)
                yield from (given.value for given in node.keywords if given.arg == key)
        elif isinstance(node, ast.Assign) and len(node.targets) == 1:
            target = node.targets[0]
            entry = isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant)
            if entry and target.slice.value == key:  # type: ignore[attr-defined]
                yield node.value


def _assigned(nodes: Iterable[Any], value: ast.expr) -> ast.expr:
    """Of a variable what its one assignment gives it; else the value itself."""
    if not isinstance(value, ast.Name):
        return value
    stored = [
        n for n in nodes if isinstance(n, ast.Name) and n.id == value.id and isinstance(n.ctx, ast.Store)
    ]
    made = [
        node.value
        for node in nodes
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and node.targets[0] in stored
    ]
    return made[0] if len(stored) == len(made) == 1 else value


_LESS_ONE = re.compile(
    r"^\s*((\w*(?:mask|label|target|seg|gt)\w*)\s*(?:-=\s*1|=\s*\2\s*-\s*1))\s*(?:#.*)?$", re.MULTILINE
)
_MARKS = re.compile(r"(?<!/)(?<!/ )\b25[45]\b")  # no division of a picture by 255


def less_one() -> Optional[dict[str, Any]]:
    """The only statement of the program's that takes 1 off labels or masks, which in uint8 makes 255 of 0.

    None where the program speaks of 255 or 254: ADE20K's recipe marks with it what was 0.
    """
    if any(_MARKS.search(source.text(file)) for file in user_files()):
        return None
    found = [
        {"text": hit.group(1), "file": file, "line": source.text(file)[: hit.start(1)].count("\n") + 1}
        for file in user_files()
        for hit in _LESS_ONE.finditer(source.text(file))
    ]
    return found[0] if len(found) == 1 else None


def speak_of(*words: str) -> bool:
    """One of the words stands in a file of the program's."""
    return any(
        word in text for text in (source.text(file).lower() for file in user_files()) for word in words
    )


def matches(pattern: str) -> bool:
    """It stands in a file of the program's."""
    return any(re.search(pattern, source.text(file)) for file in user_files())


def imported_from(tree: Any, name: str) -> Optional[str]:
    """The user's file that `from module import name` takes a name from."""
    for node in nodes_of(tree):
        if not isinstance(node, ast.ImportFrom) or not any((a.asname or a.name) == name for a in node.names):
            continue
        ending = (node.module or "").rpartition(".")[2]
        found = [file for file in user_files() if file.endswith((f"/{ending}.py", f"\\{ending}.py"))]
        return found[0] if len(found) == 1 else None
    return None


def default_of_option(call: ast.Call, name: str) -> Optional[ast.expr]:
    """The default of `parser.add_argument("--name", default=...)`, where the command line has no other."""
    if called(call) not in ("add_argument", "option"):
        return None
    options = [arg.value for arg in call.args if isinstance(arg, ast.Constant) and type(arg.value) is str]
    named = {given.arg: given.value for given in call.keywords}
    dest = getattr(named.get("dest"), "value", None) or next(
        (option.lstrip("-").replace("-", "_") for option in options if option.startswith("--")), ""
    )
    given = any(part.partition("=")[0] in options for part in sys.argv[1:])
    return named.get("default") if dest == name and not given else None
