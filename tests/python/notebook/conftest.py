"""Notebooks that are run for real, by a kernel of their own."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

ROOT = Path(__file__).resolve().parents[3]


class Notebook:
    """Runs cells one after the other; each gives its outputs."""

    def __init__(self, folder: Path) -> None:
        notebook = nbformat.v4.new_notebook()
        notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
        self.client = nbclient.NotebookClient(
            notebook, timeout=400, allow_errors=True, resources={"metadata": {"path": str(folder)}}
        )

    def run(self, source: str) -> Cell:
        notebook = self.client.nb
        notebook.cells.append(nbformat.v4.new_code_cell(source))
        at = len(notebook.cells) - 1
        return Cell(self.client.execute_cell(notebook.cells[at], at).outputs)


class Cell:
    def __init__(self, outputs: list) -> None:
        self.outputs = outputs

    def stream(self, name: str = "stdout") -> str:
        return "".join(o.text for o in self.outputs if o.output_type == "stream" and o.name == name)

    def errors(self) -> list:
        return [o for o in self.outputs if o.output_type == "error"]

    def shown(self, form: str = "text/html") -> list[str]:
        return [o.data[form] for o in self.outputs if "data" in o and form in o.data]


@pytest.fixture
def start(tmp_path, monkeypatch):
    """Starts a kernel; it has Trapline's Python part on its path, and nothing else of it."""
    monkeypatch.setenv("TRAPLINE_BUILD_DIR", os.environ.get("TRAPLINE_BUILD_DIR", str(ROOT / "build")))
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "python"))
    monkeypatch.setenv("JUPYTER_PREFER_ENV_PATH", "1")
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    kernels = tmp_path / "share" / "kernels" / "python3"
    kernels.mkdir(parents=True)
    kernels.joinpath("kernel.json").write_text(
        json.dumps(
            {
                "argv": [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
                "display_name": "Python 3",
                "language": "python",
            }
        )
    )
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "share"))
    contexts = []

    def go(**environment: str) -> Notebook:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        notebook = Notebook(tmp_path)
        context = notebook.client.setup_kernel()
        context.__enter__()
        contexts.append(context)
        return notebook

    yield go
    for context in contexts:
        context.__exit__(None, None, None)
