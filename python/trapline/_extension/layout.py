"""How the running torch's Python tensors and errors lie in memory, as its headers say.

The guard declares them itself (``src/guard/python/torch_python.hpp``), since PyTorch's headers would tie it
to one version of Python. What is not known here is not guessed.
"""

from __future__ import annotations

import os
import re

from trapline._extension.recipe import BuildError

# `cdata`, the first member after the object's head.
_TENSORS = {"at::Tensor": [], "c10::MaybeOwned<at::Tensor>": ["-DTRAPLINE_TENSOR_IS_MAYBE_OWNED"]}
_WRAPS = {"const at::TensorBase& var": [], "at::TensorBase var": ["-DTRAPLINE_WRAP_BY_VALUE"]}
_ERROR = (
    "PyObject* type{nullptr}; PyObject* value{nullptr}; PyObject* traceback{nullptr}; std::string message; };"
)


def defines(include: str) -> list[str]:
    """What the compiler is to be told for the headers in ``include``.

    Raises:
        BuildError: they are of a PyTorch whose layout is not known.
    """
    csrc = os.path.join(include, "torch", "csrc")
    variable = _text(os.path.join(csrc, "autograd", "python_variable.h"))
    errors = _text(os.path.join(csrc, "Exceptions.h"))
    tensor = re.search(r"struct THPVariable \{ PyObject_HEAD;? ([\w:<>]+) cdata[ ;=]", variable)
    wraps = re.findall(r"PyObject\* THPVariable_Wrap\( ?((?:const )?at::TensorBase&? var)\)", variable)
    if tensor is None or tensor.group(1) not in _TENSORS:
        raise _unknown("THPVariable", csrc)
    if len(wraps) != 1 or wraps[0] not in _WRAPS:
        raise _unknown("THPVariable_Wrap", csrc)
    begin, end = errors.find("struct python_error : public std::exception {"), errors.find(_ERROR)
    if not 0 <= begin < end or "virtual" in errors[begin:end]:
        raise _unknown("python_error", csrc)
    return [*_TENSORS[tensor.group(1)], *_WRAPS[wraps[0]]]


def _unknown(what: str, folder: str) -> BuildError:
    return BuildError(
        f"trapline: guard: {what} in {folder} is not as in any PyTorch that Trapline knows: "
        "ask for a newer Trapline"
    )


def _text(path: str) -> str:
    """Without comments, and with one space for each run of them."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read()
    except OSError as error:
        raise BuildError(f"trapline: guard: no headers of torch's Python side: {error}") from None
    return re.sub(r"\s+", " ", re.sub(r"/\*.*?\*/", " ", re.sub(r"//[^\n]*", "", text), flags=re.DOTALL))
