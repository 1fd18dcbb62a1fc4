"""The transform `decode`: decodes a column of payloads into columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from pydantic import Field

from penstock.core.errors import OptionError, PlanError, ValidationErrors, flatten_errors, raise_all
from penstock.sdk import Config, Failure
from penstock.sdk.columns.checks import check_added_columns, check_column, check_columns
from penstock.sdk.columns.ddl import arrow_schema
from penstock.sdk.transform import PayloadTransform
from penstock.transforms.payloads import check_format, is_payload


class DecodeConfig(Config):
    column: str
    """The column of payloads, of type STRING or BINARY."""
    format: str | dict[str, Any]
    """The format of the payloads: a name, or a map of `type` and options."""
    declared: str | dict[str, str] | None = Field(default=None, alias="schema")
    """The columns of the payloads, as a DDL string or a map of name to type. By default those that
    the format declares, such as by a schema file."""
    columns: list[str] = []
    """The decoded columns to add, by default all."""
    keep: bool = False
    """Keep the column of payloads in the output."""


class Decode(PayloadTransform[DecodeConfig]):
    """Decodes a column of payloads into columns.

    The decoded columns follow the other columns of the input. A payload of several records, such as
    lines of CSV with `framing: lines`, makes a row for each. A row becomes a dead letter if its
    payload is null or has a record that cannot be decoded.

    Parallel by partition.

    ```yaml
    type: decode
    from: events
    column: body
    format: json
    schema: order_id LONG, customer STRING
    ```
    """

    deterministic = True

    def validate(self) -> None:
        super().validate()
        check_format(self)
        if self.format is None:
            return
        columns = self._declared()
        self.format.check_columns(columns)
        raise_all(check_columns(self.config.columns, columns, "columns"))

    def output(self, schema: pa.Schema) -> pa.Schema:
        name = self.config.column
        raise_all(check_column(name, schema, "column", accepts=is_payload, expected=_EXPECTED))
        kept = self._kept(schema)
        added = self._added()
        raise_all(check_added_columns(kept, added, "the payload"))
        return pa.schema([*kept, *added])

    def apply(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch | Failure]:
        assert self.format is not None
        payloads = batch.column(self.config.column).cast(pa.binary())
        rows, index, failed = self.format.rows(payloads, self._declared())
        places = np.arange(rows.num_rows) if index is None else index.to_numpy()
        failures = {failure.index: failure.error for failure in reversed(failed)}
        if failures and rows.num_rows:
            whole = np.flatnonzero(~np.isin(places, list(failures)))
            rows, places = rows.take(pa.array(whole)), places[whole]
        kept, added = self._kept(batch.schema), self._added()
        repeated = batch.select([field.name for field in kept]).take(pa.array(places, pa.int64()))
        columns = [*repeated.columns, *(rows.column(field.name) for field in added)]
        yield pa.RecordBatch.from_arrays(columns, schema=pa.schema([*kept, *added]))
        yield from (Failure(row, failures[row]) for row in sorted(failures))

    def _declared(self) -> pa.Schema:
        """Returns the columns of the payloads. Raises PlanError."""
        assert self.format is not None
        if self.config.declared is not None:
            try:
                return arrow_schema(self.config.declared)
            except (PlanError, ValidationErrors) as error:
                raise_all(OptionError.inside("schema", inner) for inner in flatten_errors(error))
        declared = self.format.declared_schema()
        if declared is None:
            raise PlanError(
                "the format does not declare the columns of the payloads",
                code="missing-option",
                hint="Add schema: name STRING, ...",
            )
        return declared

    def _added(self) -> list[pa.Field]:
        columns = self._declared()
        return [columns.field(name) for name in self.config.columns or columns.names]

    def _kept(self, schema: pa.Schema) -> list[pa.Field]:
        return [field for field in schema if self.config.keep or field.name != self.config.column]


_EXPECTED = "Use a column of type STRING or BINARY."
