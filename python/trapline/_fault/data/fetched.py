"""Samples that the data set is asked for again."""

from __future__ import annotations

import random
import sys
from typing import Any

MAX_FETCHED = 256


def fetch(data_set: Any, index: Any) -> Any:
    try:
        return data_set[index]
    except Exception:
        return None


class RandomState:
    """Puts the random generators back: asking the data set must not change what the program draws next."""

    def __enter__(self) -> RandomState:
        import torch

        self._python = random.getstate()
        self._torch = torch.get_rng_state()
        numpy = sys.modules.get("numpy")
        self._numpy = numpy.random.get_state() if numpy is not None else None
        return self

    def seed(self, seed: int) -> None:
        import torch

        random.seed(seed)
        torch.random.default_generator.manual_seed(seed)
        if self._numpy is not None:
            sys.modules["numpy"].random.seed(seed)

    def __exit__(self, *_: object) -> None:
        import torch

        random.setstate(self._python)
        torch.set_rng_state(self._torch)
        if self._numpy is not None:
            sys.modules["numpy"].random.set_state(self._numpy)
