"""What a guarded operation calls is not checked again, unless the operation itself could not be checked."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]

# The table with one row more: nll_loss decomposes into nll_loss_forward. The library does not know the row,
# so its verdict on every call is that the row does not apply.
TABLE = r"""
#include <dlfcn.h>
#include <cstdlib>
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
      if (std::string_view(row.id) != "nll_loss_forward.target") continue;
      row.id = "nll_loss.target";
      row.op = "aten::nll_loss";
      row.composite = 1;
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
device = sys.argv.pop(1)
if device == "cuda":  # of --cpu, with late work
    os.environ.update(TRAPLINE_CPU="1", TRAPLINE_CPU_LATE="0")
sys.path[:0] = sys.argv[1:]
from trapline import _boot
if device == "cuda":
    _boot.watch_for_cpu()
import torch
if device == "cuda":
    from trapline._cpu import redirect
    redirect.install()
from conftest import Fault, Guard, load_adapter
guard = Guard(load_adapter())
try:
    labels = torch.tensor([0, 7]).to(device)
    torch.ops.aten.nll_loss(torch.zeros(2, 3, device=device), labels).item()
except Fault as fault:
    print("reported", fault)
except Exception as error:
    print("missed:", error)
else:
    print("missed")
print(sorted({call["op"] for call in guard.module.history()}))
"""


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_row_that_does_not_apply_does_not_switch_off_the_check_inside(tmp_path, device):
    from trapline._library import paths

    source, shim = tmp_path / "table.cpp", tmp_path / "table.so"
    source.write_text("#include <string_view>\n" + TABLE)
    subprocess.run(
        ["c++", "-std=c++20", "-shared", "-fPIC", f"-I{ROOT / 'include'}", str(source), "-o", str(shim)],
        check=True,
    )
    done = subprocess.run(
        [
            sys.executable,
            "-W",
            "ignore",
            "-c",
            RUN,
            device,
            str(HERE),
            str(ROOT / "python"),
            str(ROOT / "tests" / "python"),
        ],
        env={**os.environ, "LD_PRELOAD": str(shim), "TRAPLINE_TEST_LIBRARY": paths.library_path()},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    said, history = done.stdout.splitlines()[-2:]
    assert "'aten::nll_loss'" in history, history  # the row was taken
    assert said == "reported nll_loss_forward.target"
