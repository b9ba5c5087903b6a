"""Where the user's program says how large a layer is: the expression in the call that makes it, and where the
value of that comes from.

By the text of the program alone: nothing runs. A value that can be read and is not the layer's size says that
the layer was made elsewhere, and then nothing is told.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from types import FrameType
from typing import Any, NamedTuple, Optional

from trapline._fault.program import calls, decided, libraries, owners, places, scope, texts
from trapline._fault.program.texts import FUNCTION, called

Step = dict[str, Any]
_SIZES = {
    "Embedding": ("num_embeddings", 0),
    "EmbeddingBag": ("num_embeddings", 0),
    "Linear": ("out_features", 1),
    "LazyLinear": ("out_features", 0),
    "Conv1d": ("out_channels", 1),
    "Conv2d": ("out_channels", 1),
    "Conv3d": ("out_channels", 1),
}
_FILLS = ("randn", "rand", "zeros", "ones", "empty", "full", "Tensor", "FloatTensor")
_MAX_TEXT = 48
_MAX_CALL = 32
_MAX_STEPS = 6


class At(NamedTuple):
    """An expression, and where it stands: its file, the function around it, the class around that."""

    node: ast.expr
    file: str
    function: Any
    kind: Any
    name: str = ""  # what it is given to
    left: bool = False  # a default that no call in the program's text gives another value


def made(layer: Optional[dict[str, Any]], library: dict[str, Any]) -> list[Step]:
    """Where the program makes the layer, or the library's model that has it."""
    own = made_at(layer, libraries.around_layer(layer))
    return own or (made_by_library(library) if library.get("maker") else [])


def made_at(layer: Optional[dict[str, Any]], around: list[Any]) -> list[Step]:
    """`text`, `file`, `line` of the layer's size where it is made (with `whole` of the call that makes it,
    where no size stands there), and of what that is in the end. `around`: the modules that contain the
    layer, innermost first."""
    name, size = str((layer or {}).get("name") or ""), (layer or {}).get("value")
    if not name or type(size) is not int:
        return []
    made = _one(_agreeing(list(_makers(name, around)), layer or {}))
    if made is None:
        return []
    expression = _size_of(made, layer or {})
    if expression is None:
        return [_step(made, whole=True)] if isinstance(made.node, ast.Call) else []
    steps = list(_followed(expression))
    if steps[-1].left and getattr(steps[-1].node, "value", None) != size:
        steps.pop()  # something else has given it another
    if decided.is_placeholder(steps[-1].node, steps[-1].file):
        steps.pop()
    last = steps[-1]
    computed = any(isinstance(at.node, ast.BinOp) for at in steps)
    if isinstance(last.node, ast.Constant) and last.node.value != size and not computed:
        return []
    found = [_step(expression)]
    if last is expression and isinstance(expression.node, ast.BinOp):
        parts = [getattr(part, "attr", getattr(part, "id", "")) for part in ast.walk(expression.node)]
        place = {(expression.file, expression.node.lineno)}
        found = [_step(expression) | decided.by_it(parts, place, expression.function)]
    if last is not expression:
        found.append(
            _step(last)
            | decided.by_it([at.name for at in steps], {(at.file, at.node.lineno) for at in steps})
        )
    if any(isinstance(at.node, ast.BinOp) and not _adds(at.node) for at in steps):
        found[-1]["computed"] = True
    return found


def _step(at: At, whole: bool = False) -> Step:
    text = ast.unparse(at.node)
    if whole and len(text) > _MAX_CALL and isinstance(at.node, ast.Call):
        text = f"{ast.unparse(at.node.func)}(...)"
    if at.name:
        text = f"{at.name} {text}" if at.name.startswith("for ") else f"{at.name}={text}"
    if len(text) > _MAX_TEXT:
        named = at.name and not at.name.startswith("for ")
        text = f"{at.name}=..." if named else text[: _MAX_TEXT - 3] + "..."
    step: Step = {"text": text, "file": at.file, "line": at.node.lineno}
    return {**step, "whole": True} if whole else step


