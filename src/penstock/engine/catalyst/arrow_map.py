"""Maps the batches of a DataFrame, whatever the names of its columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas import functions
from pyspark.sql.types import StructType

from penstock.core.deferred_pandas import is_deferred

BatchFunction = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


@dataclass(frozen=True)
class _Renamed:
    """A function over batches whose columns have these names."""

    names: tuple[str, ...]
    function: BatchFunction

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return self.function(batch.rename_columns(self.names) for batch in batches)


def omit_check_of_pandas() -> None:
    """Omits the check of PySpark for pandas, which `mapInArrow` does not use, if it is deferred."""
    if is_deferred():
        vars(functions)["require_minimum_pandas_version"] = lambda: None


def map_in_arrow(frame: DataFrame, function: BatchFunction, schema: StructType | str) -> DataFrame:
    """Returns the batches that a picklable function yields, as `DataFrame.mapInArrow` does.

    PySpark reads the name of a column such as `amount * 0.5` as a path of fields.
    """
    names = frame.columns
    if not any("." in name or "`" in name for name in names):
        return frame.mapInArrow(function, schema)
    plain = frame.toDF(*(f"c{index}" for index in range(len(names))))
    return plain.mapInArrow(_Renamed(tuple(names), function), schema)
