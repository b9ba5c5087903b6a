"""Compile what fits one torch and one Python only, with nothing but a C++ compiler: the guard's adapter, and
the device of ``trapline run --cpu``.

The build tree does it by ``python -m trapline._build --out DIR``; :mod:`.finder` calls :func:`build` when it
meets a torch that it has no product for.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import sys
import sysconfig
from typing import TYPE_CHECKING, NamedTuple

from trapline._extension import cache, layout, recipe
from trapline._extension.recipe import WORK, BuildError, Recipe
from trapline._library import options, paths

if TYPE_CHECKING:
    from typing import Callable

__all__ = ["BuildError"]

_FLAGS = ["-O3", "-fno-plt", "-DNDEBUG", "-fPIC", "-fvisibility=hidden", "-w"]
_TORCH_LIBRARIES = ("libc10", "libtorch_cpu", "libtorch", "libtorch_python")


class Product(NamedTuple):
    """One extension module that is compiled for the running torch."""

    module: str  # its name, and how its file's name begins
    room: str  # its folder in src/, and how its sources are included
    parts: tuple[str, ...]  # which folders of the room; "": its own files
    says: str  # what its messages call it
    uses_library: bool  # it links with libtrapline
    seconds: int  # that a compiler takes for it on one core
    generated: Callable[[], dict[str, str]] | None = None  # further files, made from the running torch
    every_python: bool = False  # by the limited API; else it fits one
    every_torch: bool = False

    def source_dir(self) -> str:
        """``TRAPLINE_<ROOM>_SRC``, the source tree's folder, or the installed one."""
        variable, named = options.sources(self.room)
        folder = named or paths.source_dir(self.room)
        if not sources_in(folder, self.parts):
            raise BuildError(
                f"trapline: {self.says}: no sources in {folder}: set {variable} or install Trapline again"
            )
        return folder


GUARD = Product("trapline_guard", "guard", ("", "python"), "guard", True, 25, every_python=True)
# The one part of it that depends on Python's version: how CPython's frames lie in memory.
FRAMES = Product("trapline_frames", "guard", ("python/frames",), "guard", False, 1, every_torch=True)


class Target(NamedTuple):
    """A torch that is not the running one, to build for."""

    build: str  # "2.13.0"
    has_cxx11_abi: bool
    includes: list[str]
    libraries: list[str]  # what the linker is told


_HEADERS = ("types.h", "capi.h", "device.h")  # of include/trapline: what the adapter sees of the library


def source_dir() -> str:
    """The sources of the guard's adapter."""
    return GUARD.source_dir()


def adapter_name(product: Product = GUARD, target: Target | None = None) -> str:
    """The file name of the product for this torch, this Python and these sources."""

    digest = hashlib.sha256()
    folder = product.source_dir()
    headers = [os.path.join(paths.include_dir(), "trapline", name) for name in _HEADERS]
    sources = [os.path.join(folder, name) for name in sources_in(folder, product.parts)]
    for path in [*sources, *(headers if product.uses_library else [])]:
        digest.update(os.path.basename(path).encode())
        with open(path, "rb") as file:
            digest.update(file.read())
    if product.generated is not None:  # from torch, whose version is in the name, by this file
        with open(sys.modules[product.generated.__module__].__file__ or "", "rb") as file:
            digest.update(file.read())
    digest.update("\0".join(_flags(product, target)).encode())
    parts = [product.module]
    if not product.every_torch:
        parts.append(f"torch{target.build if target is not None else torch_build()}")
    soabi = str(sysconfig.get_config_var("SOABI") or sys.implementation.cache_tag)
    parts.append(re.sub(r"^cpython-\d+", "abi3", soabi) if product.every_python else soabi)
    return "-".join([*parts, digest.hexdigest()[:12]]) + ".so"


def build(out_dir: str, product: Product = GUARD) -> str:
    """Compile the product into ``out_dir`` unless it is there already, and return its path.

    Raises:
        BuildError: with one line that says what is missing and what to do.
    """
    wanted = [adapter_name(one) for one in ([product, FRAMES] if product is GUARD else [product])]
    if all(os.path.isfile(os.path.join(out_dir, name)) for name in wanted):
        return os.path.join(out_dir, wanted[0])
    what = recipe_for(out_dir, product)
    try:
        os.makedirs(out_dir, exist_ok=True)
        claim = cache.claim_and_wait(out_dir)
    except OSError as error:
        raise BuildError(
            f"trapline: {product.says}: cannot write to {out_dir}: {error.strerror}: name another folder"
        ) from None
    try:
        recipe.carry_out(what)
    finally:
        claim.release()
    return what.path


