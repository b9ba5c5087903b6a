"""The sdist: the sources as git has them, from which the backend packs the same sdist again."""

from __future__ import annotations

import subprocess
import sys
import tarfile

import pack
import pytest
from conftest import REPO

CALL = "import sys; sys.path.insert(0, 'packaging'); import backend; print(backend.build_sdist(sys.argv[1]))"


def build(folder, out):
    out.mkdir()
    done = subprocess.run(
        [sys.executable, "-B", "-c", CALL, str(out)], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return out / done.stdout.strip()


@pytest.fixture(scope="module")
def sdist(tmp_path_factory):
    if not (REPO / ".git").exists():
        pytest.skip("not a checkout")
    return build(REPO, tmp_path_factory.mktemp("sdist") / "out")


def test_name_and_content(sdist):
    base = f"trapline-{pack.version()}"
    assert sdist.name == f"{base}.tar.gz"
    with tarfile.open(sdist) as tar:
        names = {name[len(base) + 1 :] for name in tar.getnames()}
        assert tar.getmember(f"{base}/scripts/wheel.sh").mode == 0o755
        information = tar.extractfile(f"{base}/PKG-INFO").read().decode()
    assert {
        "pyproject.toml",
        "CMakeLists.txt",
        "LICENSE",
        "src/cli/main.cpp",
        "python/trapline/__init__.py",
    } < names
    assert not [
        name for name in names if name.startswith(("build", "dist", ".venv")) or name.endswith(".pyc")
    ]
    assert f"\nName: trapline\nVersion: {pack.version()}\n" in information


def test_an_unpacked_sdist_packs_itself_again(sdist, tmp_path):
    with tarfile.open(sdist) as tar:
        tar.extractall(tmp_path)
    again = build(tmp_path / f"trapline-{pack.version()}", tmp_path / "out")
    assert again.read_bytes() == sdist.read_bytes()
