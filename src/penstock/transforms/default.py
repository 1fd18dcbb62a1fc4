"""The transform `default`: values for nulls and for missing columns."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow as pa
from pydantic import Field

from penstock.core.errors import OptionError, raise_all
from penstock.core.names import quote_name
from penstock.sdk import Config, DataFrameTransform, Relation
from penstock.sql.column_lineage import ChangedColumns
from penstock.sql.text.quoting import quote

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import DataType

Value = bool | int | float | str


class DefaultConfig(Config):
    columns: dict[str, Value] = Field(min_length=1)
    """The columns, each with the value that takes the place of null. The value has the type of its
    column: a date or a time is a text, as in `"2026-01-31"`."""


class Default(DataFrameTransform[DefaultConfig]):
    """Sets a value in place of null, and adds a column that the input lacks.

    An added column has the type of its value: STRING, BIGINT, DOUBLE or BOOLEAN. For expressions,
    and for arrays, maps and structs, use the transform `map`.

    Parallel by partition.

    ```yaml
    type: default
    from: orders
    columns: {country: unknown, discount: 0}
    ```
    """

    def relation(self) -> Relation:
        return Relation(incremental=True, lineage=ChangedColumns(tuple(self.config.columns)))

    def relate(self, inputs: Mapping[str, DataFrame], session: SparkSession) -> DataFrame:
        from pyspark.sql.functions import coalesce, col, lit

        (frame,) = inputs.values()
        fields = {field.name.lower(): field for field in frame.schema.fields}
        columns: dict[str, Column] = {}
        errors = []
        for name, value in self.config.columns.items():
            field = fields.get(name.lower())
            if field is None:
                columns[name] = lit(value).cast("bigint") if type(value) is int else lit(value)
                continue
            try:
                constant = _constant(value, field.dataType)
            except ValueError as error:
                errors.append(
                    OptionError.of(
                        "columns", name, code="wrong-type",
                        message=f'column "{field.name}" is {field.dataType.simpleString().upper()}'
                        f", and its default is {error}",
                        hint="Write a value of this type.",
                    )
                )  # fmt: skip
                continue
            columns[field.name] = coalesce(col(quote_name(field.name)), constant)
        raise_all(errors)
        return frame.withColumns(columns)


def _constant(value: Value, type_: DataType) -> Column:
    """Returns a value as a constant of a type. Raises ValueError with the value."""
    from pyspark.sql import types
    from pyspark.sql.functions import expr
    from pyspark.sql.pandas.types import to_arrow_type

    written = json.dumps(value, ensure_ascii=False)
    is_text = isinstance(value, str)
    of_text = isinstance(
        type_, types.StringType | types.DateType | types.TimestampType | types.TimestampNTZType
    )
    is_boolean = isinstance(type_, types.BooleanType)
    is_scalar = of_text or is_boolean or isinstance(type_, types.NumericType)
    if not is_scalar or is_text != of_text or isinstance(value, bool) != is_boolean:
        raise ValueError(written)
    arrow_type = to_arrow_type(type_, timezone="UTC")
    forms = [arrow_type, pa.timestamp("us")] if pa.types.is_timestamp(arrow_type) else [arrow_type]
    if not any(_is_text_of(str(value).lower() if is_boolean else str(value), t) for t in forms):
        raise ValueError(written)
    return expr(f"CAST({quote(str(value))} AS {type_.simpleString()})")


def _is_text_of(text: str, type_: pa.DataType) -> bool:
    """Returns whether a text is that of a value of a type. Times may have an offset, or none."""
    try:
        pa.scalar(text).cast(type_)
    except pa.ArrowInvalid:
        return False
    return True
