"""The package on the path; all of it needs libtrapline.so, each test the library that it is about."""

import os
import sys
from pathlib import Path

REPO = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(REPO / "python"))
os.environ.setdefault("TRAPLINE_BUILD_DIR", str(REPO / "build"))
