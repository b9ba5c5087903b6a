"""``python -m trapline ...``: the program ``trapline``, where it is not on PATH."""

from __future__ import annotations

import os
import sys

from trapline._library import paths

if __name__ == "__main__":
    program = paths.program_path()
    try:
        os.execv(program, [program, *sys.argv[1:]])
    except OSError as error:
        sys.stderr.write(f"trapline: cannot start {program}: {error.strerror}: install Trapline again\n")
        sys.exit(2)
