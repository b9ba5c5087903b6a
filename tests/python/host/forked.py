"""Starts programs by forking a process that has imported torch: the import is most of what such a program
costs. A request is a line of JSON on stdin (the program's file, its environment, the files that its streams
go to), the answer its exit code. PYTHONPATH's sitecustomize.py runs before it, as Python has it.
"""

from __future__ import annotations

import json
import os
import sys

# For `python -c`: what runs the program is no line of a file that could be taken for the user's.
STARTS = (
    "import forked; forked.become(forked.wait_for_request()); import sitecustomize; del sitecustomize\n"
    "exec(compile(open(__file__, encoding='utf-8').read(), __file__, 'exec'))"
)


def wait_for_request() -> dict[str, object]:
    """Returns in the child alone."""
    import torch  # what all of them would import, and what the first step of an optimizer does

    torch.optim.SGD([torch.zeros(1, requires_grad=True)], 0.1).step()

    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            return json.loads(line)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
    os._exit(0)


def become(request: dict[str, object]) -> None:
    """The process is as Python would have started it for the program."""
    streams = zip(
        (0, 1, 2), (os.devnull, request["out"], request["err"]), (os.O_RDONLY, os.O_WRONLY, os.O_WRONLY)
    )
    for number, name, mode in streams:
        file = os.open(str(name), mode | os.O_CREAT, 0o600)
        os.dup2(file, number)
        os.close(file)
    os.environ.clear()
    os.environ.update(request["environment"])  # type: ignore[call-overload]
    program = str(request["program"])
    sys.argv[:] = [program]
    sys.path[:1] = [os.path.dirname(program), *os.environ["PYTHONPATH"].split(os.pathsep)]
    sys.modules.pop("sitecustomize", None)
    own = sys.modules["__main__"].__dict__
    for name in [name for name in own if not name.startswith("__")]:
        del own[name]
    own.update(__file__=program, __doc__=None, __annotations__={})