def _adds(node: ast.BinOp) -> bool:
    """`n + 1`: a number more or less, of no product or power."""
    number = any(isinstance(part, ast.Constant) for part in (node.left, node.right))
    inside = [
        part for side in (node.left, node.right) for part in ast.walk(side) if isinstance(part, ast.BinOp)
    ]
    return number and isinstance(node.op, (ast.Add, ast.Sub)) and all(map(_adds, inside))


def _one(found: list[At], together: bool = False) -> Optional[At]:
    """The one place; of several that say the same the first. `together`: the same name in another function is
    another variable."""
    apart = together and not isinstance(found[0].node, ast.Constant)
    texts_ = {(ast.dump(at.node), at.function if apart else None) for at in found}
    return found[0] if len(texts_) == 1 else None


def _agreeing(found: list[At], layer: dict[str, Any]) -> list[At]:
    """Without those that make it of another number."""

    def agrees(size: Optional[At]) -> bool:
        number = size.node.value if size and isinstance(size.node, ast.Constant) else layer["value"]
        return bool(number == layer["value"])

    return [at for at in found if agrees(_size_of(at, layer))]


def _makers(name: str, around: list[Any]) -> Iterator[At]:
    keys = [part for part in re.split(r"[.\[\]]+", name) if part]
    inside: list[str] = []  # positions in containers of PyTorch's, the outermost first
    inner: Any = None
    for holder in around:
        key = keys[-1] if inner is None else _key_of(holder, inner)
        if key is None:
            return
        inner = holder
        if type(holder).__module__.startswith("torch.nn.modules."):
            inside.insert(0, key)
            continue
        yield from _parts(list(_attributes(type(holder), key)), inside)
        return
    if around and len(keys) > len(inside):
        yield from _parts(list(_variables(keys[0])), inside)
    elif not around and len(keys) == 1:
        yield from _variables(keys[0])


def _key_of(holder: Any, part: Any) -> Optional[str]:
    return next((key for key, value in holder._modules.items() if value is part), None)


def _attributes(kind: type, attribute: str) -> Iterator[At]:
    """What the class assigns to `self.attribute`, and what other code of the user's assigns to `x.attribute`
    where none of the class does."""
    found = False
    for base in kind.__mro__:
        for at_class, file in texts.classes(base):
            for function in (part for part in at_class.body if isinstance(part, FUNCTION)):
                for target, value in _assignments(function):
                    if _is_own(target) and target.attr == attribute:
                        found = True
                        yield At(value, file, function, at_class)
    for file, tree in texts.user_trees() if not found else ():
        for at in _everywhere(tree, file):
            target = at[0]
            if isinstance(target, ast.Attribute) and target.attr == attribute and not _is_own(target):
                yield at[1]


def _variables(name: str) -> Iterator[At]:
    for file, tree in texts.user_trees():
        for target, at in _everywhere(tree, file):
            if isinstance(target, ast.Name) and target.id == name:
                yield at


def _everywhere(tree: Any, file: str) -> Iterator[tuple[Any, At]]:
    """Each assignment of a file with what it assigns."""
    for function, kind in texts.functions(tree):
        for target, value in _assignments(function if function is not None else tree):
            yield target, At(value, file, function, kind)


def _assignments(scope: Any) -> Iterator[tuple[Any, ast.expr]]:
    """Those of a function or a module, without those of functions in it."""
    waiting = list(scope.body)
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, (*FUNCTION, ast.ClassDef)):
            continue
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            yield node.targets[0], node.value
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            yield node.target, node.value
        waiting = list(ast.iter_child_nodes(node)) + waiting


def _is_own(target: Any) -> bool:
    own = isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name)
    return own and target.value.id == "self"


def _parts(found: list[At], keys: list[str]) -> Iterator[At]:
    """What stands at that position of a Sequential, a ModuleList or a ModuleDict."""
    for at in found:
        node: Optional[ast.expr] = at.node
        for key in keys:
            node = _element(node, key)
        if node is not None:
            yield at._replace(node=node)


