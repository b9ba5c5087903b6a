"""Numbers that the batching of graphs has raised: torch_geometric adds the nodes of the graphs before to each
attribute with `index` in its name (Data.__inc__), and keeps in the batch what it added.
"""

from __future__ import annotations

from typing import Any, Optional

from trapline._fault.data.values import number
from trapline._fault.program import holders, scope

_MAX = 1 << 22  # elements


def raised_facts(tensor: Any, scan: dict[str, Any]) -> Optional[dict[str, Any]]:
    """`attribute`, and `value`, what the bad number is in its own graph, where all of them would be valid
    without what was added."""
    if not tensor.dim() or not 0 < tensor.numel() <= _MAX or tensor.is_floating_point():
        return None
    for frame in holders.user_frames():
        for _, held in scope.variables(frame):
            store, slices, raised = _parts(held)
            for name, value in store.items():
                if not scope.is_tensor(value) or not _is_same(value, tensor):
                    continue
                if value.dim() == 2:
                    return _wrongly_raised(name, value, tensor, scan, slices, raised)
                before = _before(value, slices.get(name), raised.get(name))
                if before is None or not bool(((before >= scan["lo"]) & (before < scan["hi"])).all()):
                    return None
                return {"attribute": name, "value": number(before.reshape(-1)[scan["first"]].item())}
    return None


def _parts(held: Any) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    store = scope.members(scope.members(held).get("_store"))  # a batch sets its own attributes there
    mapping, slices, raised = store.get("_mapping"), store.get("_slice_dict"), store.get("_inc_dict")
    if type(mapping) is dict and type(slices) is dict and type(raised) is dict:
        return mapping, slices, raised
    return {}, {}, {}


def _wrongly_raised(
    name: str, value: Any, tensor: Any, scan: dict[str, Any], slices: dict[str, Any], raised: dict[str, Any]
) -> Optional[dict[str, Any]]:
    """Edges of which each is right in its own graph, where what was added is not the number of the nodes of
    the graphs before, in the attribute that has as many rows as may be indexed."""
    row = next((part for part in value.detach() if _begins(tensor, part)), None)
    cuts, added = slices.get(name), raised.get(name)
    before = None if row is None else _before(row, cuts, added)
    if before is None or scan["first"] >= len(before):
        return None
    for other, held in slices.items():
        if (
            other == name
            or not scope.is_tensor(held)
            or len(held) != len(cuts)
            or int(held[-1]) != scan["hi"]
        ):
            continue
        nodes = (held[1:] - held[:-1]).cpu()
        owner = (cuts[1:] - cuts[:-1]).cpu()
        inside = bool(((before >= 0) & (before < nodes.repeat_interleave(owner))).all())
        if inside and not bool((held[:-1].cpu() == added.cpu()).all()):
            own = number(before.reshape(-1)[scan["first"]].item())
            return {"attribute": name, "value": own, "nodes_of": other}
    return None


def _begins(tensor: Any, edges: Any) -> bool:
    """Layers put the loops of all nodes behind the edges."""
    count = edges.numel()
    alike = 0 < count <= tensor.numel() and edges.dtype == tensor.dtype and tensor.dim() == 1
    return alike and bool((edges.cpu() == tensor.detach()[:count].cpu()).all())


def _is_same(value: Any, tensor: Any) -> bool:
    if value is tensor:
        return True
    if value.dim() == 2 and tensor.dim() == 1:
        return any(_begins(tensor, part) for part in value.detach())
    alike = value.shape == tensor.shape and value.dtype == tensor.dtype
    return alike and bool((value.detach().cpu() == tensor.detach().cpu()).all())


def _before(value: Any, slices: Any, raised: Any) -> Any:
    """The numbers as each graph has them; None where nothing was added, or it was not by graph."""
    if not scope.is_tensor(slices) or not scope.is_tensor(raised) or raised.dim() != 1:
        return None
    if value.dim() != 1 or len(slices) != len(raised) + 1 or not bool((raised != 0).any()):
        return None
    counts = (slices[1:] - slices[:-1]).cpu()
    if int(counts.sum()) != len(value) or bool((counts < 0).any()):
        return None
    return value.detach().cpu() - raised.cpu().repeat_interleave(counts)
