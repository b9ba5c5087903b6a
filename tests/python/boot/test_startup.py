"""The start-up hook: every way of starting Python is guarded, and nobody else notices that it is there."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import textwrap
import time

import pytest
from conftest import PYTHON_DIR

needs_torch = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="torch is not installed here"
)

BAD_PROGRAM = """\
import torch
try:
    torch.zeros(3)[torch.tensor([3])]
except IndexError as error:
    import trapline
    print(type(error) is trapline.DeviceAssertError, isinstance(error, RuntimeError))
"""

# A torch that costs nothing to import; it is enough for what happens around the import.
FAKE_TORCH = """\
import sys
print("torch runs", type(__loader__).__name__, __spec__.loader is __loader__)
__version__ = "0.0"
"""


def markers(guarded):
    return sorted(path.name for path in guarded.reports.glob("guard-*.json"))


# Chaining -----------------------------------------------------------------------------------------


def with_hidden_sitecustomize(guarded, text):
    guarded.script("site/sitecustomize.py", text)
    return {"PYTHONPATH": guarded.env["PYTHONPATH"] + ":" + str(guarded.folder / "site")}


def test_hidden_sitecustomize_runs_under_its_own_name(guarded):
    env = with_hidden_sitecustomize(
        guarded, "import sys\nmine = (__name__, __file__, sys.modules[__name__].__file__)\n"
    )
    done = guarded.run(
        "-c", "import sitecustomize, sys; print(sitecustomize.mine, 'trapline._boot' in sys.modules)", **env
    )
    path = str(guarded.folder / "site" / "sitecustomize.py")
    assert done.stdout == f"{('sitecustomize', path, path)} True\n"
    assert done.stderr == ""


def test_nothing_that_lies_beside_the_package_comes_in(guarded):
    """The package may lie in a site-packages, whose other packages are none of the program's business."""
    shutil.copytree(PYTHON_DIR / "trapline", guarded.folder / "site-packages" / "trapline")
    guarded.script("site-packages/neighbour.py", "")
    startup = guarded.folder / "site-packages" / "trapline" / "startup"
    code = """\
    import importlib.util, os, sys, trapline, trapline.batch
    print(os.path.dirname(trapline.__file__), importlib.util.find_spec("neighbour"))
    print([entry for entry in sys.path if entry.startswith(os.getcwd() + os.sep)])
    """
    done = guarded.run("-c", textwrap.dedent(code), PYTHONPATH=str(startup))
    assert done.stdout == f"{startup.parent} None\n[]\n"


def test_without_a_hidden_one_there_is_none(guarded):
    code = """\
    import sys
    print([entry for entry in sys.path if entry.endswith("startup")])
    try:
        import sitecustomize
        print("found", sitecustomize.__file__)
    except ImportError as error:
        print(error)
    """
    done = guarded.run("-c", textwrap.dedent(code))
    plain = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        check=True,
        cwd=guarded.folder,
    )
    assert done.stdout == plain.stdout
    assert done.stdout.startswith("[]\n")
    assert done.stderr == ""


@pytest.mark.parametrize("text", ["raise ValueError('broken')", "import no_such_module_here", "1 +"])
def test_error_of_a_hidden_sitecustomize_is_reported_as_without_us(guarded, text):
    env = with_hidden_sitecustomize(guarded, text)
    plain = {"PYTHONPATH": str(guarded.folder / "site"), "TRAPLINE_GUARD": ""}
    code = "import sys; print('trapline._boot' in sys.modules)"
    with_us, without_us = guarded.run("-c", code, **env), guarded.run("-c", code, **plain)
    assert with_us.stderr == without_us.stderr != ""
    assert (with_us.stdout, without_us.stdout) == ("True\n", "False\n")


def test_exit_in_a_hidden_sitecustomize(guarded):
    """Fatal at start-up in every Python; the same with us."""
    env = with_hidden_sitecustomize(guarded, "raise SystemExit(7)")
    plain = {"PYTHONPATH": str(guarded.folder / "site"), "TRAPLINE_GUARD": ""}
    assert guarded.run("-c", "", **env).returncode == guarded.run("-c", "", **plain).returncode != 0


def test_two_hooks_of_this_kind_chain(guarded):
    other = """\
    import os, sys
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path.remove(here)
    del sys.modules["sitecustomize"]
    print("other")
    import sitecustomize
    """
    guarded.script("other/sitecustomize.py", other)
    guarded.script("last/sitecustomize.py", "print('last')")
    path = [guarded.env["PYTHONPATH"], str(guarded.folder / "other"), str(guarded.folder / "last")]
    assert guarded.run("-c", "print('run')", PYTHONPATH=":".join(path)).stdout == "other\nlast\nrun\n"


def test_usercustomize_runs(guarded):
    python = os.path.realpath(sys.executable)  # a virtual environment has no user site
    env = {**guarded.env, "PYTHONUSERBASE": str(guarded.folder)}

    def output(code):
        return subprocess.run(
            [python, "-c", code], env=env, capture_output=True, text=True, check=True
        ).stdout

    folder = output("import site; print(site.getusersitepackages())").strip()
    guarded.script(folder + "/usercustomize.py", "print('user')")
    assert output("print('run')") == "user\nrun\n"


# Importing torch ----------------------------------------------------------------------------------


