"""Rates of transforms beside the same work in plain Python, in one process without Spark.

    python bench/transforms.py [--rows 100000] [--json]

Prints rows per second of one worker, best of a few runs, and the ratio to plain Python over dicts.

Transforms in other languages drop half of the rows, change a text, sum a list and derive a column.
The module of WebAssembly returns its rows unchanged. Handlers have a state for each of 100 hosts,
which is loaded and saved for each batch of 10,000 rows, as in a pipeline.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import Any

import plain_handlers
import pyarrow as pa

from penstock.handlers.roles import Roles
from penstock.sdk import Transform
from penstock.sdk.columns.ddl import arrow_schema
from penstock.sdk.registry import find
from penstock.transforms.handlers.chain import Chain
from penstock.transforms.handlers.config import HandlersConfig
from penstock.transforms.handlers.transform import bucket_handler

BATCH = 10_000
SCHEMA = "id BIGINT, user STRING, total BIGINT, tier STRING"
PYTHON = """
def transform(row):
    if row["amount"] <= 50:
        return None
    tier = "gold" if row["amount"] > 90 else "base"
    return {"id": row["id"], "user": row["user"].upper(), "total": sum(row["items"]), "tier": tier}
"""
SCRIPT = """
function process(row) {
  if (row.amount <= 50) return null;
  let total = 0;
  for (const item of row.items) total += item;
  const tier = row.amount > 90 ? "gold" : "base";
  return {id: row.id, user: row.user.toUpperCase(), total, tier};
}
"""
JQ = """
select(.amount > 50) | {
  id, user: (.user | ascii_upcase), total: (.items | add),
  tier: (if .amount > 90 then "gold" else "base" end)
}
"""
VRL = """
amount = to_float!(.amount)
if amount <= 50.0 { abort }
.user = upcase(string!(.user))
total = 0
for_each(array!(.items)) -> |_index, item| { total = total + int!(item) }
.total = total
.tier = if amount > 90.0 { "gold" } else { "base" }
"""
WASM = """
(module
  (memory (export "memory") 800)
  (func (export "alloc") (param i32) (result i32) (i32.const 8))
  (func (export "process") (param $address i32) (param $size i32) (result i64)
    (i64.or
      (i64.shl (i64.extend_i32_u (local.get $address)) (i64.const 32))
      (i64.extend_i32_u (local.get $size)))))
