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
import subprocess
import sys
import sysconfig
import tempfile
from typing import TYPE_CHECKING, NamedTuple

from trapline._library import options, paths

if TYPE_CHECKING:
    from typing import Callable

try:
    import fcntl
except ImportError:  # not on this platform: the atomic rename has to do
    fcntl = None  # type: ignore[assignment]

_FLAGS = ["-O3", "-fno-plt", "-DNDEBUG", "-fPIC", "-fvisibility=hidden", "-w"]
_TORCH_LIBRARIES = ("libc10", "libtorch_cpu", "libtorch", "libtorch_python")


class BuildError(Exception):
    """The adapter cannot be built here; ``str()`` is one line: what, why, what to do."""


class Product(NamedTuple):
    """One extension module that is compiled for the running torch."""

    module: str  # its name, and how its file's name begins
    room: str  # its folder in src/, and how its sources are included
    parts: tuple[str, ...]  # which folders of the room; "": its own files
    says: str  # what its messages call it
    uses_library: bool  # it links with libtrapline
    generated: Callable[[], dict[str, str]] | None  # further files, made from the running torch

    def source_dir(self) -> str:
        """``TRAPLINE_<ROOM>_SRC``, the source tree's folder, or the installed one."""
        variable, named = options.sources(self.room)
        folder = named or paths.source_dir(self.room)
        if not sources_in(folder, self.parts):
            raise BuildError(
                f"trapline: {self.says}: no sources in {folder}: set {variable} or install Trapline again"
            )
        return folder


GUARD = Product("trapline_guard", "guard", ("", "python"), "guard", True, None)


_HEADERS = ("types.h", "capi.h", "device.h")  # of include/trapline: what the adapter sees of the library


def source_dir() -> str:
    """The sources of the guard's adapter."""
    return GUARD.source_dir()


def adapter_name(product: Product = GUARD) -> str:
    """The file name of the product for this torch, this Python, these sources and this libtrapline."""
    import torch

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
    digest.update("\0".join([*_flags(), _library_dir() if product.uses_library else ""]).encode())
    soabi = sysconfig.get_config_var("SOABI") or sys.implementation.cache_tag
    return f"{product.module}-torch{torch.__version__}-{soabi}-{digest.hexdigest()[:12]}.so"


