"""uvicorn with the CUDA device made of the CPU and nothing else of Trapline: what the other contenders run.

python unguarded.py --host 127.0.0.1 --port 8000 served:plain
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python"), str(Path(__file__).parent)]

from trapline import _boot  # noqa: E402

_boot.watch_for_cpu()

import torch  # noqa: E402, F401
import uvicorn  # noqa: E402
from trapline._cpu import redirect  # noqa: E402

redirect.install()
uvicorn.main()
