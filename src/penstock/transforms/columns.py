"""Checks of columns that options name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from penstock.core.errors import OptionError, raise_all
from penstock.core.names import written_name
from penstock.core.text import did_you_mean
from penstock.sdk import DataFrameTransform

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructField


def require(
    transform: DataFrameTransform[Any],
    frame: DataFrame,
    option: str,
    names: Sequence[str] | Mapping[str, object],
    *,
    values: bool = False,
) -> None:
    """Raises OptionError for each name in an option of a transform that is no column of `frame`.

    The names are the keys of a map, or with `values` its values.
    """
    known = {column.lower() for column in frame.columns}
    places: list[tuple[str | int, str]]
    if isinstance(names, Mapping):
        places = [(key, str(value) if values else key) for key, value in names.items()]
    else:
        places = [*enumerate(names)]
    raise_all(
        _unknown(transform, frame, name, option, place, of_key=not values)
        for place, name in places
        if name.lower() not in known
    )


def require_column(
    transform: DataFrameTransform[Any], frame: DataFrame, option: str, name: str
) -> StructField:
    """Returns the column that an option of a transform names. Raises OptionError."""
    for field in frame.schema.fields:
        if field.name.lower() == name.lower():
            return field
    raise _unknown(transform, frame, name, option)


def check_groups(frame: DataFrame, by: Sequence[int]) -> None:
    """Raises OptionError for a grouping column whose values are no numbers, texts or times."""
    from pyspark.sql import types

    for index, position in enumerate(by):
        field = frame.schema[position]
        kinds = (types.NumericType, types.StringType, types.BooleanType, types.DatetimeType)
        if not isinstance(field.dataType, kinds):
            found = field.dataType.simpleString().upper()
            raise OptionError.of(
                "by", index, message=f'column "{field.name}" is {found}, which cannot be a group',
                code="unsupported-type",
            )  # fmt: skip


def _unknown(
    transform: DataFrameTransform[Any], frame: DataFrame, name: str, *option: str | int,
    of_key: bool = False,
) -> OptionError:  # fmt: skip
    return OptionError.of(
        *option,
        message=f'transform "{written_name(transform.context.node)}": there is no column "{name}"',
        code="unknown-column",
        hint=did_you_mean(name, frame.columns),
        of_key=of_key,
    )