def _element(node: Optional[ast.expr], key: str) -> Optional[ast.expr]:
    if not isinstance(node, ast.Call) or not node.args:
        return None
    if called(node) == "Sequential" and key.isdigit():
        before = node.args[: int(key) + 1]
        return before[-1] if len(before) == int(key) + 1 and not _spread(before) else None
    held = node.args[0]
    if called(node) == "ModuleList" and isinstance(held, (ast.List, ast.Tuple)) and key.isdigit():
        before = held.elts[: int(key) + 1]
        return before[-1] if len(before) == int(key) + 1 and not _spread(before) else None
    if called(node) == "ModuleList" and isinstance(held, (ast.ListComp, ast.GeneratorExp)):
        return held.elt
    if called(node) == "ModuleDict" and isinstance(held, ast.Dict):
        named = zip(held.keys, held.values)
        return next((v for k, v in named if isinstance(k, ast.Constant) and k.value == key), None)
    return held.value if called(node) == "ModuleDict" and isinstance(held, ast.DictComp) else None


def _spread(nodes: list[ast.expr]) -> bool:
    return any(isinstance(node, ast.Starred) for node in nodes)


def _size_of(at: At, layer: dict[str, Any]) -> Optional[At]:
    """The expression of the size in the call that makes the layer."""
    call = at.node.body if isinstance(at.node, ast.IfExp) else at.node
    if layer.get("type") == "Parameter":
        number = re.fullmatch(r"shape\[(\d+)\]", str(layer.get("attribute")))
        size = _filled(call, int(number[1])) if number is not None else None
    elif isinstance(call, ast.Call):
        keyword, place = _SIZES.get(called(call), ("", -1))
        size = _argument(call, keyword, place)
    else:
        size = None
    return None if size is None else at._replace(node=size)


def _filled(node: ast.expr, place: int) -> Optional[ast.expr]:
    """The size number `place` in `nn.Parameter(torch.randn(n, width))`."""
    calls = [part for part in ast.walk(node) if isinstance(part, ast.Call) and called(part) in _FILLS]
    if len(calls) != 1:
        return None
    sizes: list[ast.expr] = calls[0].args[:1] if called(calls[0]) == "full" else calls[0].args
    if len(sizes) == 1 and isinstance(sizes[0], (ast.Tuple, ast.List)):
        sizes = sizes[0].elts
    return sizes[place] if place < len(sizes) and not _spread(sizes[: place + 1]) else None


def _argument(call: ast.Call, keyword: str, place: int) -> Optional[ast.expr]:
    for given in call.keywords:
        if given.arg == keyword:
            return given.value
    return call.args[place] if 0 <= place < len(call.args) and not _spread(call.args[: place + 1]) else None


def _followed(at: At) -> Iterator[At]:
    """The expression, what the name in it was given, and so on to the last that is known."""
    yield at
    for _ in range(_MAX_STEPS):
        name = _name_in(at)
        following = given_at(at, name) if name is not None else None
        if following is None:
            return
        at = following
        yield at


def _name_in(at: At) -> Any:
    """A name or `self.name`; of a sum or a product the only one in it. A quotient is a size of its own."""
    node = at.node
    for _ in range(_MAX_STEPS):
        if not isinstance(node, ast.BinOp) or isinstance(node.op, (ast.Div, ast.FloorDiv, ast.Mod)):
            break
        names = [part for part in (node.left, node.right) if not isinstance(part, ast.Constant)]
        if len(names) != 1:
            break
        node = names[0]
    return node if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) else None


def given_at(at: At, node: Any) -> Optional[At]:
    if _is_own(node) and at.kind is not None:
        return _own_value(at, node.attr)
    if isinstance(node, ast.Attribute):
        return _one(list(_settings(node.attr, at)))
    if isinstance(node, ast.Subscript):
        key = node.slice
        text = key.value if isinstance(key, ast.Constant) and type(key.value) is str else None
        return _one(list(_settings(text, at))) if text else None
    if at.function is not None:
        if node.id in parameters(at.function):
            if _stored(at.function, node.id):
                return None
            given = list(arguments(at, node.id))
            return _one(given, together=True) if given else _left_alone(at, node.id)
        found = _of_loop(at, node.id)
        if found is not None:
            return found
        if _stored(at.function, node.id):
            values = [value for target, value in _assignments(at.function) if _named(target, node.id)]
            once = len(values) == 1 and _stored(at.function, node.id) == 1
            return at._replace(node=values[0], name=node.id) if once else None
    return _of_module(at, node.id)


