"""`trapline doctor` and `trapline cache` from outside: real Pythons, and what only looks like one."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("TRAPLINE_BUILD_DIR", ROOT / "build"))
TRAPLINE = str(BUILD / "bin" / "trapline")


def environment(tmp_path: Path, **more: str) -> dict[str, str]:
    """A plain one, with a cache of its own."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    return kept | {"XDG_CACHE_HOME": str(tmp_path / "cache"), "TRAPLINE_BUILD_DIR": str(BUILD)} | more


def doctor(tmp_path: Path, *words: str, **more: str) -> tuple[int, dict[str, Any]]:
    done = subprocess.run(
        [TRAPLINE, "doctor", "--format", "json", *words],
        env=environment(tmp_path, **more),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    assert done.stderr == b""
    answer = json.loads(done.stdout)
    assert answer["verdict"] == ("problem" if done.returncode else "ok")
    assert done.returncode == int(any(line["level"] == "problem" for line in answer["lines"]))
    return done.returncode, answer


def line(answer: dict[str, Any], topic: str) -> dict[str, Any]:
    (found,) = [line for line in answer["lines"] if line["topic"] == topic]
    return found


def program(path: Path, text: str) -> str:
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


def test_this_python(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    code, answer = doctor(tmp_path, "--python", sys.executable)
    assert code == 0, answer
    assert line(answer, "python")["fact"].startswith(".".join(map(str, sys.version_info[:3])))
    assert line(answer, "hook")["level"] == "ok"
    assert torch.__version__ in line(answer, "torch")["fact"]
    assert line(answer, "guard")["level"] == "ok"
    assert line(answer, "driver")["level"] in ("ok", "note")
    assert line(answer, "reports")["level"] == "ok"
    assert re.fullmatch(r"[0-9a-f]{7,}\+?|", answer["trapline"]["commit"])


def test_self_test_shows_the_finding(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    code, answer = doctor(tmp_path, "--python", sys.executable, "--self-test")
    assert code == 0, answer
    said = line(answer, "self-test")
    assert said["level"] == "ok"
    assert re.match("one bad label was caught on (the CPU|cuda:0), before the operation ran", said["fact"])
    finding = answer["self_test"]["findings"][0]
    assert (finding["code"], finding["certainty"], finding["element"]["value"]) == ("TL101", "proven", 3)
    assert finding["origin"]["code"] == "loss = F.cross_entropy(logits, labels)"


def test_self_test_notices_a_guard_that_is_off(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    code, answer = doctor(tmp_path, "--python", sys.executable, "--self-test", TRAPLINE_OFF="1")
    assert code == 1
    assert line(answer, "TRAPLINE_OFF")["level"] == "problem"
    assert line(answer, "self-test")["fact"].startswith("the bad call was not reported; ")


def test_text_for_people(tmp_path: Path) -> None:
    done = subprocess.run(
        [TRAPLINE, "doctor", "--python", "/nonexistent"],
        env=environment(tmp_path),
        capture_output=True,
        check=False,
    )
    lines = done.stdout.decode().splitlines()
    assert done.returncode == 1
    assert lines[0].startswith("ok       trapline: 0.1.0")
    assert "problem  python: cannot start '/nonexistent': No such file or directory:" in done.stdout.decode()
    assert lines[-1] == "1 problem to fix"
    assert all(len(text) <= 80 for text in lines)


def test_no_python_at_all(tmp_path: Path) -> None:
    code, answer = doctor(tmp_path, PATH=str(tmp_path))
    assert code == 1
    assert line(answer, "python")["fact"] == "there is no python and no python3 on PATH"
    assert line(answer, "reports")["level"] == "ok"  # the rest is looked at


def test_a_python_without_torch(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    code, answer = doctor(tmp_path, "--python", str(tmp_path / "venv/bin/python"))
    assert code == 1
    assert line(answer, "hook")["level"] == "ok"
    assert line(answer, "torch")["fact"] == "there is no torch in this Python"


@pytest.mark.parametrize("flag", ["-I", "-E", "-S"])
def test_a_python_that_the_hook_does_not_reach(tmp_path: Path, flag: str) -> None:
    python = program(tmp_path / "python", f'#!/bin/sh\nexec "{sys.executable}" {flag} "$@"\n')
    code, answer = doctor(tmp_path, "--python", python)
    assert code == 1
    hook = line(answer, "hook")
    assert hook["level"] == "problem" and hook["fact"].endswith(f"it runs with {flag}")


def test_a_hanging_python_is_given_up(tmp_path: Path) -> None:
    begin = time.monotonic()
    python = program(tmp_path / "python", "#!/bin/sh\ntrap '' TERM\nsleep 100\n")
    code, answer = doctor(tmp_path, "--python", python, "--timeout", "1")
    assert code == 1 and time.monotonic() - begin < 30
    assert line(answer, "python")["fact"] == f"{python} did not answer within 1 s"


def test_a_torch_that_hangs_or_dies(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("import time\ntime.sleep(100)\n")
    code, answer = doctor(tmp_path, "--python", sys.executable, "--timeout", "3", PYTHONPATH=str(tmp_path))
    assert code == 1
    assert line(answer, "torch")["fact"] == "`import torch` takes longer than 3 s"
    (tmp_path / "torch.py").write_text("import os\nos.kill(os.getpid(), 11)\n")
    answer = doctor(tmp_path, "--python", sys.executable, PYTHONPATH=str(tmp_path))[1]
    assert line(answer, "torch")["fact"] == "`import torch` ended the process by signal 11"
    (tmp_path / "torch.py").write_text("raise RuntimeError('a broken build\\nmore')\n")
    answer = doctor(tmp_path, "--python", sys.executable, PYTHONPATH=str(tmp_path))[1]
    assert line(answer, "torch")["fact"] == "torch cannot be imported: a broken build"


def test_what_only_prints_garbage(tmp_path: Path) -> None:
    garbage = "#!/bin/sh\nhead -c 100000 /dev/urandom\nprintf '\\n\\033[31mbye\\n'\nexit 3\n"
    python = program(tmp_path / "python", garbage)
    done = subprocess.run(
        [TRAPLINE, "doctor", "--python", python], env=environment(tmp_path), capture_output=True, check=False
    )
    assert done.returncode == 1
    assert b"\033" not in done.stdout
    assert "ended with code 3 and told nothing; it said: \\x1b[31mbye" in " ".join(
        done.stdout.decode().split()
    )


def test_a_driver_that_hangs_or_crashes(tmp_path: Path) -> None:
    library = tmp_path / "driver.so"
    for body in ("sleep(100);", "*(volatile int*)8 = 1;"):
        source = f"#include <unistd.h>\n__attribute__((constructor)) void f(void) {{ {body} }}\n"
        subprocess.run(
            ["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", library], input=source.encode(), check=True
        )
        code, answer = doctor(
            tmp_path, "--python", "/nonexistent", "--timeout", "1", TRAPLINE_CUDA_DRIVER=str(library)
        )
        assert code == 1
        assert line(answer, "driver")["fact"] == "no answer within 1 s, or a crash"


def test_a_driver_with_a_gpu(tmp_path: Path) -> None:
    """The driver's answers are its own functions', here of a library that we made."""
    source = """
    #include <stddef.h>
    #include <string.h>
    int cuInit(unsigned flags) { return 0; }
    int cuDriverGetVersion(int* v) { *v = 12040; return 0; }
    int cuDeviceGetCount(int* n) { *n = 1; return 0; }
    int cuDeviceGet(int* d, int i) { *d = i; return 0; }
    int cuDeviceGetName(char* name, int size, int d) { strncpy(name, "NVIDIA Made Up", size); return 0; }
    int cuDeviceGetAttribute(int* v, int a, int d) { *v = a == 75 ? 9 : 0; return 0; }
    int cuDeviceTotalMem_v2(size_t* b, int d) { *b = (size_t)80 << 30; return 0; }
    """
    library = tmp_path / "driver.so"
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", library], input=source.encode(), check=True
    )
    answer = doctor(tmp_path, "--python", "/nonexistent", TRAPLINE_CUDA_DRIVER=str(library))[1]
    assert line(answer, "driver")["fact"] == f"{library}, serves CUDA up to 12.4"
    assert line(answer, "gpu 0")["fact"] == "NVIDIA Made Up, 80.0 GiB, compute capability 9.0"


@pytest.fixture
def elsewhere(tmp_path: Path) -> dict[str, str]:
    """A build folder without adapters, so that the guard for any torch has to serve."""
    pytest.importorskip("torch")
    (tmp_path / "empty" / "lib").mkdir(parents=True)
    for name in ("trapline_kernel.abi3.so",):
        (tmp_path / "empty" / "lib" / name).symlink_to(BUILD / "lib" / name)
    return {"TRAPLINE_BUILD_DIR": str(tmp_path / "empty")}


def test_why_the_guard_is_not_the_compiled_one(tmp_path: Path, elsewhere: dict[str, str]) -> None:
    def guard(**more: str) -> dict[str, Any]:
        return line(doctor(tmp_path, "--python", sys.executable, **(elsewhere | more))[1], "guard")

    assert "it is not built yet: the next `trapline run` begins" in guard()["fact"]
    assert not list((tmp_path / "cache").rglob("*.so"))  # and the question began nothing
    missing = guard(PATH="/nonexistent")
    assert missing["level"] == "note" and "no C++ compiler" in missing["fact"]
    assert missing["todo"] == "install one (Debian: apt install g++)"
    never = guard(TRAPLINE_BUILD="never")
    assert never["fact"].endswith("TRAPLINE_BUILD says never to build it")
    assert guard(TRAPLINE_ADAPTER="pure")["fact"].startswith("in Python, on torch ")


def test_reports_that_cannot_be_written(tmp_path: Path) -> None:
    answer = doctor(tmp_path, "--python", "/nonexistent", TRAPLINE_REPORT_DIR="/proc")[1]
    said = line(answer, "reports")
    assert said["level"] == "problem" and said["fact"] == "/proc cannot be written (TRAPLINE_REPORT_DIR)"


def test_every_variable_is_known() -> None:
    """What reads a TRAPLINE_* variable is in the table, and what is in the table is read."""
    reads = re.compile(
        r'(?:environ(?:\.\w+)?[\[(]|getenv\(|find_variable\([^"]*|_number\(|set\(out, )"'
        r'(TRAPLINE_[A-Z_]+)"|"(TRAPLINE_[A-Z_]+)" in os\.environ'
    )
    found = set()
    for path in [*ROOT.glob("src/**/*.cpp"), *ROOT.glob("src/**/*.hpp"), *ROOT.glob("python/**/*.py")]:
        if "doctor" not in path.parts:
            found |= {a or b for a, b in reads.findall(path.read_text(encoding="utf-8"))}
    table = (ROOT / "src/doctor/variables.def").read_text()
    options = (ROOT / "src/run/options.cpp").read_text()
    known = set(re.findall(r'"(TRAPLINE_[A-Z_]+)"', table + options))
    assert {"TRAPLINE_OFF", "TRAPLINE_CUDA_DRIVER", "TRAPLINE_STANDBY_FD"} <= found
    assert found - known == set()


# trapline cache -----------------------------------------------------------------------------------


def cache(tmp_path: Path, *words: str) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run(
        [TRAPLINE, "cache", *words],
        env=environment(tmp_path, TMPDIR=str(tmp_path)),
        capture_output=True,
        check=False,
    )


def test_cache_lists_and_cleans(tmp_path: Path) -> None:
    folder = tmp_path / "cache/trapline/adapters"
    assert cache(tmp_path).stdout.decode().splitlines()[0] == f"{folder}: not there"
    assert cache(tmp_path, "clean").stdout == b"removed 0 files, 0 B\n"
    folder.mkdir(parents=True, mode=0o700)
    (folder / "trapline_guard-x.so").write_bytes(b"x" * 3000)
    (folder / "notes.txt").write_text("mine")
    listed = cache(tmp_path).stdout.decode().splitlines()
    assert listed[0] == f"{folder}: 2.9 KiB in 1 file"
    assert listed[1].split() == ["2.9", "KiB", "0", "minutes", "trapline_guard-x.so"]
    assert listed[2] == "  and 1 that Trapline did not make"
    done = cache(tmp_path, "clean")
    assert (done.returncode, done.stdout) == (0, b"removed 1 file, 2.9 KiB\n")
    assert [path.name for path in folder.iterdir()] == ["notes.txt"]


def test_cache_agrees_with_what_python_makes(tmp_path: Path) -> None:
    code = (
        "from trapline._extension import cache, recipe; "
        "print(*cache.folders(create=True), recipe.PREFIX, sep=chr(10))"
    )
    python = environment(tmp_path, PYTHONPATH=str(ROOT / "python"), TMPDIR=str(tmp_path))
    done = subprocess.run([sys.executable, "-c", code], env=python, capture_output=True, check=True)
    first, second, prefix = done.stdout.decode().split()
    (Path(first)).mkdir(parents=True, mode=0o700)
    (Path(first) / f"{prefix}left").mkdir()
    listed = cache(tmp_path).stdout.decode()
    assert listed.startswith(f"{first}: ") and f"{prefix}left" in listed and f"\n{second}: " in listed


def test_cache_has_no_other_words(tmp_path: Path) -> None:
    done = cache(tmp_path, "claen")
    assert done.returncode == 2
    assert done.stderr == b"trapline: `trapline cache` has no 'claen': did you mean `trapline cache clean`?\n"
    assert cache(tmp_path, "clean", "/etc").returncode == 2
