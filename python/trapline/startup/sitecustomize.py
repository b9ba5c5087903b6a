"""Start-up hook: ``trapline run`` puts this directory first on PYTHONPATH; every Python below reads this.

Python imports ``sitecustomize`` once per process. This one makes itself invisible: it takes its directory off
``sys.path`` (child processes get it by PYTHONPATH again), imports the sitecustomize that it hides, if there
is one, under its own name, and lets Trapline wait for ``import torch``. What the hidden one raises is raised.
"""

import os
import sys


def _startup():
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or os.curdir) != here]
    sys.modules.pop("sitecustomize", None)
    try:
        # The import system hands out what it finds in sys.modules after this module has run: the hidden one,
        # or, when there is none, the ImportError that `site` expects and ignores.
        import sitecustomize  # noqa: F401
    finally:
        if os.environ.get("TRAPLINE_GUARD") == "1":
            _install()


def _install():
    # The package that belongs to this file, not what lies beside it: that may be a whole site-packages.
    here = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    sys.path.insert(0, here)
    try:
        from trapline import _boot

        _boot.install()
    except Exception as error:
        if os.environ.get("TRAPLINE_DEBUG") == "1":
            sys.stderr.write(f"trapline: start-up: {error!r}: this process is not guarded\n")
    finally:
        if here in sys.path:
            sys.path.remove(here)


_startup()
