"""Columns of aggregates, checked without a server."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from penstock.connectors.postgres.aggregate.columns import Columns
from penstock.connectors.postgres.aggregate.config import PostgresAggregateSinkConfig
from penstock.connectors.postgres.aggregate.merge import Merge
from penstock.connectors.postgres.aggregate.triggers import Triggers
from penstock.core.errors import OptionError
from penstock.sdk.database import TableName

ROWS = pa.schema(
    [
        ("id", pa.int64()), ("price", pa.float32()), ("name", pa.string()),
        ("at", pa.timestamp("us", "UTC")), ("tags", pa.list_(pa.string())),
    ]
)  # fmt: skip
COUNT: dict[str, Any] = {"n": {"function": "count"}}


def columns(aggregates: Any = COUNT, group_by: Any = ()) -> Columns:
    options = {
        "url": "postgresql://localhost/x", "table": "t", "aggregate_table": "a",
        "aggregates": aggregates, "group_by": group_by or [],
    }  # fmt: skip
    return Columns.of(PostgresAggregateSinkConfig.model_validate(options), ROWS)


def test_types() -> None:
    of = columns(
        {
            **COUNT,
            "s": {"function": "sum", "column": "id"},
            "p": {"function": "avg", "column": "price"},
            "small": {"function": "sum", "column": "id", "type": "BIGINT"},
            "last": {"function": "max", "column": "at", "type": "DATE"},
            "name_max": {"function": "max", "column": "name"},
        },
        {"name": "name", "day": {"column": "at", "type": "DATE"}},
    )
    assert dict(of.types()) == {
        "name": "TEXT", "day": "DATE", "n": "BIGINT", "s": "NUMERIC", "p": "DOUBLE PRECISION",
        "small": "BIGINT", "last": "DATE", "name_max": "TEXT",
    }  # fmt: skip
    assert of.groups[1].value.of("r") == "(r.\"at\" AT TIME ZONE 'UTC')::date"


@pytest.mark.parametrize(
    ("aggregates", "group_by", "option", "message"),
    [
        ({"n": {"function": "sum", "column": "name"}}, [], ("aggregates", "n", "column"),
         'sum requires numbers: column "name" has the type STRING'),
        ({"n": {"function": "min", "column": "tags"}}, [], ("aggregates", "n", "column"),
         'min requires numbers, texts or times: column "tags" has the type ARRAY<STRING>'),
        ({"n": {"function": "avg", "column": "prise"}}, [], ("aggregates", "n", "column"),
         'aggregates.n.column: unknown column "prise"'),
        ({"n": {"function": "count", "type": "DATE"}}, [], ("aggregates", "n", "type"),
         "expected a type of numbers, found DATE"),
        (COUNT, ["nam"], ("group_by", 0), 'group_by: unknown column "nam"'),
        (COUNT, {"a": "nam"}, ("group_by", "a"), 'group_by.a: unknown column "nam"'),
        (COUNT, {"a": {"column": "nam"}}, ("group_by", "a", "column"),
         'group_by.a.column: unknown column "nam"'),
        (COUNT, {"a": {"column": "name", "type": "DATE"}}, ("group_by", "a", "type"),
         'column "name" has the type STRING, which is not converted to DATE'),
    ],
)  # fmt: skip
def test_columns_that_do_not_fit(
    aggregates: Any, group_by: Any, option: tuple[Any, ...], message: str
) -> None:
    with pytest.raises(OptionError) as error:
        columns(aggregates, group_by)
    assert (error.value.option, error.value.message) == (option, message)


def test_triggers_of_each_pair_of_tables_have_names_and_a_lock_of_their_own() -> None:
    made = [
        Triggers(Merge(TableName(("s", landing)), TableName(("s", table)), columns()))
        for landing, table in [("t", "a"), ("t", "b"), ("u", "a")]
    ]
    names = {name for triggers in made for name in triggers.functions}
    bodies = {triggers.functions[next(iter(triggers.functions))] for triggers in made}
    assert len(names) == 15 and len(bodies) == 3
    assert max(map(len, names)) <= 63
