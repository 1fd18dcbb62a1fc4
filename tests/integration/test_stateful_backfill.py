"""Backfill of a sink of a stateful query: the rows that the other sinks have, each once."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock import app
from penstock.connectors.memory import tables
from penstock.core.errors import StateError
from penstock.runtime.backfills.backfill import Backfill
from penstock.runtime.outcome import Outcome

pytestmark = pytest.mark.spark

WATERMARK = {"column": "at", "delay": "10 minutes"}
SCHEMA = "id LONG, at TIMESTAMP"
HOURLY = """
    SELECT window.start AS hour, count(*) AS n, sum(id) AS ids FROM orders
    GROUP BY window(at, '1 hour')
"""
JOINED = """
    SELECT o.id, r.id AS returned FROM orders o LEFT JOIN returns r
    ON o.id = r.id AND r.at BETWEEN o.at AND o.at + INTERVAL 30 MINUTES
"""
Run = Callable[..., Outcome]


def put(root: Path, file: str, *rows: tuple[int, str]) -> None:
    """Writes a file of rows of an id and a time of 2024-01-01."""
    path = root / f"{file}.jsonl"
    path.parent.mkdir(exist_ok=True)
    rows_of_file = [{"id": id_, "at": f"2024-01-01T{at}:00Z"} for id_, at in rows]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows_of_file))


def lines(root: Path, sink: str) -> list[str]:
    texts = [path.read_text() for path in (root / sink).glob("*.jsonl")]
    return sorted(line for text in texts for line in text.splitlines())


def put_batches(root: Path) -> None:
    """The first row of the file d is late: the hour of 10 is closed in the batch before."""
    put(root, "orders/a", (1, "10:05"), (2, "10:40"))
    put(root, "orders/b", (3, "11:55"))
    put(root, "orders/c", (4, "11:58"))
    put(root, "orders/d", (5, "10:20"), (6, "12:15"))


@pytest.fixture
def run(tmp_path: Path, penstock_spark: SparkSession) -> Run:
    """Runs `sql` over two sources of files, one file per batch, with the sink `out` and others."""

    def execute(
        *sinks: str, sql: str = HOURLY, until: Any = "caught_up", backfill: str | None = None,
        watermark: Any = WATERMARK, upsert: dict[str, str] | None = None, **spark: Any,
    ) -> Outcome:  # fmt: skip
        document = {
            "name": "shop",
            "runtime": {"spark": spark},
            "sources": {
                name: {
                    "type": "files", "path": f"{name}/*.jsonl", "schema": SCHEMA, "max_files": 1,
                    **({"watermark": watermark} if watermark else {}),
                }
                for name in ("orders", "returns") if name in sql
            },
            "transforms": {"result": {"type": "sql", "sql": sql}},
            "sinks": {
                name: {
                    "from": "result",
                    **({"type": "files", "path": name} if upsert is None
                       else {"type": "memory", "name": upsert[name], "mode": "upsert",
                             "primary_key": ["odd"]}),
                }
                for name in ("out", *sinks)
            },
        }  # fmt: skip
        file = tmp_path / "shop.yaml"
        file.write_text(json.dumps(document))
        options = app.RunOptions(until=until, backfill=backfill)
        outcome = app.run(file, spark=penstock_spark.newSession(), options=options)
        assert not outcome.errors
        return outcome

    return execute


def test_windows(run: Run, tmp_path: Path) -> None:
    """The sink `copy` is new; the sink `started` has received rows of a run before its backfill."""
    put_batches(tmp_path)
    run()
    before = lines(tmp_path, "out")
    assert [json.loads(line)["n"] for line in before] == [2, 2]
    put(tmp_path, "orders/e", (7, "12:20"), (8, "13:30"))
    run("started")
    run("started", backfill="started")
    assert lines(tmp_path, "started") == lines(tmp_path, "out")
    run("started", "copy", backfill="copy")
    assert lines(tmp_path, "copy") == lines(tmp_path, "started") == lines(tmp_path, "out")
    put(tmp_path, "orders/f", (9, "13:40"))
    run("started", "copy", until="auto")
    assert lines(tmp_path, "copy") == lines(tmp_path, "started") == lines(tmp_path, "out")
    assert len(lines(tmp_path, "copy")) > len(before)


def test_a_complete_pipeline(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The backfill closes the windows as well, and continues after a kill."""
    put_batches(tmp_path)
    run(until="auto")

    def kill(*_: object) -> None:
        raise StateError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(Backfill, "complete", kill)
        with pytest.raises(StateError, match="killed"):
            run("copy", backfill="copy")
    run("copy", backfill="copy")
    assert lines(tmp_path, "copy") == lines(tmp_path, "out")
    assert len(lines(tmp_path, "copy")) == 3


