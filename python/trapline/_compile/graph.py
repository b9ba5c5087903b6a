"""The pass over Inductor's joint graph: gives each check its line, and takes out what it need not hold."""

from __future__ import annotations

import json
import math
from typing import Any, Callable

import torch
from torch._inductor.custom_graph_pass import CustomGraphPass

from trapline._compile import merge, table
from trapline._compile.sites import Program
from trapline._library import capi

_MAX_OWNERS = 4
_MAX_WALK = 500
# What computes its result's width with a weight: the layer behind scores is not looked for beyond one.
_PRODUCERS = ("mm", "bmm", "baddbmm", "convolution", "linear", "embedding", "_scaled_mm", "mv", "addmv")
_VIEWS = ("permute", "t", "transpose", "view", "reshape", "expand", "unsqueeze", "squeeze", "alias", "slice",
          "convert_element_type")  # fmt: skip

# What fills a tensor with one number, and where that is among its arguments.
_FILLS = {"full": 1, "full_like": 1, "zeros": 0, "zeros_like": 0, "ones": 0, "ones_like": 0}


def new_pass(users: Any, program: Program, identity: bytes) -> CustomGraphPass:
    """The pass for one graph of Dynamo's; ``users``: what the configuration names, which runs first."""
    given = list(users) if isinstance(users, (list, tuple)) else [] if users is None else [users]
    return _Pass(given, program, identity)


class _Pass(CustomGraphPass):
    def __init__(self, users: list[Callable[..., Any]], program: Program, identity: bytes) -> None:
        self._users = users
        self._program = program
        self._identity = identity

    def __call__(self, graph: torch.fx.Graph) -> None:
        for users in self._users:
            users(graph)
        finish(graph, self._program)

    def uuid(self) -> Any:
        """None, which keeps graphs out of the cache, when a pass of the user's has no name for itself."""
        names = [users.uuid() if hasattr(users, "uuid") else None for users in self._users]
        return None if None in names else (b"trapline", self._identity, *names)


def checks_of(graph: torch.fx.Graph) -> list[Any]:
    """The nodes that check."""
    return graph.find_nodes(op="call_function", target=torch.ops.trapline.check.default)


def finish(graph: torch.fx.Graph, program: Program) -> None:
    """All that has to be done to the checks of a traced graph."""
    for node in graph.find_nodes(op="call_function", target=torch.ops.trapline.check_copy.default):
        node.target = torch.ops.trapline.check.default
        with torch._subclasses.fake_tensor.unset_fake_temporarily():
            node.meta["val"] = torch.ops.aten.alias.default(node.args[0].meta["val"])
    for node in checks_of(graph):
        cast = json.loads(node.args[3])["contract"] == table.CAST
        if cast and (_is_finite(node.args[0]) or not _leads_to_index(node)):
            node.replace_all_uses_with(node.args[0])
            graph.erase_node(node)
    checks = set(checks_of(graph))
    merge.merge([node for node in graph.nodes if node in checks])
    for node in checks_of(graph):
        site = json.loads(node.args[3])
        site["program"], site["node"] = program.key, program.node(node.meta.get("stack_trace"))
        others = _needed(node, site)
        # What is a constant need not be made a list of at every call.
        site["numbers"] = [number if isinstance(number, int) else None for number in node.args[2]]
        numbers = [number for number in node.args[2] if not isinstance(number, int)]
        node.args = (node.args[0], others, numbers, json.dumps(site, separators=(",", ":")))


