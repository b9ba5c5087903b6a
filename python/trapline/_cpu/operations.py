"""What PyTorch's own table of operations says of CUDA, as C++ for the device of ``trapline run --cpu``.

``native_functions.yaml`` lies in every wheel, beside torch. It says which operations CUDA has, and whether
the wrapper that PyTorch generates for CUDA wants all tensors on one device, with which words.
"""

from __future__ import annotations

import os
import re
from importlib.util import find_spec

_COMPOSITE = (
    "CompositeExplicitAutograd",
    "CompositeExplicitAutogradNonFunctional",
    "CompositeImplicitAutograd",
)


def generated() -> dict[str, str]:
    """The file that ``src/cpu_cuda/plan.cpp`` includes."""
    return {"operations.inc": "".join(f'{{"{name}", {flags}}},\n' for name, flags in rows(_table()).items())}


def _table() -> str:
    from trapline._extension import compiler

    spec = find_spec("torchgen")
    for folder in (spec.submodule_search_locations or []) if spec is not None else []:
        path = os.path.join(folder, "packaged", "ATen", "native", "native_functions.yaml")
        if os.path.isfile(path):
            with open(path, encoding="utf-8") as file:
                return file.read()
    raise compiler.BuildError(
        "trapline: --cpu: no native_functions.yaml of torchgen beside torch: install PyTorch's own wheel"
    )


def rows(table: str) -> dict[str, str]:
    """Each operation with overload, and its flags of `RowFlag` in ``plan.hpp``, as C++ takes them.

    The file has one form that never varies, so that no reader of YAML is needed, which users may not have.
    """
    entries = {}
    for entry in table.split("\n- func: ")[1:]:
        name = entry.partition("(")[0]
        delegate = re.search(r"^  structured_delegate: (\S+)", entry, re.M)
        entries[name] = (
            _keys(entry),
            delegate.group(1) if delegate else None,
            "\n  structured: True" in entry,
            "\n  device_check: NoCheck" in entry,
        )
    out = {}
    for name, (keys, delegate, structured, unchecked) in entries.items():
        own = entries[delegate][0] if delegate in entries else keys
        flags = []
        if "CUDA" in own or not own.isdisjoint(_COMPOSITE):
            flags.append("kOnDevice")
        if "CUDA" in own and not unchecked:
            flags.append("kChecksDevices")
        if delegate is None and not structured:
            flags.append("kNamedByOverload")
        out[name] = " | ".join(flags) or "0"
    return out


def _keys(entry: str) -> set[str]:
    """The dispatch keys that an operation has kernels of its own for."""
    dispatch = re.search(r"^  dispatch:\n((?:    .*\n|\s*#.*\n)+)", entry, re.M)
    groups = re.findall(r"^    ([\w, ]+):", dispatch.group(1), re.M) if dispatch else []
    keys = {key.strip() for group in groups for key in group.split(",")}
    if "\n  ufunc_inner_loop:" in entry:  # both are made of one expression
        keys |= {"CPU", "CUDA"}
    return keys or {"CompositeImplicitAutograd"}
