"""The adapter's build says in one line what is missing."""

from __future__ import annotations

import os
import shutil
import stat
import sys

import portable
import pytest
from trapline._extension import compiler

pytestmark = portable.compiled_only


def one_line(error, *parts):
    text = str(error.value)
    assert text.startswith("trapline: guard: ") and "\n" not in text
    for part in parts:
        assert part in text


def test_name_tells_torch_python_and_sources(tmp_path, monkeypatch):
    import torch

    name = compiler.adapter_name()
    assert name.startswith(f"trapline_guard-torch{torch.__version__.replace('+cpu', '')}-abi3-")
    minor = f"{sys.version_info[0]}{sys.version_info[1]}"
    assert compiler.adapter_name(compiler.FRAMES).startswith(f"trapline_frames-cpython-{minor}-")
    other = tmp_path / "guard"
    (other / "python").mkdir(parents=True)
    (other / "check.cpp").write_text("// something else")
    (other / "python" / "module.cpp").write_text("// something else")
    monkeypatch.setenv("TRAPLINE_GUARD_SRC", str(other))
    assert compiler.adapter_name() != name


@pytest.mark.parametrize(
    ("version", "said"),
    [
        ("2.13.0+cpu", "2.13.0"),
        ("2.9.1+cu128", "2.9.1"),
        ("2.9.1", "2.9.1+other"),
        ("2.9.0a0+145a3a7", "2.9.0a0+145a3a7"),
        ("2.9.0a0+145a3a7.nv25.10", "2.9.0a0+145a3a7.nv25.10"),
        ("2.10.0+rocm7.1", "2.10.0+rocm7.1"),
        ("2.10.0.dev20251001+cu130", "2.10.0.dev20251001+cu130"),
    ],
)
def test_builds_of_one_release_share_an_adapter(monkeypatch, version, said):
    import torch

    monkeypatch.setattr(torch, "__version__", version)
    assert compiler.torch_build() == said


def test_no_compiler(tmp_path, monkeypatch):
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(compiler.BuildError) as error:
        compiler.build(str(tmp_path / "out"))
    one_line(error, "no C++ compiler", "install one")


def test_named_compiler_is_missing(tmp_path, monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler --flag")
    with pytest.raises(compiler.BuildError) as error:
        compiler.build(str(tmp_path / "out"))
    one_line(error, "CXX names no-such-compiler")


def test_no_python_headers(tmp_path, monkeypatch):
    monkeypatch.setattr(compiler, "python_includes", lambda: [str(tmp_path)])
    with pytest.raises(compiler.BuildError) as error:
        compiler.build(str(tmp_path / "out"))
    one_line(error, f"no Python.h in {tmp_path}", "-dev")


def test_no_library(tmp_path, monkeypatch):
    monkeypatch.setenv("TRAPLINE_LIB", str(tmp_path / "libtrapline.so"))
    with pytest.raises(compiler.BuildError) as error:
        compiler.build(str(tmp_path / "out"))
    assert "TRAPLINE_LIB names" in str(error.value) and "\n" not in str(error.value)


def test_no_sources(tmp_path, monkeypatch):
    monkeypatch.setenv("TRAPLINE_GUARD_SRC", str(tmp_path / "nowhere"))
    with pytest.raises(compiler.BuildError) as error:
        compiler.build(str(tmp_path / "out"))
    one_line(error, "no sources in")


def test_output_folder_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(compiler.BuildError) as error:
        compiler.build(str(tmp_path / "file" / "out"))
    one_line(error, "cannot write to", "name another folder")


def test_compiler_that_fails(tmp_path, monkeypatch):
    broken = tmp_path / "c++"
    broken.write_text("#!/bin/sh\necho 'guard.cpp:1: fatal error: nothing works'\nexit 1\n")
    broken.chmod(broken.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("CXX", str(broken))
    with pytest.raises(compiler.BuildError) as error:
        compiler.build(str(tmp_path / "out"))
    one_line(error, "failed (nothing works)", "see ")
    left = os.listdir(tmp_path / "out")
    log = next(name for name in left if name.endswith(".log"))
    assert "nothing works" in (tmp_path / "out" / log).read_text()
    assert not [name for name in left if name.endswith(".so") or name.startswith(".building")]


@pytest.mark.parametrize(
    ("file", "old", "new", "what"),
    [
        ("autograd/python_variable.h", "  at::Tensor cdata;", "  at::Tensor* cdata;", "THPVariable"),
        ("autograd/python_variable.h", "  PyObject_HEAD\n", "  PyObject_HEAD\n  int kind;\n", "THPVariable"),
        ("autograd/python_variable.h", "(const at::TensorBase& var);", "(Any var);", "THPVariable_Wrap"),
        (
            "Exceptions.h",
            "  std::string message;\n};",
            "  std::string message;\n  int more;\n};",
            "python_error",
        ),
        ("Exceptions.h", "  void build_message()", "  virtual void build_message()", "python_error"),
    ],
)
def test_layout_that_is_not_known_is_refused(tmp_path, file, old, new, what):
    from trapline._extension import layout

    (include,) = compiler._torch_includes()[:1]
    copy = tmp_path / "torch" / "csrc"
    (copy / "autograd").mkdir(parents=True)
    for name in ("autograd/python_variable.h", "Exceptions.h"):
        shutil.copy(os.path.join(include, "torch", "csrc", name), copy / name)
    assert layout.defines(str(tmp_path)) == []
    text = (copy / file).read_text()
    assert text.count(old) == 1
    (copy / file).write_text(text.replace(old, new))
    with pytest.raises(compiler.BuildError) as error:
        layout.defines(str(tmp_path))
    one_line(error, f"{what} in {copy}", "ask for a newer Trapline")