def _of_loop(at: At, name: str) -> Optional[At]:
    """What a comprehension around the expression goes over: `for n in sizes`."""
    inside = (ast.ListComp, ast.GeneratorExp, ast.DictComp)
    for node in texts.own_nodes(at.function) if at.function is not None else ():
        if not isinstance(node, inside) or not any(part is at.node for part in ast.walk(node)):
            continue
        for loop in node.generators:
            names = [part.id for part in ast.walk(loop.target) if isinstance(part, ast.Name)]
            if name in names:
                return at._replace(node=loop.iter, name=f"for {ast.unparse(loop.target)} in")
    return None


def _named(target: Any, name: str) -> bool:
    return isinstance(target, ast.Name) and target.id == name


def _stored(function: Any, name: str) -> int:
    """How often a function gives the name another value."""
    names = (part for part in ast.walk(function) if isinstance(part, ast.Name) and part.id == name)
    return sum(not isinstance(part.ctx, ast.Load) for part in names)


def _own_value(at: At, attribute: str) -> Optional[At]:
    found = []
    for function in (part for part in at.kind.body if isinstance(part, FUNCTION)):
        for target, value in _assignments(function):
            if _is_own(target) and target.attr == attribute:
                found.append(At(value, at.file, function, at.kind))
    return found[0] if len(found) == 1 else None


def parameters(function: Any) -> list[str]:
    arguments = function.args
    return [one.arg for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]


def arguments(at: At, parameter: str) -> Iterator[At]:
    """What the program's calls of the function, or of the class, give for a parameter."""
    maker = at.kind.name if at.kind is not None and at.function.name == "__init__" else at.function.name
    if at.kind is not None and at.function.name != "__init__":
        return
    names = parameters(at.function)
    place = names.index(parameter) - (1 if at.kind is not None else 0)
    for file, function, kind, call in texts.calls_of(maker):
        value = _argument(call, parameter, place)
        if value is None and any(given.arg is None for given in call.keywords):  # **settings
            yield At(call, file, function, kind)
            continue
        value = value if value is not None else _default(at.function, parameter)
        if value is not None:
            own = file if value in call.args or any(value is g.value for g in call.keywords) else at.file
            yield At(value, own, function, kind, parameter)


def _left_alone(at: At, parameter: str) -> Optional[At]:
    """The default of an argument where the program's text has no call that could give another, as where a
    command line makes the class."""
    value = _default(at.function, parameter)
    return At(value, at.file, None, None, parameter, True) if isinstance(value, ast.Constant) else None


def _default(function: Any, parameter: str) -> Optional[ast.expr]:
    arguments = function.args
    names = [one.arg for one in (*arguments.posonlyargs, *arguments.args)]
    with_default = dict(zip(reversed(names), reversed(arguments.defaults)))
    keyword = dict(zip([one.arg for one in arguments.kwonlyargs], arguments.kw_defaults))
    return with_default.get(parameter) or keyword.get(parameter)


def _settings(name: str, at: At) -> Iterator[At]:
    """Where a member of settings gets its value: `Config(name=...)`, `{"name": ...}`, a field of a class,
    `cfg.name = ...`."""
    for file, tree in texts.user_trees():
        for node in texts.nodes_of(tree):
            if isinstance(node, ast.Call):
                for given in node.keywords:
                    if given.arg == name and isinstance(given.value, ast.Constant):
                        yield At(given.value, file, None, None, name)
                option = texts.default_of_option(node, name)
                if option is not None:
                    yield At(option, file, None, None, name, True)
            elif isinstance(node, ast.Dict):
                for key, value in zip(node.keys, node.values):
                    if isinstance(key, ast.Constant) and key.value == name:
                        yield At(value, file, None, None, name)
            elif isinstance(node, ast.ClassDef):
                for part in node.body:
                    target = getattr(part, "target", None) or (getattr(part, "targets", None) or [None])[0]
                    if _named(target, name) and getattr(part, "value", None) is not None:
                        yield At(part.value, file, None, None, name)  # type: ignore[attr-defined]
        for target, found in _everywhere(tree, file):
            own = _is_own(target)
            if isinstance(target, ast.Attribute) and target.attr == name and (not own or found.kind is None):
                yield found._replace(name=name)