def test_program_without_torch_is_left_alone(guarded):
    code = "import sys; print(sorted(m for m in sys.modules if m.startswith(('trapline', 'ctypes', 'json'))))"
    done = guarded.run("-c", code)
    library = ["trapline._library", "trapline._library.errors", "trapline._library.options"]
    assert done.stdout == f"{['trapline', 'trapline._boot', *library]}\n"
    assert (done.stderr, list(guarded.folder.rglob("*"))) == ("", [guarded.reports])
    took = {}
    for label, env in (("with", {}), ("without", {"PYTHONPATH": ""})):
        start = time.perf_counter()
        for _ in range(5):
            guarded.run("-c", "pass", **env)
        took[label] = (time.perf_counter() - start) / 5 * 1e3
    print(f"start of Python: {took['with']:.1f} ms with the hook, {took['without']:.1f} ms without")


def test_missing_torch_is_pythons_own_error(guarded):
    code = "import sys; sys.path[:] = [p for p in sys.path if 'site-packages' not in p]\nimport torch"
    done = guarded.run("-c", code)
    assert done.returncode == 1
    assert done.stderr.endswith("ModuleNotFoundError: No module named 'torch'\n")
    assert "trapline" not in done.stderr


def test_loader_and_spec_are_torchs_own(guarded):
    guarded.script("torch.py", FAKE_TORCH)
    code = "import torch; print('exec_module' in vars(torch.__loader__), type(torch.__loader__).__name__)"
    out = guarded.run("-c", code).stdout
    assert out == "torch runs SourceFileLoader True\nFalse SourceFileLoader\n"


def test_finding_torch_without_importing_it(guarded):
    guarded.script("torch.py", FAKE_TORCH)
    done = guarded.run("-c", "import importlib.util as u; print(u.find_spec('torch').origin)")
    assert done.stdout == f"{guarded.folder / 'torch.py'}\n"
    assert done.stderr == ""


def test_torch_that_cannot_be_imported(guarded):
    guarded.script("torch.py", "raise OSError('libcudart.so.12 is missing')")
    code = """\
    for _ in range(2):
        try:
            import torch
        except OSError as error:
            print(error, error.__context__, error.__traceback__.tb_next is not None)
    """
    done = guarded.run("-c", textwrap.dedent(code))
    assert done.stdout == "libcudart.so.12 is missing None True\n" * 2
    assert done.stderr == ""


def test_reload_and_threads(guarded):
    guarded.script("torch.py", "import time\ntime.sleep(0.2)\n" + FAKE_TORCH)
    code = """\
    import importlib, sys, threading
    from trapline import _boot
    calls = []
    _boot._activate = lambda say=True: calls.append("torch" in sys.modules)
    threads = [threading.Thread(target=__import__, args=("torch",)) for _ in range(4)]
    for t in threads: t.start()
    for t in threads: t.join()
    print(calls)
    import torch
    importlib.reload(torch)
    print(calls)
    """
    assert guarded.run("-c", textwrap.dedent(code)).stdout.replace(
        "torch runs SourceFileLoader True\n", ""
    ) == ("[True]\n[True]\n")


def test_guard_that_cannot_start_says_so_in_one_line_and_the_program_runs(guarded):
    guarded.script("torch.py", FAKE_TORCH)
    done = guarded.run(
        "-c", "import torch; print('on')", TRAPLINE_LIB="/nowhere/libtrapline.so", TRAPLINE_DEBUG=""
    )
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "on")
    assert done.stderr.startswith(
        "trapline: library: TRAPLINE_LIB names /nowhere/libtrapline.so, which is not a file"
    )
    assert len(done.stderr.splitlines()) == 1


# Real torch, every way of starting ----------------------------------------------------------------


@needs_torch
@pytest.mark.parametrize("how", ["script", "-c", "-m", "console", "subprocess", "torchrun"])
def test_every_way_of_starting_is_guarded(guarded, library, how):
    script = str(guarded.script("package_of_mine/__main__.py", BAD_PROGRAM))
    guarded.script("package_of_mine/__init__.py", "")
    console = guarded.script(
        "tool", f"#!{sys.executable}\nimport runpy\nrunpy.run_module('package_of_mine')\n"
    )
    child = f"import subprocess, sys; sys.exit(subprocess.run([sys.executable, {script!r}]).returncode)"
    torchrun = ("-m", "torch.distributed.run", "--nproc-per-node=1", "--standalone", script)
    commands = {
        "script": (script,),
        "-c": ("-c", BAD_PROGRAM),
        "-m": ("-m", "package_of_mine"),
        "console": (str(console),),
        "subprocess": ("-c", child),
        "torchrun": torchrun,
    }
    done = guarded.run(*commands[how], OMP_NUM_THREADS="1")
    assert "True True\n" in done.stdout, done.stderr
    # torchrun itself imports torch, and so does its rank.
    written = markers(guarded)
    assert len(written) == (2 if how == "torchrun" else 1)
    marker = json.loads((guarded.reports / written[0]).read_text())
    assert (marker["adapter"], marker["torch"]) == ("pure", __import__("torch").__version__)


@needs_torch
def test_off_switch(guarded, library):
    done = guarded.run("-c", BAD_PROGRAM, TRAPLINE_OFF="1")
    assert done.stdout == "False False\n"
    assert markers(guarded) == []
