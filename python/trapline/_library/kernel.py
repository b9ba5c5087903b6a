"""The extension module of ``src/kernel``: one binary for any torch and any Python, beside libtrapline.so and
linked with neither that nor torch.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from trapline._library import paths

if TYPE_CHECKING:
    from types import ModuleType

_NAME = "trapline_kernel"

_module: ModuleType | None = None


def path() -> str:
    """Where the extension module is, or would be."""
    return os.path.join(os.path.dirname(paths.library_path()), f"{_NAME}.abi3.so")


def load() -> ModuleType:
    """The extension module, ready for the running torch.

    Raises:
        ImportError: there is none, it cannot be loaded, or it was built for another libtrapline.
    """
    global _module
    if _module is None:
        import ctypes
        from importlib.machinery import ExtensionFileLoader
        from importlib.util import module_from_spec, spec_from_loader

        import torch

        spec = spec_from_loader(_NAME, ExtensionFileLoader(_NAME, path()))
        assert spec is not None and spec.loader is not None
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
        library = paths.library()
        check = ctypes.cast(library.trapline_check, ctypes.c_void_p).value
        module.prepare(torch, check, library.trapline_capi_version())
        _module = module
    return _module
