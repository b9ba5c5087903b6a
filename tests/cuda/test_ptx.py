"""The committed PTX text: it belongs to its sources, and every driver since CUDA 11 takes it."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "src/cuda/kernels/check.ptx").read_text()
SOURCE = (ROOT / "src/cuda/kernels/check.cu").read_text()
KERNELS = set(re.findall(r"TRAPLINE_KERNEL\((trapline_\w+),", SOURCE))


def ptx_script(argument: str) -> str:
    done = subprocess.run(
        [str(ROOT / "scripts/ptx.sh"), argument], cwd=ROOT, check=True, capture_output=True, text=True
    )
    return done.stdout


def test_it_is_not_older_than_its_sources():
    wanted = re.search(r"^// sources: ([0-9a-f]{64})$", TEXT, re.MULTILINE)
    assert wanted is not None
    assert ptx_script("--hash").strip() == wanted.group(1), "run scripts/ptx.sh and commit check.ptx"


def test_old_drivers_take_it():
    # PTX 6.0 is CUDA 9.0's. The compiler would not notice an instruction that came later; ptxas does.
    assert re.search(r"^\.version 6\.0$", TEXT, re.MULTILINE)
    assert re.search(r"^\.target sm_50$", TEXT, re.MULTILINE)
    assert len(KERNELS) > 5 and set(re.findall(r"\.entry (\w+)\(", TEXT)) == KERNELS


def test_host_memory_is_written_without_atomic_operations():
    # A bus may know none. The one atomic counts blocks in device memory.
    atomics = set(re.findall(r"(?<![\w.])(?:atom|red)\.\S+", TEXT))
    assert atomics == {"atom.global.inc.u32"}
    assert "membar.sys" in TEXT


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="ptxas is missing")
@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"])
def test_it_assembles(arch, tmp_path):
    source = ROOT / "src/cuda/kernels/check.ptx"
    command = ["ptxas", f"-arch={arch}", "-o", str(tmp_path / "out"), str(source)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is missing")
def test_the_sources_still_give_this_text():
    release = subprocess.run(["nvcc", "--version"], check=True, capture_output=True, text=True).stdout
    made_by = re.search(r"^// compiler: (.*)$", TEXT, re.MULTILINE)
    assert made_by is not None
    if made_by.group(1) not in release:
        pytest.skip(f"made by {made_by.group(1)}, here is another compiler")
    assert ptx_script("--stdout") == TEXT
