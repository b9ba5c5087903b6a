"""Makes the wheel from what ``cmake --install`` laid down, with nothing but the standard library.

    python pack.py --installed PREFIX --launcher FILE --licences DIR --out DIR --tag TAG [--adapters DIR]

Everything lies inside the package, since that is all that every installer keeps together (``pip install
--target``, a copied site-packages): ``trapline/_bin`` (the program), ``_lib``, ``_include``, ``_src`` (what
is compiled against the user's own torch) and ``_adapters`` (what was compiled for some torch already).
``trapline`` on PATH is the launcher.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import re
import shutil
import sys
import zipfile
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
EPOCH = (2026, 1, 1, 0, 0, 0)  # the same input gives the same file
# pytest finds its plugins by it.
ENTRY_POINTS = "[pytest11]\ntrapline = trapline.pytest_plugin\n"
# What _lib holds. What reads Parquet is not among it: that needs the libarrow of one pyarrow.
# The pyarrow whose libraries libtrapline_arrow.so is linked with: their names hold its first number.
PYARROW = "26.0.1"
LIBRARIES = (
    "libtrapline.so",
    "libtrapline_http.so",
    "libtrapline_preload.so",
    "libfake_cuda.so",
    "libtrapline_arrow.so",
    "libtrapline_sqlite.so",
    "trapline_kernel*.so",
)
# Each package that cmake/Dependencies.cmake looks for and the wheel links, and the file of its licence.
LICENCES = {
    "fmt": "libfmt.txt",
    "nlohmann_json": "nlohmann-json3.txt",
    "CLI11": "libcli11.txt",
    "simdjson": "simdjson.txt",
    "HWY": "highway.txt",
    "RE2": "re2.txt",
    "ZSTD": "libzstd.txt",
    "ZLIB": "zlib1g.txt",
    "PNG": "libpng.txt",
    "SQLite3": "libsqlite3.txt",
    "BZip2": "libbz2.txt",
    "LibLZMA": "liblzma.txt",
    "HTTPLIB": "cpp-httplib.txt",
    "TOMLPLUSPLUS": "libtomlplusplus.txt",
    "prometheus-cpp": "prometheus-cpp.txt",
    "libstdc++ and libgcc": "gcc-runtime.txt",
}


class PackError(Exception):
    """What is missing, and what to do."""


def version() -> str:
    """The project's."""
    found = re.search(r"project\(trapline VERSION ([\d.]+)", (REPO / "CMakeLists.txt").read_text("utf-8"))
    if found is None:
        raise PackError("CMakeLists.txt names no version")
    return found.group(1)


def metadata(licences: list[str]) -> str:
    """The text of METADATA, and of an sdist's PKG-INFO."""
    lines = [
        "Metadata-Version: 2.1",
        "Name: trapline",
        f"Version: {version()}",
        "Summary: Explains device-side asserts and their relatives in PyTorch programs",
        "License: Apache-2.0",
        "Requires-Python: >=3.9",
        "Classifier: Operating System :: POSIX :: Linux",
        "Classifier: Topic :: Software Development :: Debuggers",
        "Provides-Extra: arrow",
        f"Requires-Dist: pyarrow=={PYARROW.partition('.')[0]}.*; extra == 'arrow'",
        *(f"License-File: {name}" for name in licences),
        "Description-Content-Type: text/markdown",
    ]
    return "\n".join(lines) + "\n\n" + (REPO / "README.md").read_text("utf-8")


