"""The facts of a host error (docs/facts.md): frames, the tensors of the failing call, the module it ran
in.

Nothing of the user's is called: names are looked up in frames, attributes in the instance dictionaries
of modules and plain objects, items in exact lists, tuples and dictionaries.
"""

from __future__ import annotations

import ast
import dis
import re
from collections import UserDict
from collections.abc import Iterator
from types import CodeType, FrameType
from typing import Any, Optional

from trapline._exceptions import (
    batch_facts,
    checks,
    devices,
    from_worker,
    lengths,
    not_finite,
    raised,
    roles,
    texts,
    worked,
)
from trapline._fault import write
from trapline._fault.data import recorded, values
from trapline._fault.model import positions
from trapline._fault.program import frames, graphs, libraries, owners, scope, source
from trapline._library.say import debug_failure

Facts = dict[str, Any]
_MAX_OPERANDS = 12
_MAX_ITEMS = 8
_MAX_STATEMENT_LINES = 15
_MAX_MESSAGE = 65536
_CHAIN = re.compile(
    r"""[^\W\d]\w*(?:\s*\.\s*[^\W\d]\w*|\[\s*(?:\d+|"[^"\\]*"|'[^'\\]*')\s*\])*""", re.UNICODE
)  # a.b["c"][0].d
_PART = re.compile(r"""\[\s*(\d+|"[^"\\]*"|'[^'\\]*')\s*\]|([^\W\d]\w*)""")
_ATTRIBUTES = (
    "in_features",
    "out_features",
    "in_channels",
    "out_channels",
    "num_features",
    "input_size",
    "hidden_size",
    "embed_dim",
    "num_embeddings",
    "embedding_dim",
    "num_groups",
    "num_channels",
)
_PLUMBING = ("_call_impl", "_wrapped_call_impl")  # nn.Module.__call__: `args` names nothing
_INSIDE_TORCH = re.compile(
    r"[\\/]torch[\\/](?:_(?!tensor\.py)|library\.py|overrides\.py)"
)  # names there are PyTorch's own
_TORCH = re.compile(r"[\\/]torch[\\/]|^<")
_HANDED_ON = ("__torch_function__", "__torch_dispatch__")  # a subclass of Tensor passes the call on
_CAUGHT = re.compile(
    r"Caught (\w+) (?:in|by) .*?\.\nOriginal (Traceback \(most recent call last\):\n.*)", re.S
)
_NO_SUCH_GPU = "CUDA error: invalid device ordinal"
_REMOTE = ("_RemoteTraceback", "RemoteTraceback")  # concurrent.futures and multiprocessing.Pool


def collect(error: BaseException, outer: Optional[BaseException] = None) -> Optional[Facts]:
    """Facts of kind host_error; None when its type is none that PyTorch raises for these. `outer`: what was
    raised from it; the frames that lead to the place where that happened are in its traceback only."""
    name, message = raised.type_name(error), str(error)[:_MAX_MESSAGE]
    caught = _CAUGHT.match(message)
    if caught:
        return texts.from_text(caught.group(2), error, from_worker.facts_of(error))
    cause = error.__cause__
    if type(cause).__name__ in _REMOTE and isinstance(getattr(cause, "tb", None), str):
        return texts.from_text(cause.tb.strip().strip('"').strip() + "\n")
    traced = raised.traced(name, message)
    name, message = raised.unwrapped(name, message)
    if "." in name or error.__traceback__ is None:
        return None
    trace = _joined(error, outer)
    stack = frames.make_stack([(frame.f_code, lasti) for frame, lasti in reversed(trace)])
    if traced:
        return _while_traced(name, message, graphs.with_graph_stack(stack, traced))
    visible = [pair for pair in trace if frames.make_stack([(pair[0].f_code, pair[1])]) != []]
    origin = frames.origin_of(stack)
    facts: Facts = {"kind": "host_error", "exception": name, "message": message, "stack": stack}
    operands: list[Facts] = []
    if origin is not None and len(visible) == len(stack):
        position = max(i for i, frame in enumerate(stack) if frame is origin)
        facts["origin"] = origin
        facts["call"] = _segment(visible[position], position_text=True)
        module = _module(visible)
        if module:
            facts["module"] = module[1]
            with scope.frames_of(error.__traceback__):
                _positions(facts, [frame for frame, _ in reversed(visible)])
        operands, tensors = _operands(visible[position:], module)
        _roles(message, visible[position:], operands, tensors)
        roles.wholes(message, operands, tensors)
        facts["operands"] = operands
        facts["given"] = _given(visible[position])
        _devices(facts, error, outer, visible[position:], tensors)
        if "position" not in facts:
            _around(facts, error, outer, visible, visible[position][0], tensors)
        if "library" not in facts:
            facts["library"] = _libraries([frame for frame, _ in reversed(visible)])
    seen = recorded.watched() if "nan" in facts else None
    if seen is not None:
        facts["watch"] = seen
    facts["process"] = write.process_facts(
        next((o["device"] for o in operands if o["device"] not in ("cpu", "meta")), "cpu")
    )
    return facts