"""
TRANSFORMS: dict[str, dict[str, Any]] = {
    "python": {"code": PYTHON, "per": "row", "schema": SCHEMA},
    "script": {"code": SCRIPT, "schema": SCHEMA},
    "jq": {"code": JQ, "schema": SCHEMA},
    "vrl": {"code": VRL, "schema": SCHEMA},
    "wasm": {"code": WASM},
}


WINDOW = {"type": "window", "period": "60s", "every": "60s"}
THRESHOLD = {
    "type": "threshold", "column": "load", "default": 50,
    "increase": {"factor": 1.5, "duration": "2s"},
}  # fmt: skip
MEAN = [{"function": name, "column": "load", "as": name} for name in ("last", "mean")]
HANDLERS: dict[str, tuple[list[dict[str, Any]], Callable[[list[dict[str, Any]]], int]]] = {
    "threshold": ([THRESHOLD], plain_handlers.threshold),
    "window": ([WINDOW], plain_handlers.window),
    "derivative": (
        [{"type": "derivative", "columns": {"slope": {"column": "load"}}}],
        plain_handlers.derivative,
    ),
    "aggregate": ([WINDOW, {"type": "aggregate", "columns": MEAN}], plain_handlers.aggregate),
    "join": ([WINDOW, {"type": "join", "on": ["disk"], "tolerance": "1s"}], plain_handlers.join),
}


@dataclass(frozen=True)
class Result:
    """The rows per second of a transform, its output, and the rate of the same work in Python."""

    name: str
    rows_per_second: int
    output: int
    plain: int


def metrics(count: int) -> pa.RecordBatch:
    """Rows of 100 hosts, each with a row a second."""
    rng = random.Random(7)
    start = 1_600_000_000_000_000
    times = pa.array([start + index // 100 * 10**6 for index in range(count)], pa.timestamp("us"))
    hosts = [f"host-{index % 100:02d}" for index in range(count)]
    loads = [round(rng.random() * 100, 2) for _ in range(count)]
    disks = [f"sd{index // 100 % 4}" for index in range(count)]
    return pa.record_batch([times, hosts, loads, disks], ["time", "host", "load", "disk"])


def orders(count: int) -> pa.RecordBatch:
    """Rows whose JSON has 150 bytes."""
    rng = random.Random(7)
    rows = [
        {
            "id": index,
            "user": f"user-{rng.randrange(10**6):06d}",
            "amount": round(rng.random() * 100, 2),
            "items": [rng.randrange(9) for _ in range(3)],
            "note": "left at the door of the neighbour on the second floor",
        }
        for index in range(count)
    ]
    schema = arrow_schema("id BIGINT, user STRING, amount DOUBLE, items ARRAY<BIGINT>, note STRING")
    return pa.RecordBatch.from_pylist(rows, schema=schema)


def make(type_: str, options: dict[str, Any]) -> Transform[Any]:
    component = find("transform", type_)
    made = component.create(component.config_type.model_validate(options))
    assert isinstance(made, Transform)
    return made


def plain_python(batch: pa.RecordBatch) -> int:
    """The function of `PYTHON` over dicts, without Penstock."""
    scope: dict[str, Any] = {}
    exec(PYTHON, scope)
    found = [scope["transform"](row) for row in batch.to_pylist()]
    return pa.RecordBatch.from_pylist([row for row in found if row is not None]).num_rows


def output(transform: Transform[Any], batch: pa.RecordBatch) -> int:
    """The rows of the output."""
    parts = (
        part
        for start in range(0, batch.num_rows, BATCH)
        for part in transform.apply(batch.slice(start, BATCH))
    )
    return sum(part.num_rows for part in parts if isinstance(part, pa.RecordBatch))


def handled(handlers: list[dict[str, Any]], batch: pa.RecordBatch) -> int:
    """The rows of the output of handlers for each host."""
    config = HandlersConfig.model_validate({"handlers": handlers})
    roles, state, count = Roles("time"), b"", 0
    for start in range(0, batch.num_rows, BATCH):
        handler = bucket_handler(Chain(config.handlers, ()), ("host",))
        if state:
            handler.load(state)
        rows = roles.apply(batch.slice(start, BATCH))
        count += sum(part.num_rows for part in handler.handle_all([rows]))
        state = handler.save()
    return count


def rate(rows: int, work: Callable[[], int], runs: int = 3) -> tuple[int, int]:
    """The rows per second of the fastest run, and its output."""
    seconds, found = [], 0
    for _ in range(runs):
        start = time.perf_counter()
        found = work()
        seconds.append(time.perf_counter() - start)
    return round(rows / min(seconds)), found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    results = [*rates_of_languages(arguments.rows), *rates_of_handlers(arguments.rows)]
    if arguments.json:
        print(json.dumps([asdict(result) for result in results]))
        return
    print(f"{'transform':14}{'rows/s':>12}{'plain Python':>14}{'ratio':>8}{'rows':>10}")
    for each in results:
        ratio = each.rows_per_second / each.plain
        rates = f"{each.rows_per_second:>12,}{each.plain:>14,}{ratio:>8.2f}"
        print(f"{each.name:14}{rates}{each.output:>10,}")


def rates_of_languages(rows: int) -> Iterator[Result]:
    """Yields the rates of transforms in other languages."""
    batch = orders(rows)
    plain, _ = rate(rows, lambda: plain_python(batch))
    for type_, options in TRANSFORMS.items():
        with closing(make(type_, options)) as transform:
            transform.open()
            output(transform, batch.slice(0, 100))
            yield Result(
                type_, *rate(rows, lambda each=transform: output(each, batch)), plain=plain
            )


def rates_of_handlers(rows: int) -> Iterator[Result]:
    """Yields the rates of handlers with state. Their outputs are those of plain Python."""
    batch = metrics(rows)
    for name, (handlers, plain) in HANDLERS.items():
        rate_of_plain, expected = rate(rows, lambda each=plain: each(batch.to_pylist()))
        found, count = rate(rows, lambda each=handlers: handled(each, batch))
        if count != expected:
            raise SystemExit(f"{name} has {count} rows, and {expected} in plain Python")
        yield Result(name, found, count, plain=rate_of_plain)


if __name__ == "__main__":
    main()
