"""The last row of each key: the rows of changes as a table with the primary key of a sink.

The planner inserts this transform; pipelines have no `type` for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from penstock.core.names import quote_name
from penstock.sdk import Config, DataFrameTransform, Relation, State
from penstock.sql.column_lineage import KeyedColumns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TYPE = "last_rows"
_ROW = "_penstock_row"


class LastRowsConfig(Config):
    key: list[str]
    """The columns of the key."""
    input_key: list[str]
    """The primary key of the input; empty without one."""


class LastRows(DataFrameTransform[LastRowsConfig]):
    """The last row to arrive of each key, of the rows that are not deleted.

    A row whose key has a null is a row of its own.
    """

    def relation(self) -> Relation:
        key = self.config.key
        state = State((f"the rows of each {', '.join(key)}",))
        return Relation(incremental=True, state=state, lineage=KeyedColumns(tuple(key)))

    def relate(self, inputs: Mapping[str, DataFrame], session: SparkSession) -> DataFrame:
        from pyspark.sql.functions import last, struct, when

        (frame,) = inputs.values()
        if not {*self.config.key} <= {*frame.columns}:
            # The sink reports the missing column.
            return frame
        keys = [frame[quote_name(name)] for name in self.config.key]
        is_null = keys[0].isNull()
        for key in keys[1:]:
            is_null |= key.isNull()
        rows = [frame[quote_name(name)] for name in self.config.input_key if name in frame.columns]
        own = [when(is_null, struct(*rows))] if rows else []
        columns = struct(*(frame[quote_name(name)] for name in frame.columns))
        return frame.groupBy(*keys, *own).agg(last(columns).alias(_ROW)).select(f"{_ROW}.*")
