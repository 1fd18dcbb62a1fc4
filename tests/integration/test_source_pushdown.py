"""Columns and conditions that readers receive: no row is lost that Spark itself would keep."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from penstock import app
from penstock.app import RunOptions
from penstock.connectors.memory import tables
from penstock.engine.build import Builder
from penstock.engine.catalyst.columns import to_arrow, to_spark
from penstock.engine.catalyst.java_trees import nodes_of_class
from penstock.engine.catalyst.spark_plan import analyzed_plan
from penstock.engine.checks.column_types import column_types
from penstock.engine.sources.datasource import TASK
from penstock.engine.sources.pushdown import find_pushdowns
from penstock.engine.sources.source import SourceTask
from penstock.sdk.columns.predicates import conjunct_sql, matching

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from penstock.observe.metrics import Metrics
    from penstock.plan.pushdown import Pushdown

pytestmark = pytest.mark.spark

SCHEMA = (
    "tiny TINYINT, n INT, big BIGINT, f FLOAT, x DOUBLE, d DECIMAL(10, 2), s STRING, "
    "b BOOLEAN, day DATE, at TIMESTAMP, local TIMESTAMP_NTZ, list ARRAY<INT>"
)
UTC = dt.UTC
VALUES: dict[str, list[Any]] = {
    "tiny": [-128, 0, 3, 127],
    "n": [-(2**31), -1, 0, 1, 2**31 - 1],
    "big": [-(2**63), 0, 2**53 + 1, 2**63 - 1],
    "f": [float("nan"), -0.0, 0.0, 0.1, float("inf"), float("-inf"), 16777217.0],
    "x": [float("nan"), -0.0, 0.0, 0.1, 1e308, float("inf"), float("-inf")],
    "d": [Decimal("-0.01"), Decimal("0.00"), Decimal("1.10"), Decimal("99999999.99")],
    "s": ["", "a", "a ", "A", "ä", "a\u0308", "🦊", "\uffee", "it's", "\\", "1", "NaN"],
    "b": [True, False],
    "day": [dt.date(1, 1, 1), dt.date(1582, 10, 10), dt.date(1970, 1, 1), dt.date(9999, 12, 31)],
    "at": [
        dt.datetime(1, 1, 1, tzinfo=UTC),
        dt.datetime(1969, 12, 31, 23, 59, 59, 999999, UTC),
        dt.datetime(2024, 3, 31, 2, 30, tzinfo=UTC),
    ],
    "local": [dt.datetime(1582, 10, 10), dt.datetime(2024, 3, 31, 2, 30, 0, 1)],
    "list": [[1], []],
}
LITERALS = {
    "tiny": ["3", "0", "1.5", "300"],
    "n": ["0", "-1", "2147483648", "0.5", "'1'"],
    "big": ["0", "9007199254740993", "9007199254740993.0", "9.007199254740993E15"],
    "f": ["0.1", "CAST(0.1 AS FLOAT)", "0", "CAST('NaN' AS FLOAT)", "CAST('-0.0' AS FLOAT)"],
    "x": ["0.1", "0.1D", "0", "DOUBLE('NaN')", "-0.0D", "DOUBLE('Infinity')"],
    "d": ["1.1", "1.10", "0", "0.005", "1.1D", "'1.10'"],
    "s": ["'a'", "'a '", "''", "'🦊'", "'it\\'s'", "'\\\\'"],
    "b": ["true", "false"],
    "day": ["DATE '1970-01-01'", "'1582-10-10'", "TIMESTAMP '1970-01-01 00:00:00'"],
    "at": ["TIMESTAMP '2024-03-31 02:30:00'", "'1969-12-31T23:59:59.999999Z'", "DATE '2024-03-31'"],
    "local": ["TIMESTAMP_NTZ '2024-03-31 02:30:00.000001'", "'1582-10-10'"],
}
SIMPLE = {
    "n = 0", "n <> -1", "tiny <= 3", "big > 9007199254740993", "x >= 0.1D", "d < 1.10", "s = 'a '",
    "s IN ('a', 'it\\'s')", "b", "NOT b", "day >= DATE '1970-01-01'", "list IS NOT NULL",
    "at = TIMESTAMP '2024-03-31 02:30:00'", "at < '1969-12-31T23:59:59.999999Z'", "x IS NULL",
    "local > '1582-10-10'", "0 < n", "x = -0.0D", "f > CAST(0.1 AS FLOAT)",
    f"n IN ({', '.join(map(str, range(-3, 20)))})",
}  # fmt: skip
"""Conditions that readers must receive."""


def conditions() -> list[str]:
    made = list(SIMPLE)
    for column, literals in LITERALS.items():
        for literal in literals:
            made += [f"{column} {op} {literal}" for op in ("=", "<>", "<", "<=", ">", ">=")]
            made.append(f"{literal} > {column}")
        made += [f"{literals[0]} {op} {column}" for op in ("=", "<", "<=", ">=")]
        made.append(f"{column} IN ({', '.join(literals[:3])}, NULL)")
        made.append(f"{column} NOT IN ({', '.join(literals[:2])})")
        made += [f"{column} IS NULL", f"{column} <=> {literals[0]}"]
    rng = random.Random(4)
    pairs = [rng.sample(made, 2) for _ in range(40)]
    return made + [f"{a} {rng.choice(['AND', 'OR'])} {b}" for a, b in pairs]


def rows() -> pa.Table:
    """Each value and null, in rows of which no two columns go in step."""
    rng = random.Random(5)
    schema = to_arrow(to_spark(app_schema()))
    longest = max(map(len, VALUES.values())) + 1
    columns = []
    for field in schema:
        values = [*VALUES[field.name], None] * longest
        rng.shuffle(values)
        columns.append(pa.array(values[: 3 * longest], field.type))
    return pa.Table.from_arrays(columns, schema=schema)


def app_schema() -> pa.Schema:
    from penstock.sdk.columns.ddl import arrow_schema

    return arrow_schema(SCHEMA)


def built(text: str, directory: Path, spark: SparkSession) -> Builder:
    path = directory / "pipeline.yaml"
    path.write_text(text)
    return Builder(app.plan(path), spark.newSession())


@pytest.fixture
def stream(tmp_path: Path, penstock_spark: SparkSession) -> DataFrame:
    text = f"""
