"""Queries of Apache DataFusion over a batch."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.core.errors import OptionError, Rejected
from penstock.core.names import quote_standard_name
from penstock.core.text import shorten
from penstock.transforms.steps.json_functions import (
    original_name,
    register_json_functions,
    translate_json,
)

if TYPE_CHECKING:
    from datafusion import DataFrame, SessionContext

_PLACE = re.compile(r" at Line: (\d+), Column: (\d+)")
MAX_ROWS = 8192
"""The largest number of rows of a batch that a query over files or tables makes."""


def new_context() -> SessionContext:
    """Returns a session of DataFusion with one partition, which keeps the order of rows."""
    from datafusion import SessionConfig, SessionContext

    config = SessionConfig().with_target_partitions(1).with_batch_size(MAX_ROWS)
    context = SessionContext(config.with_information_schema(False))
    register_json_functions(context)
    return context


def plan_query(context: SessionContext, query: str) -> DataFrame:
    """Returns the plan of a query. Statements that change tables are errors of DataFusion."""
    from datafusion import SQLOptions

    options = SQLOptions().with_allow_ddl(False).with_allow_dml(False).with_allow_statements(False)
    return context.sql_with_options(translate_json(query), options)


class BatchQuery:
    """A query over the batch of a table, in a session of its own."""

    def __init__(self, query: str, table: str = "flow") -> None:
        self.query, self.table = query, table
        self._context = new_context()

    def check(self) -> None:
        """Checks the syntax. Raises OptionError."""
        try:
            plan_query(self._context, self.query)
        except Exception as error:
            text = error_text(error)
            if "ParserError" in text or "SQL error" in text or "not supported: " in text:
                place = _PLACE.search(text)
                raise OptionError.of(
                    "query", message=_PLACE.sub("", text), code="invalid-sql",
                    line_and_column=(int(place[1]), int(place[2])) if place else None,
                ) from error  # fmt: skip

    def run(
        self, batch: pa.RecordBatch, tables: Mapping[str, pa.RecordBatch] | None = None
    ) -> pa.RecordBatch:
        """Returns the rows of the query as one batch. Raises Rejected."""
        return self.run_tables({self.table: batch, **(tables or {})})

    def run_tables(self, tables: Mapping[str, pa.RecordBatch]) -> pa.RecordBatch:
        """Returns the rows of the query over named batches as one batch. Raises Rejected."""
        known = [quote_standard_name(name) for name in tables]
        try:
            for name, rows in zip(known, tables.values(), strict=True):
                self._context.register_record_batches(name, [[rows]])
            frame = plan_query(self._context, self.query)
            rows = one_batch(frame.collect(), frame.schema())
            return rows.rename_columns([original_name(name) for name in rows.schema.names])
        except Exception as error:
            raise Rejected(error_text(error), code="sql-failed") from error
        finally:
            for name in known:
                self._context.deregister_table(name)


def error_text(error: Exception) -> str:
    """Returns the message of an error of DataFusion, on one line."""
    return shorten(" ".join(str(error).split()), 400) or type(error).__name__


def one_batch(batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch:
    """Returns batches as one, with plain types. Columns may have the same name."""
    if not batches:
        return without_views(
            pa.RecordBatch.from_arrays(
                [pa.array([], field.type) for field in schema], schema=schema
            )
        )
    if len(batches) == 1:
        return without_views(batches[0])
    columns = [
        pa.chunked_array([batch.column(index) for batch in batches]).combine_chunks()
        for index in range(len(schema))
    ]
    return without_views(pa.RecordBatch.from_arrays(columns, schema=batches[0].schema))


def without_views(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Returns a batch without views of text and bytes, and without dictionaries."""
    types = [plain_type(field.type) for field in batch.schema]
    if all(type_.equals(field.type) for type_, field in zip(types, batch.schema, strict=True)):
        return batch
    columns: list[Any] = [
        column if type_.equals(column.type) else column.cast(type_)
        for column, type_ in zip(batch.columns, types, strict=True)
    ]
    fields = [pa.field(field.name, type_) for field, type_ in zip(batch.schema, types, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))


def plain_type(type_: pa.DataType) -> pa.DataType:
    """Returns a type without views and dictionaries."""
    if type_ == pa.string_view():
        return pa.string()
    if type_ == pa.binary_view():
        return pa.binary()
    if pa.types.is_dictionary(type_):
        return plain_type(type_.value_type)
    if pa.types.is_map(type_):
        return pa.map_(plain_type(type_.key_type), plain_type(type_.item_type))
    if pa.types.is_list(type_):
        return pa.list_(plain_type(type_.value_type))
    if pa.types.is_large_list(type_):
        return pa.large_list(plain_type(type_.value_type))
    if pa.types.is_struct(type_):
        return pa.struct([pa.field(each.name, plain_type(each.type)) for each in type_])
    return type_