def test_a_complete_pipeline_of_one_batch(run: Run, tmp_path: Path) -> None:
    put(tmp_path, "orders/a", (1, "10:05"), (2, "10:40"), (3, "11:20"))
    run(until="auto")
    run("copy", backfill="copy")
    assert lines(tmp_path, "copy") == lines(tmp_path, "out") != []


def test_an_outer_join_of_two_sources(run: Run, tmp_path: Path) -> None:
    put_batches(tmp_path)
    put(tmp_path, "returns/a", (1, "10:20"))
    put(tmp_path, "returns/b", (3, "12:01"), (4, "13:00"))
    run(sql=JOINED)
    assert lines(tmp_path, "out")
    run("copy", sql=JOINED, backfill="copy")
    assert lines(tmp_path, "copy") == lines(tmp_path, "out")
    put(tmp_path, "returns/c", (6, "12:20"))
    run("copy", sql=JOINED, until="auto")
    assert lines(tmp_path, "copy") == lines(tmp_path, "out")


def test_batches_that_the_log_no_longer_has_are_one_batch(run: Run, tmp_path: Path) -> None:
    for hour in range(10, 16):
        put(tmp_path, f"orders/{hour}", (hour, f"{hour}:05"), (hour + 50, f"{hour}:40"))
    few = {"spark.sql.streaming.minBatchesToRetain": 2}
    run(**few)
    offsets = tmp_path / ".penstock/shop/checkpoints/result/offsets"
    assert not (offsets / "0").exists()
    run("copy", backfill="copy", **few)
    assert lines(tmp_path, "copy") == lines(tmp_path, "out") != []


def test_final_rows(run: Run, tmp_path: Path) -> None:
    sql = "SELECT id % 2 AS odd, count(*) AS n FROM orders GROUP BY 1"
    put_batches(tmp_path)
    run(sql=sql, watermark=None, until="auto")
    put(tmp_path, "orders/e", (7, "12:20"))
    run("copy", sql=sql, watermark=None, backfill="copy")
    assert lines(tmp_path, "copy") == lines(tmp_path, "out")
    assert len(lines(tmp_path, "copy")) == 2


def test_changing_rows(run: Run, tmp_path: Path) -> None:
    """Rows that replace each other: the new table has the values of the state."""
    sql = "SELECT id % 2 AS odd, count(*) AS n FROM orders GROUP BY 1"
    names = {name: f"{tmp_path.name} {name}" for name in ("out", "copy")}

    def table(name: str) -> list[dict[str, int]]:
        rows: list[dict[str, int]] = tables[names[name]].to_pylist()
        return sorted(rows, key=lambda row: row["odd"])

    put_batches(tmp_path)
    run(sql=sql, watermark=None, upsert=names)
    run("copy", sql=sql, watermark=None, upsert=names, backfill="copy")
    assert table("copy") == table("out") == [{"odd": 0, "n": 3}, {"odd": 1, "n": 3}]
    put(tmp_path, "orders/e", (7, "12:20"))
    run("copy", sql=sql, watermark=None, upsert=names)
    assert table("copy") == table("out") == [{"odd": 0, "n": 3}, {"odd": 1, "n": 4}]