name: typed
sources: {{rows: {{type: memory, payloads: [], format: json, schema: "{SCHEMA}"}}}}
sinks: {{out: {{type: print, from: rows}}}}
"""
    builder = built(text, tmp_path, penstock_spark)
    (query,) = builder.plan.queries
    return builder.build_streams(query)["rows"]


def test_conjuncts_keep_what_spark_keeps(stream: DataFrame) -> None:
    """Of a simple condition exactly that, of any other at least that."""
    table = rows()
    (batch,) = table.combine_chunks().to_batches()
    here = stream.sparkSession.createDataFrame(table, to_spark(table.schema))
    every = conditions()
    truth = here.selectExpr(*(f"coalesce({c}, false) c{i}" for i, c in enumerate(every))).toArrow()
    pushed = 0
    for number, condition in enumerate(every):
        kept = truth.column(number).to_pylist()
        pushdown = find_pushdowns([stream.where(condition)])["rows"]
        if not pushdown.conjuncts:
            assert condition not in SIMPLE
            continue
        met = matching(batch, pushdown.conjuncts).fill_null(False).to_pylist()
        missing = [row for row, (k, m) in enumerate(zip(kept, met, strict=True)) if k and not m]
        what = f"{condition}: {' AND '.join(map(conjunct_sql, pushdown.conjuncts))}"
        assert not missing, f"{what} drops {batch.slice(missing[0], 1).to_pylist()}"
        assert condition not in SIMPLE or met == kept, what
        pushed += 1
    assert pushed > len(every) / 2


PIPELINE = """
name: pushed
sources:
  orders:
    type: memory
    payloads: []
    format: json
    schema: id LONG, item STRING, price DOUBLE, at TIMESTAMP
    watermark: {column: at, delay: 1 hour}
  names: {type: memory, static: true, rows: [{item: a, name: apple}]}
