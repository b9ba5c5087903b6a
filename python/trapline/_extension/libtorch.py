"""Compile the guard for C++ programs against a libtorch, with nothing but a C++ compiler: no Python torch.

``python3 .../trapline/_build_libtorch.py --libtorch DIR`` keeps it in the user's cache, where the library
that ``trapline run`` preloads finds it by the sizes of libtorch_cpu.so and libc10.so.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import sys
import tempfile

from trapline._extension import compiler, recipe
from trapline._library import paths

# The guard without its Python part. The host comes last: it installs the hooks when the library is loaded.
_PARTS = ("", "cpp")


def build(libtorch: str, out_dir: str) -> str:
    """Compile the guard for a libtorch into ``out_dir``, unless it is there; return its path.

    ``libtorch`` is a folder with ``include`` and ``lib``, or a path of its libtorch_cpu.so.

    Raises:
        BuildError: with one line that says what is missing and what to do.
    """
    root = _root(libtorch)
    path = os.path.join(out_dir, adapter_name(root))
    stamp, digest = path + ".sources", _digest(root)
    try:
        os.makedirs(out_dir, exist_ok=True)
        if os.path.isfile(path) and os.path.isfile(stamp):
            with open(stamp, encoding="utf-8") as file:
                if file.read() == digest:
                    return path
        _compile(root, path)
        with open(stamp, "w", encoding="utf-8") as file:
            file.write(digest)
    except OSError as error:
        raise compiler.BuildError(
            f"trapline: libtorch: cannot write to {out_dir}: {error.strerror}: name another folder with --out"
        ) from None
    return path


def adapter_name(root: str) -> str:
    """The file name that src/guard/preload/preload.c looks for."""
    sizes = [os.path.getsize(os.path.realpath(_library(root, name))) for name in ("torch_cpu", "c10")]
    return f"trapline_libtorch-{sizes[0]:x}-{sizes[1]:x}.so"


def _library(root: str, name: str) -> str:
    return os.path.join(root, "lib", f"lib{name}.so")


def _root(libtorch: str) -> str:
    root = os.path.abspath(libtorch)
    if os.path.isfile(root):
        root = os.path.dirname(os.path.dirname(os.path.realpath(root)))
    for wanted in ("lib/libtorch_cpu.so", "lib/libc10.so", "include/ATen/core/Tensor.h"):
        if not os.path.isfile(os.path.join(root, wanted)):
            raise compiler.BuildError(
                f"trapline: libtorch: {root} has no {wanted}: name the folder that holds include/ and lib/ "
                "of the libtorch that the program is built with"
            )
    return root


def _units() -> list[str]:
    """What the one translation unit includes."""
    names = compiler.sources_in(compiler.source_dir(), _PARTS)
    return [f"guard/{name}" for name in names if name.endswith(".cpp")]


def _digest(root: str) -> str:
    digest = hashlib.sha256(" ".join([root, *_flags(root), compiler._library_dir()]).encode())
    for folder, parts in ((compiler.source_dir(), _PARTS), (paths.include_dir(), ("trapline",))):
        for name in compiler.sources_in(folder, parts):
            with open(os.path.join(folder, name), "rb") as file:
                digest.update(file.read())
    return digest.hexdigest()


def _flags(root: str) -> list[str]:
    """The flags that have to agree with how this libtorch was built."""
    release = (2, 10)
    for header in ("torch/headeronly/version.h", "torch/csrc/api/include/torch/version.h"):
        text = _text(os.path.join(root, "include", header))
        parts = [re.search(rf"#define TORCH_VERSION_{part} (\d+)", text) for part in ("MAJOR", "MINOR")]
        if all(parts):
            release = tuple(int(part.group(1)) for part in parts if part)  # type: ignore[assignment]
            break
    config = _text(os.path.join(root, "share", "cmake", "Torch", "TorchConfig.cmake"))
    abi = re.search(r"_GLIBCXX_USE_CXX11_ABI=(\d)", config)
    flags = ["-std=c++20" if release >= (2, 10) else "-std=c++17"]
    return [*flags, f"-D_GLIBCXX_USE_CXX11_ABI={abi.group(1) if abi else 1}", *compiler._FLAGS]


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def _compile(root: str, path: str) -> None:
    """Compile and link in a folder beside ``path``, then rename: nobody ever sees half a guard."""
    command, libraries = compiler._compiler(), compiler._library_dir()
    if not os.path.isfile(os.path.join(libraries, "libtrapline_native.so")):
        raise compiler.BuildError(
            f"trapline: libtorch: no libtrapline_native.so in {libraries}: it was not built with Trapline: "
            "install libdw-dev and libbackward-cpp-dev and build Trapline again"
        )
    with tempfile.TemporaryDirectory(prefix=".building-", dir=os.path.dirname(path)) as work:
        os.symlink(os.path.abspath(compiler.source_dir()), os.path.join(work, "guard"))
        unit = os.path.join(work, "unit.cpp")
        with open(unit, "w", encoding="utf-8") as file:
            file.writelines(f'#include "{name}"\n' for name in _units())
        api = os.path.join(root, "include", "torch", "csrc", "api", "include")
        includes = ["-I", work, "-I", paths.include_dir(), "-isystem", os.path.join(root, "include")]
        includes += ["-isystem", api]
        product, log = os.path.join(work, "product.so"), recipe.log_of(path)
        torch = ["-L" + os.path.join(root, "lib"), "-ltorch_cpu", "-lc10"]
        own = ["-L" + libraries, "-ltrapline_native", "-ltrapline", "-Wl,-rpath," + libraries]
        recipe.run([*command, *_flags(root), "-c", unit, "-o", work + "/unit.o", *includes], log, "libtorch")
        recipe.run([*command, "-shared", "-o", product, work + "/unit.o", *torch, *own], log, "libtorch")
        os.replace(product, path)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python3 _build_libtorch.py", description="Compile the guard for C++ programs with a libtorch."
    )
    parser.add_argument("--libtorch", required=True, metavar="DIR", help="the libtorch: include/ and lib/")
    parser.add_argument("--out", metavar="DIR", help="folder for the guard (default: the user's cache)")
    arguments = parser.parse_args()
    try:
        print(build(arguments.libtorch, arguments.out or paths.cache_dir()))
    except compiler.BuildError as error:
        print(error, file=sys.stderr)
        return 2
    return 0
