"""The package's own face: the exception, install() in a notebook, switching, and the C structures."""

from __future__ import annotations

import ast
import copy
import ctypes
import pickle
import re
import shutil
import subprocess

import pytest
import trapline
from conftest import BUILD_DIR, REPO
from trapline._library import calls, capi, paths


def test_version_is_the_projects():
    project = re.search(r"project\(trapline VERSION ([\d.]+)", (REPO / "CMakeLists.txt").read_text())
    assert project is not None and trapline.__version__ == project.group(1)


def test_exception_is_caught_by_handlers_for_torchs_own():
    error = trapline.DeviceAssertError("target[3] = 195", {"code": "TL101"})
    assert isinstance(error, IndexError) and isinstance(error, RuntimeError)
    assert (str(error), error.finding) == ("target[3] = 195", {"code": "TL101"})
    assert repr(type(error)) == "<class 'trapline.DeviceAssertError'>"


@pytest.mark.parametrize("again", [copy.copy, lambda e: pickle.loads(pickle.dumps(e))])
def test_exception_crosses_processes(again):
    error = again(trapline.DeviceAssertError("s", {"a": 1}))
    assert (type(error), str(error), error.finding) == (trapline.DeviceAssertError, "s", {"a": 1})


def test_exception_from_text_alone():
    # torch.utils.data's ExceptionWrapper makes it again from its text.
    assert trapline.DeviceAssertError("only text").finding == {}


def test_importing_the_package_imports_little(guarded):
    code = (
        "import sys; import trapline; print(sorted(m for m in sys.modules if 'torch' in m or 'ctypes' in m))"
    )
    assert guarded.run("-c", code).stdout == "[]\n"


def test_library_as_a_notebook_uses_it(guarded, library):
    pytest.importorskip("torch")
    code = """\
    import trapline
    trapline.install()
    print(trapline.is_active())
    import torch
    print(trapline.is_active())
    x, bad = torch.zeros(3), torch.tensor([3])
    def attempt():
        try:
            x[bad]
        except IndexError as error:
            print(type(error).__name__, isinstance(getattr(error, "finding", None), dict))
    attempt()
    with trapline.enabled(False):
        attempt()
    attempt()
    print(trapline.set_enabled(False), trapline.set_enabled(True))
    trapline.uninstall()
    attempt()
    trapline.install()
    attempt()
    """
    script = guarded.script("cell.py", code)
    done = guarded.run(
        str(script), PYTHONPATH=str(REPO / "python"), TRAPLINE_REPORT_DIR="", TRAPLINE_GUARD=""
    )
    assert done.stdout.splitlines() == [
        "False",
        "True",
        "DeviceAssertError True",
        "IndexError False",
        "DeviceAssertError True",
        "True False",
        "IndexError False",
        "DeviceAssertError True",
    ], done.stderr
    assert list(guarded.reports.iterdir()) == []


def test_install_names_a_missing_library(guarded):
    done = guarded.run("-c", "import trapline; trapline.install()", TRAPLINE_LIB="/nowhere/libtrapline.so")
    assert done.stderr.splitlines()[-1] == (
        "ImportError: trapline: library: TRAPLINE_LIB names /nowhere/libtrapline.so, which is not a file: "
        "unset it or point it at libtrapline.so"
    )


def _compile(tmp_path, source, *options):
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler here")
    file = tmp_path / "probe.c"
    file.write_text(source)
    out = tmp_path / "probe"
    include = f"-I{REPO / 'include'}"
    subprocess.run([compiler, include, *options, str(file), "-o", str(out)], check=True)
    return out


def test_library_of_another_version_is_refused(tmp_path):
    library = _compile(tmp_path, "int trapline_capi_version(void) { return 99; }", "-shared", "-fPIC")
    with pytest.raises(
        ImportError, match=r"^trapline: library: .* speaks version 99 of capi\.h, this package"
    ):
        calls.load(str(library))
    (tmp_path / "text.so").write_text("no library")
    with pytest.raises(ImportError, match=r"^trapline: library: cannot load .*text\.so .*: build it again"):
        calls.load(str(tmp_path / "text.so"))


# Each structure of the module, by the name that it has in C.
STRUCTURES = {
    "trapline_" + re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower(): kind
    for name, kind in vars(capi).items()
    if isinstance(kind, type) and issubclass(kind, ctypes.Structure)
}
NUMBERS = {name: value for name, value in vars(capi).items() if type(value) is int}


def test_the_binding_is_what_a_compiler_makes_of_the_header(tmp_path):
    """Every field at the header's offset, no field forgotten (the sizes agree), every number the header's."""
    lines, expected = [], []
    assert {"trapline_tensor", "trapline_scan", "trapline_device_check"} <= set(STRUCTURES)
    assert {"OK", "PREDICATE_MASK_COUNT", "OTHER_DTYPE", "CAPI_VERSION"} <= set(NUMBERS)
    for name, structure in STRUCTURES.items():
        lines.append(f'printf("{name} %zu\\n", sizeof({name}));')
        expected.append(f"{name} {ctypes.sizeof(structure)}")
        for field, _ in structure._fields_:
            lines.append(f'printf("{name}.{field} %zu\\n", offsetof({name}, {field}));')
            expected.append(f"{name}.{field} {getattr(structure, field).offset}")
    for name, value in NUMBERS.items():
        lines.append(f'printf("{name} %d\\n", (int)TRAPLINE_{name});')
        expected.append(f"{name} {value}")
    source = "#include <stddef.h>\n#include <stdio.h>\n#include <trapline/capi.h>\n"
    program = _compile(tmp_path, source + "int main(void) {" + "".join(lines) + "return 0; }")
    assert (
        subprocess.run([program], capture_output=True, text=True, check=True).stdout.splitlines() == expected
    )


def test_diagnose_takes_what_json_cannot_say(library, monkeypatch):
    monkeypatch.setenv("TRAPLINE_LIB", str(library))
    answer = paths.call_diagnose({"kind": "violation", "scan": {"value": float("nan")}, "text": "\udc80"})
    assert set(answer) & {"finding", "error"}
    assert str(BUILD_DIR) in str(paths.library()._name)


def test_stub_names_what_the_package_has():
    stub = ast.parse((REPO / "python" / "trapline" / "__init__.pyi").read_text(encoding="utf-8"))
    named = {node.name for node in stub.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    assert named | {"__version__"} == set(trapline.__all__)
    assert all(hasattr(trapline, name) for name in named)