"""
PUSHED = {
    "a filter, then columns": (
        """
transforms:
  some: {type: filter, from: orders, where: price > 5 AND item = 'a' AND length(item) < 3}
  less: {type: select, from: some, columns: [price * 2 AS twice]}
  out: {type: rename, from: less, columns: {twice: double}}
""",
        ["out"],
        "at, item, price; price > 5.0; item = 'a'",
    ),
    "columns, then a filter": (
        """
transforms:
  named: {type: map, from: orders, set: {thing: item, dear: price * 2}}
  out: {type: sql, sql: "SELECT id FROM named WHERE thing = 'a' AND dear > 3"}
""",
        ["out"],
        "*; price IS NOT NULL; item = 'a'",
    ),
    "what all branches share": (
        """
transforms:
  one: {type: sql, sql: SELECT id FROM orders WHERE price > 5 AND item = 'a'}
  two: {type: sql, sql: SELECT item FROM orders WHERE item = 'a'}
""",
        ["one", "two"],
        "*; item = 'a'",
    ),
    "a sink on the source": (
        "transforms: {one: {type: sql, sql: SELECT id FROM orders WHERE price > 5}}",
        ["one", "orders"],
        "all",
    ),
    "a table between two sinks is computed for itself": (
        """
transforms:
  all: {type: sql, sql: "SELECT *, 1 / price AS x FROM orders"}
  one: {type: filter, from: all, where: item = 'a'}
  two: {type: filter, from: all, where: item = 'a'}
""",
        ["one", "two"],
        "all",
    ),
    "twice in one query": (
        """
