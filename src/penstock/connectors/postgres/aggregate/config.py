"""Options of the sink of aggregates."""

from __future__ import annotations

from typing import Any, Literal, Self

import pyarrow as pa
from pydantic import Field, field_validator, model_validator

from penstock.connectors.postgres.config import PostgresSinkConfig
from penstock.core.errors import PenstockError
from penstock.sdk.columns.ddl import arrow_schema
from penstock.sdk.columns.names import fold
from penstock.sdk.config import Config
from penstock.sdk.database import TableName

STATE_COLUMN = "penstock_state"
"""The column of an aggregate table with the counts and sums of a group."""

_MAX_NAME = 63
"""The bytes of a longer name that PostgreSQL keeps."""


class TypedConfig(Config):
    type: str | None = None
    """The type of the column in the aggregate table, as `DECIMAL(20, 2)`."""

    @field_validator("type")
    @classmethod
    def _check_type(cls, value: str | None) -> str | None:
        if value is not None:
            try:
                arrow_schema({"value": value})
            except PenstockError as error:
                raise ValueError(error.message) from None
        return value

    def field(self, name: str) -> pa.Field | None:
        """Returns the column of the aggregate table if it has a type of its own."""
        return None if self.type is None else arrow_schema({name: self.type}).field(0)


class GroupColumn(TypedConfig):
    """A column of the groups."""

    column: str
    """The column of the rows."""


class Aggregate(TypedConfig):
    """An aggregate of the rows of a group."""

    function: Literal["sum", "count", "avg", "min", "max"]
    """The aggregate function."""
    column: str | None = None
    """The column of the rows, whose null values are left out. `count` without a column counts
    rows."""

    @model_validator(mode="after")
    def _check_column(self) -> Self:
        if self.column is None and self.function != "count":
            raise ValueError(f"expected column: the values of {self.function}")
        return self


class PostgresAggregateSinkConfig(PostgresSinkConfig):
    table: str
    """The landing table, which has the rows: `orders` or `public.orders`."""
    aggregate_table: str
    """The table of the aggregates, which has a row for each group."""
    group_by: list[str] | dict[str, str | GroupColumn] = []
    """The columns that identify a group: a list of columns, or a map of the columns of the
    aggregate table to columns of the rows. Without them all rows are one group."""
    aggregates: dict[str, Aggregate] = Field(min_length=1)
    """The aggregates by the names of their columns in the aggregate table."""

    @field_validator("aggregate_table")
    @classmethod
    def _check_aggregate_table(cls, value: str) -> str:
        if len(TableName.parse(value).name.encode()) > _MAX_NAME:
            raise ValueError(f"expected a name of at most {_MAX_NAME} bytes")
        return value

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        if self.aggregate_table == self.table:
            raise ValueError("expected an aggregate_table other than table")
        known = {fold(STATE_COLUMN): "the state of the aggregates"}
        for name in (*self.groups, *self.aggregates):
            if len(name.encode()) > _MAX_NAME:
                raise ValueError(f'expected names of at most {_MAX_NAME} bytes, found "{name}"')
            if fold(name) in known:
                raise ValueError(f'the column "{name}" is {known[fold(name)]} already')
            known[fold(name)] = "a column of the aggregate table"
        return self

    @property
    def groups(self) -> dict[str, GroupColumn]:
        """The columns of a group by their names in the aggregate table."""
        if isinstance(self.group_by, list):
            return {name: GroupColumn(column=name) for name in self.group_by}
        return {name: _group_column(value) for name, value in self.group_by.items()}


def _group_column(value: Any) -> GroupColumn:
    return value if isinstance(value, GroupColumn) else GroupColumn(column=value)
