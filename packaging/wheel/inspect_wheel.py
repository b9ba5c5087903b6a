"""Looks at a wheel before anybody installs it: what its files want and give away, and that they run.

    python inspect_wheel.py WHEEL [--run PREFIX_COMMAND...]

Each ELF file may want no newer glibc than 2.28 and no library but glibc's; only its own names may leave it.
The program is unpacked and run; it also has to throw: a runtime that cannot find its unwind tables prints a
version and then ends in abort() at the first exception.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

GLIBC = (2, 28)
# glibc's own libraries; a kernel of Python's limited interface finds Python's symbols in the process.
MAY_NEED = re.compile(r"lib(c|m|dl|pthread|rt)\.so\.\d+|ld-linux-[\w-]+\.so\.\d")
# Those inside pyarrow, for the one library that is loaded at the first Parquet or Arrow file.
PYARROW = re.compile(r"lib(arrow|parquet)\.so\.\d+")
# File name, what may leave it.
MAY_EXPORT = (
    (r"_lib/libfake_cuda\.so", r"cu[A-Z]\w+|fake_cuda_\w+"),
    (r"_lib/.*\.abi3\.so|_adapters/.*", r"PyInit_\w+|trapline_\w+"),
    (r"_lib/.*\.so", r"trapline_\w+"),
    (
        r"_bin/trapline|scripts/trapline",
        r"_IO_stdin_used|__bss_start|_edata|_end|_start|main|_init|_fini|environ|__environ|_environ|std(in|out|err)",
    ),
)


def readelf(file: Path, flags: str) -> str:
    return subprocess.run(
        ["readelf", "-W", flags, str(file)], check=True, capture_output=True, text=True
    ).stdout


def newest_glibc(symbols: str) -> tuple[int, ...]:
    """The newest version node of glibc that the symbols name."""
    versions = [tuple(map(int, found.split("."))) for found in re.findall(r"GLIBC_([\d.]+)", symbols)]
    return max(versions, default=(0,))


def exported(symbols: str) -> set[str]:
    """Names of the symbols that others could take from here."""
    names = set()
    for line in symbols.splitlines():
        columns = line.split()
        is_row = len(columns) >= 8 and columns[0].rstrip(":").isdigit()
        if is_row and columns[4] in ("GLOBAL", "WEAK") and columns[6] != "UND":
            names.add(columns[7].split("@")[0])
    return names


def faults_of(name: str, file: Path) -> tuple[list[str], tuple[int, ...]]:
    """What is wrong with one ELF file, and the newest glibc it wants."""
    symbols = readelf(file, "--dyn-syms")
    faults = []
    needs = re.findall(r"\(NEEDED\).*\[(.*)\]", readelf(file, "-d"))
    is_torchs = "/_adapters/" in name  # needs torch's libraries, which are in the process
    if name.endswith("/libtrapline_arrow.so"):
        needs = [need for need in needs if not PYARROW.fullmatch(need)]
    foreign = [need for need in needs if not MAY_NEED.fullmatch(need)]
    if foreign and not is_torchs:
        faults.append(f"{name} needs {', '.join(foreign)}")
    newest = newest_glibc(symbols)
    if newest > GLIBC:
        faults.append(f"{name} needs glibc {'.'.join(map(str, newest))}")
    for place, names in MAY_EXPORT:
        if re.search(place + "$", name):
            stray = sorted(one for one in exported(symbols) if not re.fullmatch(names, one))
            if stray and not is_torchs:
                faults.append(f"{name} exports {len(stray)} other names: {', '.join(stray[:5])}")
            break
    return faults, newest


def run_faults(program: Path, runner: list[str], version: str) -> list[str]:
    """What is wrong with the program when it runs."""
    faults = []
    log = program.parent / "log.txt"
    log.write_text("x.cu:1: f: block: [0,0,0], thread: [0,0,0] Assertion `t >= 0 && t < n_classes` failed.\n")
    for arguments, code, words in (
        (["--version"], 0, version),
        (["explain", str(log)], None, "error[TL"),
        (["check", "labels", "--nonsense"], 2, "--nonsense"),  # throws
        (["run", "--", "/bin/true"], 0, ""),
    ):
        done = subprocess.run(
            [*runner, str(program), *arguments], capture_output=True, text=True, timeout=120, check=False
        )
        said = done.stdout + done.stderr
        if done.returncode < 0 or (code is not None and done.returncode != code) or words not in said:
            faults.append(f"trapline {' '.join(arguments)}: exit status {done.returncode}: {said[:300]!r}")
    return faults


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--run", nargs=argparse.REMAINDER, default=[], help="an emulator and its flags")
    asked = parser.parse_args()
    faults: list[str] = []
    overall: tuple[int, ...] = (0,)
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(asked.wheel) as wheel:
        for entry in wheel.infolist():
            path = Path(wheel.extract(entry, folder))
            path.chmod(entry.external_attr >> 16 & 0o777)
            if path.read_bytes()[:4] != b"\x7fELF":
                continue
            wrong, newest = faults_of(entry.filename, path)
            faults += wrong
            overall = max(overall, newest)
            print(f"  {entry.file_size:>9,} {entry.compress_size:>9,}  {entry.filename}")
        version = asked.wheel.name.split("-")[1]
        faults += run_faults(Path(folder) / "trapline" / "_bin" / "trapline", asked.run, version)
    size = asked.wheel.stat().st_size
    print(f"  {size:,} bytes, newest glibc symbol {'.'.join(map(str, overall))}")
    for fault in faults:
        sys.stderr.write(f"trapline: wheel: {fault}\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
