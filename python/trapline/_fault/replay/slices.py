"""What a variable of a live frame was made of: its statements run again, as far back as their input is gone.

A variable that was not bound anew since, and that holds finite numbers, is taken as it is. Any other is made
again by the statement that bound it, of what that statement was given, and so on; what a function was given
comes from the frame that called it, where that holds the same object.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable, Iterator
from types import FrameType
from typing import Any, Callable, Optional

from trapline._fault.program import calls, places, scope
from trapline._fault.replay import rewrite
from trapline._fault.replay.rewrite import CannotRun
from trapline._fault.replay.session import Session
from trapline._library.say import debug

_DEPTH = 32
_MAX_MEMBERS = 256  # of an object or a mapping
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_MISSING = object()
_ARGUMENT = "__trapline_argument"


class Slices:
    """`is_good`: of a value that is taken as it is; `is_given` is told of others that no statement made."""

    def __init__(
        self, session: Session, is_good: Callable[[Any], bool], is_given: Callable[[str, Any], None]
    ) -> None:
        self._session, self._is_good, self._is_given = session, is_good, is_given
        self._frames: dict[int, _Text] = {}
        self._made: dict[tuple[int, str, int], Any] = {}

    def value_of(self, *are_it: Callable[[Any], bool]) -> Any:
        """Makes an object again that live frames hold: the first of these. Raises CannotRun."""
        failed: Exception = CannotRun("nothing holds it")
        for frame, path in (one for is_it in are_it for one in holders(is_it)):
            text = self._text(frame)
            if text.binding(path, text.now) is None:
                continue
            try:
                return self._made_at(frame, path, text.now, _DEPTH)
            except Exception as error:  # what a caller holds may be made again
                failed = error
        raise failed

    def argument_of(self, function: str) -> Any:
        """Makes again what the innermost line gives a function first, where no variable holds that. Raises
        CannotRun."""
        frame = next((one for one in scope.live_frames() if not _is_torch(one)), None)
        running = None if frame is None else self._text(frame).running()
        found = [node for node in ast.walk(running or ast.Pass()) if _calls(node, function)]
        if frame is None or len(found) != 1 or not found[0].args:
            raise CannotRun(f"nothing says what {function} was given")
        return self._given(frame, found[0].args[0], _DEPTH)

    def receiver_of(self, method: str) -> Any:
        """Makes again what a method is called of in a line that runs, where no variable holds it:
        `(loss + penalty).backward()`. Raises CannotRun."""
        for frame in scope.live_frames():
            running = None if _is_torch(frame) else self._text(frame).running()
            found = [
                node.func.value
                for node in ast.walk(running or ast.Pass())
                if isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr == method
            ]
            if len(found) == 1 and not isinstance(found[0], ast.Name):
                return self._given(frame, found[0], _DEPTH)
        raise CannotRun(f"no line calls {method} of an expression")

    def _given(self, frame: FrameType, argument: ast.expr, depth: int) -> Any:
        statement = ast.Assign(targets=[ast.Name(id=_ARGUMENT, ctx=ast.Store())], value=argument)
        ast.copy_location(statement, argument)
        ast.copy_location(statement.targets[0], argument)
        return self._run(frame, statement, [], _ARGUMENT, depth - 1)

    def _text(self, frame: FrameType) -> _Text:
        known = self._frames.get(id(frame))
        if known is None:
            known = self._frames[id(frame)] = _Text(frame)
        return known

    def _made_at(self, frame: FrameType, path: str, line: int, depth: int) -> Any:
        """What the statement made that bound `path` last before a line."""
        text = self._text(frame)
        found = text.binding(path, line)
        if found is None or depth == 0:
            raise CannotRun(f"nothing says what {path} was")
        statement, contexts = found
        key = (id(frame), path, statement.lineno)
        if key not in self._made:
            self._made[key] = self._run(frame, statement, contexts, path, depth - 1)
        value = self._made[key]
        return self._session.own.takes(value.copy()) if type(value) in (list, dict, set) else value

    def _run(
        self, frame: FrameType, statement: ast.stmt, contexts: list[ast.expr], path: str, depth: int
    ) -> Any:
        text = self._text(frame)
        variables: dict[str, Any] = {**frame.f_globals, **self._session.helpers}
        read = [statement, *contexts]
        members = _reads_of_members(read)
        for name in _reads(read):
            inside = [path for path in members if path.startswith(f"{name}.")]
            value = self._before(frame, name, statement.lineno, depth, inside)
            if value is not _MISSING:
                variables[name] = value
        for attribute in members:  # `self.pred`, where it was made in this function
            if text.binding(attribute, statement.lineno) is not None:
                holder, _, member = attribute.rpartition(".")
                value = self._before(frame, attribute, statement.lineno, depth)
                if holder in variables and value is not _MISSING:
                    self._session.helpers[rewrite.KEEP](variables[holder], member, value)
        node: ast.stmt = statement
        if contexts:
            node = ast.With(items=[ast.withitem(context_expr=one) for one in contexts], body=[statement])
            ast.copy_location(node, statement)
        made = self._session.run(_copy(node), frame.f_code, text.owns, variables)
        if path in made:
            return made[path]
        holder, _, member = path.rpartition(".")
        if holder in made:
            return self._session.helpers[rewrite.GET](made[holder], member)
        raise CannotRun(f"it did not make {path}")

    def _before(self, frame: FrameType, path: str, line: int, depth: int, members: Iterable[str] = ()) -> Any:
        """What `path` was when the statement on a line ran, which reads these `members` of it."""
        text = self._text(frame)
        value = _held(frame, path)
        changed = text.is_bound_between(path, line, text.now)
        if not changed:
            if value is _MISSING and text.binding(path, line) is None:
                return _MISSING
            # What a function has taken out of a mapping is no longer in it.
            is_whole = type(value) is not dict or text.binding(path, line) is None
            is_good = self._is_good(value) and (
                text.binding(path, line) is None
                or all(self._is_good(_held(frame, member)) for member in members)
            )
            if value is not _MISSING and is_good and is_whole:
                return self._session.copy(value)
        try:
            if text.binding(path, line) is not None:
                return self._made_at(frame, path, line, depth)
            outer = self._outer(frame, path, value, depth)
        except Exception as error:
            debug(f"replay: {path} of line {line}: {error!r}")
            if changed and isinstance(error, RuntimeError):  # it may run with gradients
                raise
            outer = _MISSING
        if changed or outer is not _MISSING or value is _MISSING:  # where it is missed after all, that raises
            return outer
        copied = self._session.copy(value)
        self._is_given(path, copied)
        return copied

    def _outer(self, frame: FrameType, path: str, value: Any, depth: int) -> Any:
        """What the function was given: made again where a caller bound the same object, or where
        its call says what that was."""
        # Also of one that was bound anew: to itself, by a hook that has nothing to do.
        if scope.is_tensor(value):
            for outer, name in holders(lambda one: one is value, after=frame):
                text = self._text(outer)
                if text.binding(name, text.now) is not None:
                    return self._made_at(outer, name, text.now, depth)
        caller = _caller(frame)
        given = None if caller is None else _argument(frame, path, self._text(caller).running())
        if caller is None or given is None or depth == 0:
            return _MISSING
        return self._given(caller, given, depth)


def _caller(frame: FrameType) -> Optional[FrameType]:
    outer = frame.f_back
    while outer is not None and places.is_own(outer.f_code.co_filename):
        outer = outer.f_back
    return outer


def _argument(frame: FrameType, name: str, running: Optional[ast.stmt]) -> Optional[ast.expr]:
    """What the statement that runs in the caller gives for a parameter, where it calls the function once."""
    code = frame.f_code
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    found = [node for node in ast.walk(running or ast.Pass()) if _calls(node, code.co_name)]
    if name not in names or len(found) != 1:
        return None
    call = found[0]
    for word in call.keywords:
        if word.arg == name:
            return word.value
    bound = names[:1] in (("self",), ("cls",)) and isinstance(call.func, ast.Attribute)
    place = names.index(name) - int(bound)
    if any(isinstance(one, ast.Starred) for one in call.args) or not 0 <= place < len(call.args):
        return None
    return call.args[place]


def _calls(node: ast.AST, name: str) -> bool:
    called = node.func if isinstance(node, ast.Call) else None
    return name in (getattr(called, "attr", None), getattr(called, "id", None))


def holders(
    is_it: Callable[[Any], bool], after: Optional[FrameType] = None
) -> Iterator[tuple[FrameType, str]]:
    """(frame, variable) that hold an object, innermost frame first; also `self.loss`, `output.loss`."""
    started = after is None
    for frame in scope.live_frames():
        if not started:
            started = frame is after
            continue
        if _is_torch(frame):
            continue
        inside = []
        for name, value in list(frame.f_locals.items()):
            if not name.isidentifier():
                continue
            if is_it(value):
                yield frame, name
                continue
            held = value if type(value) is dict else scope.members(value)
            member = next((key for key, one in list(held.items())[:_MAX_MEMBERS] if is_it(one)), None)
            if isinstance(member, str):
                inside += [(frame, f"{name}.{member}")] if held is not value else []
                inside.append((frame, name))
        yield from inside


def _is_torch(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] == "torch"


class _Text:
    """The function of a frame, as its source says it."""

    def __init__(self, frame: FrameType) -> None:
        tree = rewrite.tree_of(frame.f_code)
        self.now = scope.line_of(frame)
        node = next((n for n in tree.body if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))), None)
        whole = frame.f_code.co_name == "<module>" or node is None or len(tree.body) > 1
        self.body: list[ast.stmt] = tree.body if whole else node.body  # type: ignore[union-attr]
        parameters = [] if whole else [p for p in ast.walk(node.args) if isinstance(p, ast.arg)]  # type: ignore[union-attr]
        self.owns = rewrite.owned([*parameters, *self.body])

    def binding(self, path: str, line: int) -> Optional[tuple[ast.stmt, list[ast.expr]]]:
        """The statement that bound it last before a line, and the contexts of the `with` around it."""
        for block, entered, loop in reversed(self._around(line)):
            for one in reversed(block):
                if (one.end_lineno or one.lineno) < line and _binds(one, path):
                    return _inside_with(one, path, entered)
            if loop is not None and _binds(loop, path):  # an earlier turn of it may have made it
                return None
        return None

    def _around(self, line: int) -> list[tuple[list[ast.stmt], list[ast.expr], Optional[ast.stmt]]]:
        """The blocks around a line, outermost first, each with the contexts it is in, and its loop."""
        out: list[tuple[list[ast.stmt], list[ast.expr], Optional[ast.stmt]]] = [(self.body, [], None)]
        while True:
            block, contexts, _ = out[-1]
            inner = next((one for one in block if one.lineno <= line <= (one.end_lineno or 0)), None)
            body = None if inner is None else _block_with(inner, line)
            if inner is None or body is None:
                return out
            if isinstance(inner, ast.With):
                contexts = [*contexts, *(item.context_expr for item in inner.items)]
            out.append((body, contexts, inner if isinstance(inner, (ast.For, ast.While)) else None))

    def running(self) -> Optional[ast.stmt]:
        """The innermost statement that the line stands in."""
        held = [
            node
            for root in self.body
            for node in _statements(root)
            if node.lineno <= self.now <= (node.end_lineno or 0)
        ]
        return min(held, key=lambda node: (node.end_lineno or 0) - node.lineno, default=None)

    def is_bound_between(self, path: str, first: int, last: int) -> bool:
        """By a statement from the line `first` to before the line `last`."""
        return any(
            first <= node.lineno < last and _binds_itself(node, path)
            for root in self.body
            for node in _statements(root)
        )


def _inside_with(
    statement: ast.stmt, path: str, contexts: list[ast.expr]
) -> Optional[tuple[ast.stmt, list[ast.expr]]]:
    """Of a `with` the statement in it."""
    while isinstance(statement, ast.With):
        contexts = [*contexts, *(item.context_expr for item in statement.items)]
        inner = next((one for one in reversed(statement.body) if _binds(one, path)), None)
        if inner is None:
            return None
        statement = inner
    return statement, contexts


def _block_with(statement: ast.stmt, line: int) -> Optional[list[ast.stmt]]:
    if isinstance(statement, _FUNCTIONS):
        return None
    for name in ("body", "orelse", "finalbody"):
        block = getattr(statement, name, None)
        if isinstance(block, list) and any(o.lineno <= line <= (o.end_lineno or 0) for o in block):
            return block
    for handler in getattr(statement, "handlers", []):
        if handler.lineno <= line <= (handler.end_lineno or 0):
            return list(handler.body)
    return None


def _statements(root: ast.AST) -> Iterator[Any]:
    """Statements, and those inside them, but not those of functions."""
    if isinstance(root, ast.stmt):
        yield root
    if not isinstance(root, _FUNCTIONS):
        for node in ast.iter_child_nodes(root):
            if isinstance(node, (ast.stmt, ast.excepthandler)):
                yield from _statements(node)


def _binds(statement: ast.stmt, path: str) -> bool:
    return any(_binds_itself(node, path) for node in _statements(statement))


def _binds_itself(node: Any, path: str) -> bool:
    """The statement, without those inside it."""
    if isinstance(node, ast.Expr):
        return path in rewrite.written_by(node.value)
    if isinstance(node, ast.Assign):
        targets = list(node.targets)
    elif isinstance(node, (ast.AugAssign, ast.AnnAssign)):
        targets = [node.target] if node.value is not None else []
    elif isinstance(node, (ast.For, ast.AsyncFor)):
        targets = [node.target]
    elif isinstance(node, ast.With):
        targets = [item.optional_vars for item in node.items if item.optional_vars is not None]
    else:
        targets = []
    return any(_is_target(target, path) for target in targets)


def _is_target(target: ast.AST, path: str) -> bool:
    if isinstance(target, ast.Name):
        return target.id == path
    if isinstance(target, ast.Attribute):
        return ast.unparse(target) == path
    if isinstance(target, ast.Subscript):  # an entry of it
        return ast.unparse(target.value) == path
    if isinstance(target, (ast.Tuple, ast.List)):
        return any(_is_target(one, path) for one in target.elts)
    return isinstance(target, ast.Starred) and _is_target(target.value, path)


def _reads(nodes: list[Any]) -> list[str]:
    """Variables that are read, or written into."""
    out: dict[str, None] = {}
    for root in nodes:
        for node in ast.walk(root):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                out[node.id] = None
            elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                out[node.target.id] = None
    return list(out)


def _reads_of_members(nodes: list[Any]) -> list[str]:
    found = (node for root in nodes for node in ast.walk(root) if isinstance(node, ast.Attribute))
    return list({ast.unparse(n): None for n in found if isinstance(n.ctx, ast.Load) and _is_path(n)})


def _is_path(node: ast.expr) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def _held(frame: FrameType, path: str) -> Any:
    if path in frame.f_locals:
        return frame.f_locals[path]
    if "." not in path:
        return _MISSING
    found = calls.resolve(ast.parse(path, mode="eval").body, frame)
    return _MISSING if found is calls.MISSING else found


def _copy(node: ast.stmt) -> ast.stmt:
    """The rewriting changes what it is given."""
    return copy.deepcopy(node)
