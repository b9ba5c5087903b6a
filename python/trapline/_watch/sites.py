"""The sites of a probabilistic program: what Pyro's traces hold while the loss is made."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import suppress
from types import CodeType
from typing import Any, NamedTuple, Optional

import torch

from trapline._fault.program import arisen, calls, scope
from trapline._watch.rows import sample_of

_INNER = ("base_dist", "component_distribution", "mixture_distribution")
_DEPTH = 4


class _Site(NamedTuple):
    name: str
    distribution: Any
    log_prob: Any
    program: Any  # the model or guide that it is a site of


def of_loss(op: str) -> dict[str, Any]:
    """Facts of the first site whose log probability is not finite: `site`, the `origin` of the only `op` of
    its program or of the site itself, and the sample. `op`: what the loss's graph says made it."""
    site = next(_bad_sites(), None)
    if site is None:
        return {}
    parameter = _outside(site.distribution, _DEPTH)
    about: dict[str, Any] = {"name": site.name, "type": type(_innermost(site.distribution)).__name__}
    if parameter is not None:
        about |= {"type": parameter[0], "parameter": parameter[1], "value": parameter[2]}
    codes = [code for function in _functions(site.program) for code in arisen.inside(function)]
    line = _line_of(codes, op) or _line_of(codes, "", site.name)
    return {
        "site": about,
        **({} if line is None else arisen.origin_of(*line)),
        **sample_of(~site.log_prob.detach().isfinite()),
    }


def _bad_sites() -> Iterator[_Site]:
    for frame in scope.live_frames():
        held = frame.f_locals
        for program in ("model", "guide"):
            trace = held.get(f"{program}_trace")
            if not type(trace).__module__.startswith("pyro."):
                continue
            for name, node in list(trace.nodes.items()):
                log_prob = node.get("unscaled_log_prob", node.get("log_prob"))
                is_bad = isinstance(log_prob, torch.Tensor) and not bool(log_prob.isfinite().all())
                if is_bad and node.get("type") == "sample":
                    yield _Site(str(name), node["fn"], log_prob, held.get(program))


def _innermost(distribution: Any) -> Any:
    """What `Independent` and masks are around."""
    for _ in range(_DEPTH):
        inner = getattr(distribution, "base_dist", None)
        if inner is None:
            break
        distribution = inner
    return distribution


def _outside(distribution: Any, depth: int) -> Optional[tuple[str, str, float]]:
    """The class, the parameter and the first number of it that its distribution does not allow."""
    for name, constraint in (getattr(distribution, "arg_constraints", None) or {}).items():
        value = vars(distribution).get(name)
        if not isinstance(value, torch.Tensor):
            continue
        with suppress(Exception):
            allowed = constraint.check(value.detach())
            bad = value.detach()[~allowed] if allowed.shape == value.shape else value.detach().reshape(-1)
            if not bool(allowed.all()):
                return type(distribution).__name__, name, float(bad.reshape(-1)[0])
    for inner in _INNER:
        held = getattr(distribution, inner, None) if depth else None
        found = _outside(held, depth - 1) if held is not None else None
        if found is not None:
            return found
    return None


def _functions(program: Any) -> list[Any]:
    """The user's function, of a module its forward, inside of Pyro's handlers."""
    for _ in range(_DEPTH):
        inner = (
            getattr(program, "fn", None) or getattr(program, "func", None) or getattr(program, "model", None)
        )
        if inner is None or isinstance(program, torch.nn.Module):
            break
        program = inner
    return arisen.functions(program)


def _line_of(codes: list[CodeType], op: str, site: str = "") -> Optional[tuple[CodeType, int]]:
    """The only place of an operation, or of a site."""
    found = []
    for code in codes:
        tree = calls.tree_of(code)
        nodes = [
            node for node, kind in arisen.operations(tree) if (kind == op if op else _is_site(node, site))
        ]
        found += [(code, node.lineno + calls.first_line(code) - 1) for node in nodes]
    return found[0] if len(set(found)) == 1 else None


def _is_site(node: Any, name: str) -> bool:
    given = node.args[:1] if isinstance(node, ast.Call) else []
    return any(isinstance(one, ast.Constant) and one.value == name for one in given)
