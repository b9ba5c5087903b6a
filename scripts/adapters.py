"""Builds the adapters that a wheel brings along (`adapters.sh` says how it is called)."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python"))

from trapline._extension import compiler, layout, recipe  # noqa: E402

CACHE = Path(os.environ.get("TRAPLINE_ADAPTERS_CACHE") or Path.home() / ".cache" / "trapline-adapters")
BUILD = Path(os.environ.get("TRAPLINE_BUILD_DIR") or ROOT / "build").resolve()
STUBS = ("c10", "torch_cpu", "torch_python")
# The newest that a library brought along may ask for: manylinux_2_28, and what PyTorch itself asks for.
NEWEST = {"GLIBC": (2, 28), "GLIBCXX": (3, 4, 22), "CXXABI": (1, 3, 11), "GCC": (3, 0)}
PYTHONS = range(9, 15)


class Release(NamedTuple):
    """One row of the table."""

    version: str
    python: str
    has_cxx11_abi: bool

    @property
    def folder(self) -> Path:
        return CACHE / self.version


def table() -> dict[str, Release]:
    text = (Path(__file__).parent / "torch_releases.txt").read_text(encoding="utf-8")
    rows = [line.split() for line in text.splitlines() if line and not line.startswith("#")]
    return {version: Release(version, python, abi == "1") for version, python, abi in rows}


def fail(why: str) -> None:
    raise SystemExit(f"trapline: adapters: {why}")


# Headers ------------------------------------------------------------------------------------------


def get_headers(release: Release) -> None:
    """The headers of PyPI's build, and the names of what its libraries export."""
    if (release.folder / "symbols").is_file():
        return
    print(f"torch {release.version}: fetching the headers", flush=True)
    shutil.rmtree(release.folder, ignore_errors=True)
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE, prefix=".fetching-") as work:
        wheel = download(release, Path(work))
        unpacked = Path(work) / "unpacked"
        libraries = [f"torch/lib/lib{name}.so" for name in STUBS]
        with zipfile.ZipFile(wheel) as archive:
            wanted = [one for one in archive.namelist() if one.startswith("torch/include/")]
            archive.extractall(unpacked, [*wanted, *libraries, "torch/version.py"])
        symbols = set()
        for library in libraries:
            symbols |= exported(unpacked / library)
            (unpacked / library).unlink()
        (unpacked / "symbols").write_text("\n".join(sorted(symbols)), encoding="utf-8")
        unpacked.rename(release.folder)


def download(release: Release, work: Path) -> Path:
    """By pip, and from its index only: a build for the CPU that lies around here is another one."""
    wheels = sorted(
        Path(os.environ.get("TRAPLINE_TORCH_WHEELS", work)).glob(f"torch-{release.version}-*.whl")
    )
    if not wheels:
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:"]
        command += ["--python-version", release.python, "-d", str(work), f"torch=={release.version}"]
        for platform in ("manylinux_2_28_x86_64", "manylinux2014_x86_64", "manylinux1_x86_64"):
            command += ["--platform", platform]
        alone = {**os.environ, "PIP_FIND_LINKS": "", "PIP_CONFIG_FILE": os.devnull}
        subprocess.run(command, check=True, env=alone)
        wheels = sorted(work.glob("*.whl"))
    return wheels[0]


def exported(library: Path) -> set[str]:
    done = subprocess.run(
        ["nm", "-D", "--defined-only", str(library)], check=True, capture_output=True, text=True
    )
    return {line.split()[-1].partition("@")[0] for line in done.stdout.splitlines() if line}


# What is built ------------------------------------------------------------------------------------


def stubs(release: Release) -> Path:
    """Libraries with nothing but names: a library is linked by its name, and found by it.

    They have what PyTorch's own have of the C++ library, which it brings along for old machines.
    """
    folder = release.folder / "stubs"
    folder.mkdir(exist_ok=True)
    symbols = (release.folder / "symbols").read_text(encoding="utf-8").split()
    own = [name for name in symbols if re.match(r"_Z(N[KRO]*|T[VTI])?S[tsaio]", name)]
    text = "".join(f".globl {name}\n{name}:\n" for name in own)
    for name in STUBS:
        command = ["cc", "-shared", "-nostdlib", "-x", "assembler", "-", f"-Wl,-soname,lib{name}.so"]
        source = text if name == "torch_cpu" else ""
        subprocess.run([*command, "-o", str(folder / f"lib{name}.so")], check=True, input=source, text=True)
    return folder


def target(release: Release) -> compiler.Target:
    include = release.folder / "torch" / "include"
    link = [f"-L{stubs(release)}", "-Wl,--no-as-needed", *(f"-l{name}" for name in STUBS), "-Wl,--as-needed"]
    includes = [str(include), str(include / "torch" / "csrc" / "api" / "include")]
    return compiler.Target(release.version, release.has_cxx11_abi, includes, link)