def build(out_dir: str, product: Product = GUARD) -> str:
    """Compile the product into ``out_dir`` unless it is there already, and return its path.

    Raises:
        BuildError: with one line that says what is missing and what to do.
    """
    _refuse_what_cannot_work()
    path = os.path.join(out_dir, adapter_name(product))
    try:
        os.makedirs(out_dir, exist_ok=True)
        lock = os.open(os.path.join(out_dir, ".build.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise BuildError(
            f"trapline: guard: cannot write to {out_dir}: {error.strerror}: name another folder"
        ) from None
    try:
        _hold(lock)
        if not os.path.isfile(path):
            _compile(path, product)
    finally:
        os.close(lock)  # releases it; the file stays, since unlinking it would let two processes in
    return path


def _hold(lock: int) -> None:
    if fcntl is None:
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
    except OSError:  # a file system without locks: the atomic rename has to do
        pass


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


def torch_release() -> tuple[int, ...]:
    import torch

    return tuple(int(part) for part in re.findall(r"\d+", str(torch.__version__))[:2])


def _flags() -> list[str]:
    """The flags that have to agree with how torch was built."""
    import torch

    # Headers of 2.11 and later may use C++20; those before 2.1 do not know it.
    flags = ["-std=c++20" if torch_release() >= (2, 10) else "-std=c++17"]
    core = getattr(torch, "_C", None)  # not yet there while torch is being imported
    flags.append(f"-D_GLIBCXX_USE_CXX11_ABI={int(getattr(core, '_GLIBCXX_USE_CXX11_ABI', True))}")
    for name in ("COMPILER_TYPE", "STDLIB", "BUILD_ABI"):  # so that pybind11 shares its state with torch's
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


def _refuse_what_cannot_work() -> None:
    refuse_free_threading()
    try:
        import torch  # noqa: F401
    except ImportError as error:
        raise BuildError(
            f"trapline: guard: torch cannot be imported ({error}): run this with the Python that has it"
        ) from None
    if not any(os.path.isfile(os.path.join(folder, "Python.h")) for folder in _python_includes()):
        raise BuildError(
            f"trapline: guard: no Python.h in {_python_includes()[0]}: install Python's headers "
            f"(Debian: apt install python{sys.version_info[0]}.{sys.version_info[1]}-dev)"
        )


def _python_includes() -> list[str]:
    folders = sysconfig.get_paths()
    return list(dict.fromkeys([folders["include"], folders["platinclude"]]))


def _torch_includes() -> list[str]:
    import torch

    root = os.path.join(os.path.dirname(torch.__file__), "include")
    if os.path.isfile(os.path.join(root, "ATen", "core", "Tensor.h")):
        return [root, os.path.join(root, "torch", "csrc", "api", "include")]
    from torch.utils import cpp_extension  # distributions keep the headers elsewhere

    return cpp_extension.include_paths()


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


def _compile(path: str, product: Product) -> None:
    """Compile and link in a folder beside ``path``, then rename: nobody ever sees half a library."""
    folder, compiler = product.source_dir(), _compiler()
    names = sources_in(folder, product.parts)
    with tempfile.TemporaryDirectory(prefix=".building-", dir=os.path.dirname(path)) as work:
        # The sources say "<room>/...", whatever their folder is called. One translation unit takes a third of
        # the time that they take one by one, since torch's headers are most of it.
        os.symlink(os.path.abspath(folder), os.path.join(work, product.room))
        for name, text in (product.generated() if product.generated is not None else {}).items():
            with open(os.path.join(work, name), "w", encoding="utf-8") as file:
                file.write(text)
        unit = os.path.join(work, "unit.cpp")
        with open(unit, "w", encoding="utf-8") as file:
            file.writelines(f'#include "{product.room}/{name}"\n' for name in names if name.endswith(".cpp"))
        includes = ["-I", work, "-I", paths.include_dir()]
        for include in [*_torch_includes(), *_python_includes()]:
            includes += ["-isystem", include]
        made = os.path.join(work, "made.so")
        log = path[: -len(".so")] + ".log"
        objects = [work + "/unit.o"]
        for name in (name for name in names if name.endswith(".c")):
            objects.append(os.path.join(work, os.path.basename(name)[:-2] + ".o"))
            source = os.path.join(work, product.room, name)
            c = ["-x", "c", "-O2", "-fPIC", "-fvisibility=hidden", "-c", source, "-o", objects[-1]]
            _run([*compiler, *c, *includes], log, product)
        link = ["-shared", "-o", made, *objects, *_torch_libraries()]
        if product.uses_library:
            link += ["-L" + _library_dir(), "-ltrapline", "-Wl,-rpath," + _library_dir()]
        _run([*compiler, *_flags(), "-c", unit, "-o", objects[0], *includes], log, product)
        _run([*compiler, *link, *_link_flags()], log, product)
        os.replace(made, path)


def _link_flags() -> list[str]:
    return [flag for flag in shlex.split(options.compiler_flags()) if flag.startswith("-fsan")]


def _run(command: list[str], log: str, product: Product = GUARD) -> None:
    done = subprocess.run(
        command, check=False, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    if done.returncode == 0:
        return
    with open(log, "wb") as file:
        file.write((shlex.join(command) + "\n").encode(errors="surrogateescape") + done.stdout)
    said = re.search(rb"error: (.*)", done.stdout)
    why = f" ({said.group(1).decode(errors='replace')})" if said else ""
    raise BuildError(
        f"trapline: {product.says}: {command[0]} failed{why}: see {log}: report it with that file"
    )
