"""Compile the guard's adapter against the running torch and Python, with nothing but a C++ compiler.

``python -m trapline._build --out DIR`` is what the build tree runs; the adapter's loader calls :func:`build`
when it meets a torch that it has no adapter for.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile

from trapline import _paths

try:
    import fcntl
except ImportError:  # not on this platform: the atomic rename has to do
    fcntl = None  # type: ignore[assignment]

_FLAGS = ["-O3", "-fno-plt", "-DNDEBUG", "-fPIC", "-fvisibility=hidden", "-w"]
_TORCH_LIBRARIES = ("libc10", "libtorch_cpu", "libtorch", "libtorch_python")


class BuildError(Exception):
    """The adapter cannot be built here; ``str()`` is one line: what, why, what to do."""


def source_dir() -> str:
    """The adapter's sources: ``TRAPLINE_GUARD_SRC``, the source tree's, or the installed ones."""
    folder = os.environ.get("TRAPLINE_GUARD_SRC") or _paths.guard_source_dir()
    if not _sources(folder):
        raise BuildError(
            f"trapline: guard: no sources in {folder}: set TRAPLINE_GUARD_SRC or install Trapline again"
        )
    return folder


def adapter_name() -> str:
    """The file name of the adapter for this torch, this Python, these sources and this libtrapline."""
    import torch

    digest = hashlib.sha256()
    folder = source_dir()
    headers = [os.path.join(_paths.include_dir(), "trapline", name) for name in ("capi.h", "device.h")]
    for path in [*(os.path.join(folder, name) for name in _sources(folder)), *headers]:
        digest.update(os.path.basename(path).encode())
        with open(path, "rb") as file:
            digest.update(file.read())
    digest.update("\0".join([*_flags(), _library_dir()]).encode())
    soabi = sysconfig.get_config_var("SOABI") or sys.implementation.cache_tag
    return f"trapline_guard-torch{torch.__version__}-{soabi}-{digest.hexdigest()[:12]}.so"


def build(out_dir: str) -> str:
    """Compile the adapter into ``out_dir`` unless it is there already, and return its path.

    Raises:
        BuildError: with one line that says what is missing and what to do.
    """
    _refuse_what_cannot_work()
    path = os.path.join(out_dir, adapter_name())
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
            _compile(path)
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


def _sources(folder: str) -> list[str]:
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    return sorted(name for name in names if name.endswith((".cpp", ".hpp", ".c", ".h")))


def _library_dir() -> str:
    try:
        return os.path.dirname(os.path.realpath(_paths.library_path()))
    except ImportError as error:
        raise BuildError(str(error)) from None


def _torch_release() -> tuple[int, ...]:
    import torch

    return tuple(int(part) for part in re.findall(r"\d+", str(torch.__version__))[:2])


def _flags() -> list[str]:
    """The flags that have to agree with how torch was built."""
    import torch

    # Headers of 2.11 and later may use C++20; those before 2.1 do not know it.
    flags = ["-std=c++20" if _torch_release() >= (2, 10) else "-std=c++17"]
    flags.append(f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}")
    for name in ("COMPILER_TYPE", "STDLIB", "BUILD_ABI"):  # so that pybind11 shares its state with torch's
        value = getattr(torch._C, f"_PYBIND11_{name}", None)
        if value is not None:
            flags.append(f'-DPYBIND11_{name}="{value}"')
    return [*flags, *_FLAGS, *shlex.split(os.environ.get("TRAPLINE_GUARD_CXXFLAGS", ""))]


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
    paths = sysconfig.get_paths()
    return list(dict.fromkeys([paths["include"], paths["platinclude"]]))


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


def _compile(path: str) -> None:
    """Compile and link in a folder beside ``path``, then rename: nobody ever sees half an adapter."""
    folder, compiler = source_dir(), _compiler()
    with tempfile.TemporaryDirectory(prefix=".building-", dir=os.path.dirname(path)) as work:
        # The sources say "guard/...", whatever their folder is called. One translation unit takes a third of
        # the time that they take one by one, since torch's headers are most of it.
        os.symlink(os.path.abspath(folder), os.path.join(work, "guard"))
        unit = os.path.join(work, "guard.cpp")
        with open(unit, "w", encoding="utf-8") as file:
            file.writelines(
                f'#include "guard/{name}"\n' for name in _sources(folder) if name.endswith(".cpp")
            )
        includes = ["-I", work, "-I", _paths.include_dir()]
        for include in [*_torch_includes(), *_python_includes()]:
            includes += ["-isystem", include]
        frames = [
            "-x",
            "c",
            "-O2",
            "-fPIC",
            "-fvisibility=hidden",
            "-c",
            os.path.join(work, "guard", "frames.c"),
        ]
        library = _library_dir()
        product = os.path.join(work, "guard.so")
        link = ["-shared", "-o", product, work + "/guard.o", work + "/frames.o", *_torch_libraries()]
        link += ["-L" + library, "-ltrapline", "-Wl,-rpath," + library, *_link_flags()]
        log = path[: -len(".so")] + ".log"
        _run([*compiler, *frames, "-o", work + "/frames.o", *includes], log)
        _run([*compiler, *_flags(), "-c", unit, "-o", work + "/guard.o", *includes], log)
        _run([*compiler, *link], log)
        os.replace(product, path)


def _link_flags() -> list[str]:
    return [
        flag
        for flag in shlex.split(os.environ.get("TRAPLINE_GUARD_CXXFLAGS", ""))
        if flag.startswith("-fsan")
    ]


def _run(command: list[str], log: str) -> None:
    done = subprocess.run(
        command, check=False, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    if done.returncode == 0:
        return
    with open(log, "wb") as file:
        file.write((shlex.join(command) + "\n").encode(errors="surrogateescape") + done.stdout)
    said = re.search(rb"error: (.*)", done.stdout)
    why = f" ({said.group(1).decode(errors='replace')})" if said else ""
    raise BuildError(f"trapline: guard: {command[0]} failed{why}: see {log}: report it with that file")


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m trapline._build", description="Compile the guard's adapter."
    )
    parser.add_argument("--out", required=True, metavar="DIR", help="folder for the adapter")
    try:
        print(build(parser.parse_args().out))
    except BuildError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
