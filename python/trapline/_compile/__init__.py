"""The guard inside graphs that torch.compile lowers.

Inductor turns an embedding, an index or a loss into loops of its own: no operation is dispatched, so the
guard's hooks see nothing. Therefore every operation of the contracts table gets, while Inductor traces, a
check in front of it (:mod:`.table`): a call of ``trapline::check`` (:mod:`.op`) whose result takes the
argument's place. A pass over the traced graph (:mod:`.graph`) tells each check which line of the program it
stands for (:mod:`.sites`) and leaves out what it does not need.

All of it hangs on one function, ``torch._inductor.compile_fx.compile_fx``: the checks are in the table of
decompositions and in the list of passes that this function is called with, for this one compilation. Neither
Inductor's table nor its configuration is changed, so torch.export and AOTInductor stay as they are.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import os
import sys
from typing import Any, Callable

from trapline._library.say import debug

_original: Callable[..., Any] | None = None
_PASS = "joint_custom_pre_pass"


def install() -> None:
    """Guard what Inductor compiles from now on. ``torch._inductor.compile_fx`` must be imported."""
    global _original
    module = sys.modules["torch._inductor.compile_fx"]
    if _original is not None:
        return
    from trapline._compile import early_decompositions, lowering, op

    op.define()
    try:
        lowering.install()
    except Exception as error:
        debug(f"compile: compiled code calls the checks through the dispatcher: {error!r}")
    early_decompositions.install()
    _original = module.compile_fx
    module.compile_fx = _guarded(_original)


def uninstall() -> None:
    """Compile without checks again. The checks of graphs that are compiled already let everything pass."""
    global _original
    module = sys.modules.get("torch._inductor.compile_fx")
    if _original is not None and module is not None:
        module.compile_fx = _original
        from trapline._compile import early_decompositions

        early_decompositions.uninstall()
    _original = None


def _guarded(original: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(original)

    @functools.wraps(original)
    def compile_fx(*args: Any, **kwargs: Any) -> Any:
        from trapline._compile import early_decompositions

        try:
            call = signature.bind(*args, **kwargs)
            _add_checks(call.arguments)
        except Exception as error:
            debug(f"compile: a graph is compiled without checks: {error!r}")
            return original(*args, **kwargs)
        with early_decompositions.tracing():
            return original(*call.args, **call.kwargs)

    return compile_fx


def _add_checks(arguments: dict[str, Any]) -> None:
    """Put the checks into the arguments of one call of compile_fx."""
    from torch._inductor import config
    from torch._inductor.decomposition import select_decomp_table
    from torch._inductor.virtualized import V

    from trapline._compile import graph, sites, table

    decompositions = arguments.get("decompositions")
    if isinstance(decompositions, table.Guarded) or getattr(V, "aot_compilation", False):
        return  # compile_fx calling itself; or AOTInductor, whose product runs without Python
    patches = dict(arguments.get("config_patches") or {})
    with config.patch(patches):
        if decompositions is None:
            decompositions = select_decomp_table()
        users = getattr(config, _PASS)
    patches[_PASS] = graph.new_pass(users, sites.register(arguments["model_"]), identity())
    arguments["config_patches"] = patches
    arguments["decompositions"] = table.guarded(decompositions)
    arguments["inner_compile"] = _lowering_without_table(arguments.get("inner_compile"))


def _lowering_without_table(inner_compile: Callable[..., Any] | None) -> Callable[..., Any]:
    """The table is for the trace. Lowering asks it which operations must not be left to the dispatcher, and
    the cache on disk would have to pickle it: both get Inductor's own."""
    if inner_compile is None:
        inner_compile = sys.modules["torch._inductor.compile_fx"].compile_fx_inner

    @functools.wraps(inner_compile)
    def lower(*args: Any, **kwargs: Any) -> Any:
        kwargs.pop("get_decomp_fn", None)
        return inner_compile(*args, **kwargs)

    return lower


@functools.lru_cache(maxsize=1)
def identity() -> bytes:
    """Changes with these files and with the contracts table: cached graphs hold checks made by both."""
    from trapline._library import diagnose

    digest = hashlib.sha256()
    folder = os.path.dirname(os.path.abspath(__file__))
    for name in sorted(os.listdir(folder)):
        if name.endswith(".py"):
            with open(os.path.join(folder, name), "rb") as file:
                digest.update(file.read())
    digest.update(repr(sorted(diagnose.contracts().items())).encode())
    digest.update(diagnose.version().encode())
    return digest.digest()
