"""The layer that owns the table that was indexed, or that produced the logits of a loss."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional

from trapline._fault.model import noted
from trapline._fault.program import owners, scope
from trapline._fault.program.owners import Owner

# Operations whose valid range is the number of rows of args[...].
_TABLE_ARGUMENT = {
    "embedding": "weight",
    "_embedding_bag": "weight",
    "_embedding_bag_forward_only": "weight",
    "index": "self",
    "index_select": "self",
    "take": "self",
    "gather": "self",
}
# Operations whose valid range is the class dimension of args["self"].
_LOSSES = ("nll_loss", "multi_margin_loss", "gather")
# Nodes that compute their output's last or channel dimension with a weight: a walk never goes past one.
_PRODUCERS = ("Addmm", "Mm", "Bmm", "Baddbmm", "Addmv", "Mv", "Dot", "Linear", "MkldnnLinear", "Convolution",
              "MkldnnConvolution", "SlowConv", "ThnnConv", "MkldnnRnn", "Embedding", "Einsum")  # fmt: skip
# Nodes between a parameter and the operation that uses it.
ADAPTERS = ("T", "Transpose", "View", "UnsafeView", "Reshape", "Permute", "ToCopy", "Expand", "Unsqueeze",
             "Squeeze",
             "Alias", "Clone", "WeightNorm", "WeightNormInterface", "Slice", "Select", "Detach")  # fmt: skip
_WIDTHS = ("out_features", "out_channels", "num_embeddings")
# Constructor arguments worth showing, in the order of the call, for modules that need no others.
_CALLS = {
    "Linear": ("in_features", "out_features"),
    "Embedding": ("num_embeddings", "embedding_dim"),
    "EmbeddingBag": ("num_embeddings", "embedding_dim"),
}
_MAX_NODES = 2000

Layer = dict[str, Any]


def layer_facts(
    op: str, args: dict[str, Any], scan: dict[str, Any], weights: Sequence[Any] = ()
) -> Optional[Layer]:
    """The layer behind a violation of `op` (ATen base name); None when it was not found without doubt.

    `weights`: in compiled code there is no autograd graph; these are the tensors that the compiler's own
    graph says the scores are computed with.
    """
    size = scan.get("hi")
    if scan.get("is_float") or not isinstance(size, int):
        return None
    argument = _TABLE_ARGUMENT.get(op)
    if argument is not None:
        table = args.get(argument)
        along_rows = args.get("dim", 0) == 0 and scan.get("list_position") in (None, -1, 0)
        layer = table_layer(table, size) if scope.is_tensor(table) and along_rows else None
        if layer is not None:
            return layer
        layer = _behind_rows(table, size, args.get("dim")) if scope.is_tensor(table) else None
        if layer is not None:
            return layer
    if op.startswith("scatter"):
        return _of_running_module(size)
    if op.startswith(_LOSSES):
        scores = args.get("self")
        if weights:
            return _layer_of_weights(weights, size)
        known = scope.is_tensor(scores) or isinstance(scores, noted.Gone)
        if known and _class_dimension(op, scores, args, size):
            return logits_layer(scores, size)
    return None


def _behind_rows(table: Any, size: int, dim: Any) -> Optional[Layer]:
    """The parameter of which whole rows were taken before, `profile.index_select(0, place)`, where another
    dimension of it is indexed now."""
    node = getattr(table, "grad_fn", None)
    if node is None or node_kind(node) != "IndexSelect" or type(dim) is not int or not table.dim():
        return None
    leaf = getattr(node.next_functions[0][0], "variable", None)
    taken = getattr(node, "_saved_dim", None)
    if not scope.is_tensor(leaf) or type(taken) is not int or leaf.dim() != table.dim():
        return None
    at, taken = dim % table.dim(), (taken if taken < leaf.dim() else taken - (1 << 64)) % leaf.dim()
    owned = owners.owners_of(leaf)
    if at == taken or leaf.shape[at] != size or len(owned) != 1:
        return None
    name = f"{owned[0].path}.{owned[0].parameter}" if owned[0].path else owned[0].parameter
    return {"name": name, "type": "Parameter", "attribute": f"shape[{at}]", "value": size, "certain": True}


def _of_running_module(size: int) -> Optional[Layer]:
    """The only parameter with as many rows as what is written to, or the only layer with as many outputs, in
    the module that runs: a guess."""
    for frame in scope.live_frames():
        module = frame.f_locals.get("self")
        if not owners.is_module(module) or type(module).__module__.startswith("torch."):
            continue
        parameters = [p for p in module._parameters.values() if p is not None and p.dim() == 2]
        found = [p for p in parameters if p.shape[0] == size and p.shape[1] != size]
        parts = [part for part in module._modules.values() if _width_of(part, "out_features") == size]
        if len(found) + len(parts) != 1:
            return None
        owned = owners.owners_of(found[0] if found else parts[0].weight)
        if len(owned) != 1:
            return None
        if found:
            return _parameter_layer(owned[0], size, certain=False)
        return _layer(owned[0], "out_features", size, certain=False)
    return None


def _class_dimension(op: str, scores: Any, args: dict[str, Any], size: int) -> bool:
    if op == "gather":  # a cross entropy written by hand
        dimension = args.get("dim")
        return isinstance(dimension, int) and dimension % max(scores.dim(), 1) in (1, scores.dim() - 1)
    return size == (scores.shape[1] if scores.dim() > 1 else scores.shape[0] if scores.dim() else 0)


def table_layer(table: Any, rows: int) -> Optional[Layer]:
    """The nn.Embedding (or the parameter) whose memory the table is."""
    found = owners.owners_of(table)
    embedding = [owner for owner in found if getattr(owner.module, "num_embeddings", None) == rows]
    if embedding:
        return (
            _layer(embedding[0], "num_embeddings", rows)
            | _siblings(embedding[0].module)
            | _partner(embedding[0])
        )
    for owner in found:  # tied weights that only the output layer holds, or a bare nn.Parameter
        parameter = owner.module._parameters.get(owner.parameter)
        if parameter is not None and parameter.dim() and parameter.shape[0] == rows:
            attribute = _width_attribute(owner.module, rows)
            if attribute is not None:
                return _layer(owner, attribute, rows)
            return _parameter_layer(owner, rows)
    if not found and table.requires_grad and table.is_leaf and table.dim() and table.shape[0] == rows:
        name = owners.variable_of(table)
        if name is not None:
            return {
                "name": name,
                "type": "Parameter",
                "attribute": "shape[0]",
                "value": rows,
                "certain": True,
            }
    return None


def _siblings(table: Any) -> Layer:
    """Tables of the same shape in one list with this one: perhaps parts of one table (a vocabulary that is
    split over ranks), or tables of columns.
    """
    import torch

    weight = getattr(table, "weight", None)
    if not scope.is_tensor(weight):
        return {}
    lists = (part for _, root in owners.roots() for part in root.modules())
    for held in (part for part in lists if isinstance(part, (torch.nn.ModuleList, torch.nn.ModuleDict))):
        tables = list(held.children())
        if any(one is table for one in tables):
            alike = [one for one in tables if type(one) is type(table) and one.weight.shape == weight.shape]
            if len(alike) == len(tables) > 1:
                return {"siblings": {"count": len(tables), "rows": len(tables) * int(weight.shape[0])}}
    return {}


def _partner(owner: Owner) -> Layer:
    """The one other table beside this one in its module, where that has more rows."""
    import torch

    for part in (part for _, root in owners.roots() for part in root.modules()):
        if isinstance(part, (torch.nn.ModuleList, torch.nn.ModuleDict)):
            continue
        tables = {n: m for n, m in part.named_children() if isinstance(m, torch.nn.Embedding)}
        if len(tables) == 2 and any(one is owner.module for one in tables.values()):
            name, other = next((n, m) for n, m in tables.items() if m is not owner.module)
            if other.num_embeddings > owner.module.num_embeddings:
                above = owner.name.rpartition(".")[0]
                return {"partner": {"name": f"{above}.{name}".lstrip("."), "rows": other.num_embeddings}}
    return {}


def _layer(owner: Owner, attribute: str, value: int, certain: bool = True) -> Layer:
    layer = {
        "name": owner.name,
        "type": owner.type,
        "attribute": attribute,
        "value": value,
        "certain": certain,
    }
    arguments = _CALLS.get(owner.type, ())
    if attribute in arguments:
        layer["arguments"] = ", ".join(f"{name}={getattr(owner.module, name)}" for name in arguments)
    return layer


def _parameter_layer(owner: Owner, value: int, certain: bool = True) -> Optional[Layer]:
    parameter = owner.module._parameters.get(owner.parameter)
    shape = [int(size) for size in parameter.shape] if parameter is not None else []
    is_inner = "bias" in owner.parameter or owner.parameter.startswith(("weight_ih", "weight_hh"))
    if value not in shape or is_inner:  # nobody indexes a bias, or the gates of an LSTM
        return None
    name = f"{owner.path}.{owner.parameter}" if owner.path else owner.parameter
    attribute = f"shape[{shape.index(value)}]"
    return {"name": name, "type": "Parameter", "attribute": attribute, "value": value, "certain": certain}


def _width_attribute(module: Any, value: int) -> Optional[str]:
    for attribute in _WIDTHS:
        width = _width_of(module, attribute)
        if isinstance(width, int) and not isinstance(width, bool) and width == value:
            return attribute
    return None


def _has_width(module: Any) -> bool:
    return any(isinstance(_width_of(module, attribute), int) for attribute in _WIDTHS)


def _width_of(module: Any, attribute: str) -> Any:
    """As it is stored: a property of a library may warn, or compute."""
    return scope.members(module).get(attribute)


def logits_layer(scores: Any, classes: int) -> Optional[Layer]:
    """The layer that computed the class scores: by the autograd graph, else the only one of that width. Of
    several of one list the first, and how they are called `together`."""
    node = getattr(scores, "grad_fn", None)
    if node is not None:
        candidates, complete = _walk(node, classes)
        if candidates:
            candidate = candidates[0]
            candidate["certain"] = complete and len(candidates) == 1
            together = _of_one_list([one["name"] for one in candidates])
            return {**candidate, "together": together} if together else candidate
        return None  # the graph was seen and says that no layer has this width
    return _only_layer_of_width(classes)


def _of_one_list(names: list[str]) -> str:
    """ "heads.0 to heads.3", where several of one list have made the scores together."""
    parts = [name.rpartition(".") for name in names]
    if len(names) < 2 or len({list_of for list_of, _, _ in parts}) > 1 or not parts[0][0]:
        return ""
    if not all(number.isdigit() for _, _, number in parts):
        return ""
    numbers = sorted(int(number) for _, _, number in parts)
    return f"{parts[0][0]}.{numbers[0]} to {parts[0][0]}.{numbers[-1]}"


def node_kind(node: Any) -> str:
    """ "Addmm" of an AddmmBackward0."""
    name = node.name if isinstance(node, noted.NotedNode) else type(node).__name__
    head, separator, _ = name.rpartition("Backward")
    return head if separator else name


def _leaf_parameters(node: Any) -> list[Any]:
    """Parameters that reach a node directly or through views and casts only."""
    found: list[Any] = []
    stack = [(following, 0) for following, _ in node.next_functions if following is not None]
    while stack:
        current, depth = stack.pop()
        variable = getattr(current, "variable", None)
        if variable is not None:
            found.append(variable)
        elif depth < 6 and node_kind(current) in ADAPTERS:
            stack += [
                (following, depth + 1) for following, _ in current.next_functions if following is not None
            ]
    return found


def _walk(start: Any, classes: int) -> tuple[list[Layer], bool]:
    """Layers that feed the scores with no other weighted operation between; False: some path is unclear."""
    found: dict[str, Layer] = {}
    complete = True
    queue, visited = [start], {start}
    while queue:
        if len(visited) > _MAX_NODES:
            return list(found.values()), False
        node = queue.pop(0)
        if getattr(node, "beyond", False):
            complete = False
            continue
        producer = node_kind(node).startswith(_PRODUCERS)
        owned = _owners_of_node(node)
        layer = _layer_of_owners(owned, classes, producer)
        if layer is not None:
            found.setdefault(layer["name"], layer)
            continue
        if producer or any(_has_width(owner.module) and _kind_is_opaque(node) for owner in owned):
            complete = (
                False  # another weighted operation of another width: what lies behind it is not the head
            )
            continue
        for following, _ in node.next_functions:
            if following is not None and following not in visited:
                visited.add(following)
                queue.append(following)
    return list(found.values()), complete


def _kind_is_opaque(node: Any) -> bool:
    """True for a user's autograd.Function, which may hold a whole layer."""
    if isinstance(node, noted.NotedNode):
        return node.opaque
    return not type(node).__module__.startswith("torch") and not type(node).__name__.endswith("Backward0")


