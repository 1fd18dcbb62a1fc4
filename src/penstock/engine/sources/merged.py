"""Merged sources: the rows of several sources in one stream, for a batch of their whole input."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql.functions import lit, struct
from pyspark.sql.types import StructType

from penstock.engine.catalyst.logical_plans import named


def merge(frames: Mapping[str, DataFrame]) -> DataFrame:
    """Returns the rows of all sources, each as a value in the column with the source's name."""
    columns = {name: struct(*map(named, frame.columns)) for name, frame in frames.items()}
    types = {name: frame.select(columns[name]).schema[0].dataType for name, frame in frames.items()}
    parts = [
        frame.select(
            *(
                (columns[name] if name == source else lit(None).cast(types[name])).alias(name)
                for name in frames
            )
        )
        for source, frame in frames.items()
    ]
    return reduce(DataFrame.unionAll, parts)


def divide(root: DataFrame, source: str) -> DataFrame:
    """Returns the rows of one source among the merged rows."""
    value, type_ = named(source), root.schema[source].dataType
    assert isinstance(type_, StructType)
    columns = [value.getField(name).alias(name) for name in type_.names]
    return root.where(value.isNotNull()).select(*columns)
