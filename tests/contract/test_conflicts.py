"""`on_conflict` and `update_where` of databases in files, without Spark."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.connectors.duckdb import DuckdbSink
from penstock.connectors.sqlite import SqliteSink
from penstock.core.errors import PlanError
from penstock.sdk import BatchId, Context

COLUMNS = pa.schema([("id", pa.int64()), ("v", pa.int64()), ("select", pa.string())])
ROWS = [(1, 5, "a"), (2, 5, "a")]
LATER = [(1, 4, "b"), (2, 6, "b"), (3, 1, "b")]


@pytest.fixture(params=[SqliteSink, DuckdbSink])
def sink(request: Any, tmp_path: Path) -> Callable[..., Any]:
    def sink(*key: str, **options: Any) -> Any:
        options = {"path": str(tmp_path / "db"), "table": 'main."the ""table"', **options}
        config = request.param.config_type.model_validate(options)
        made = request.param.create(config, Context("pipeline", "out"))
        made.primary_key, made.mode = key, "upsert" if key else "append"
        made.check_schema(COLUMNS)
        return made

    return sink


def write(
    sink: Any, rows: list[Any], number: int, operations: list[str] | None = None
) -> list[Any]:
    """Writes a batch. Returns the rows of the table."""
    sink.prepare(COLUMNS)
    batch = BatchId("query", number)
    with closing(sink.open()) as client:
        writer = sink.writer(client, batch, 0, COLUMNS)
        named = [dict(zip(COLUMNS.names, row, strict=True)) for row in rows]
        batch_rows = pa.RecordBatch.from_pylist(named, schema=COLUMNS)
        changes = None if operations is None else pa.array(operations)
        assert not writer.write(batch_rows, None, changes)
        sink.commit(batch, [writer.commit()])
        query = f"SELECT * FROM {client.dialect.table(sink.table)} ORDER BY id"
        return [*map(tuple, client.query(query))]


def test_rows_whose_key_the_table_has(sink: Callable[..., Any]) -> None:
    assert write(sink("id"), ROWS, 0) == ROWS
    assert write(sink("id", on_conflict="nothing"), LATER, 1) == [*ROWS, LATER[2]]
    where = {"v": ">", "select": "<>"}
    assert write(sink("id", update_where=where), LATER, 2) == [ROWS[0], *LATER[1:]]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"on_conflict": "nothing"}, [(1, 9, "e"), (2, 3, "b"), (3, 1, "d")]),
        ({"update_where": {"v": ">"}}, [(1, 9, "e"), (2, 7, "c"), (3, 1, "d")]),
    ],
)
def test_rows_of_a_key_in_a_batch_and_in_batches(
    sink: Callable[..., Any], options: dict[str, Any], expected: list[Any]
) -> None:
    rows = [(1, 5, "a"), (2, 3, "b"), (2, 7, "c"), (3, 1, "d"), (1, 5, "a"), (1, 9, "e")]
    operations = ["i", "i", "i", "i", "d", "i"]
    batches = count()
    for size in (6, 2, 1):
        made = sink("id", **options, table=f"t{size}")
        for start in range(0, len(rows), size):
            part = slice(start, start + size)
            found = write(made, rows[part], next(batches), operations[part])
        assert found == expected


@pytest.mark.parametrize(
    ("key", "options", "message"),
    [
        (["id"], {"update_where": {"w": ">"}}, 'column "w"'),
        ([], {"update_where": {"v": ">"}}, "update_where has no meaning without mode: upsert"),
        ([], {"on_conflict": "nothing"}, "on_conflict has no meaning without mode: upsert"),
        (["id"], {"update_where": {"v": ">"}, "on_conflict": "nothing"}, "on_conflict: nothing"),
    ],
)
def test_options_without_a_meaning(
    sink: Callable[..., Any], key: list[str], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(PlanError, match=message):
        sink(*key, **options)