def _owners_of_node(node: Any) -> list[Owner]:
    if node_kind(node) in ADAPTERS and not any(
        getattr(following, "variable", None) is not None for following, _ in node.next_functions
    ):
        return []
    result: list[Owner] = []
    for parameter in _leaf_parameters(node):
        result += [owners.unparametrized(owner) for owner in owners.owners_of(parameter)]
    return result


def _layer_of_owners(owned: list[Owner], classes: int, producer: bool) -> Optional[Layer]:
    outputs = [owner for owner in owned if getattr(owner.module, "num_embeddings", None) is None]
    for owner in outputs + [owner for owner in owned if owner not in outputs]:  # tied: the output layer first
        attribute = _width_attribute(owner.module, classes)
        if attribute is not None:
            return _layer(owner, attribute, classes)
    if producer:
        for owner in owned:
            if not _has_width(owner.module):
                layer = _parameter_layer(owner, classes)
                if layer is not None:
                    return layer
    return None


def _layer_of_weights(weights: Sequence[Any], classes: int) -> Optional[Layer]:
    found: dict[str, Layer] = {}
    for weight in weights:
        if weight.grad_fn is not None:  # the scores themselves, which another compiled part computed
            return logits_layer(weight, classes)
        owned = [owners.unparametrized(owner) for owner in owners.owners_of(weight)]
        layer = _layer_of_owners(owned, classes, True)
        if layer is not None:
            found.setdefault(layer["name"], layer)
    if not found:
        return None
    layer = next(iter(found.values()))
    layer["certain"] = len(found) == 1
    return layer


def _only_layer_of_width(classes: int) -> Optional[Layer]:
    """Without a graph (no_grad, evaluation): the only module of that output width, said to be a guess."""
    found: list[Owner] = []
    visited = set()
    for variable, root in owners.roots():
        for name, module in root.named_modules():
            if id(module) in visited:
                continue
            visited.add(id(module))
            attribute = _width_attribute(module, classes)
            if attribute in ("out_features", "out_channels"):
                found.append(Owner(module, attribute, owners.clean_name(name), variable))
    if len(found) != 1:
        return None
    return _layer(found[0], found[0].parameter, classes, certain=False)