def _needed(node: Any, site: dict[str, Any]) -> list[Any]:
    """The tensors that are there anyway (inputs), those whose elements are read, and the owners.

    A backward pass gets none that it can do without: autograd would watch what was kept for it, and complain
    about a weight that an optimizer changes in between.
    """
    given = list(node.args[1])
    row = table.contract(site["contract"])
    late = row["op"].endswith("backward") or bool(node.meta.get("recompute"))
    kept: list[Any] = []
    scores = None
    for name, entry in _tensors(site["args"]):
        other = given[entry[3]]
        if row["bound"] == capi.BOUND_CLASSES and name == row["bound_arg"]:
            scores = other
        read = name == row["also_arg"] and row["also"] == capi.ALSO_LENGTHS
        if (other.op == "placeholder" and not late) or read:
            kept.append(other)
            entry[3] = len(kept) - 1
        else:
            entry[3] = None
    if scores is not None and not late:
        found = _owners(scores, _classes(scores))
        site["owners"] = list(range(len(kept), len(kept) + len(found)))
        kept += found
    return kept


def _tensors(arguments: list[Any]) -> list[tuple[str, Any]]:
    """Name and entry of the tensors that a check was given."""
    found = []
    for name, entry in arguments:
        for item in entry[1] if entry[0] == "list" else [entry]:
            if item[0] == "tensor" and item[3] is not None:
                found.append((name, item))
    return found


def _classes(scores: Any) -> Any:
    shape = _shape(scores)
    return shape[1] if len(shape) > 1 else shape[0] if shape else None


def _shape(node: Any) -> list[Any]:
    value = node.meta.get("val") if isinstance(node, torch.fx.Node) else None
    return list(value.shape) if isinstance(value, torch.Tensor) else []


def _name(node: Any) -> str:
    target = node.target
    return target._opname if isinstance(target, torch._ops.OpOverload) else getattr(target, "__name__", "")


def _owners(scores: Any, classes: Any) -> list[Any]:
    """Inputs of the graph that are as wide as the scores and compute them: the weights of the last layer.

    In a graph without that layer they are the scores as it gave them.
    """
    found: list[Any] = []
    queue, seen = [scores], {scores}
    while queue and len(seen) < _MAX_WALK and len(found) < _MAX_OWNERS:
        node = queue.pop(0)
        if node.op == "placeholder" and len(_shape(node)) > 1 and _shape(node) == _shape(scores):
            found.append(node)
        if node.op != "call_function":
            continue
        producer = _name(node).endswith(_PRODUCERS)
        weights = [w for w in map(_behind_views, node.all_input_nodes) if w.op == "placeholder"]
        wide = [w for w in weights if classes in _shape(w) and w not in found]
        if producer:
            found += wide[: _MAX_OWNERS - len(found)]
            continue
        for before in node.all_input_nodes:
            if before not in seen:
                seen.add(before)
                queue.append(before)
    return found


def _behind_views(node: Any) -> Any:
    for _ in range(8):
        if node.op != "call_function" or _name(node) not in _VIEWS:
            break
        node = node.all_input_nodes[0]
    return node


def _leads_to_index(cast: Any) -> bool:
    """Do the integers that are made here come to an index of this graph, or leave it?"""
    queue, seen = list(cast.users), set(cast.users)
    while queue:
        node = queue.pop()
        if node.op == "output" or (_is_check(node) and json.loads(node.args[3])["contract"] != table.CAST):
            return True
        value = node.meta.get("val")
        if not isinstance(value, torch.Tensor) or value.dtype.is_floating_point or value.dtype is torch.bool:
            continue
        for user in node.users:
            if user not in seen:
                seen.add(user)
                queue.append(user)
    return False


def _is_finite(node: Any) -> bool:
    """Made in the graph of one number that is written there: Inductor has patterns for such tensors, which a
    check between would hide."""
    for _ in range(8):
        if node.op != "call_function":
            return False
        name = _name(node)
        if name in _FILLS:
            value = node.args[_FILLS[name]] if len(node.args) > _FILLS[name] else None
            return name not in ("full", "full_like") or (
                isinstance(value, (int, float)) and math.isfinite(value)
            )
        if name not in _VIEWS or not node.all_input_nodes:
            return False
        node = node.all_input_nodes[0]
    return False


def _is_check(node: Any) -> bool:
    return node.op == "call_function" and node.target is torch.ops.trapline.check.default
