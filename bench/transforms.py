"""Rates of transforms in other languages, beside the same work in Python in one process.

    python bench/transforms.py [--rows 100000] [--json]

Prints rows per second of one worker, best of a few runs. The work drops half of the rows, changes a
text, sums a list and derives a column. The module of WebAssembly returns its rows unchanged.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pyarrow as pa

from penstock.sdk import Transform
from penstock.sdk.columns.ddl import arrow_schema
from penstock.sdk.registry import find

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


def rate(rows: int, work: Callable[[], int], runs: int = 3) -> dict[str, int]:
    """The rows per second of the fastest run, and its output."""
    seconds, found = [], 0
    for _ in range(runs):
        start = time.perf_counter()
        found = work()
        seconds.append(time.perf_counter() - start)
    return {"rows_per_second": round(rows / min(seconds)), "output": found}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    batch = orders(arguments.rows)
    results = {"plain Python": rate(batch.num_rows, lambda: plain_python(batch))}
    for type_, options in TRANSFORMS.items():
        with closing(make(type_, options)) as transform:
            transform.open()
            output(transform, batch.slice(0, 100))
            results[type_] = rate(batch.num_rows, lambda each=transform: output(each, batch))
    if arguments.json:
        print(json.dumps(results))
        return
    for name, result in results.items():
        print(f"{name:14}{result['rows_per_second']:>12,} rows/s{result['output']:>12,} rows")


if __name__ == "__main__":
    main()
