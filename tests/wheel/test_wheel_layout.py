"""The wheel's layout: everything inside the package, and found there by the program and by Python."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import subprocess
import sys
import zipfile

import inspect_wheel
import pack
import pytest
from conftest import BUILD_DIR, REPO, clean_environment


def run(*command, **env):
    return subprocess.run(
        [str(word) for word in command],
        capture_output=True,
        text=True,
        check=False,
        env=clean_environment(**env),
        timeout=120,
    )


def test_everything_lies_inside_the_package(staged):
    assert [path.name for path in staged.iterdir()] == ["trapline"]
    files = {str(path.relative_to(staged / "trapline")) for path in staged.rglob("*") if path.is_file()}
    assert {
        "_bin/trapline",
        "_bin/version",
        "_lib/libtrapline.so",
        "_lib/libtrapline_http.so",
        "_lib/libtrapline_preload.so",
        "_lib/libfake_cuda.so",
        "_lib/trapline_kernel.abi3.so",
        "_include/trapline/capi.h",
        "_include/trapline/types.h",
        "_src/guard/trial.cpp",
        "_adapters/some_adapter.so",
        "__init__.py",
        "__main__.py",
        "startup/sitecustomize.py",
        "py.typed",
    } <= files
    # All of the rooms that are compiled against the user's torch: an adapter's name holds a digest of them.
    for room in ("guard", "cpu_cuda"):
        for path in (REPO / "src" / room).rglob("*"):
            below = path.relative_to(REPO / "src")
            if path.suffix in (".cpp", ".hpp", ".c", ".h") and below.parts[1] != "preload":
                assert f"_src/{below}" in files
    assert not [file for file in files if "__pycache__" in file or file.endswith(".pth")]


def test_python_finds_its_parts(staged):
    code = """
