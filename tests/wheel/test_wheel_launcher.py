"""`trapline` on PATH: which package the launcher becomes the program of."""

from __future__ import annotations

import os
import shutil
import subprocess

import pack
import pytest
from conftest import clean_environment

VERSION = pack.version()


@pytest.fixture
def prefix(launcher, tmp_path):
    """A prefix with the launcher in its bin."""
    folder = tmp_path / "prefix"
    (folder / "bin").mkdir(parents=True)
    shutil.copy(launcher, folder / "bin" / "trapline")
    return folder


def package(prefix, place, version=VERSION):
    """A package whose program says where it lies, and what it was called with."""
    folder = prefix / place / "trapline" / "_bin"
    folder.mkdir(parents=True)
    (folder / "version").write_text(version + "\n")
    (folder / "trapline").write_text(f'#!/bin/sh\necho {place} "$@"\nexit 7\n')
    (folder / "trapline").chmod(0o755)


def call(prefix, *arguments, **options):
    return subprocess.run(
        [str(prefix / "bin" / "trapline"), *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=clean_environment(),
        **options,
    )


@pytest.mark.parametrize(
    "place",
    [
        "lib/python3.11/site-packages",
        "lib/python3.13t/site-packages",
        "lib/pypy3.10/site-packages",
        "lib64/python3.9/site-packages",
        "lib/python3/dist-packages",
        "lib/python3.12/dist-packages",
        ".",
    ],
)
def test_places(prefix, place):
    package(prefix, place)
    done = call(prefix, "run", "--", "a b")
    assert (done.stdout, done.stderr, done.returncode) == (f"{place} run -- a b\n", "", 7)


def test_of_several_pythons_the_one_with_its_version(prefix):
    package(prefix, "lib/python3.10/site-packages", "0.0.1")
    package(prefix, "lib/python3.11/site-packages")
    package(prefix, "lib/python3.12/site-packages", VERSION + "0")
    assert call(prefix).stdout == "lib/python3.11/site-packages\n"


def test_through_a_link_as_pipx_makes_it(prefix, tmp_path):
    package(prefix, "lib/python3.11/site-packages")
    (tmp_path / "elsewhere" / "bin").mkdir(parents=True)
    (tmp_path / "elsewhere" / "bin" / "trapline").symlink_to(prefix / "bin" / "trapline")
    assert call(tmp_path / "elsewhere").returncode == 7


def test_by_name_from_another_folder(prefix):
    package(prefix, "lib/python3.11/site-packages")
    env = clean_environment(PATH=f"{prefix}/bin:{os.environ['PATH']}")
    done = subprocess.run(["trapline"], capture_output=True, text=True, check=False, env=env, cwd="/")
    assert done.returncode == 7


def test_prefix_with_a_patterns_characters(prefix, tmp_path):
    package(prefix, "lib/python3.11/site-packages")
    odd = tmp_path / "a[b]*? \\c"
    prefix.rename(odd)
    assert call(odd).returncode == 7


def test_says_what_it_did_not_find(prefix):
    done = call(prefix)
    assert done.returncode == 2
    assert done.stderr == (
        f"trapline: cannot find its package: none in {prefix}/lib/python*/site-packages: "
        "install trapline again\n"
    )


def test_says_that_only_another_version_is_there(prefix):
    package(prefix, "lib/python3.11/site-packages", "0.0.1")
    done = call(prefix)
    folder = prefix / "lib/python3.11/site-packages/trapline"
    assert done.returncode == 2
    assert done.stderr == (
        f"trapline: the package in {folder} is not of version {VERSION}: install trapline again\n"
    )
