"""Directories of files by the event time of rows, in scripts as Arroyo writes them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from penstock import app

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

ROWS = [
    {"id": 1, "at": "2026-01-02T03:04:05Z", "city": "rome"},
    {"id": 2, "at": "2026-01-02T03:59:59.999Z", "city": "oslo"},
    {"id": 3, "at": "2026-12-31T23:00:00Z", "city": "oslo"},
]
SCRIPT = """\
CREATE TABLE events (id BIGINT, at DATETIME, city VARCHAR(20), WATERMARK FOR at)
WITH (connector = 'single_file', path = 'in.jsonl', format = 'json');

CREATE TABLE renamed (number BIGINT, place TEXT) WITH (
    connector = 'filesystem', path = 'renamed', format = 'json', 'json.compression' = 'gzip',
    'partitioning.time_pattern' = '%Y/%m/%d/%H', 'partitioning.fields' = [place],
    'filename.prefix' = 'e', 'filename.suffix' = 'json', 'filename.strategy' = 'uuid'
);
INSERT INTO renamed SELECT id, city FROM events;

CREATE TABLE counted WITH (
    connector = 'filesystem', path = 'counted', format = 'json',
    'partitioning.time_pattern' = 'day=%F'
);
INSERT INTO counted SELECT city, count(*) AS n FROM events
GROUP BY tumble(INTERVAL '1 hour'), city;
"""


def read(root: Path) -> Iterator[tuple[str, Any]]:
    """Yields the directory and the row of each line, and checks the names of the files."""
    for path in root.rglob("*"):
        if path.is_file() and ".penstock" not in path.parts:
            content = path.read_bytes()
            if root.name == "renamed":
                assert path.name.startswith("e-")
                assert path.suffixes == [".json"]
                content = gzip.decompress(content)
            for line in content.splitlines():
                yield str(path.parent.relative_to(root)), json.loads(line)


def test_rows_are_in_the_directory_of_their_event_time(
    tmp_path: Path, penstock_spark: SparkSession
) -> None:
    """Files contain neither the event time nor the window, which only the directories have."""
    (tmp_path / "in.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in ROWS))
    (tmp_path / "s.sql").write_text(SCRIPT)
    outcome = app.run(tmp_path / "s.sql", spark=penstock_spark.newSession())
    assert outcome.errors == {}, outcome.errors
    assert sorted(read(tmp_path / "renamed"), key=str) == [
        ("2026/01/02/03/place=oslo", {"number": 2}),
        ("2026/01/02/03/place=rome", {"number": 1}),
        ("2026/12/31/23/place=oslo", {"number": 3}),
    ]
    assert sorted(read(tmp_path / "counted"), key=str) == [
        ("day=2026-01-02", {"city": "oslo", "n": 1}),
        ("day=2026-01-02", {"city": "rome", "n": 1}),
        ("day=2026-12-31", {"city": "oslo", "n": 1}),
    ]
