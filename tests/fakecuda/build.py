"""Builds the stand-in for CUDA under PyTorch's unmodified CUDA build (docs/cuda-build.md):

    .venv-cuda/bin/python tests/fakecuda/build.py --out build-cuda/fakecuda

``libcudart.so.13``, and ``libcuda.so.1`` as a link to it, so that both faces are one instance; and
``libfake_cuda_kernels.so``, the CPU's kernels for PyTorch's CUDA key. What is up to date is left as it is.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT / "python"))

from trapline._cpu import operations  # noqa: E402
from trapline._extension import compiler  # noqa: E402

# What of the device of --cpu is about operations, and not about being a device.
SHARED = ("asserts.cpp", "dtypes.cpp", "plan.cpp", "defer.cpp", "run.cpp", "whole.cpp")
TORCH = ("c10", "c10_cuda", "torch_cpu", "torch_cuda")


def cuda_headers() -> Path:
    """Those that PyTorch's own dependencies bring."""
    folder = Path(sysconfig.get_paths()["purelib"]) / "nvidia" / "cu13" / "include"
    if not (folder / "crt" / "host_defines.h").is_file():
        raise SystemExit(f"trapline: fakecuda: no headers of CUDA in {folder}: run scripts/cuda_venv.sh")
    return folder


def sources(*folders: Path) -> list[Path]:
    return sorted(
        file for folder in folders for file in folder.iterdir() if file.suffix in (".cpp", ".hpp", ".h")
    )


def cxx() -> list[str]:
    return os.environ.get("CXX", "g++").split()


def up_to_date(product: Path, inputs: list[Path]) -> bool:
    """Notes what the product is made of beside it."""
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in inputs)).hexdigest()
    stamp = product.with_suffix(product.suffix + ".stamp")
    if product.is_file() and stamp.is_file() and stamp.read_text() == digest:
        return True
    stamp.unlink(missing_ok=True)
    product.with_suffix(".new").write_text(digest)
    return False


def finish(product: Path, made: str) -> None:
    os.replace(made, product)
    os.replace(product.with_suffix(".new"), product.with_suffix(product.suffix + ".stamp"))
    print(product)


def build_runtime(out: Path) -> None:
    product, map_file = out / "libcudart.so.13", HERE / "runtime" / "libcudart.map"
    own = sources(ROOT / "src" / "fakecuda", HERE / "runtime")
    kernels = sources(
        ROOT / "src" / "cuda" / "kernels", ROOT / "src" / "checks", ROOT / "include" / "trapline"
    )
    inputs = [*own, *kernels, map_file, Path(__file__)]
    if not up_to_date(product, inputs):
        made = str(product) + ".made"
        flags = ["-std=c++20", "-O2", "-g", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra", "-shared"]
        includes = [
            *("-I", str(ROOT / "include")),
            *("-I", str(ROOT / "src")),
            *("-I", str(ROOT / "src" / "fakecuda")),
            "-isystem",
            str(cuda_headers()),
        ]
        link = ["-Wl,-soname,libcudart.so.13", f"-Wl,--version-script={map_file}", "-pthread", "-ldl"]
        units = [str(path) for path in own if path.suffix == ".cpp"]
        subprocess.run([*cxx(), *flags, *includes, *units, *link, "-o", made], check=True)
        finish(product, made)
    driver = out / "libcuda.so.1"
    if not driver.is_symlink():
        driver.symlink_to(product.name)


def build_kernels(out: Path) -> None:
    product, cpu_cuda = out / "libfake_cuda_kernels.so", ROOT / "src" / "cpu_cuda"
    inputs = [*sources(cpu_cuda, HERE / "kernels"), Path(operations.__file__), Path(__file__)]
    if up_to_date(product, inputs):
        return
    import torch

    library = Path(torch.__file__).parent / "lib"
    units = [HERE / "kernels" / path.name for path in sources(HERE / "kernels") if path.suffix == ".cpp"]
    with tempfile.TemporaryDirectory(prefix=".building-", dir=out) as work:
        for name, text in operations.generated().items():
            (Path(work) / name).write_text(text)
        unit = Path(work) / "unit.cpp"
        names = [*(f"cpu_cuda/{name}" for name in SHARED), *map(str, units)]
        unit.write_text("".join(f'#include "{name}"\n' for name in names))
        includes = ["-I", work, "-I", str(ROOT / "src"), "-I", str(ROOT / "src" / "fakecuda")]
        for folder in [*compiler._torch_includes(), str(cuda_headers())]:
            includes += ["-isystem", folder]
        made = str(product) + ".made"
        link = ["-shared", f"-L{library}", *(f"-l{name}" for name in TORCH), str(out / "libcudart.so.13")]
        command = [*cxx(), *compiler._flags(), str(unit), *includes, *link, "-o", made]
        subprocess.run(command, check=True)
    finish(product, made)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    out = parser.parse_args().out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    build_runtime(out)
    build_kernels(out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
