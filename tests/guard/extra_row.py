"""The contracts table with one row more, for a process that a test starts.

The library does not know it: its verdict is that of the row with the same id, or that none applies.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
_SHIM = r"""
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
      if (std::string_view(row.id) != "LIKE") continue;
      CHANGES
      more->push_back(row);
    }
    return more;
  }();
  *count = rows->size();
  return rows->data();
}
"""


def environment(folder: Path, like: str, **changes: Any) -> dict[str, str]:
    """The environment of a process whose table has a copy of the row ``like`` with members changed."""
    from trapline._library import paths

    assigned = (
        f'row.{name} = "{value}";' if isinstance(value, str) else f"row.{name} = {value};"
        for name, value in changes.items()
    )
    source, shim = folder / "table.cpp", folder / "table.so"
    source.write_text(_SHIM.replace("LIKE", like).replace("CHANGES", " ".join(assigned)))
    command = ["c++", "-std=c++20", "-shared", "-fPIC", f"-I{ROOT / 'include'}", str(source), "-o", str(shim)]
    subprocess.run(command, check=True)
    # A sanitizer that was preloaded for this process is for that one, too.
    preload = " ".join(filter(None, [os.environ.get("LD_PRELOAD"), str(shim)]))
    return {**os.environ, "LD_PRELOAD": preload, "TRAPLINE_TEST_LIBRARY": paths.library_path()}