def copy(source: Path, target: Path) -> None:
    """A file, or a folder without what Python left in it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
    else:
        shutil.copy(source, target)


def stage(installed: Path, out: Path, adapters: Path | None = None) -> Path:
    """Lays the package out below ``out`` as the wheel has it; returns its folder.

    Args:
        installed: a prefix that ``cmake --install`` filled, with its libraries in ``lib``.
        out: an empty folder.
        adapters: a folder with prebuilt adapters.

    Raises:
        PackError: a part is missing.
    """
    shared = installed / "share" / "trapline"
    package = out / "trapline"
    for part in (installed / "bin" / "trapline", installed / "lib" / "libtrapline.so", shared / "python"):
        if not part.exists():
            raise PackError(f"there is no {part}: `cmake --install` makes it")
    copy(shared / "python" / "trapline", package)
    copy(installed / "bin" / "trapline", package / "_bin" / "trapline")
    (package / "_bin" / "version").write_text(version() + "\n", encoding="utf-8")
    for pattern in LIBRARIES:
        for library in sorted((installed / "lib").glob(pattern)):
            copy(library, package / "_lib" / library.name)
    copy(installed / "include" / "trapline", package / "_include" / "trapline")
    for room in sorted(path for path in shared.iterdir() if path.name != "python"):
        copy(room, package / "_src" / room.name)
    for adapter in sorted(adapters.glob("*.so")) if adapters else []:
        copy(adapter, package / "_adapters" / adapter.name)
    return package


def collect_licences(folder: Path) -> dict[str, bytes]:
    """Trapline's own licence and those of all that is linked in, by file name.

    Raises:
        PackError: one is missing.
    """
    texts = {"LICENSE": (REPO / "LICENSE").read_bytes()}
    for package, name in LICENCES.items():
        file = folder / name
        if not file.is_file():
            raise PackError(f"no licence of {package}: there is no {file}")
        texts[name] = file.read_bytes()
    return texts


def write(package: Path, launcher: Path, licences: dict[str, bytes], out: Path, tag: str) -> Path:
    """Packs the wheel, and returns its path."""
    name = f"trapline-{version()}"
    path = out / f"{name}-{tag}.whl"
    out.mkdir(parents=True, exist_ok=True)
    record: list[str] = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:

        def add(place: str, content: bytes, mode: int = 0o644) -> None:
            entry = zipfile.ZipInfo(place, EPOCH)
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, content)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            record.append(f"{place},sha256={digest},{len(content)}")

        for file in sorted(file for file in package.rglob("*") if file.is_file()):
            below = file.relative_to(package)
            runs = below.parts[0] in ("_bin", "_lib", "_adapters") and below.name != "version"
            add(f"trapline/{below}", file.read_bytes(), 0o755 if runs else 0o644)
        add(f"{name}.data/scripts/trapline", launcher.read_bytes(), 0o755)
        info = f"{name}.dist-info"
        for file_name, text in sorted(licences.items()):
            add(f"{info}/licenses/{file_name}", text)
        add(f"{info}/METADATA", metadata(sorted(licences)).encode())
        add(f"{info}/entry_points.txt", ENTRY_POINTS.encode())
        head = "Wheel-Version: 1.0\nGenerator: trapline\nRoot-Is-Purelib: false\n"
        tags = [f"py3-none-{platform}" for platform in tag[len("py3-none-") :].split(".")]
        add(f"{info}/WHEEL", (head + "".join(f"Tag: {one}\n" for one in tags)).encode())
        entry = zipfile.ZipInfo(f"{info}/RECORD", EPOCH)
        entry.external_attr = 0o100644 << 16
        wheel.writestr(entry, "\n".join([*record, f"{info}/RECORD,,"]) + "\n")
    return path


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    for flag in ("installed", "launcher", "licences", "out"):
        parser.add_argument(f"--{flag}", type=Path, required=True)
    parser.add_argument("--tag", required=True)
    parser.add_argument("--adapters", type=Path)
    asked = parser.parse_args()
    staged = asked.installed.parent / (asked.installed.name + "-staged")
    shutil.rmtree(staged, ignore_errors=True)
    try:
        if asked.adapters and not asked.adapters.is_dir():
            raise PackError(f"--adapters {asked.adapters} is not a folder")
        package = stage(asked.installed, staged, asked.adapters)
        texts = collect_licences(asked.licences)
    except PackError as problem:
        sys.stderr.write(f"trapline: wheel: {problem}\n")
        return 2
    print(write(package, asked.launcher, texts, asked.out, asked.tag))
    return 0


if __name__ == "__main__":
    sys.exit(main())
