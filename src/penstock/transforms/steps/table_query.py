"""Queries over the tables of a database, which are read as a whole."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.core.errors import Permanent
from penstock.core.names import quote_standard_name
from penstock.sdk import Context, Read, Source, registry
from penstock.sql.datafusion.table_names import plain_tables
from penstock.transforms.steps.config import TargetTable
from penstock.transforms.steps.input_config import TableQuery
from penstock.transforms.steps.sql_query import (
    error_text,
    new_context,
    plan_query,
    without_views,
)

if TYPE_CHECKING:
    from datafusion import SessionContext

_PART = r'(?:"(?:[^"]|"")+"|[A-Za-z_]\w*)'


def tables_of(query: str, catalog: str) -> list[tuple[str, str]]:
    """Returns the schemas and names of the tables of the database in a query."""
    pattern = re.compile(
        rf'(?<![\w."])(?:{re.escape(catalog)}|"{re.escape(catalog)}")\.({_PART})\.({_PART})',
        re.IGNORECASE,
    )
    found = [(_name(match[1]), _name(match[2])) for match in pattern.finditer(query)]
    return list(dict.fromkeys(found))


def _name(part: str) -> str:
    return part[1:-1].replace('""', '"') if part.startswith('"') else part.lower()


def read_tables(config: TableQuery) -> Iterator[pa.RecordBatch]:
    """Yields the rows of the query. Raises Permanent."""
    context = new_context()
    try:
        _register(context, config)
        frame = plan_query(context, config.query)
        for part in frame.execute_stream():
            batch = without_views(part.to_pyarrow())
            if batch.num_rows:
                yield batch
    except Exception as error:
        if isinstance(error, Permanent):
            raise
        text = error_text(error)
        hint = f"Name a table of the database as {config.catalog}.SCHEMA.TABLE."
        raise Permanent(
            text, code="sql-failed", hint=hint if "not found" in text else None
        ) from error


def _register(context: SessionContext, config: TableQuery) -> None:
    from datafusion import Catalog
    from datafusion.catalog import Schema

    catalog = Catalog.memory_catalog()
    context.register_catalog_provider(config.catalog, catalog)
    for schema, name in tables_of(config.query, config.catalog):
        if schema not in catalog.names():
            catalog.register_schema(schema, Schema.memory_schema())
        rows = _rows(config, schema, name)
        catalog.schema(schema).register_table(name, rows)
    for name in plain_tables(config.query):
        context.register_table(quote_standard_name(name), _rows(config, "", name))


def _rows(config: TableQuery, schema: str, name: str) -> Any:
    """Returns the rows of a table as a table of DataFusion."""
    from datafusion import SessionContext

    table = _read_table(config, schema, name)
    return SessionContext().from_arrow(table)


def _read_table(config: TableQuery, schema: str, name: str) -> pa.Table:
    if config.type == "duckdb":
        return _read_duckdb(config, schema, name)
    has_schema = schema and config.type not in {"sqlite", "mysql"}
    source: Any = open_source(config, f"{schema}.{name}" if has_schema else name)
    source.columns = source.infer_schema()
    start = source.initial_offset()
    end = source.latest_offset(start)
    batches = [
        batch
        for partition in source.partitions(start, end)
        for batch in source.read(partition, Read())
    ]
    return pa.Table.from_batches(batches, schema=source.columns)


def open_source(config: TableQuery | TargetTable, table: str) -> Source[Any]:
    """Returns the source of a table of a database."""
    class_: Any = registry.find("source", config.type)
    given = {
        "path": None if config.path is None else str(config.path),
        "url": config.url, "auth": config.auth, "tls": config.tls,
    }  # fmt: skip
    options = {name: value for name, value in given.items() if value is not None}
    source = class_.create(class_.config_type(table=table, **options), Context())
    assert isinstance(source, Source)
    return source


def _read_duckdb(config: TableQuery, schema: str, name: str) -> pa.Table:
    import duckdb

    with duckdb.connect(str(config.path), read_only=True) as connection:
        table: pa.Table = connection.sql(
            f"SELECT * FROM {quote_standard_name(schema or 'main')}.{quote_standard_name(name)}"
        ).to_arrow_table()
        return table
