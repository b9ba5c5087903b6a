"""torchrun's table of failures: the finding's one sentence, where the program itself writes no error file.

torchrun gives each rank a file for its error, which `@record` of torch.distributed fills. Without it the
table says "To enable traceback see ...", for the rank that failed as for its victims.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import time
from typing import Any

from trapline._fault import write
from trapline._library import options


def tell(finding: dict[str, Any]) -> None:
    """Writes the sentence into this rank's error file, unless there is one.

    Not for a child that the rank started, which may live on without it, nor for a start of `trapline
    supervise`, which may try again and writes the file when it gives up.
    """
    path = os.environ.get("TORCHELASTIC_ERROR_FILE")
    if not path or multiprocessing.parent_process() is not None or options.supervise_dir() is not None:
        return
    message = {"message": write.line(finding), "extraInfo": {"timestamp": str(int(time.time()))}}
    try:
        with open(path, "x", encoding="utf-8") as file:
            json.dump({"message": message}, file)
    except OSError:  # it is there, or its folder is not: torchrun's own words stand
        pass
