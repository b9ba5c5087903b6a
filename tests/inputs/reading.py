"""Runs inputs_dump, in little memory, and puts its pieces together again."""

import json
import os
import resource
import subprocess
from pathlib import Path
from typing import Any, Optional

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("TRAPLINE_BUILD_DIR", ROOT / "build"))
DUMP = BUILD / "bin" / "inputs_dump"
MEMORY = 512 << 20  # bytes of address space, for whatever a file claims

# Half-precision numbers are dumped as their bits.
DTYPES = {"float16": np.uint16, "bfloat16": np.uint16, "bool": np.uint8}


class Column:
    """One column: its values in the order in which they came, and the row of each."""

    def __init__(self, dtype: str, sizes: list) -> None:
        self.dtype, self.sizes = dtype, sizes
        self.values: list = []
        self.rows: list = []
        self.files: list = []
        self.pieces: list = []
        self.malformed: list = []
        self.class_names: list = []

    def array(self) -> np.ndarray:
        """The values in the shape of the column."""
        return np.array(self.values, DTYPES.get(self.dtype, self.dtype)).reshape(self.sizes)


class Reading:
    """What one run of inputs_dump said."""

    def __init__(self, code: int, lines: list, error: str) -> None:
        self.code, self.error = code, error
        self.reader: Optional[str] = None
        self.columns: dict = {}
        self.all: list = []  # (name, column), for sources with several columns of one name
        self.skipped: dict = {}
        self.objects: list = []  # (where, what): no tensors
        self.ended: Optional[bool] = None
        for line in lines:
            self._take(line)

    def _take(self, line: dict) -> None:
        if "reader" in line:
            self.reader = line["reader"]
        elif "begin" in line:
            self.columns[line["begin"]] = Column(line["dtype"], line["sizes"])
            self.all.append((line["begin"], self.columns[line["begin"]]))
        elif "piece" in line:
            column = self.columns[line["piece"]]
            column.pieces.append(line)
            column.values += line["values"]
            column.files.append(line["file"])
            if line["row_of"]:
                assert len(line["row_of"]) == len(line["values"])
                column.rows += line["row_of"]
            elif line["sizes"]:
                per_row = len(line["values"]) // line["sizes"][0]
                for i in range(line["sizes"][0]):
                    column.rows += [line["first_row"] + i] * per_row
        elif "malformed" in line:
            self.columns[line["malformed"]].malformed.append((line["row"], line["text"]))
        elif "skipped" in line:
            self.skipped[line["skipped"]] = line["why"]
        elif "object" in line:
            self.objects.append((line["object"], line["type"]))
        elif "class_names" in line:
            self.columns[line["class_names"]].class_names = [tuple(name) for name in line["names"]]
        elif "end" in line:
            self.ended = line["end"]


def read(path: Any, *columns: str, limit: int = MEMORY) -> Reading:
    """What the reader of ``path`` delivers in ``limit`` bytes; ``columns``: only these are wanted."""

    def set_limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    done = subprocess.run(
        [str(DUMP), str(path), *columns],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        check=False,
        timeout=120,
        preexec_fn=set_limit,
    )
    error = done.stderr.decode(errors="replace")
    assert done.returncode in (0, 2), f"exit code {done.returncode}: {error}"
    lines = [json.loads(line) for line in done.stdout.decode(errors="replace").splitlines()]
    assert (done.returncode == 2) == bool(error), error
    assert error.count("\n") <= 1
    return Reading(done.returncode, lines, error.strip())


def read_well(path: Any, *columns: str, limit: int = MEMORY) -> Reading:
    """As read(); the file must be good."""
    reading = read(path, *columns, limit=limit)
    assert reading.error == ""
    assert reading.ended is True
    return reading


def write(path: Path, data: bytes) -> Path:
    """``data`` as a file."""
    path.write_bytes(data)
    return path
