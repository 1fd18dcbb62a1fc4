"""The transform `lookup`: adds columns of a table to the rows of a stream, by key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import Field, field_validator

from penstock.core.errors import OptionError, PlanError
from penstock.core.names import quote_name
from penstock.sdk import Config
from penstock.sdk.null_text import NullText
from penstock.sdk.sql_text import SqlText
from penstock.sql.text.quoting import quote
from penstock.transforms.columns import require
from penstock.transforms.sql import SqlQuery

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from penstock.sql.dialect.relation import InputRelation


class LookupConfig(Config):
    table: str
    """The source of the table, which has `lookup: true` or `static: true`."""
    on: dict[str, str] = Field(min_length=1)
    """The columns of the rows, each with the column of the table that it equals. A list has columns
    with the same names."""
    columns: dict[str, str] = Field(min_length=1)
    """The columns to add, each with its column of the table. A list keeps the names."""
    missing: Annotated[Literal["null", "drop", "dead_letter"], NullText()] = "null"
    """The action for a row whose key has no row in the table: nulls in the added columns, no row,
    or a dead letter."""

    @field_validator("on", "columns", mode="before")
    @classmethod
    def _to_map(cls, value: Any) -> Any:
        names = [value] if isinstance(value, str) else value
        return {name: name for name in names} if isinstance(names, list) else value


class Lookup(SqlQuery[LookupConfig]):
    """Adds columns of a table to rows, by key.

    The table is a source with `lookup: true`, whose rows are read again when they change, or with
    `static: true`. A row with a null in its key has no row in the table. If the table has several
    rows of a key, the row is repeated for each; rows that are looked up by key have one.

    Parallel by partition, without state.

    ```yaml
    type: lookup
    from: flights
    table: airlines
    on: {carrier: code}
    columns: {airline: name}
    ```
    """

    @property
    def text(self) -> str:
        config, (stream, *_) = self.config, (*self.context.inputs, "")
        on = " AND ".join(
            f"r.{quote_name(left)} = t.{quote_name(right)}" for left, right in config.on.items()
        )
        columns = ", ".join(
            f"t.{quote_name(column)} AS {quote_name(name)}"
            for name, column in config.columns.items()
        )
        join = "JOIN" if config.missing == "drop" else "LEFT JOIN"
        query = (
            f"SELECT r.*, {columns} FROM {quote_name(stream)} AS r "
            f"{join} {quote_name(config.table)} AS t ON {on}"
        )
        return f"{query} WHERE {self._found()}" if config.missing == "dead_letter" else query

    def _found(self) -> str:
        """Returns the condition of rows with a row in the table, which fails for others."""
        key, table = next(iter(self.config.on.values())), self.config.table
        values = [
            f"{quote(f'{name} = ')} || coalesce(CAST(r.{quote_name(name)} AS STRING), 'null')"
            for name in self.config.on
        ]
        message = f"""'the key ' || {" || ', ' || ".join(values)}"""
        message = f"""{message} || {quote(f' has no row in "{table}"')}"""
        return f"CASE WHEN t.{quote_name(key)} IS NULL THEN raise_error({message}) ELSE true END"

    def validate(self) -> None:
        super().validate()
        count = len(self.context.inputs)
        if count != 1:
            raise PlanError(
                f"expected one input, found {count}", code="missing-option",
                hint="Set from: NAME, the node whose rows get the columns.",
            )  # fmt: skip

    def sql_texts(self) -> Sequence[SqlText]:
        return ()

    def named_inputs(self, known: frozenset[str]) -> frozenset[str]:
        # The graph of the pipeline reports a table that does not exist.
        return super().named_inputs(known) & known

    def bind(self, inputs: Mapping[str, InputRelation], *, by_window: bool = True) -> Self:
        table = inputs.get(self.config.table.lower())
        if table is not None and table.is_stream:
            raise OptionError.of(
                "table", message=f'"{self.config.table}" is a stream, and not a table',
                code="no-lookup", hint="Set lookup: true or static: true on a source.",
            )  # fmt: skip
        return super().bind(inputs, by_window=by_window)

    def relate(self, inputs: Mapping[str, DataFrame], session: SparkSession) -> DataFrame:
        config, (stream, *_) = self.config, self.context.inputs
        rows, table = inputs[stream], inputs[config.table]
        require(self, rows, "on", config.on)
        require(self, table, "on", config.on, values=True)
        require(self, table, "columns", config.columns, values=True)
        return super().relate(inputs, session)