def _joined(error: BaseException, outer: Optional[BaseException]) -> list[tuple[FrameType, int]]:
    trace = raised.frames_in(error.__traceback__)
    around = raised.frames_in(outer.__traceback__) if outer is not None else []
    for position, (frame, _) in enumerate(around):
        if trace and frame is trace[0][0]:
            return around[:position] + trace
    if outer is not None and raised.carries(outer, error):
        return around + trace
    return trace


def _devices(
    facts: Facts,
    error: BaseException,
    outer: Optional[BaseException],
    trace: list[tuple[FrameType, int]],
    tensors: list[Any],
) -> None:
    """Who holds the tensors, where the model is, and which GPU was asked for."""
    whole = [frame for frame, _ in _joined(error, outer)]
    is_joined = outer is not None and whole[0] is not raised.frames_in(error.__traceback__)[0][0]
    operands = facts["operands"]
    with scope.frames_of(outer.__traceback__ if outer is not None and is_joined else error.__traceback__):
        facts.update(devices.describe(whole, operands, tensors))
    text = _segment(trace[0])
    given = [(name, name, tensor) for name, tensor in _tensors(trace[0][0], text)]
    given += [(words, parameter, value) for words, parameter, value in _arguments(text, trace[1:])]
    if len({operand["device"] for operand in operands}) > 1:
        devices.sources(operands, tensors, given)
    if "numpy" in facts["message"]:
        for operand, tensor in zip(operands, tensors):
            operand["requires_grad"] = tensor.requires_grad
    if _NO_SUCH_GPU in facts["message"]:
        facts["gpus"] = devices.asked((pair[0], _segment(pair)) for pair in reversed(trace))


def _positions(facts: Facts, innermost_first: list[FrameType]) -> None:
    """The position table that a text went beyond, and the libraries around it."""
    found = positions.position_facts(innermost_first)
    if found is None:
        return
    facts["position"] = found
    facts["library"] = _libraries(innermost_first)
    sample = positions.longest_sample(innermost_first, found["rows"] - found["offset"])
    if sample is not None:
        facts["sample"] = sample


def _libraries(innermost_first: list[FrameType]) -> Facts:
    around = [
        frame.f_locals["self"] for frame in innermost_first if owners.is_module(frame.f_locals.get("self"))
    ]
    return libraries.facts_of(list(dict.fromkeys(around)), innermost_first)


def _around(
    facts: Facts,
    error: BaseException,
    outer: Optional[BaseException],
    trace: list[tuple[FrameType, int]],
    user: FrameType,
    tensors: list[Any],
) -> None:
    """What the arguments, the data set and the batch tell; nothing where that is not certain."""
    import torch

    longer = outer is not None and len(_joined(error, outer)) > len(_joined(error, None))
    try:
        with torch.no_grad(), scope.frames_of((outer if longer else error).__traceback__):  # type: ignore[union-attr]
            facts.update(not_finite.facts_of(error) or lengths.facts_of(error))
            if "element" in facts:
                return
            indexed = isinstance(error, IndexError)
            facts.update(checks.argument_facts(trace, user, indexed, facts["message"]))
            if "sample" not in facts:
                facts.update(batch_facts.facts_of(facts["message"], tensors))
    except Exception:
        debug_failure("around")


def _while_traced(name: str, message: str, stack: list[frames.Frame]) -> Facts:
    """Facts without operands: the tensors of the trace are made up, and nobody holds them any more."""
    facts: Facts = {"kind": "host_error", "exception": name, "message": message, "stack": stack}
    origin = frames.origin_of(stack)
    if origin is not None:
        facts["origin"] = origin
        facts["call"] = origin["code"][origin.get("column", 1) - 1 : origin.get("end_column")].strip()
    facts["process"] = write.process_facts()
    return facts


def _segment(pair: tuple[FrameType, int], position_text: bool = False) -> str:
    """The source of the failing expression; before Python 3.11 of the statement's first line(s)."""
    frame, lasti = pair
    code = frame.f_code
    shown = frames.make_frame((code, lasti))
    position = frames.position(code, lasti)
    line, end_line, column, end_column = position
    if column is None or end_line is None:
        return shown["code"].strip() if position_text else _statement(code.co_filename, line)
    lines = [
        source.line_text(code.co_filename, n)
        for n in range(line, min(end_line, line + _MAX_STATEMENT_LINES) + 1)
    ]
    if len(lines) == 1 and not lines[0]:
        lines = [shown["code"]]
    raw = [text.encode("utf-8", "surrogatepass") for text in lines]
    if end_line == line:
        return raw[0][column:end_column].decode("utf-8", "replace").strip()
    raw[0] = raw[0][column:]
    if end_line < line + _MAX_STATEMENT_LINES:
        raw[-1] = raw[-1][:end_column]
    return " ".join(part.decode("utf-8", "replace").strip() for part in raw)