def build(release: Release, out: Path) -> Path:
    get_headers(release)
    known = (release.folder / "symbols").read_text(encoding="utf-8")
    if bool(re.search(r"^_ZN3c105ErrorC1.*__cxx11", known, re.MULTILINE)) != release.has_cxx11_abi:
        fail(f"torch {release.version}: its libraries are of the other C++ ABI: mend torch_releases.txt")
    for_it = target(release)
    what = compiler.recipe_for(str(out), compiler.GUARD, for_it)
    made = Path(what.path)
    if made.is_file():
        print(f"torch {release.version}: {made.name} is there", flush=True)
        return made
    check_layout(release, for_it)
    old = ["-include", str(ROOT / "scripts" / "old_runtime.h")]
    commands = [
        [*command, *old] if f"{recipe.WORK}/unit.cpp" in command else command for command in what.commands
    ]
    recipe.carry_out(what._replace(commands=commands))
    try:
        newest = check(made, set(known.split()))
    except SystemExit:
        made.rename(made.with_suffix(".refused"))
        raise
    print(f"torch {release.version}: {made.name}: {made.stat().st_size} bytes; {newest}", flush=True)
    return made


def check_layout(release: Release, for_it: compiler.Target) -> None:
    """PyTorch's own structures are what the adapter takes them for."""
    source = ROOT / "src" / "guard" / "python" / "layout_check" / "layout_check.cpp"
    flags = ["-std=c++20", "-fsyntax-only", "-w", f"-D_GLIBCXX_USE_CXX11_ABI={int(release.has_cxx11_abi)}"]
    command = [os.environ.get("CXX", "c++"), *flags, *layout.defines(for_it.includes[0]), str(source)]
    for include in [*for_it.includes, *compiler.python_includes()]:
        command += ["-isystem", include]
    if subprocess.run(command, check=False).returncode != 0:
        fail(f"torch {release.version}: its structures are not those of torch_python.hpp")


def check(made: Path, torch_symbols: set[str]) -> str:
    """Every name that the library wants is there, in no newer version than may be asked for."""
    done = subprocess.run(["objdump", "-T", str(made)], check=True, capture_output=True, text=True)
    newest: dict[str, tuple[int, ...]] = {}
    for line in done.stdout.splitlines():
        found = re.search(r"\((GLIBC|GLIBCXX|CXXABI|GCC)_([0-9.]+)\)\s+(\S+)", line)
        if "*UND*" not in line:
            continue
        name = line.split()[-1]
        if found:
            version = tuple(map(int, found.group(2).split(".")))
            if version > NEWEST[found.group(1)]:
                fail(f"{made.name} wants {name} of {found.group(1)}_{found.group(2)}: see old_runtime.h")
            newest[found.group(1)] = max(version, newest.get(found.group(1), ()))
        elif not is_known(name) and name not in torch_symbols and " w " not in line:
            fail(f"{made.name} wants {name}, which this torch does not have")
    return ", ".join(f"{one} {'.'.join(map(str, version))}" for one, version in sorted(newest.items()))


def is_known(name: str) -> bool:
    return name.startswith(("Py", "_Py", "trapline_"))


def build_frames(out: Path) -> None:
    """For each Python that can be run here: it knows its own headers."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    for minor in PYTHONS:
        python = interpreter(minor)
        done = python and subprocess.run(
            [python, "-B", "-m", "trapline._build", "--frames", "--out", str(out)],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if not done or done.returncode != 0:
            why = done.stderr.strip().splitlines()[-1] if done else "it is not here"
            print(f"Python 3.{minor}: no frames: {why}", flush=True)
            continue
        made = Path(done.stdout.strip())
        print(f"Python 3.{minor}: {made.name}: {made.stat().st_size} bytes; {check(made, set())}", flush=True)


def interpreter(minor: int) -> str | None:
    for found in sorted(Path.home().glob(f".pyenv/versions/3.{minor}.*/bin/python3")):
        return str(found)
    return shutil.which(f"python3.{minor}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="adapters.sh", description=__doc__)
    parser.add_argument("--out", type=Path, default=BUILD / "prebuilt")
    parser.add_argument("--no-frames", action="store_true", help="not the parts that depend on Python")
    parser.add_argument("releases", nargs="*", metavar="RELEASE")
    arguments = parser.parse_args()
    known = table()
    unknown = [one for one in arguments.releases if one not in known]
    if unknown:
        fail(f"{unknown[0]} is not in torch_releases.txt")
    os.environ.setdefault("TRAPLINE_LIB", str(BUILD / "lib" / "libtrapline.so"))
    arguments.out.mkdir(parents=True, exist_ok=True)
    out = arguments.out.resolve()
    if not arguments.no_frames:
        build_frames(out)
    for release in arguments.releases or known:
        try:
            build(known[release], out)
        except recipe.BuildError as error:
            fail(f"torch {release}: {error}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
