"""Whose code a frame is: the user's, an installed package's, or code that a library wrote or fetched."""

import importlib.util
import linecache
import os
import sys
import tempfile
import types

import pytest

torch = pytest.importorskip("torch")

from trapline._fault.program import frames, places, source  # noqa: E402


@pytest.fixture(autouse=True)
def _fresh():
    """Answers are kept by file name; modules of one test must not answer for another's."""
    before = dict(sys.modules)
    for cached in (places.is_library_file, places._recorded, places._library_roots):
        cached.cache_clear()
    yield
    for name in set(sys.modules) - set(before):
        del sys.modules[name]
    places.is_library_file.cache_clear()


def imported(name, path):
    """A module of a file, as spec_from_file_location makes one."""
    spec = importlib.util.spec_from_file_location(name, str(path))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def generated(name, folder=None):
    """A file that a library writes among the temporary ones and imports, as PyTorch Geometric does."""
    with tempfile.NamedTemporaryFile("w", prefix=f"{name}_", suffix=".py", delete=False, dir=folder) as file:
        file.write("def collect(x):\n    return x\n")
    module = imported(name, file.name)
    os.unlink(file.name)
    return module.collect.__code__


def test_a_generated_file_of_an_installed_package_is_not_the_users(monkeypatch, tmp_path):
    assert not places.is_user(generated("torch.nn.made_GATConv_propagate"))
    assert not places.is_user(generated("torch.nn.made_again", tmp_path))  # wherever it was written
    # the user's own convolution: the package of its module is the script, the file still nobody's
    assert not places.is_user(generated("__main___MyConv_propagate"))


def test_a_users_module_loaded_from_a_file_is_the_users(tmp_path):
    for name in ("config", "another_name", "pkg.part"):
        path = tmp_path / "config.py"
        path.write_text("def collect(x):\n    return x\n")
        assert places.is_user(imported(name, path).collect.__code__)


def test_a_package_that_was_unpacked_beside_its_record(monkeypatch, tmp_path):
    site, project = tmp_path / "layer", tmp_path / "project"
    for folder in (
        site / "lib" / "sub",
        site / "lib-1.0.dist-info",
        project / "mine.egg-info",
        project / "mine",
    ):
        folder.mkdir(parents=True)
    (site / "lib-1.0.dist-info" / "RECORD").write_text("lib/__init__.py,,\nlib/sub/a.py,,\nsingle.py,,\n")
    (project / "mine.egg-info" / "SOURCES.txt").write_text("mine/a.py\n")
    monkeypatch.setattr(sys, "path", [str(site), str(project), *sys.path])
    assert places.is_library_file(str(site / "lib" / "sub" / "a.py"))
    assert places.is_library_file(str(site / "single.py"))
    assert not places.is_library_file(str(site / "handler.py"))
    assert not places.is_library_file(str(project / "mine" / "a.py"))  # pip install -e of one's own


@pytest.mark.parametrize(
    "file",
    [
        "/home/u/.cache/huggingface/modules/transformers_modules/org/model/modeling_x.py",
        "/home/u/.cache/torch/hub/ultralytics_yolov5_master/models/common.py",
        "<attrs generated init app.Config>",
        "<template>",
        "<eval_with_key>.7",
        "/tmp/torchinductor_me/ab/cab.py",
        "/opt/venv/lib/python3.11/site-packages/pkg/a.py",
    ],
)
def test_what_is_nobodys(file):
    assert places.is_library_file(file)


@pytest.mark.parametrize(
    "file",
    ["<stdin>", "<console>", "<doctest app.f[0]>", "<command-1234>", "/home/u/torch/hub.py", "app.pyz/a.py"],
)
def test_what_is_the_users(file):
    assert not places.is_library_file(file)


def test_a_cell_goes_by_its_number(monkeypatch):
    shell = types.SimpleNamespace(compile=types.SimpleNamespace(_filename_map={"/tmp/x/1811978475.py": 4}))
    module = types.ModuleType("IPython.core.interactiveshell")
    module.InteractiveShell = types.SimpleNamespace(_instance=shell)
    monkeypatch.setitem(sys.modules, "IPython.core.interactiveshell", module)
    name, text = "/tmp/x/1811978475.py", "def f():\n    return here()\n"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space = {"here": lambda: [(sys._getframe(1).f_code, sys._getframe(1).f_lasti)]}
    exec(compile(text, name, "exec"), space)
    frame = frames.make_stack(space["f"]())[-1]
    assert (frame["cell"], frame["line"], frame["user"], frame["code"]) == (4, 2, True, "    return here()")
    assert source.cell_of("<ipython-input-12-0a1b2c>") == 12
    assert source.cell_of("/tmp/train.py") is None
    assert "cell" not in frames.make_frame((test_a_cell_goes_by_its_number.__code__, 0))


def test_a_module_without_a_dict(monkeypatch, tmp_path):
    """cffi puts such ones into sys.modules."""

    class Lib(types.ModuleType):
        def __getattribute__(self, name):
            raise AttributeError(name)

    class Bare(Lib):
        __dict__ = property(lambda self: (_ for _ in ()).throw(AttributeError("__dict__")))

    monkeypatch.setitem(sys.modules, "_cffi_backend.Lib", Bare("lib"))
    assert places._file_of(Bare("lib")) is None
    assert not places.is_library_file(str(tmp_path / "train.py"))
