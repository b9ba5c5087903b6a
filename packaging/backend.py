"""The build backend that pyproject.toml names (PEP 517), for ``pip install .`` and ``python -m build``.

A wheel made here links this machine's libraries, and fits this machine: ``scripts/setup.sh demo`` installs
what it takes. ``-C portable=yes`` makes the one for every Linux instead, by ``scripts/wheel.sh``, which
installs packages.
"""

from __future__ import annotations

import gzip
import io
import os
import platform
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

REPO = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPO / "packaging" / "wheel"))

import pack  # noqa: E402


def _files() -> list[str]:
    """What belongs to the sources: what git keeps, or, in an unpacked sdist, what its list says."""
    listing = REPO / "SOURCES.txt"
    if listing.is_file():
        return listing.read_text("utf-8").splitlines()
    done = subprocess.run(["git", "ls-files", "-z"], cwd=REPO, check=True, capture_output=True)
    names = (name for name in done.stdout.decode().split("\0") if name)
    return sorted(name for name in names if (REPO / name).is_file())


def build_sdist(sdist_directory: str, config_settings: dict[str, Any] | None = None) -> str:
    """Packs the sources; the same sources give the same file."""
    base = f"trapline-{pack.version()}"
    files = _files()
    path = Path(sdist_directory) / f"{base}.tar.gz"
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar:

        def add(name: str, content: bytes, mode: int) -> None:
            entry = tarfile.TarInfo(f"{base}/{name}")
            entry.size, entry.mode = len(content), mode
            tar.addfile(entry, io.BytesIO(content))

        for name in files:
            file = REPO / name
            add(name, file.read_bytes(), 0o755 if os.access(file, os.X_OK) else 0o644)
        add("SOURCES.txt", "".join(f"{name}\n" for name in files).encode(), 0o644)
        add("PKG-INFO", pack.metadata([]).encode(), 0o644)
    path.write_bytes(gzip.compress(packed.getvalue(), mtime=0))
    return path.name


def build_wheel(
    wheel_directory: str,
    config_settings: dict[str, Any] | None = None,
    metadata_directory: str | None = None,
) -> str:
    """Builds and packs; says what is missing in the words of what missed it."""
    out = Path(wheel_directory).resolve()
    if (config_settings or {}).get("portable") == "yes":
        subprocess.run([str(REPO / "scripts" / "wheel.sh")], check=True, cwd=REPO)
        made = REPO / "dist" / f"trapline-{pack.version()}-py3-none-manylinux_2_28_{platform.machine()}.whl"
        shutil.copy(made, out)
        return made.name
    build = REPO / "build-pip"
    installed = build / "installed"
    shutil.rmtree(installed, ignore_errors=True)
    flags = ["-DCMAKE_BUILD_TYPE=Release", "-DTRAPLINE_TESTS=OFF", "-DCMAKE_INSTALL_LIBDIR=lib"]
    python = ["-DTRAPLINE_PYTHON=none"]  # neither its torch nor its pyarrow: they may be gone tomorrow
    generator = ["-G", "Ninja"] if shutil.which("ninja") else []
    launcher = build / "launcher"
    source = REPO / "packaging" / "wheel" / "launcher.c"
    for command in (
        ["cmake", "-S", str(REPO), "-B", str(build), *generator, *flags, *python],
        ["cmake", "--build", str(build), "-j", os.environ.get("JOBS", str(os.cpu_count() or 1))],
        ["cmake", "--install", str(build), "--prefix", str(installed)],
        ["cc", "-O2", f'-DTRAPLINE_VERSION="{pack.version()}"', str(source), "-o", str(launcher)],
    ):
        subprocess.run(command, check=True)
    staged = build / "staged"
    shutil.rmtree(staged, ignore_errors=True)
    package = pack.stage(installed, staged)
    licences = {"LICENSE": (REPO / "LICENSE").read_bytes()}
    return pack.write(package, launcher, licences, out, f"py3-none-linux_{platform.machine()}").name
