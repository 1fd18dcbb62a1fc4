"""The transform `dynamic_table`: a set of values that queries check, filled by a query."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.core.errors import OptionError, PlanError
from penstock.core.names import quote_name
from penstock.sdk import Config, Relation
from penstock.sdk.columns.ddl import arrow_schema
from penstock.sdk.sql_text import SqlText
from penstock.spec.node_models import LookupCache
from penstock.sql.column_lineage import ColumnLineage
from penstock.sql.keyed_rows import KeyedRows
from penstock.transforms.sql import SqlQuery

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TYPE = "dynamic_table"
_INTEGERS = ("tinyint", "smallint", "int", "bigint")


class DynamicTableConfig(Config):
    sql: str | None = None
    """A query of one column, whose values are added to the table. It keeps no state. Without it
    only other programs fill the table."""
    storage: dict[str, Any] | None = None
    """The table of a database: `type`, such as `postgres`, `table`, and the options of the
    connection. By default the values are in the state directory."""
    column: str = "value"
    """The column of the table that holds the values, which has a unique index."""
    column_type: str = "STRING"
    """The type of the values: STRING or a type of integers."""
    time_column: str | None = None
    """A column of the table that the query sets to the current time when a batch has the value."""
    cache: LookupCache = LookupCache()
    """The use of the values that were looked up in a database."""


class DynamicTable(SqlQuery[DynamicTableConfig]):
    """A set of values that SQL checks: `dynamic_table_check('name', value)`.

    A query over the same source can fill the table: the rows of a batch are checked after the
    values of the batch have been added. Values that another program writes to the table of a
    database are found by the next batch, or after `cache.ttl`.

    The check of null is null. The check of an array is whether the table has any of its elements.

    ```yaml
    type: dynamic_table
    sql: SELECT user AS value FROM payments WHERE amount > 1000
    ```
    """

    @property
    def text(self) -> str:
        return self.config.sql or ""

    @property
    def values(self) -> pa.Schema:
        """The column of the values."""
        return arrow_schema({self.config.column: self.config.column_type})

    def sql_texts(self) -> Sequence[SqlText]:
        return super().sql_texts() if self.config.sql is not None else ()

    def validate(self) -> None:
        super().validate()
        config = self.config
        if config.sql is None and config.storage is None:
            raise PlanError(
                "nothing fills the table", code="missing-option",
                hint="Set sql: SELECT ..., or storage: the table of a database that another "
                "program fills.",
            )  # fmt: skip
        try:
            (type_,) = self.values.types
        except PlanError as error:
            raise OptionError.of(
                "column_type", message=error.message, code=error.code, hint=error.hint
            ) from None
        if not (pa.types.is_string(type_) or pa.types.is_integer(type_)):
            raise OptionError.of(
                "column_type", message=f"expected STRING or integers, found {config.column_type}",
                code="wrong-type", hint="Set column_type: STRING, and cast the values to STRING.",
            )  # fmt: skip
        if config.time_column is not None and config.sql is None:
            raise OptionError.of(
                "time_column", message="time_column has no meaning without sql: no query sets it",
                code="unused-option", hint="Remove time_column.",
            )  # fmt: skip
        if config.time_column is not None and config.time_column == config.column:
            raise OptionError.of(
                "time_column", message="time_column is the column of the values",
                code="duplicate-column", hint="Name another column.",
            )  # fmt: skip

    def relation(self) -> Relation:
        relation = super().relation()
        column, time = self.config.column, self.config.time_column
        lineage = _ValueColumn(relation.lineage, (column,) if time is None else (column, time))
        deterministic = relation.deterministic and time is None
        return replace(relation, deterministic=deterministic, lineage=lineage, text=None)

    def relate(self, inputs: Mapping[str, DataFrame], session: SparkSession) -> DataFrame:
        from pyspark.sql.functions import current_timestamp

        frame = super().relate(inputs, session)
        operation = None if self.changes is None else self.changes.column
        names = [name for name in frame.columns if name != operation]
        if len(names) != 1:
            raise OptionError.of(
                "sql", message=f"expected a query of one column, found {', '.join(names)}",
                code="column-count", hint="Select the values only: SELECT value FROM ...",
            )  # fmt: skip
        value = self._value(frame, names[0])
        kept = [operation] if operation in frame.columns else []
        rows = frame.select(value, *kept).where(f"{quote_name(self.config.column)} IS NOT NULL")
        if not kept and not frame.isStreaming:
            rows = rows.mapInArrow(_distinct, rows.schema)
        if self.config.time_column is None:
            return rows
        time = current_timestamp().alias(self.config.time_column)
        return rows.select(quote_name(self.config.column), time, *kept)

    def _value(self, frame: DataFrame, name: str) -> Any:
        """Returns the values in their column, of its type. Raises OptionError."""
        from pyspark.sql.types import StructType

        column = self.config.column
        declared = StructType.fromDDL(f"{quote_name(column)} {self.config.column_type}")
        assert isinstance(declared, StructType)
        (field,) = declared.fields
        expected, found = field.dataType.simpleString(), frame.schema[name].dataType.simpleString()
        value = frame[quote_name(name)]
        if found != expected:
            if not {found, expected} <= {*_INTEGERS}:
                raise OptionError.of(
                    "sql", message=f"expected values of type {expected.upper()}, found "
                    f"{found.upper()}", code="wrong-type",
                    hint=f"Write CAST({name} AS {expected.upper()}), or set column_type.",
                )  # fmt: skip
            value = value.cast(field.dataType)
        return value.alias(column)


def _distinct(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yields each value of a partition once."""
    known: set[Any] = set()
    for batch in batches:
        values = [value for value in batch.column(0).unique().to_pylist() if value not in known]
        known.update(values)
        yield pa.RecordBatch.from_arrays(
            [pa.array(values, batch.schema.types[0])], batch.schema.names
        )


@dataclass(frozen=True)
class _ValueColumn(ColumnLineage):
    """The single column of a query with another name, and columns that are added."""

    query: ColumnLineage
    columns: tuple[str, ...]

    def keyed_rows(self, inputs: Mapping[str, KeyedRows]) -> KeyedRows:
        rows = self.query.keyed_rows(inputs)
        if rows.columns is None or len(rows.columns) != 1:
            return rows.lost()
        renamed = rows.rename({rows.columns[0].lower(): self.columns[0]})
        return replace(renamed, columns=self.columns)

    def time_columns(self, times: Set[str]) -> Set[str] | None:
        return self.query.time_columns(times)

    def operation(self, column: str) -> str | None:
        return self.query.operation(column)