def recipe_for(out_dir: str, product: Product = GUARD, target: Target | None = None) -> Recipe:
    """How the product for the running torch, or for ``target``, is made; the guard with its frames.

    Raises:
        BuildError: with one line that says what is missing and what to do.
    """
    _refuse_what_cannot_work(product, target)
    folder = product.source_dir()
    made = {
        "frames.so" if product is FRAMES else "made.so": os.path.join(out_dir, adapter_name(product, target))
    }
    commands, files = _commands(product, target)
    if product is GUARD and target is None:
        made["frames.so"] = os.path.join(out_dir, adapter_name(FRAMES))
        commands = [*_commands(FRAMES, None)[0], *commands]
    return Recipe(made, product.says, {product.room: os.path.abspath(folder)}, files, commands)


def _commands(product: Product, target: Target | None) -> tuple[list[list[str]], dict[str, str]]:
    """What compiles and links, and the files that are written for it."""
    compiler = _compiler()
    names = sources_in(product.source_dir(), product.parts)
    includes = ["-I", WORK, "-I", paths.include_dir()]
    torch_includes: list[str] = []
    if not product.every_torch:
        torch_includes = target.includes if target is not None else _torch_includes()
    for include in [*torch_includes, *python_includes()]:
        includes += ["-isystem", include]
    if product is FRAMES:
        (source,) = (f"{WORK}/{product.room}/{name}" for name in names if name.endswith(".c"))
        out = ["-o", f"{WORK}/frames.so", "-shared", "-s"]
        return [[*compiler, "-x", "c", *_flags(product, target), source, *out, *includes]], {}
    files = dict(product.generated()) if product.generated is not None else {}
    # One translation unit takes a third of the time that they take one by one, since torch's headers are most
    # of it.
    units = [f'#include "{product.room}/{name}"\n' for name in names if name.endswith(".cpp")]
    files["unit.cpp"] = "".join(units)
    flags = _flags(product, target)
    if product.every_python:
        flags += layout.defines(torch_includes[0])
    link = target.libraries if target is not None else _torch_libraries()
    if product.uses_library:  # no path to it: it is loaded before, and found by its name
        link = [*link, "-L" + _library_dir(), "-ltrapline"]
    unit = f"{WORK}/unit.o"
    return [
        [*compiler, *flags, "-c", f"{WORK}/unit.cpp", "-o", unit, *includes],
        [*compiler, "-shared", "-o", f"{WORK}/made.so", unit, *link, *_link_flags()],
    ], files


def sources_in(folder: str, parts: tuple[str, ...]) -> list[str]:
    """The sources in the named parts of a room, part by part, as paths from its folder."""
    found = []
    for part in parts:
        try:
            names = sorted(os.listdir(os.path.join(folder, part)))
        except OSError:
            return []
        found += [os.path.join(part, name) for name in names if name.endswith((".cpp", ".hpp", ".c", ".h"))]
    return found


def _library_dir() -> str:
    try:
        return os.path.dirname(os.path.realpath(paths.library_path()))
    except ImportError as error:
        raise BuildError(str(error)) from None


def torch_build() -> str:
    """The torch that a product fits: a release, whose builds for the CPU and for CUDA have the same headers,
    or the very build. One that names itself as a bare release is somebody else's (conda's), with other flags.
    """
    import torch

    version = str(torch.__version__)
    official = re.fullmatch(r"(\d+\.\d+\.\d+)\+(cpu|cu\d+)", version)
    if official:
        return official.group(1)
    return version + "+other" if re.fullmatch(r"[\d.]+", version) else version


def torch_release() -> tuple[int, ...]:
    import torch

    return _release(str(torch.__version__))


def _release(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:2])


