"""A package laid out as the wheel has it, by the wheel's own code, from this build."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
BUILD_DIR = Path(os.environ.get("TRAPLINE_BUILD_DIR", REPO / "build")).resolve()
sys.path.insert(0, str(REPO / "packaging" / "wheel"))


@pytest.fixture(scope="session")
def installed(tmp_path_factory):
    """What ``cmake --install`` lays down."""
    prefix = tmp_path_factory.mktemp("installed")
    subprocess.run(
        ["cmake", "--install", str(BUILD_DIR), "--prefix", str(prefix)], check=True, stdout=subprocess.DEVNULL
    )
    (prefix / "lib").mkdir(exist_ok=True)
    for library in prefix.glob("lib/*-linux-gnu/*.so"):  # Debian's folder; the wheel's build says plain lib
        library.rename(prefix / "lib" / library.name)
    return prefix


@pytest.fixture(scope="session")
def staged(installed, tmp_path_factory):
    """A folder of packages that has ``trapline``."""
    import pack

    out = tmp_path_factory.mktemp("site-packages")
    adapters = tmp_path_factory.mktemp("adapters")
    (adapters / "some_adapter.so").write_bytes(b"")
    pack.stage(installed, out, adapters)
    return out


@pytest.fixture(scope="session")
def launcher(tmp_path_factory):
    """The program that becomes ``trapline`` on PATH."""
    import pack

    program = tmp_path_factory.mktemp("launcher") / "trapline"
    version = f'-DTRAPLINE_VERSION="{pack.version()}"'
    source = REPO / "packaging" / "wheel" / "launcher.c"
    subprocess.run(
        ["cc", "-Wall", "-Wextra", "-Werror", version, str(source), "-o", str(program)], check=True
    )
    return program


def clean_environment(**more: str) -> dict[str, str]:
    """Without what a test run sets for the source tree."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TRAPLINE_", "PYTHON"))}
    return {**kept, "PYTHONDONTWRITEBYTECODE": "1", **more}
