"""Checks between a DataLoader and the training loop: ``trapline.checked``, ``trapline.checking_collate``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Callable, Optional

from trapline._check import rules
from trapline._library import capi
from trapline._library.errors import DeviceAssertError


class _Usual:
    """A part that nobody named: its place in a tuple, or its usual keys in a batch that is a dictionary."""

    def __init__(self, place: int, keys: tuple[str, ...], option: str) -> None:
        self.place, self.keys, self.option = place, keys, option

    def of(self, batch: Any) -> Any:
        if not isinstance(batch, Mapping):
            return self.place
        found = [key for key in self.keys if key in batch]
        if not found:
            keys = ", ".join(map(repr, list(batch)[:12]))
            raise KeyError(
                f"trapline: checked: the batch, a {type(batch).__name__}, has none of "
                f"{', '.join(map(repr, self.keys))}, but {keys or 'nothing'}: "
                f"name the part with {self.option}="
            )
        return found[0]


# The names that transformers' models and data collators use, the collators' own first.
_LABELS = _Usual(1, ("labels", "label", "label_ids"), "labels")
_IDS = _Usual(0, ("input_ids",), "ids")


class Checks:
    """Which part of a batch is held against what. A part is a key, an attribute or a position."""

    def __init__(
        self,
        labels: Any = None,
        num_classes: Optional[int] = None,
        ids: Any = None,
        num_embeddings: Optional[int] = None,
        finite: Any = (),
        ignore_index: Optional[int] = -100,
        positions: Optional[int] = None,
    ) -> None:
        self.rows: list[tuple[Any, capi.DataRule]] = []
        if num_classes is not None:
            part = _LABELS if labels is None else labels
            self.rows.append((part, rules.make_rule(capi.DATA_LABELS, num_classes, ignore_index)))
        if num_embeddings is not None:
            part = _IDS if ids is None else ids
            self.rows.append((part, rules.make_rule(capi.DATA_IDS, num_embeddings, positions=positions)))
        parts = finite if isinstance(finite, (list, tuple)) else (finite,)
        self.rows += [(part, rules.make_rule(capi.DATA_FINITE)) for part in parts]
        if not self.rows:
            raise ValueError(
                "trapline: checked: nothing to check: give num_classes, num_embeddings or finite"
            )

    def check(self, batch: Any, number: Optional[int] = None) -> None:
        """Raises DeviceAssertError for the first finding, which names the batch and the row."""
        for wanted, rule in self.rows:
            part = wanted.of(batch) if isinstance(wanted, _Usual) else wanted
            found = rules.find(rule, _part(batch, part), name=part if isinstance(part, str) else "")
            if not found:
                continue
            finding = found[0]
            summary = finding["summary"]
            if number is not None:
                index = finding.get("element", {}).get("index") or []
                finding["sample"] = {"batch": number, **({"row": index[0]} if index else {})}
                summary = f"batch {number}: {summary}"
            raise DeviceAssertError(summary, finding)


def _part(batch: Any, part: Any) -> Any:
    try:
        return batch[part]
    except (KeyError, IndexError, TypeError):
        if isinstance(part, str) and hasattr(batch, part):
            return getattr(batch, part)
        raise KeyError(
            f"trapline: checked: the batch, a {type(batch).__name__}, has no part {part!r}: name the part "
            "with labels=, ids= or finite="
        ) from None


class CheckedLoader:
    """A loader whose batches are checked before they are handed on; everything else is the loader's own."""

    def __init__(self, loader: Any, checks: Checks) -> None:
        self.loader = loader
        self.checks = checks

    def __iter__(self) -> Iterator[Any]:
        for number, batch in enumerate(self.loader):
            self.checks.check(batch, number)
            yield batch

    def __len__(self) -> int:
        return len(self.loader)

    def __getattr__(self, name: str) -> Any:
        if name in ("loader", "checks"):  # while it is being unpickled
            raise AttributeError(name)
        return getattr(self.loader, name)


def checked(loader: Any, **checks: Any) -> CheckedLoader:
    return CheckedLoader(loader, Checks(**checks))


class CheckingCollate:
    """A collate function that checks what it has collated, in the worker that made it."""

    def __init__(self, collate_fn: Optional[Callable[[list], Any]], options: dict) -> None:
        self.collate_fn = collate_fn
        self.options = options
        self._checks: Optional[Checks] = Checks(**options)

    def __getstate__(self) -> dict:
        return {"collate_fn": self.collate_fn, "options": self.options, "_checks": None}

    def __call__(self, samples: list) -> Any:
        collate = self.collate_fn
        if collate is None:
            from torch.utils.data import default_collate as collate
        if self._checks is None:
            self._checks = Checks(**self.options)
        batch = collate(samples)
        self._checks.check(batch)
        return batch


def checking_collate(collate_fn: Optional[Callable[[list], Any]] = None, **checks: Any) -> CheckingCollate:
    return CheckingCollate(collate_fn, checks)
