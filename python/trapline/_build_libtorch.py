"""``python3 .../trapline/_build_libtorch.py --libtorch DIR``: compile the guard for C++ programs.

Any Python will do: no torch for Python is needed.
"""

from __future__ import annotations

import os
import sys

if __package__ in (None, ""):  # started as a file
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from trapline._extension import libtorch

if __name__ == "__main__":
    sys.exit(libtorch.main())
