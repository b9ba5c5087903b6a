"""Every row's bad call in other sizes and dtypes, with the guard and without: run as a script.

Each variant runs in a child of its own, since PyTorch itself may read where it should not. One JSON object a
line: contract, variant, what PyTorch says of the call and of the healed one, what the guard makes of it, and
whether the row alone objects.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import warnings

import torch
from conformance import BAD_CALLS
from conftest import Fault, load_adapter

REFUSES, PARTLY, AT_ENDS, SILENT = range(4)


def column(plans):
    """What the contracts table says of the CPU, by row."""
    return {row.id: row.row.contents.on_cpu for plan in plans for row in plan.rows}


def base_calls(adapter):
    """The violations of the bad calls: (contract, operation, values by name, scan)."""
    found = {}

    def keep(violation):
        key = (violation["contract"], violation["op"], violation["overload"])
        found.setdefault(key, violation)
        return Fault(violation["contract"])

    adapter.install(keep)
    for call in BAD_CALLS:
        try:
            call.run()
        except (IndexError, RuntimeError):
            pass
    adapter.uninstall()
    return list(found.values())


def tensors_of(values):
    for name, value in values.items():
        if isinstance(value, torch.Tensor):
            yield name, None, value
        elif isinstance(value, (list, tuple)):
            for at, item in enumerate(value):
                if isinstance(item, torch.Tensor):
                    yield name, at, item


def replaced(values, name, at, tensor):
    if at is None:
        return {**values, name: tensor}
    items = list(values[name])
    items[at] = tensor
    return {**values, name: items}


def variants(values):
    """The call with one dimension cut to 0 or 1, alone or in all that share it; other dims and dtypes."""
    yield "as it is", values
    for name, at, tensor in tensors_of(values):
        label = name if at is None else f"{name}[{at}]"
        yield f"{label} empty", replaced(values, name, at, tensor.new_empty(0))
        yield f"{label} one more dimension", replaced(values, name, at, tensor.unsqueeze(0))
        yield f"{label} without dimensions", replaced(values, name, at, tensor.reshape(-1)[:1].squeeze())
        for dtype in (torch.float64, torch.int32, torch.int16):
            if dtype != tensor.dtype:
                yield f"{label} {dtype}", replaced(values, name, at, tensor.to(dtype))
        for dim, length in enumerate(tensor.shape):
            for size in (0, 1):
                if size < length:
                    cut = tensor.narrow(dim, length - size, size).clone()
                    yield f"{label} dim {dim} = {size}", replaced(values, name, at, cut)
    for length in sorted({length for _, _, t in tensors_of(values) for length in t.shape}):
        for size in (0, 1):
            together = values
            for name, at, tensor in tensors_of(values):
                for dim, own in enumerate(tensor.shape):
                    if own == length and size < own:
                        tensor = tensor.narrow(dim, own - size, size).clone()
                together = replaced(together, name, at, tensor)
            yield f"every {length} = {size}", together


def copied(values):
    def one(value):
        if isinstance(value, torch.Tensor):
            return value.clone()
        return [one(item) for item in value] if isinstance(value, (list, tuple)) else value

    return {name: one(value) for name, value in values.items()}


def outcome(call, values):
    """The results and what the arguments are afterwards, as text; or the exception."""
    values = copied(values)
    names = [a.name for a in call._schema.arguments if not a.kwarg_only]
    rest = {name: value for name, value in values.items() if name not in names}
    torch.manual_seed(1)
    try:
        result = call(*(values[name] for name in names), **rest)
    except Exception as error:
        return {
            "raised": type(error).__name__,
            "text": str(error).rstrip(),
            "fault": isinstance(error, Fault),
        }
    written = [values[a.name] for a in call._schema.arguments if a.alias_info is not None]
    return {"raised": None, "text": repr((result, written))}


def healed(values, plan):
    """The values that no row objects to; None where they cannot be had."""
    from trapline._guard import on_host, trial

    found, _, _ = trial._heal_all(plan, list(values.values()), on_host.violated)
    return None if found is None else dict(zip(plan.names, found))


def look(adapter, plan, violation, label, values, seen, out):
    from trapline._guard import on_host

    call = plan.call
    line = {"contract": violation["contract"], "op": f"{plan.op}.{plan.overload}", "variant": label}
    line["objects"] = [
        row.id for row in plan.rows if on_host.violated(list(values.values()), row) is not None
    ]
    line["plain"] = outcome(call, values)
    os.write(out, (json.dumps(line) + "\n").encode())
    mended = healed(values, plan)
    line["healed"] = None if mended is None else outcome(call, mended)
    adapter.set_enabled(True)
    line["guarded"] = outcome(call, values)
    line["says"] = seen[0].get("torch_says") if seen else None
    line["found"] = seen[0]["contract"] if seen else None
    os.write(out, (json.dumps(line) + "\n").encode())


def main():
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    from trapline._guard.plan import make_plans
    from trapline._library import paths

    adapter, plans = load_adapter(), make_plans(paths.library())
    calls = base_calls(adapter)
    seen = []
    adapter.install(lambda violation: seen.append(violation) or Fault(violation["contract"]))
    adapter.set_enabled(False)
    for violation in calls:
        if column(plans)[violation["contract"]] == SILENT:
            continue
        plan = next(p for p in plans if (p.op, p.overload) == (violation["op"], violation["overload"]))
        for label, values in variants(violation["args"]):
            read, write = os.pipe()
            child = os.fork()
            if child == 0:
                signal.signal(signal.SIGSEGV, signal.SIG_DFL)  # torch's own death is no sanitizer's affair
                try:
                    os.close(read)
                    look(adapter, plan, violation, label, values, seen, write)
                except BaseException as error:
                    print(f"{violation['contract']} {label} did not run: {error!r}", file=sys.stderr)
                finally:
                    os._exit(0)
            os.close(write)
            with open(read, "rb") as pipe:
                lines = pipe.read().decode().splitlines()
            os.waitpid(child, 0)
            if lines:
                print(lines[-1], flush=True)


if __name__ == "__main__":
    main()
