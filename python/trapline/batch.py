"""The checks of :mod:`trapline` as functions over Arrow batches, for engines that spread data over machines.

Ray Data::

    check = trapline.batch.BatchCheck("label", num_classes=10, row_id="row")
    tallies = ray.data.read_parquet("s3://...").map_batches(check, batch_format="pyarrow").take_all()
    check.require(tallies)

Spark::

    tallies = frame.mapInArrow(check.map_in_arrow, check.spark_schema).collect()

Each batch becomes one row, a tally of a few hundred bytes; the merged verdict is what a single machine
gives for the same data. Reading, paths and credentials stay the engine's.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Optional

from trapline._check import rules, tensors
from trapline._library import capi
from trapline._library.errors import DeviceAssertError


class BatchCheck:
    """One rule for one column. Give just one of ``num_classes``, ``num_embeddings`` and ``finite=True``.

    ``row_id``: an integer column that numbers the rows of the whole data set; findings then name those rows,
    and tallies may arrive in any order. Without it a finding names no row.

    Raises:
        ValueError: there is no rule, or more than one.
    """

    spark_schema = "tally string"

    def __init__(
        self,
        column: str,
        *,
        num_classes: Optional[int] = None,
        ignore_index: Optional[int] = -100,
        num_embeddings: Optional[int] = None,
        positions: Optional[int] = None,
        finite: bool = False,
        row_id: Optional[str] = None,
    ) -> None:
        if (num_classes is not None) + (num_embeddings is not None) + bool(finite) != 1:
            raise ValueError("trapline: BatchCheck: give one of num_classes, num_embeddings and finite=True")
        if num_classes is not None:
            self._options: tuple = (capi.DATA_LABELS, num_classes, ignore_index)
        elif num_embeddings is not None:
            self._options = (capi.DATA_IDS, num_embeddings, None, positions)
        else:
            self._options = (capi.DATA_FINITE,)
        rules.make_rule(*self._options)
        self.column = column
        self.row_id = row_id

    def tally(self, batch: Any) -> str:
        """The tally of one Arrow table or record batch, as text."""
        rule = rules.make_rule(*self._options)
        pieces = tensors.views(batch.select([self.column]), self.column)
        parts = [rules.tally(rule, view) for view in pieces if view.rows > 0]
        for part in parts:
            self._name_rows(part, batch)
        return json.dumps(
            {
                "start": batch.column(self.row_id)[0].as_py() if self.row_id and batch.num_rows else None,
                "rows": batch.num_rows,
                "dtype": tensors.NAMES[pieces[0].dtype] if pieces else "",
                "parts": parts,
            }
        )

    def _name_rows(self, part: dict, batch: Any) -> None:
        places = [part.get("first"), *part.get("places", [])]
        places += [part[odd]["first"] for odd in ("missing", "malformed") if odd in part]
        for place in places:
            if not place or not place["index"]:
                continue
            if self.row_id is None:
                place["index"] = []
            else:
                place["index"][0] = batch.column(self.row_id)[place["index"][0]].as_py()
        if "lengths" in part:
            row = part["lengths"]["row"]
            part["lengths"]["row"] = batch.column(self.row_id)[row].as_py() if self.row_id else 0

    def __call__(self, batch: Any) -> Any:
        """For Ray Data: a ``pyarrow.Table`` to a table of one row."""
        import pyarrow

        return pyarrow.table({"tally": [self.tally(batch)]})

    def map_in_arrow(self, batches: Iterable[Any]) -> Iterator[Any]:
        """For Spark's ``mapInArrow``: record batches to record batches of one row."""
        import pyarrow

        for batch in batches:
            yield pyarrow.RecordBatch.from_pydict({"tally": [self.tally(batch)]})

    def findings(self, tallies: Iterable[Any], source: str = "") -> list:
        """The merged verdict. ``tallies``: the engine's rows, as texts or as rows with ``tally``."""
        read = [json.loads(row if isinstance(row, str) else row["tally"]) for row in tallies]
        if all(one["start"] is not None for one in read):
            read.sort(key=lambda one: one["start"])
        subject = {
            "source": source,
            "name": self.column,
            "dtype": next((one["dtype"] for one in read if one["dtype"]), ""),
            "shape": [sum(one["rows"] for one in read)],
        }
        parts = [part for one in read for part in one["parts"]]
        return rules.findings(rules.make_rule(*self._options), parts, subject)

    def require(self, tallies: Iterable[Any], source: str = "") -> None:
        """Raises :class:`trapline.DeviceAssertError` for the first finding of the merged verdict."""
        found = self.findings(tallies, source)
        if found:
            raise DeviceAssertError(found[0]["summary"], found[0])