def _statement(filename: str, line: int) -> str:
    """A line and those after it, until its brackets are closed."""
    text = source.line_text(filename, line).strip()
    for offset in range(1, _MAX_STATEMENT_LINES):
        if sum(text.count(c) for c in "([{") <= sum(text.count(c) for c in ")]}"):
            break
        text += " " + source.line_text(filename, line + offset).strip()
    return text


def _look_up(frame: FrameType, chain: str) -> Iterator[tuple[str, Any]]:
    """Every value on the way along `a.b["c"]`, with the text that names it."""
    value: Any = None
    name = ""
    for match in _PART.finditer(chain):
        key, attribute = match.groups()
        if not name:
            if attribute in frame.f_locals:
                value = frame.f_locals[attribute]
            elif attribute in frame.f_globals:
                value = frame.f_globals[attribute]
            else:
                return
            name = attribute
        elif attribute:
            found, value = _attribute(value, attribute)
            if not found:
                return
            name += "." + attribute
        else:
            found, value = _item(value, key)
            if not found:
                return
            name += f"[{key}]"
        yield name, value


def _attribute(value: Any, name: str) -> tuple[bool, Any]:
    try:
        members = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return False, None
    if type(members) is not dict or values.is_tensor(value):
        return False, None
    if owners.is_module(value):
        for group in ("_parameters", "_buffers", "_modules"):
            if name in members.get(group, ()):
                return True, members[group][name]
    return (True, members[name]) if name in members else (False, None)


def _item(value: Any, key: str) -> tuple[bool, Any]:
    plain = ast.literal_eval(key)
    if isinstance(value, UserDict):  # transformers' BatchEncoding
        value = object.__getattribute__(value, "__dict__").get("data")
    if isinstance(value, dict) and dict.__contains__(value, plain):
        return True, dict.__getitem__(value, plain)
    if type(value) in (list, tuple) and isinstance(plain, int) and plain < len(value):
        return True, value[plain]
    return False, None


def _tensors(frame: FrameType, text: str) -> Iterator[tuple[str, Any]]:
    for match in _CHAIN.finditer(text):
        if match.start() and text[match.start() - 1] in ".\"'":
            continue
        for name, value in _look_up(frame, match.group()):
            if values.is_tensor(value):
                yield name, value
                break  # its attributes and items are views and methods of the same tensor
            if type(value) in (list, tuple):
                for position, item in enumerate(value[:_MAX_ITEMS]):
                    if values.is_tensor(item):
                        yield f"{name}[{position}]", item


def _operands(
    trace: list[tuple[FrameType, int]], module: Optional[tuple[Any, Facts]]
) -> tuple[list[Facts], list[Any]]:
    """Tensors of the failing call: those that the user named first, under the parameter they arrived in."""
    user, library = trace[0], trace[1:]
    named: dict[int, Facts] = {}
    kept: list[Any] = []  # the tensors, so that identities hold

    def add(name: str, tensor: Any, mine: bool) -> Optional[Facts]:
        if id(tensor) not in named and len(named) < _MAX_OPERANDS:
            named[id(tensor)] = {"name": name, **values.describe(tensor), "user": mine}
            kept.append(tensor)
        return named.get(id(tensor))

    text = _segment(user)
    seen = _storages_where_raised(library)
    words = ((words, tensor) for words, _, tensor in _arguments(text, library))
    for name, tensor in (*_tensors(user[0], text), *words):
        if seen is None or roles.storage(tensor) in seen:
            add(name, tensor, True)
    for frame, lasti in reversed(library):
        if frame.f_code.co_name in _PLUMBING or _INSIDE_TORCH.search(frame.f_code.co_filename):
            continue
        for name, tensor in _tensors(frame, _segment((frame, lasti))):
            operand = add(_qualified(name, frame, module), tensor, False)
            role = name.rpartition(".")[2]
            if operand is not None and ("as" not in operand or ("[" in operand["as"] and "[" not in role)):
                operand["as"] = role
    return list(named.values()), kept


def _given(pair: tuple[FrameType, int]) -> list[Facts]:
    """The tensors that the user's line names, whether they took part or not."""
    seen: dict[int, Facts] = {}
    for name, tensor in list(_tensors(pair[0], _segment(pair)))[:_MAX_OPERANDS]:
        seen.setdefault(id(tensor), {"name": name, **values.describe(tensor)})
    return list(seen.values())


