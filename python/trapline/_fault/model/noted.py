"""What the guard noted at a call on the device, in the place of what is gone when its fault is told."""

from __future__ import annotations

from typing import Any, Optional

from trapline._fault.data import values


class NotedNode:
    """A node of autograd's graph as it was at the call; looks like a node to whoever walks the graph.

    ``beyond``: the graph goes on here, but was not noted.
    """

    __slots__ = ("beyond", "name", "next_functions", "opaque", "variable")

    def __init__(self, full_name: str, variable: Any, beyond: bool = False) -> None:
        self.name = full_name.partition("<")[0].rpartition("::")[2]
        self.opaque = self.name == "PyNode" or not full_name.startswith("torch::")
        self.variable = variable
        self.beyond = beyond
        self.next_functions: tuple[tuple[NotedNode, int], ...] = ()


class Gone:
    """A tensor that no longer exists: its shape, and the node that computed it."""

    def __init__(self, shape: list[int], node: Optional[NotedNode]) -> None:
        self.shape = tuple(shape)
        self.grad_fn = node

    def dim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)


def graph_of(noted: list[list[Any]]) -> Optional[NotedNode]:
    """The root of a noted graph: ``[[class, [places; -1: not noted], parameter or None], ...]``."""
    nodes = [NotedNode(name, variable) for name, _, variable in noted]
    beyond = NotedNode("torch::beyond", None, beyond=True)
    for node, (_, places, _) in zip(nodes, noted):
        node.next_functions = tuple((nodes[place] if place >= 0 else beyond, 0) for place in places)
    return nodes[0] if nodes else None


def completed(violation: dict[str, Any], predicate: Optional[int]) -> dict[str, Any]:
    """The violation with stand-ins for arguments that are gone, and without content that cannot be read or is
    not what was checked (a tensor of inference mode counts no writes: the scan has to agree)."""
    graphs, shapes = violation.get("graphs") or {}, violation.get("shapes") or {}
    arguments = dict(violation.get("args") or {})
    for name, noted in graphs.items():
        if arguments.get(name) is None and name in shapes:
            arguments[name] = Gone(shapes[name], graph_of(noted))
    tensor = violation.get("tensor")
    if not violation.get("contained"):
        tensor = None  # the context is lost: nothing of the device can be read any more
    if tensor is not None and violation.get("unsure") and not _agrees(tensor, violation["scan"], predicate):
        tensor = None
    return dict(violation, args=arguments, tensor=tensor)


def _agrees(tensor: Any, scan: dict[str, Any], predicate: Optional[int]) -> bool:
    first = scan.get("first", -1)
    if not 0 <= first < tensor.numel() <= values.MAX_ELEMENTS:
        return False
    content = tensor.detach().reshape(-1).cpu()
    bad = values.bad_mask(content, scan, predicate)
    if bad is None or not bool(bad[first]) or int(bad.sum()) != scan.get("bad"):
        return False
    return values.number(content[first].item()) == values.number(scan.get("value"))
