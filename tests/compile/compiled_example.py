"""Runs an example as a user of torch.compile would have written it: `compiled_example.py FILE [ARGUMENT]...`

Three kinds of lines are what that user adds. They are added here, so that the examples stay short:

    model = Model().to(device); model.compile()       every module that `.to()` or `.cuda()` is called on
    criterion = nn.CrossEntropyLoss(); criterion.compile()                  every loss module
    cross_entropy = torch.compile(F.cross_entropy)                          every F.function of the file

What the file does besides (`torch.multinomial`, indexing between the compiled parts) stays as it is.
"""

from __future__ import annotations

import sys
import types
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn


def compiles_its_result(method):
    def moved(self, *args, **kwargs):
        module = method(self, *args, **kwargs)
        if module._compiled_call_impl is None:
            module.compile()
        return module

    return moved


def compiles_itself(init):
    def __init__(self, *args, **kwargs):
        init(self, *args, **kwargs)
        self.compile()

    return __init__


class CompiledFunctions(types.ModuleType):
    """torch.nn.functional with its functions compiled."""

    def __getattr__(self, name):
        function = torch.compile(getattr(F, name))
        setattr(self, name, function)
        return function


def main() -> None:
    file = Path(sys.argv[1]).resolve()
    sys.argv = sys.argv[1:]
    nn.Module.to = compiles_its_result(nn.Module.to)
    nn.Module.cuda = compiles_its_result(nn.Module.cuda)
    for loss in (nn.CrossEntropyLoss, nn.BCELoss, nn.BCEWithLogitsLoss):
        loss.__init__ = compiles_itself(loss.__init__)
    example = types.ModuleType("example")
    example.__file__ = str(file)
    sys.modules["example"] = example  # worker processes and pickles find its classes
    exec(compile(file.read_text(encoding="utf-8"), str(file), "exec"), example.__dict__)
    if "F" in example.__dict__:
        example.F = CompiledFunctions("torch.nn.functional")
    example.main()


if __name__ == "__main__":
    main()
