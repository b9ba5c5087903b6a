"""Operations of other libraries: a row with their full name guards them, whenever they are registered."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]

# The table with one row more: the contract of embedding for an operation of another library. What makes the
# verdict is found by the row's id.
TABLE = r"""
#include <dlfcn.h>
#include <cstdlib>
#include <string_view>
#include <vector>
#include "trapline/capi.h"

extern "C" const trapline_contract* trapline_contracts(size_t* count) {
  static const auto* const rows = [] {
    void* library = dlopen(std::getenv("TRAPLINE_TEST_LIBRARY"), RTLD_NOW | RTLD_NOLOAD);
    const auto real = reinterpret_cast<decltype(&trapline_contracts)>(dlsym(library, "trapline_contracts"));
    size_t all = 0;
    const trapline_contract* table = real(&all);
    auto* more = new std::vector<trapline_contract>(table, table + all);
    for (size_t i = 0; i < all; ++i) {
      trapline_contract row = table[i];
      if (std::string_view(row.id) != "embedding.indices") continue;
      row.op = "their_library::lookup";
      more->push_back(row);
    }
    return more;
  }();
  *count = rows->size();
  return rows->data();
}
"""

RUN = r"""
import os, sys
device, when = sys.argv[1:3]
if device == "cuda":  # of --cpu, with late work
    os.environ.update(TRAPLINE_CPU="1", TRAPLINE_CPU_LATE="0")
sys.path[:0] = sys.argv[3:]
from trapline import _boot
if device == "cuda":
    _boot.watch_for_cpu()
import torch
if device == "cuda":
    from trapline._cpu import redirect
    redirect.install()
from conftest import Fault, Guard, load_adapter

def register():
    library = torch.library.Library("their_library", "DEF")
    library.define("lookup(Tensor weight, Tensor indices) -> Tensor")
    def lookup(weight, indices):
        return weight.index_select(0, indices)
    library.impl("lookup", lookup, "CPU")
    library.impl("lookup", lookup, "CUDA")
    return library

if when == "before":
    library = register()
guard = Guard(load_adapter())
if when == "after":
    library = register()
    torch.nn.functional.embedding(torch.tensor([0]), torch.eye(3))  # a guarded call, and a good one
try:
    ids = torch.tensor([1, 3], device=device)
    torch.ops.their_library.lookup(torch.eye(3, device=device), ids).sum().item()
except Fault as fault:
    seen = guard.violations[-1]
    print("reported", fault, seen["op"], seen["scan"]["value"])
else:
    print("missed")
print("their_library::lookup" in guard.module.info()["overloads"])
"""


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_an_operation_of_another_library_is_a_row(tmp_path, device, when):
    from trapline._library import paths

    source, shim = tmp_path / "table.cpp", tmp_path / "table.so"
    source.write_text(TABLE)
    compiled = [
        "c++",
        "-std=c++20",
        "-shared",
        "-fPIC",
        f"-I{ROOT / 'include'}",
        str(source),
        "-o",
        str(shim),
    ]
    subprocess.run(compiled, check=True)
    folders = [str(HERE), str(ROOT / "python"), str(ROOT / "tests" / "python")]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", RUN, device, when, *folders],
        env={**os.environ, "LD_PRELOAD": str(shim), "TRAPLINE_TEST_LIBRARY": paths.library_path()},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-2:] == ["reported embedding.indices their_library::lookup 3", "True"]
