"""find_package(trapline): a project in C and C++ against an installed tree."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPO = HERE.parents[1]
BUILD_DIR = Path(os.environ.get("TRAPLINE_BUILD_DIR", REPO / "build")).resolve()


def cmake(*words):
    done = subprocess.run(["cmake", *map(str, words)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_consumer_in_c_and_cpp(tmp_path):
    prefix, build = tmp_path / "prefix", tmp_path / "build"
    cmake("--install", BUILD_DIR, "--prefix", prefix)
    said = cmake("-S", HERE, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}")
    headers = sorted(path.name for path in (REPO / "include" / "trapline").glob("*.h"))
    assert sorted(re.findall(r"trapline/(\w+\.h)", said)) == headers
    cmake("--build", build)
    project = re.search(r"project\(trapline VERSION ([\d.]+)", (REPO / "CMakeLists.txt").read_text("utf-8"))
    version = project.group(1)
    for program, text in (("consumer_c", f"{version} 1 rows\n"), ("consumer_cpp", f"{version}\n")):
        done = subprocess.run([str(build / program)], capture_output=True, text=True, check=False)
        assert (done.stdout, done.stderr, done.returncode) == (text, "", 0)


def test_another_minor_version_is_refused(tmp_path):
    prefix = tmp_path / "prefix"
    cmake("--install", BUILD_DIR, "--prefix", prefix)
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.16)\nproject(p NONE)\nfind_package(trapline 99.0 REQUIRED)\n"
    )
    command = ["cmake", "-S", str(tmp_path), "-B", str(tmp_path / "b"), f"-DCMAKE_PREFIX_PATH={prefix}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0 and "99.0" in done.stderr
