"""Makes a virtual environment with a release of torch that works on a machine without CUDA.

    python torch_without_cuda.py VERSION FOLDER [PYTHON]

PyPI has most releases as CUDA builds only, which are linked with gigabytes of CUDA. Nothing of that is
called before a device is used: so the wheel alone is unpacked, and each library that is missing is put
beside torch's own as an empty one that has the missing names. There is no device then, and everything on the
CPU is real. PYTHON (default: this one) decides which wheel; FOLDER/bin/python runs it.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

# What torch's Python part imports, and what runs the tests.
DEPENDENCIES = [
    "typing_extensions",
    "sympy",
    "networkx",
    "jinja2",
    "fsspec",
    "filelock",
    "numpy",
    "pytest",
    "expecttest",
    "jsonschema",
]
LIST = "stubs.txt"
SYSTEM = re.compile(r"(ld-linux|libc|libm|libdl|librt|libpthread|libstdc\+\+|libgcc_s|libz)[.-]")


def run(*command: object) -> str:
    done = subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True)
    return done.stdout


def site_of(folder: Path) -> Path:
    return next((folder / "lib").glob("python3*")) / "site-packages"


def unpack(version: str, folder: Path, python: str) -> None:
    run(python, "-m", "venv", folder)
    pip = [folder / "bin" / "python", "-m", "pip", "-q", "--disable-pip-version-check"]
    run(*pip, "install", *DEPENDENCIES)
    with tempfile.TemporaryDirectory(dir=folder) as downloads:
        run(*pip, "download", "--no-deps", "--only-binary=:all:", "-d", downloads, f"torch=={version}")
        (wheel,) = Path(downloads).glob("torch-*.whl")
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                if not re.match(r"torch/(test|share)/|torch/bin/(?!torch_shm_manager)", name):
                    Path(archive.extract(name, site_of(folder))).chmod(0o755)


def needed(library: Path) -> set[str]:
    return set(re.findall(r"\(NEEDED\).*\[(.+)\]", run("readelf", "-dW", library)))


def symbols(library: Path, which: str) -> set[tuple[str, str]]:
    """Names and versions of what the library defines (``defined``) or wants (``undefined``)."""
    found = set()
    for line in run("nm", "-D", f"--{which}-only", library).splitlines():
        name, _, version = line.split()[-1].partition("@")
        found.add((name, version.lstrip("@")))
    return found


def make_stub(path: Path, wanted: set[tuple[str, str]]) -> None:
    """A library of functions that return 0, with the versions that are asked for."""
    nodes: dict[str, list[str]] = {}
    for name, version in sorted(wanted):
        nodes.setdefault(version, []).append(name)
    with tempfile.TemporaryDirectory() as work:
        source, script = Path(work, "stub.c"), Path(work, "stub.map")
        lines = []
        for number, name in enumerate(sorted({name for name, _ in wanted})):
            lines.append(
                f'long stub_{number}(void) __asm__("{name}"); long stub_{number}(void) {{ return 0; }}'
            )
        source.write_text("\n".join(lines) or "int nothing;")
        versions = [
            f"{version} {{ global: {'; '.join(names)}; }};" for version, names in nodes.items() if version
        ]
        script.write_text("\n".join(versions))
        command = ["cc", "-w", "-shared", "-fPIC", "-fno-builtin", f"-Wl,-soname,{path.name}"]
        if versions:
            command.append(f"-Wl,--version-script={script}")
        run(*command, "-o", path, source)


def versions(library: Path) -> dict[str, str]:
    """Which library each version that is asked for belongs to."""
    found, file = {}, ""
    for line in run("readelf", "-VW", library).splitlines():
        if match := re.search(r"File: (\S+)", line):
            file = match[1]
        elif match := re.search(r"Name: (\S+)\s+Flags", line):
            found[match[1]] = file
    return found


def make_stubs(folder: Path) -> list[str]:
    torch = site_of(folder) / "torch"
    own = torch / "lib"
    for stub in _listed(own):
        (own / stub).unlink(missing_ok=True)
    libraries = [*own.glob("*.so*"), *torch.glob("_C*.so")]
    there = {library.name for library in libraries}
    missing = sorted({n for library in libraries for n in needed(library) if not SYSTEM.match(n)} - there)
    defined = {name for library in libraries for name, _ in symbols(library, "defined")}
    wanted: dict[str, set[tuple[str, str]]] = {name: set() for name in missing}
    for library in libraries:
        owners = versions(library)
        for name, version in symbols(library, "undefined"):
            owner = (
                owners.get(version) if version else missing[0]
            )  # any of them: names alone are looked up in all
            if owner in wanted and name not in defined:
                wanted[owner].add((name, version))
    for name in missing:
        make_stub(own / name, wanted[name])
    (own / LIST).write_text("\n".join(missing))
    return missing


def _listed(own: Path) -> list[str]:
    try:
        return (own / LIST).read_text().split()
    except OSError:
        return []


def main() -> None:
    version, folder = sys.argv[1], Path(sys.argv[2]).resolve()
    python = sys.argv[3] if len(sys.argv) > 3 else sys.executable
    if not (folder / "bin" / "python").exists() or not (site_of(folder) / "torch").is_dir():
        unpack(version, folder, python)
    print("stubs:", " ".join(make_stubs(folder)))
    text = "import torch; print(torch.__version__, torch.ones(2).sum().item(), torch.cuda.is_available())"
    sys.exit(subprocess.run([folder / "bin" / "python", "-c", text], check=False).returncode)


if __name__ == "__main__":
    main()
