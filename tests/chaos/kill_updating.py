"""Kills a windowed, a joined and an updating pipeline again and again, and compares its results.

    python tests/chaos/kill_updating.py [--kills N] [--records N] [--seed N]

One pipeline file has all three: windows, a join of two streams, and updating transforms (an
aggregate of an aggregate, and an outer join whose right rows arrive late). The run is killed by
SIGKILL, at random either the driver alone or all processes at once, and started again. In the end
the changes are applied to tables, which must be those of one computation over all input.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from victim import Victim

Row = dict[str, Any]
Rows = Counter[tuple[object, ...]]
START = datetime(2026, 3, 1, tzinfo=UTC)
LATER = timedelta(days=10)
"""The distance of the two orders that close all windows of the others."""
WINDOW, EVERY = 600, 20
CUSTOMERS = 11
PIPELINE = """\
name: readings
runtime: {partitions: 2, state: state}
sources:
  orders: {type: files, path: in/orders/*.jsonl, order: name, max_files: 1, watch: true,
    schema: "id LONG, customer LONG, amount LONG, at TIMESTAMP",
    watermark: {column: at, delay: 1 minute}}
  payments: {type: files, path: in/payments/*.jsonl, order: name, max_files: 1, watch: true,
    schema: "paid LONG, paid_at TIMESTAMP", watermark: {column: paid_at, delay: 1 minute}}
  sales: {type: files, path: in/orders/*.jsonl, order: name, max_files: 1, watch: true,
    schema: "id LONG, customer LONG, amount LONG"}
  names: {type: files, path: in/names/*.jsonl, order: name, max_files: 1, watch: true,
    schema: "buyer LONG, city STRING"}
transforms:
  windows:
    type: sql
    sql: |
      SELECT unix_timestamp(window.start) AS start, count(*) AS n, sum(amount) AS total
      FROM orders GROUP BY window(at, '10 minutes')
  pairs:
    type: sql
    sql: |
      SELECT id, unix_timestamp(paid_at) AS second FROM orders JOIN payments
      ON id = paid AND paid_at BETWEEN at AND at + INTERVAL 1 HOUR
  sums:
    type: sql
    sql: SELECT customer, count(*) AS n, sum(amount) AS total FROM sales GROUP BY customer
  levels: {type: sql, sql: "SELECT n, count(*) AS customers FROM sums GROUP BY n"}
  placed:
    type: sql
    sql: SELECT id, city FROM sales LEFT JOIN names ON customer = buyer
sinks:
  windows_out: {type: files, from: windows, path: out/windows, format: json}
  pairs_out: {type: files, from: pairs, path: out/pairs, format: json}
  sums_out: {type: files, from: sums, path: out/sums, format: debezium_json}
  levels_out: {type: files, from: levels, path: out/levels, format: debezium_json}
  placed_out: {type: files, from: placed, path: out/placed, format: debezium_json}
"""
UPDATING = ("sums", "levels", "placed")
STREAMS = {
    "sources": ("orders", "payments"),
    "transforms": ("windows", "pairs"),
    "sinks": ("windows_out", "pairs_out"),
}
"""The parts of the pipeline that Spark computes as streams."""


def without_streams() -> str:
    """Returns the pipeline with only its updating transforms."""
    document = YAML(typ="safe").load(PIPELINE)
    for part, names in STREAMS.items():
        for name in names:
            del document[part][name]
    return json.dumps(document)


def write_input(directory: Path, records: int, files: int, pipeline: str = PIPELINE) -> list[Row]:
    """Writes a pipeline and its input. Returns the orders."""
    orders: list[Row] = [
        {"id": n, "customer": n * n % CUSTOMERS, "amount": n % 13, "at": _at(n)}
        for n in range(records)
    ]
    closing = [
        {"id": records + n, "customer": 0, "amount": 0, "at": _at(records) + LATER * (n + 1)}
        for n in range(2 if "windows" in pipeline else 0)
    ]
    paid = [
        {"paid": order["id"], "paid_at": order["at"] + timedelta(minutes=10)}
        for order in orders
        if order["id"] % 3
    ]
    names = [{"buyer": n, "city": f"city {n % 3}"} for n in range(CUSTOMERS - 2)]
    size = -(-records // files)
    parts = [orders[start : start + size] for start in range(0, records, size)]
    _write(directory / "in/orders", [*parts, *([each] for each in closing)])
    size = -(-len(paid) // files)
    _write(directory / "in/payments", [paid[at : at + size] for at in range(0, len(paid), size)])
    _write(directory / "in/names", [names[number::files] for number in range(files)])
    (directory / "pipeline.yaml").write_text(pipeline)
    return [*orders, *closing]


def _at(number: int) -> datetime:
    return START + timedelta(seconds=EVERY * number)


def _write(directory: Path, parts: Sequence[Sequence[Row]]) -> None:
    directory.mkdir(parents=True)
    for number, rows in enumerate(parts):
        lines = (json.dumps(row, default=datetime.isoformat) for row in rows)
        (directory / f"{number:03}.jsonl").write_text("".join(f"{line}\n" for line in lines))


def expected_tables(orders: Sequence[Row]) -> dict[str, Rows]:
    """Returns the tables of one computation over all input."""
    end = int((START + LATER).timestamp())
    windows: dict[int, list[int]] = {}
    sums: dict[int, list[int]] = {}
    for order in orders:
        second = int(order["at"].timestamp())
        if second < end:
            windows.setdefault(second // WINDOW * WINDOW, []).append(order["amount"])
        sums.setdefault(order["customer"], []).append(order["amount"])
    return {
        "windows": Counter((start, len(each), sum(each)) for start, each in windows.items()),
        "pairs": Counter(
            (order["id"], int(order["at"].timestamp()) + 600)
            for order in orders
            if order["id"] % 3 and order["at"] < START + LATER
        ),
        "sums": Counter((key, len(each), sum(each)) for key, each in sums.items()),
        "levels": Counter(Counter(map(len, sums.values())).items()),
        "placed": Counter(
            (o["id"], f"city {o['customer'] % 3}" if o["customer"] < CUSTOMERS - 2 else None)
            for o in orders
        ),
    }


def found_tables(directory: Path) -> dict[str, Rows]:
    """Returns the tables that the sinks have written, with the changes applied."""
    end = int((START + LATER).timestamp())
    return {
        "windows": Counter(
            tuple(row.values()) for row in _lines(directory / "out/windows") if row["start"] < end
        ),
        "pairs": Counter(tuple(row.values()) for row in _lines(directory / "out/pairs")),
        **{name: _apply(_lines(directory / "out" / name)) for name in ("sums", "levels", "placed")},
    }


def _lines(directory: Path) -> Iterator[Row]:
    for path in sorted(directory.glob("part-*")):
        yield from map(json.loads, path.read_text("utf-8").splitlines())


def _apply(changes: Iterator[Row]) -> Rows:
    rows: Rows = Counter()
    for change in changes:
        for side, weight in (("before", -1), ("after", 1)):
            if change[side] is not None:
                rows[tuple(change[side].values())] += weight
    return Counter({row: count for row, count in rows.items() if count})


def assert_complete(
    directory: Path, orders: Sequence[Row], tables: Sequence[str] = ("windows", "pairs", *UPDATING)
) -> None:
    """Compares tables. Raises AssertionError with the rows that differ."""
    found, expected = found_tables(directory), expected_tables(orders)
    for name in tables:
        table = expected[name]
        lost, extra = table - found[name], found[name] - table
        assert found[name] == table, f"{name}: lost {lost}, not expected {extra}"


def kill_updating(directory: Path, kills: int, records: int, seed: int) -> None:
    """Kills the run so many times, lets it end, and compares. Raises AssertionError.

    A run that ends before all kills is an error, too: it has too few records.
    """
    dice = random.Random(seed)
    orders = write_input(directory, records, files=2 * kills + 4)
    victim = Victim(directory)
    try:
        for _ in range(kills):
            process = victim.run("--until-caught-up")
            batches = victim.lives(process, dice)
            if process.poll() is not None:
                victim.ends(process)
                raise AssertionError("the input ended before all kills")
            killed = victim.kill(process, dice)
            print(
                f"killed {killed} after {batches} batches ({victim.commits()} in all)", flush=True
            )
        victim.ends(victim.run("--until-caught-up"))
    finally:
        victim.kill_all()
    assert_complete(directory, orders)
    assert "Traceback" not in victim.log()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=10, help="at random moments")
    parser.add_argument("--records", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=random.randrange(1000))
    given = parser.parse_args()
    scratch = Path(tempfile.mkdtemp(prefix="kill-updating-"))
    print(f"seed {given.seed}, in {scratch}", flush=True)
    began = time.monotonic()
    try:
        kill_updating(scratch, given.kills, given.records, given.seed)
    except AssertionError as error:
        raise SystemExit(f"wrong: {error}") from None
    shutil.rmtree(scratch)
    print(f"all tables are those of one computation ({time.monotonic() - began:.0f} s)")


if __name__ == "__main__":
    main()
