"""Columns in Arrow's words and in Spark's."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType


def to_spark(schema: pa.Schema) -> StructType:
    """Spark's columns for an Arrow schema; times without a zone are TIMESTAMP_NTZ."""
    return from_arrow_schema(schema, prefer_timestamp_ntz=True)


def to_arrow(columns: StructType) -> pa.Schema:
    """The Arrow schema in which Spark hands these columns to Python, and takes them back."""
    schema: pa.Schema = to_arrow_schema(columns, timezone="UTC")
    return schema