from trapline._library import paths
print(paths.library_path(), paths.include_dir(), paths.source_dir("guard"), sep="\\n")
print(paths.program_path(), paths.build_dir(), bool(paths.library()), sep="\\n")
"""
    done = run(sys.executable, "-c", code, PYTHONPATH=str(staged))
    inside = staged / "trapline"
    expected = [inside / "_lib/libtrapline.so", inside / "_include", inside / "_src/guard"]
    assert done.stdout.split("\n")[:3] == [str(path) for path in expected], done.stderr
    assert done.stdout.split("\n")[3:6] == [str(inside / "_bin/trapline"), "None", "True"]


def test_program_guards_with_what_lies_beside_it(staged):
    code = "import trapline, os; print(os.path.dirname(trapline.__file__), os.environ['TRAPLINE_LIB'])"
    done = run(staged / "trapline/_bin/trapline", "run", "--", sys.executable, "-c", code)
    assert done.stdout == f"{staged / 'trapline'} {staged / 'trapline/_lib/libtrapline.so'}\n", done.stderr


def test_module_is_the_program(staged):
    done = run(sys.executable, "-m", "trapline", "--version", PYTHONPATH=str(staged))
    assert re.fullmatch(rf"trapline {re.escape(pack.version())}( \([0-9a-f]+\+?\))?\n", done.stdout)
    assert done.returncode == 0
    wrong = run(sys.executable, "-m", "trapline", "--nonsense", PYTHONPATH=str(staged))
    assert wrong.returncode == 2 and "--nonsense" in wrong.stderr


def test_module_says_when_its_program_is_not_there(staged, tmp_path):
    pack.copy(staged / "trapline", tmp_path / "trapline")
    (tmp_path / "trapline" / "_bin" / "trapline").unlink()
    done = run(sys.executable, "-m", "trapline", "--version", PYTHONPATH=str(tmp_path))
    assert done.returncode == 2
    assert f"cannot start {tmp_path}/trapline/_bin/trapline: No such file or directory" in done.stderr


def test_wheel_is_whole(staged, launcher, tmp_path):
    tag = "py3-none-manylinux_2_28_x86_64"
    path = pack.write(staged / "trapline", launcher, {"LICENSE": b"text"}, tmp_path, tag)
    name = f"trapline-{pack.version()}"
    assert path.name == f"{name}-{tag}.whl"
    with zipfile.ZipFile(path) as wheel:
        record = wheel.read(f"{name}.dist-info/RECORD").decode().splitlines()
        listed = {}
        for line in record[:-1]:
            place, digest, size = line.rsplit(",", 2)
            content = wheel.read(place)
            wanted = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            assert (digest, size) == (f"sha256={wanted}", str(len(content)))
            listed[place] = wheel.getinfo(place).external_attr >> 16 & 0o777
        assert set(listed) | {f"{name}.dist-info/RECORD"} == set(wheel.namelist())
        assert listed[f"{name}.data/scripts/trapline"] == listed["trapline/_bin/trapline"] == 0o755
        assert [place for place in listed if ".data/" in place] == [f"{name}.data/scripts/trapline"]
        assert f"Tag: {tag}\n" in wheel.read(f"{name}.dist-info/WHEEL").decode()
        assert "Requires-Python: >=3.9\n" in wheel.read(f"{name}.dist-info/METADATA").decode()
    again = pack.write(staged / "trapline", launcher, {"LICENSE": b"text"}, tmp_path / "again", tag)
    assert again.read_bytes() == path.read_bytes()


def test_each_library_that_is_linked_has_its_licence(tmp_path):
    files = [REPO / "cmake" / name for name in ("Dependencies.cmake", "OptionalReaders.cmake")]
    text = "".join(file.read_text("utf-8") for file in files)
    found = set(re.findall(r"^(?:find_package|pkg_check_modules)\((\S+)", text, re.M))
    found |= {name[: -len("_INCLUDE")] for name in re.findall(r"^find_path\((\S+)", text, re.M)}
    assert found - {"Threads", "PkgConfig"} == set(pack.LICENCES) - {"libstdc++ and libgcc"}
    made = (REPO / "packaging" / "wheel" / "libraries.sh").read_text("utf-8")
    for name in pack.LICENCES.values():
        assert re.search(rf"\b{re.escape(name[: -len('.txt')])}\b", made), name
        (tmp_path / name).write_text("text")
    assert set(pack.collect_licences(tmp_path)) == {"LICENSE", *pack.LICENCES.values()}
    (tmp_path / "re2.txt").unlink()
    with pytest.raises(pack.PackError, match="no licence of RE2"):
        pack.collect_licences(tmp_path)


def test_stage_names_the_part_that_is_missing(tmp_path):
    with pytest.raises(pack.PackError, match="bin/trapline"):
        pack.stage(tmp_path, tmp_path / "out")


# What looks at a wheel ----------------------------------------------------------------------------


def test_a_library_of_this_machine_does_not_pass():
    faults, newest = inspect_wheel.faults_of(
        "trapline/_lib/libtrapline.so", BUILD_DIR / "lib" / "libtrapline.so"
    )
    assert any("needs" in fault and "libstdc++" in fault for fault in faults)
    assert newest >= (2, 2)


def test_pytest_finds_the_plugin_by_itself(staged, launcher, tmp_path):
    licences = {"LICENSE": (REPO / "LICENSE").read_bytes()}
    wheel = pack.write(staged / "trapline", launcher, licences, tmp_path, "py3-none-linux_x86_64")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(tmp_path / "site")
    (tmp_path / "test_it.py").write_text("import trapline\n\ndef test_it():\n    trapline.is_active()\n")
    command = (sys.executable, "-m", "pytest", "-q", "--rootdir", tmp_path, "-p", "no:cacheprovider")
    done = run(*command, "--trapline", tmp_path / "test_it.py", PYTHONPATH=str(tmp_path / "site"))
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert "1 passed" in done.stdout
    without = run(*command, "--trapline", tmp_path / "test_it.py", PYTHONPATH=str(staged))
    assert "unrecognized arguments: --trapline" in without.stderr


def test_stray_names_do_not_pass(tmp_path):
    (tmp_path / "a.c").write_text("int trapline_mine(void) { return 1; }\nint stray(void) { return 2; }\n")
    library = tmp_path / "libtrapline.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(tmp_path / "a.c")], check=True)
    faults, _ = inspect_wheel.faults_of("trapline/_lib/libtrapline.so", library)
    assert [fault for fault in faults if "exports" in fault] == [
        "trapline/_lib/libtrapline.so exports 1 other names: stray"
    ]


def test_a_program_that_dies_when_it_throws_does_not_pass(tmp_path):
    program = tmp_path / "trapline"
    program.write_text(
        "#!/bin/sh\n"
        "case $1 in --version) echo 0.1.0;; explain) echo 'error[TL1]';; check) kill -ABRT $$;; esac\n"
    )
    program.chmod(0o755)
    assert inspect_wheel.run_faults(program, [], "0.1.0") == [
        "trapline check labels --nonsense: exit status -6: ''"
    ]


def test_newest_glibc():
    assert inspect_wheel.newest_glibc("a@GLIBC_2.4 (2) b@GLIBC_2.27 c@GLIBC_2.3.4") == (2, 27)


@pytest.mark.skipif(not os.environ.get("TRAPLINE_LONG"), reason="builds the wheel: TRAPLINE_LONG=1")
def test_wheel_is_built_and_installed(tmp_path):
    built = subprocess.run(
        [str(REPO / "scripts" / "wheel.sh")], capture_output=True, text=True, check=False, timeout=3000
    )
    assert built.returncode == 0, built.stdout + built.stderr
    path = re.search(r"^trapline: wheel: (dist/\S+\.whl)$", built.stdout, re.M).group(1)
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    pip = [str(tmp_path / "venv/bin/python"), "-m", "pip", "install", "-q", "--no-index", str(REPO / path)]
    subprocess.run(pip, check=True)
    assert run(tmp_path / "venv/bin/trapline", "--version").stdout.startswith(f"trapline {pack.version()}")
    code = "from trapline._library import paths; print(bool(paths.library()), paths.library_path())"
    guarded = run(tmp_path / "venv/bin/trapline", "run", "--", tmp_path / "venv/bin/python", "-c", code)
    assert guarded.stdout.startswith(f"True {tmp_path}/venv/lib"), guarded.stderr
