"""Copies of rows of a batch for taps."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame

from penstock.core.names import quote_name
from penstock.engine.batch_observer import BatchObserver
from penstock.engine.build import Builder
from penstock.engine.catalyst.variants import head_of
from penstock.plan.model import Query
from penstock.plan.pushdown import EVERYTHING


def copy_for_taps(
    builder: Builder, query: Query, number: int, frames: Mapping[str, DataFrame],
    tapped: Mapping[str, int], observer: BatchObserver,
) -> None:  # fmt: skip
    """Passes the first rows of tapped nodes to the observer. A failure affects nothing else.

    `tapped` has the number of rows of each node, whose frames are cached.
    """
    for name, limit in tapped.items():
        try:
            rows = head_of(_columns_read(builder, query, name, frames[name]), limit)
        except Exception as error:
            observer.on_untapped(query, number, name, error)
        else:
            observer.on_tapped(query, number, name, rows)


def _columns_read(builder: Builder, query: Query, name: str, frame: DataFrame) -> DataFrame:
    """Returns the columns of a source that the query reads: the others may be null."""
    if builder.plan.nodes[name].kind != "source":
        return frame
    used = builder.pushdowns(query).get(name, EVERYTHING).columns
    if used is None:
        return frame
    return frame.select(*(quote_name(column) for column in frame.columns if column in used))