def _roles(
    message: str, trace: list[tuple[FrameType, int]], operands: list[Facts], tensors: list[Any]
) -> None:
    """What the names alone do not say: the tensors in the brackets of a subscript that raised, and the
    parameter that a distribution refuses."""
    parameter, refused = roles.refused_parameter(trace[-1][0])
    deviations = not_finite.deviations(*trace[-1], message)
    if deviations is not None:
        parameter, refused = "std", deviations
    if parameter:
        roles.unmark(operands, parameter)
        roles.mark(operands, tensors, refused, parameter)
        return
    frame, lasti = next((pair for pair in reversed(trace) if not _is_torchs(pair[0])), trace[0])
    inside, outside = roles.indices(_segment((frame, lasti)))
    for names, role in ((outside, "indexed"), (inside, "index")):
        for name in names:
            for _, tensor in _tensors(frame, name):
                roles.mark(operands, tensors, tensor, role)


def _storages_where_raised(library: list[tuple[FrameType, int]]) -> Optional[set[Any]]:
    """What the tensors are in the library's expression that raised: a tensor of the user's that is none of
    them took no part, whatever its size. None: the user's line or PyTorch itself raised."""
    outside = [pair for pair in library if not _is_torchs(pair[0])]
    if not outside:
        return None
    return {roles.storage(tensor) for _, tensor in _tensors(outside[-1][0], _segment(outside[-1]))}


def _is_torchs(frame: FrameType) -> bool:
    return frame.f_code.co_name in _HANDED_ON or _TORCH.search(frame.f_code.co_filename) is not None


def _arguments(text: str, library: list[tuple[FrameType, int]]) -> Iterator[tuple[str, str, Any]]:
    """The user's own words for unnamed arguments, `model(x)` in `criterion(model(x), y)`, and the parameters
    in which they arrived."""
    entered = next((frame for frame, _ in library if frame.f_code.co_name not in _PLUMBING), None)
    try:
        call = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    if entered is None or not isinstance(call, ast.Call):
        return
    parameters = list(entered.f_code.co_varnames[: entered.f_code.co_argcount])
    if parameters[:1] == ["self"]:
        parameters = parameters[1:]
    arguments = [*zip(parameters, call.args), *((word.arg, word.value) for word in call.keywords if word.arg)]
    for parameter, argument in arguments:
        words = ast.get_source_segment(text, argument) or ""
        value = entered.f_locals.get(parameter)
        if _rebinds(entered.f_code, parameter):  # nn.Sequential: `input = module(input)`
            value = None
        if isinstance(argument, (ast.Call, ast.Subscript)) and len(words) <= 40 and values.is_tensor(value):
            yield words, parameter, value


def _rebinds(code: CodeType, parameter: str) -> bool:
    """Whether a function may have given a parameter another value than it came with."""
    stored = (step.argval for step in dis.get_instructions(code) if "STORE_FAST" in step.opname)
    return any(parameter == name or (type(name) is tuple and parameter in name) for name in stored)


def _qualified(name: str, frame: FrameType, module: Optional[tuple[Any, Facts]]) -> str:
    if (
        name.startswith("self.")
        and module
        and frame.f_locals.get("self") is module[0]
        and module[1].get("name")
    ):
        return f"{module[1]['name']}.{name[5:]}"
    return name


def _path(root: Any, wanted: Any) -> Optional[str]:
    """Dotted path of one module inside another, by their `_modules` alone; "" for the root itself."""
    stack, seen = [("", root)], set()
    while stack:
        path, module = stack.pop()
        if module is wanted:
            return owners.clean_name(path)
        if id(module) in seen:
            continue
        seen.add(id(module))
        for name, part in _attribute_dict(module, "_modules").items():
            if part is not None:
                stack.append((f"{path}.{name}" if path else name, part))
    return None


def _attribute_dict(module: Any, name: str) -> dict[str, Any]:
    found = object.__getattribute__(module, "__dict__").get(name)
    return found if isinstance(found, dict) else {}


def _module(trace: list[tuple[FrameType, int]]) -> Optional[tuple[Any, Facts]]:
    """The deepest module that was running, under its name in the outermost module that leads to it."""
    selves = [frame.f_locals["self"] for frame, _ in trace if owners.is_module(frame.f_locals.get("self"))]
    if not selves:
        return None
    deepest = selves[-1]
    name = _path(selves[0], deepest) or ""
    for frame, _ in trace if not name else ():
        for variable, value in list(frame.f_locals.items()):
            path = _path(value, deepest) if variable != "self" and owners.is_module(value) else None
            if path is not None and not name:
                name = path or variable
    members = object.__getattribute__(deepest, "__dict__")
    attributes = {key: members[key] for key in _ATTRIBUTES if type(members.get(key)) is int}
    facts = {"name": name, "type": type(deepest).__name__, "attributes": attributes}
    if worked.is_trained(deepest, [frame for frame, _ in trace]):
        facts["trained"] = True
    return deepest, facts
