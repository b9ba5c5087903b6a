"""The device of ``trapline run --cpu``: tensors on ``cuda:N`` that lie in host memory (`src/cpu_cuda`).

It has to be there before ``torch._C`` is: PyTorch asks once, then, whether there is CUDA. `_boot` calls
`before_core` and `before_cuda` when the program's ``import torch`` comes by.
"""

from __future__ import annotations

import ctypes
import os
import sys
from typing import TYPE_CHECKING

from trapline._cpu import operations
from trapline._extension import compiler, finder
from trapline._library import options, paths
from trapline._library.say import say

if TYPE_CHECKING:
    from types import ModuleType

PRODUCT = compiler.Product(
    "trapline_cpu_cuda", "cpu_cuda", ("",), "stand-in for CUDA", False, 60, operations.generated
)
_OLDEST = (2, 9)  # the first whose device guard and hooks have all that is overridden

device: ModuleType | None = None
notes: list[str] = []  # why there is none


def before_core() -> None:
    """While torch is being imported, and ``torch._C`` is about to be."""
    global device
    why = _unfit()
    if why:
        notes.append(why)
        return
    device, said = finder.find(PRODUCT, _load, "mistakes of devices are not seen", waits=True)
    notes.extend(said)
    if device is not None:
        device.set_device_count(_devices())
        if not _run_late(device, options.cpu_late()):
            options.take_device_for_host()  # the guard checks its memory at once


def before_cuda() -> None:
    """When ``torch.cuda`` is about to be imported."""
    if device is not None:
        from trapline._cpu import bindings

        bindings.install(device)


def _run_late(device: ModuleType, seed: str) -> bool:
    """Operations are put on the streams of a driver made of the CPU, and the guard's checks with them.

    False where nobody asks for that, and, with a line on stderr, where it cannot be.
    """
    if not seed:
        return False
    try:
        if not seed.isdigit():
            raise ValueError(f"TRAPLINE_CPU_LATE is {seed!r}: set it to a number, the seed, or leave it out")
        driver = os.path.join(os.path.dirname(paths.library_path()), "libfake_cuda.so")
        device.run_late(driver, int(seed))
    except (ValueError, ImportError, RuntimeError) as error:
        line = str(error).splitlines()[0].replace("trapline: --cpu: ", "")
        say(f"--cpu: work is done at once: {line}")
        return False
    options.use_driver(driver)
    return True


def _unfit() -> str:
    version = getattr(sys.modules.get("torch"), "__version__", "")
    if compiler.torch_release() < _OLDEST:
        return f"torch {version} is too old for the stand-in for CUDA: mistakes of devices are not seen"
    from torch.version import cuda, hip

    if cuda is not None or hip is not None:
        return (
            f"torch {version} is a build for GPUs: mistakes of devices are not seen: "
            "install the CPU build of torch to see them"
        )
    return ""


def _devices() -> int:
    """As many as the user names or the launcher starts ranks here, else one."""
    wanted = options.cpu_devices()
    if wanted.isdigit():
        return int(wanted)
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    ranks = os.environ.get("LOCAL_WORLD_SIZE", "")
    if visible and visible != "-1":
        return len(visible.split(","))
    return int(ranks) if ranks.isdigit() and int(ranks) > 0 else 1


def _load(path: str) -> ModuleType:
    folder = os.path.join(os.path.dirname(sys.modules["torch"].__file__ or ""), "lib")
    for name in ("libtorch_cpu.so", "libtorch_python.so"):  # found by the names under which they link
        ctypes.CDLL(os.path.join(folder, name))
    return finder.load(path, PRODUCT)
