"""Sources without new rows beside others: their idle time, and the windows of both."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from penstock import app

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

START = datetime(2026, 3, 1, 10, tzinfo=UTC)
TABLE = """\
CREATE TABLE {name} (id BIGINT, at TIMESTAMP, WATERMARK FOR at) WITH (
    connector = 'files', path = '{name}/*.jsonl', format = 'json', watch = true{idle});
"""
SCRIPT = f"""
{TABLE.format(name="a", idle="")}
{TABLE.format(name="b", idle=", idle = '1 second'")}
CREATE TABLE o (minute TIMESTAMP, n BIGINT)
WITH (connector = 'files', path = 'out', format = 'json');
INSERT INTO o
SELECT window.start, count(*) FROM (SELECT at FROM a UNION ALL SELECT at FROM b)
GROUP BY window(at, '1 minute');
"""


def write(path: Path, minute: int) -> None:
    row = {"id": 1, "at": (START + timedelta(minutes=minute)).isoformat()}
    temporary = path.with_suffix(".part")
    temporary.write_text(json.dumps(row) + "\n")
    temporary.rename(path)


def results(root: Path) -> dict[int, int]:
    lines = [line for file in root.glob("out/*.jsonl") for line in file.read_text().splitlines()]
    rows: list[dict[str, Any]] = [json.loads(line) for line in lines]
    return {int(row["minute"][14:16]): row["n"] for row in rows}


def test_an_idle_source_does_not_hold_back_windows(
    tmp_path: Path, penstock_spark: SparkSession
) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
    script = tmp_path / "s.sql"
    script.write_text(SCRIPT)
    handle = app.start(script, spark=penstock_spark.newSession())
    try:
        for minute in range(55):
            write(tmp_path / "a" / f"{minute}.jsonl", minute)
            assert handle.wait(1) is None
            if len(results(tmp_path)) > 1:
                break
        found = results(tmp_path)
        assert len(found) > 1 and set(found.values()) == {1}
    finally:
        handle.stop()
    outcome = handle.wait(60)
    assert outcome is not None and outcome.errors == {}