def _of_module(at: At, name: str) -> Optional[At]:
    """The one assignment of a name in its module, or in the one that it is imported from."""
    tree = texts.tree_of(at.file)
    for _ in range(2):
        if tree is None:
            return None
        values = [value for target, value in _assignments(tree) if _named(target, name)]
        if values:
            return At(values[0], at.file, None, None, name) if len(values) == 1 else None
        source = texts.imported_from(tree, name)
        at, tree = (at._replace(file=source), texts.tree_of(source)) if source else (at, None)
    return None


def classes_of_call(function: str, keyword: str, place: int) -> list[Step]:
    """The same for the number of classes that the innermost line gives a function, one_hot(x, n)."""
    for frame in scope.live_frames():
        tree, line = calls.tree_of(frame.f_code), scope.line_of(frame)
        first = calls.first_line(frame.f_code) - 1
        for node in texts.nodes_of(tree) if tree is not None else ():
            if not isinstance(node, ast.Call) or called(node) != function:
                continue
            number = _argument(node, keyword, place)
            if node.lineno + first <= line <= (node.end_lineno or 0) + first and number is not None:
                return _of_frame(frame, number, first)
        if places.is_user(frame.f_code):
            return []
    return []


def _of_frame(frame: FrameType, node: ast.expr, first: int) -> list[Step]:
    file, line = frame.f_code.co_filename, node.lineno + first
    if not isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
        return []
    step: Step = {"text": ast.unparse(node), "file": file, "line": line}
    whole = texts.tree_of(file) if places.is_user(frame.f_code) else None
    for function, kind in texts.functions(whole) if whole is not None else ():
        named = function is not None and function.name == frame.f_code.co_name
        if named and function.lineno <= line <= (function.end_lineno or 0):
            last = list(_followed(At(node, file, function, kind)))[-1]
            return [step] if last.node is node else [step, _step(last)]
    return [step]


def made_by_library(library: dict[str, Any]) -> list[Step]:
    """The same for a model of a library: what the program gives the setting, else the call that makes it."""
    setting, maker = str(library.get("setting") or ""), str(library.get("maker") or "")
    given = _one(list(_keywords(setting))) if setting else None
    if given is not None:
        return [_step(given)]
    calls = [At(call, file, function, kind) for file, function, kind, call in texts.calls_of(maker)]
    loaded = [
        At(call, file, function, kind)
        for file, function, kind, call in texts.calls_of("from_pretrained")
        if isinstance(call.func, ast.Attribute) and getattr(call.func.value, "id", "") == maker
    ]
    made = _one(loaded if _is_loaded(maker) else [*calls, *loaded]) if maker else None
    if made is None:
        return []
    return [{**_step(made), "text": setting} if setting else _step(made, whole=True)]


def _is_loaded(maker: str) -> bool:
    """A model of that name was read from a folder (Hugging Face notes which): no call has made it anew."""
    for _, root in owners.roots():
        for module in root.modules():
            config = scope.members(module.__dict__.get("config"))
            if type(module).__name__ == maker and config.get("_name_or_path"):
                return True
    return False


def keyword(name: str) -> Optional[Step]:
    """The one value that the program's calls give an argument of this name."""
    given = _one(list(_keywords(name)))
    return None if given is None else _step(given)


def _keywords(name: str) -> Iterator[At]:
    for file, tree in texts.user_trees():
        for node in texts.nodes_of(tree):
            for given in node.keywords if isinstance(node, ast.Call) else ():
                if given.arg == name:
                    yield At(given.value, file, None, None, name)