def _flags(product: Product = GUARD, target: Target | None = None) -> list[str]:
    """The flags that have to agree with how torch was built, and all others."""
    if product.every_torch:
        return ["-O2", "-fPIC", "-fvisibility=hidden", "-w"]
    release = torch_release() if target is None else _release(target.build)
    # Headers of 2.11 and later may use C++20; those before 2.1 do not know it.
    flags = ["-std=c++20" if release >= (2, 10) else "-std=c++17"]
    core = getattr(sys.modules.get("torch"), "_C", None)  # not yet there while torch is being imported
    abi = getattr(core, "_GLIBCXX_USE_CXX11_ABI", True) if target is None else target.has_cxx11_abi
    flags.append(f"-D_GLIBCXX_USE_CXX11_ABI={int(abi)}")
    if product.every_python:
        flags.append("-DPy_LIMITED_API=0x03090000")
    else:  # so that pybind11 shares its state with torch's
        for name in ("COMPILER_TYPE", "STDLIB", "BUILD_ABI"):
            value = getattr(core, f"_PYBIND11_{name}", None)
            if value is not None:
                flags.append(f'-DPYBIND11_{name}="{value}"')
    return [*flags, *_FLAGS, *shlex.split(options.compiler_flags())]


def _compiler() -> list[str]:
    named = shlex.split(os.environ.get("CXX", ""))
    if named:
        if shutil.which(named[0]) is None:
            raise BuildError(
                f"trapline: guard: CXX names {named[0]}, which is not on PATH: set CXX to a C++ compiler"
            )
        return named
    for name in ("c++", "g++", "clang++"):
        if shutil.which(name):
            return [name]
    raise BuildError(
        "trapline: guard: no C++ compiler: neither CXX nor c++, g++ or clang++ on PATH: "
        "install one (Debian: apt install g++)"
    )


def refuse_free_threading() -> None:
    """Raise `BuildError` where this Python has no GIL: both adapters count on it."""
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        raise BuildError(
            "trapline: guard: this Python is a free-threaded build, which is not supported: "
            "use a build of Python with the GIL"
        )


def _refuse_what_cannot_work(product: Product, target: Target | None) -> None:
    refuse_free_threading()
    try:
        if target is None and not product.every_torch:
            import torch  # noqa: F401
    except ImportError as error:
        raise BuildError(
            f"trapline: guard: torch cannot be imported ({error}): run this with the Python that has it"
        ) from None
    if not any(os.path.isfile(os.path.join(folder, "Python.h")) for folder in python_includes()):
        raise BuildError(
            f"trapline: guard: no Python.h in {python_includes()[0]}: install Python's headers "
            f"(Debian: apt install python{sys.version_info[0]}.{sys.version_info[1]}-dev)"
        )


def python_includes() -> list[str]:
    """Where Python.h is, or would be."""
    folders = sysconfig.get_paths()
    return list(dict.fromkeys([folders["include"], folders["platinclude"]]))


def _torch_includes() -> list[str]:
    import torch

    root = os.path.join(os.path.dirname(torch.__file__), "include")
    if os.path.isfile(os.path.join(root, "ATen", "core", "Tensor.h")):
        return [root, os.path.join(root, "torch", "csrc", "api", "include")]
    from torch.utils import cpp_extension  # distributions keep the headers elsewhere

    found = cpp_extension.include_paths()
    if not any(os.path.isfile(os.path.join(one, "ATen", "core", "Tensor.h")) for one in found):
        raise BuildError(
            f"trapline: guard: no headers of torch in {root}: install PyTorch's own package, which has them"
        )
    return found


def _torch_libraries() -> list[str]:
    """The very files that this process has loaded: distributions version and move them."""
    found: dict[str, str] = {}
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
            for line in maps:
                path = line.rstrip("\n").partition("/")
                name = os.path.basename(path[2])
                stem = name.partition(".so")[0]
                if re.sub(r"\.cpython.*", "", stem) in _TORCH_LIBRARIES and ".so" in name:
                    found[stem] = "/" + path[2]
    except OSError:
        pass
    if "libtorch_cpu" in found and "libc10" in found:
        return list(found.values())
    import torch

    folder = os.path.join(os.path.dirname(torch.__file__), "lib")
    return ["-L" + folder, *("-l" + name[3:] for name in _TORCH_LIBRARIES)]


def _link_flags() -> list[str]:
    further = shlex.split(options.compiler_flags())
    return [flag for flag in further if flag.startswith("-fsan")] if further else ["-s"]