transforms:
  out: {type: sql, sql: "SELECT id FROM orders WHERE price > 5 AND item = 'a'
                         UNION ALL SELECT id + 1 FROM orders WHERE item = 'a'"}
""",
        ["out"],
        "*; item = 'a'",
    ),
    "a join with a table": (
        """
transforms:
  out: {type: sql, sql: "SELECT name FROM orders JOIN names USING (item) WHERE price < 3"}
""",
        ["out"],
        "at, item, price; price < 3.0; item IS NOT NULL",
    ),
    "in a subquery": (
        """
transforms:
  out:
    type: sql
    scope: batch
    sql: SELECT id FROM orders WHERE item = 'a' AND price > (SELECT avg(price) FROM orders)
""",
        ["out"],
        "all",
    ),
    "the time of day": (
        "transforms: {out: {type: sql, sql: SELECT id FROM orders WHERE price > 5 AND at < now()}}",
        ["out"],
        "at, id, price; ",
    ),
    "the time of day in disguise": (
        "transforms: {out: {type: filter, from: orders, where: price > unix_timestamp()}}",
        ["out"],
        "all",
    ),
    "a moment": (
        "transforms: {out: {type: filter, from: orders, where: price > 1 AND at < DATE 'today'}}",
        ["out"],
        "all",
    ),
    "chance": (
        "transforms: {out: {type: sql, sql: SELECT id FROM orders WHERE rand() < 0.5}}",
        ["out"],
        "at, id; ",
    ),
    "a Python function sees all": (
        """
transforms:
  seen:
    type: python
    from: orders
    code: "def transform(batch): return batch.select(['id'])"
  out: {type: filter, from: seen, where: id > 3}
""",
        ["out"],
        "all",
    ),
    "above a window": (
        """
transforms:
  some: {type: filter, from: orders, where: item = 'a' AND at > '2024-01-01'}
  out: {type: sql, sql: "SELECT count(*) n FROM some GROUP BY window(at, '1 hour')"}
""",
        ["out"],
        "at, item; item = 'a'",
    ),
    "below a window": (
        """
transforms:
  hourly:
    type: sql
    sql: SELECT item, count(*) n FROM orders GROUP BY window(at, '1 hour'), item
  out: {type: filter, from: hourly, where: item = 'a'}
""",
        ["out"],
        "at, item; ",
    ),
    "ranks are not cut": (
        """
transforms:
  ranked:
    type: sql
    scope: batch
    sql: SELECT id, price, row_number() OVER (ORDER BY at) AS rank FROM orders
  out: {type: filter, from: ranked, where: price > 5}
""",
        ["out"],
        "at, id, price; ",
    ),
    "distinct rows": (
        """
transforms:
  once: {type: dedupe, from: orders, keys: [id]}
  out: {type: filter, from: once, where: price > 5}
""",
        ["out"],
        "all",
    ),
}


def text(pushdown: Pushdown | None) -> str:
    if pushdown is None or (pushdown.columns is None and not pushdown.conjuncts):
        return "all"
    columns = "*" if pushdown.columns is None else ", ".join(sorted(pushdown.columns))
    return "; ".join(
        [columns, *map(conjunct_sql, pushdown.conjuncts)] if pushdown.conjuncts else [columns, ""]
    )


@pytest.mark.parametrize("name", PUSHED)
def test_a_query_passes_its_needs_to_the_reader(
    name: str, tmp_path: Path, penstock_spark: SparkSession
) -> None:
    transforms, ends, expected = PUSHED[name]
    sinks = "".join(f"  to_{end}: {{type: print, from: {end}}}\n" for end in ends)
    builder = built(f"{PIPELINE}{transforms}\nsinks:\n{sinks}", tmp_path, penstock_spark)
    (query,) = builder.plan.queries
    column_types(builder)
    streams = builder.build_streams(query)
    (scan,) = nodes_of_class(analyzed_plan(streams["orders"]), "StreamingRelationV2")
    task = SourceTask.unpack(scan.extraOptions().get(TASK))
    assert text(task.pushdown) == text(builder.pushdowns(query).get("orders")) == expected


RUN = """
name: counted
sources:
  orders:
    type: files
    path: orders.jsonl
    schema: id INT, price DOUBLE, item STRING, at TIMESTAMP
    watermark: {column: at, delay: 1 minute}
transforms:
  dear: {type: sql, sql: SELECT id FROM orders WHERE price > 990}
  hourly:
    type: sql
    sql: SELECT count(*) AS n FROM orders WHERE item = 'b' GROUP BY window(at, '1 hour')
sinks:
  few: {type: memory, from: dear}
  counts: {type: memory, from: hourly}
"""


def test_rows_that_are_left_out_are_read_and_bad_ones_are_dead_letters(
    tmp_path: Path, penstock_spark: SparkSession
) -> None:
    lines = [
        f'{{"id": {n}, "price": {n}, "item": "{"ab"[n % 2]}", "at": "2024-01-01 0{n // 250}:00"}}'
        for n in range(1000)
    ]
    lines.insert(500, '{"id": "many", "price": 1, "item": "c"}')
    (tmp_path / "orders.jsonl").write_text("\n".join(lines))
    (tmp_path / "pipeline.yaml").write_text(RUN)
    seen: list[Metrics] = []
    tables.clear()
    options = RunOptions(on_start=lambda plan, metrics: seen.append(metrics))
    plan = app.plan(tmp_path / "pipeline.yaml")
    outcome = app.run(plan, spark=penstock_spark.newSession(), options=options)
    assert outcome.ending == "complete"
    assert tables["few"].column("id").to_pylist() == list(range(991, 1000))
    assert sorted(tables["counts"].column("n").to_pylist()) == [125] * 4
    flow = seen[0].flows["orders"]
    assert (flow.rows, flow.dead_letters) == (1000, 1)
