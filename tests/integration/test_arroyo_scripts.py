"""Scripts as Arroyo writes them, with answers that polars computes, and a restart in the middle."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from penstock import app
from penstock.app import RunOptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

START = datetime(2026, 3, 1, 10, tzinfo=UTC)
SCRIPT = """\
CREATE TABLE cars (
    driver_id BIGINT,
    event_type TEXT,
    payload JSON,
    timestamp TIMESTAMP NOT NULL,
    WATERMARK FOR timestamp AS (timestamp - INTERVAL '20 seconds')
) WITH (
    connector = 'single_file', path = 'in/*.jsonl', format = 'json', type = 'source'
);

CREATE TABLE more_cars (driver_id BIGINT, timestamp TIMESTAMP, WATERMARK FOR timestamp AS
    timestamp - INTERVAL '20 seconds')
WITH (connector = 'filesystem', path = 'in/*.jsonl', format = 'json', type = 'source');

-- The event time is not selected, as in Arroyo.
CREATE VIEW pickups AS
SELECT driver_id, payload ->> 'fare' AS fare FROM cars WHERE event_type = 'pickup';

CREATE TABLE tumbled (start TIMESTAMP, driver_id BIGINT, rides BIGINT, fares BIGINT)
WITH (connector = 'single_file', path = 'out/tumbled', format = 'json', type = 'sink');
INSERT INTO tumbled
SELECT window.start, driver_id, rides, fares FROM (
    SELECT driver_id, count(*) AS rides, count(DISTINCT fare) AS fares,
        tumble(INTERVAL '1 minute') AS window
    FROM pickups GROUP BY driver_id, window
);

CREATE TABLE hopped (start TIMESTAMP, "end" TIMESTAMP, fares BIGINT)
WITH (connector = 'single_file', path = 'out/hopped', format = 'json', type = 'sink');
INSERT INTO hopped
SELECT window.start, window.end, fares FROM (
    SELECT hop(INTERVAL '30 seconds', INTERVAL '2 minutes') AS window, sum(fare::BIGINT) AS fares
    FROM pickups GROUP BY 1
);

CREATE TABLE sessions (driver_id BIGINT, start TIMESTAMP, "end" TIMESTAMP, rides BIGINT)
WITH (connector = 'single_file', path = 'out/sessions', format = 'json', type = 'sink');
INSERT INTO sessions
SELECT driver_id, window.start, window.end, rides FROM (
    SELECT driver_id, session(INTERVAL '20 seconds') AS window, count(*) AS rides
    FROM cars GROUP BY window, driver_id
);

CREATE TABLE busiest (start TIMESTAMP, most BIGINT)
WITH (connector = 'single_file', path = 'out/busiest', format = 'json', type = 'sink');
INSERT INTO busiest
SELECT window.start, max(rides) FROM (
    SELECT tumble(INTERVAL '1 minute') AS window, driver_id, count(*) AS rides
    FROM cars GROUP BY 1, 2
) GROUP BY tumble(INTERVAL '5 minutes');

CREATE TABLE top (start TIMESTAMP, driver_id BIGINT, rides BIGINT, place INT)
WITH (connector = 'single_file', path = 'out/top', format = 'json', type = 'sink');
INSERT INTO top
SELECT window.start, driver_id, rides, place FROM (
    SELECT *, ROW_NUMBER() OVER (PARTITION BY window ORDER BY rides DESC, driver_id) AS place
    FROM (
        SELECT driver_id, count(*) AS rides, tumble(INTERVAL '2 minutes') AS window
        FROM cars GROUP BY driver_id, window
    ) AS counts
) AS placed WHERE place <= 2;

CREATE TABLE joined (start TIMESTAMP, driver_id BIGINT, pickups BIGINT, events BIGINT)
WITH (connector = 'single_file', path = 'out/joined', format = 'json', type = 'sink');
INSERT INTO joined
SELECT p.window.start, p.driver_id, p.n, e.n FROM (
    SELECT tumble(INTERVAL '1 minute') AS window, driver_id, count(*) AS n
    FROM pickups GROUP BY 1, 2
) AS p
JOIN (
    SELECT tumble(INTERVAL '1 minute') AS window, driver_id, count(*) AS n
    FROM more_cars GROUP BY 1, 2
) AS e ON p.driver_id = e.driver_id;
"""


def make_rows(count: int) -> list[dict[str, Any]]:
    chance, at = random.Random(7), START
    rows = []
    for _ in range(count):
        at += timedelta(seconds=chance.choice([0, 1, 1, 2, 5]))
        late = timedelta(seconds=chance.randrange(10))
        rows.append({
            "driver_id": chance.randrange(1, 6),
            "event_type": chance.choice(["pickup", "dropoff"]),
            "payload": json.dumps({"fare": str(chance.randrange(5, 9))}),
            "timestamp": (at - late).isoformat(),
        })  # fmt: skip
    return rows


def result(root: Path, name: str) -> list[tuple[Any, ...]]:
    rows = [json.loads(line) for line in (root / "out" / name).read_text().splitlines()]
    return sorted(tuple(_value(value) for value in row.values()) for row in rows)


def _value(value: Any) -> Any:
    return datetime.fromisoformat(f"{value}Z") if isinstance(value, str) else value


def rows_of(frame: pl.DataFrame) -> list[tuple[Any, ...]]:
    return sorted(frame.rows())


def sessions_of(frame: pl.DataFrame) -> list[tuple[Any, ...]]:
    gap = timedelta(seconds=20)
    found: list[list[Any]] = []
    for driver, at in frame.sort("driver_id", "at").select("driver_id", "at").rows():
        if found and found[-1][0] == driver and at < found[-1][2]:
            found[-1][2] = at + gap
            found[-1][3] += 1
        else:
            found.append([driver, at, at + gap, 1])
    return sorted(map(tuple, found))


def test_windows_have_the_answers_of_a_batch(tmp_path: Path, penstock_spark: SparkSession) -> None:
    rows = make_rows(400)
    (tmp_path / "in").mkdir()
    script = tmp_path / "cars.sql"
    script.write_text(SCRIPT)
    for number, part in enumerate((rows[:230], rows[230:])):
        text = "\n".join(map(json.dumps, part))
        (tmp_path / "in" / f"{number}.jsonl").write_text(text)
        options = RunOptions(until="auto" if number else "caught_up")
        outcome = app.run(script, spark=penstock_spark.newSession(), options=options)
        assert outcome.errors == {}, outcome.errors
    cars = pl.DataFrame(rows).with_columns(
        pl.col("timestamp").str.to_datetime(time_zone="UTC").alias("at"),
        pl.col("payload").str.json_path_match("$.fare").alias("fare"),
    )
    minute = pl.col("at").dt.truncate("1m").alias("start")
    pickups = cars.filter(pl.col("event_type") == "pickup")
    counts = pickups.group_by(minute, "driver_id").agg(
        pl.len().alias("n"), pl.col("fare").n_unique().alias("fares")
    )
    assert result(tmp_path, "tumbled") == rows_of(counts.select("start", "driver_id", "n", "fares"))
    hops = pl.concat(
        pickups.with_columns(
            (pl.col("at").dt.truncate("30s") - timedelta(seconds=30 * index)).alias("start")
        )
        for index in range(4)
    )
    hopped = hops.group_by("start").agg(pl.col("fare").cast(pl.Int64).sum())
    end = (pl.col("start") + timedelta(minutes=2)).alias("end")
    assert result(tmp_path, "hopped") == rows_of(hopped.select("start", end, "fare"))
    assert result(tmp_path, "sessions") == sessions_of(cars)
    busiest = cars.group_by(minute, "driver_id").len()
    five = pl.col("start").dt.truncate("5m")
    assert result(tmp_path, "busiest") == rows_of(busiest.group_by(five).agg(pl.col("len").max()))
    two = pl.col("at").dt.truncate("2m").alias("start")
    ranked = cars.group_by(two, "driver_id").len().sort("start", pl.col("len") * -1, "driver_id")
    place = pl.int_range(1, pl.len() + 1).over("start").alias("place")
    top = ranked.with_columns(place).filter(pl.col("place") <= 2)
    assert result(tmp_path, "top") == rows_of(top)
    events = cars.group_by(minute, "driver_id").len()
    joined = counts.join(events, on=["start", "driver_id"]).select("start", "driver_id", "n", "len")
    assert result(tmp_path, "joined") == rows_of(joined)


WHOLE = """\
CREATE TABLE rides (
    driver BIGINT NOT NULL, kind TEXT, at TIMESTAMP NOT NULL, tags TEXT[], WATERMARK FOR at
) WITH (connector = 'single_file', path = 'rides.jsonl', format = 'json', type = 'source');
CREATE TABLE documents (value JSON)
WITH (connector = 'single_file', path = 'rides.jsonl', format = 'json', type = 'source',
      'json.unstructured' = 'true');
CREATE TABLE timeless (driver BIGINT)
WITH (connector = 'single_file', path = 'rides.jsonl', format = 'json', type = 'source');

CREATE VIEW pickups AS SELECT driver, at FROM rides WHERE kind = 'pickup';

CREATE TABLE pairs (a BIGINT, b BIGINT)
WITH (connector = 'single_file', path = 'out/pairs', format = 'json', type = 'sink');
INSERT INTO pairs SELECT r.driver, p.driver FROM rides r JOIN pickups p ON r.at = p.at;

CREATE TABLE kinds (hour TIMESTAMP, pickups BIGINT, dropoffs BIGINT)
WITH (connector = 'single_file', path = 'out/kinds', format = 'json', type = 'sink');
INSERT INTO kinds
SELECT coalesce(p.window.start, d.window.start), p.n, d.n FROM (
    SELECT tumble(INTERVAL '1 hour') AS window, count(*) AS n FROM pickups GROUP BY 1
) p FULL OUTER JOIN (
    SELECT tumble(INTERVAL '1 hour') AS window, count(*) AS n
    FROM rides WHERE kind = 'dropoff' GROUP BY 1
) d ON p.window.start = d.window.start;

CREATE TABLE busy (hour TIMESTAMP, drivers BIGINT)
WITH (connector = 'single_file', path = 'out/busy', format = 'json', type = 'sink');
INSERT INTO busy
SELECT window.start, drivers FROM (
    SELECT tumble(INTERVAL '1 hour') AS window, count(*) AS drivers FROM (
        SELECT driver, count(*) AS n FROM rides GROUP BY 1, tumble(INTERVAL '1 hour')
    ) WHERE n > 1 GROUP BY 1
);

CREATE TABLE both (hour TIMESTAMP, driver BIGINT)
WITH (connector = 'single_file', path = 'out/both', format = 'json', type = 'sink');
INSERT INTO both
SELECT window.start, a.driver FROM (
    SELECT tumble(INTERVAL '1 hour'), driver, count(*) FROM pickups GROUP BY 1, 2
) a JOIN (
    SELECT tumble(INTERVAL '1 hour') AS window, driver, count(*)
    FROM rides WHERE kind = 'dropoff' GROUP BY 1, 2
) b ON a.driver = b.driver;

CREATE TABLE total (n BIGINT)
WITH (connector = 'single_file', path = 'out/total', format = 'json', type = 'sink');
INSERT INTO total SELECT n FROM (
    SELECT count(*) AS n, tumble(INTERVAL '1 day') AS window FROM timeless GROUP BY window
);

CREATE TABLE parts WITH (connector = 'single_file', path = 'out/parts', format = 'json',
    type = 'sink');
INSERT INTO parts
SELECT value -> 'driver' AS driver, value -> 'none' AS none, value ->> 'none' AS no_text,
    extract_json(value, '$.tags[*]')[1] AS tag, regexp_replace(value ->> 'kind', 'p', 'b') AS kind
FROM documents;
"""


def test_answers_from_the_whole_input(tmp_path: Path, penstock_spark: SparkSession) -> None:
    """Queries that read a source several times, or whose rows have no event time of their own."""
    rides = [
        {"driver": 1, "kind": "pickup", "at": "2026-03-01T10:05:00Z", "tags": ["a", "b"]},
        {"driver": 1, "kind": "dropoff", "at": "2026-03-01T10:05:00Z", "tags": []},
        {"driver": 2, "kind": "pickup", "at": "2026-03-01T11:15:00Z"},
        {"driver": 3, "kind": "dropoff", "at": "2026-03-01T12:15:00Z"},
    ]
    (tmp_path / "rides.jsonl").write_text("\n".join(map(json.dumps, rides)))
    script = tmp_path / "rides.sql"
    script.write_text(WHOLE)
    outcome = app.run(script, spark=penstock_spark.newSession())
    assert outcome.errors == {}, outcome.errors
    ten, eleven, twelve = (START + timedelta(hours=hours) for hours in range(3))
    assert result(tmp_path, "pairs") == [(1, 1), (1, 1), (2, 2)]
    kinds = {row[0]: row[1:] for row in result(tmp_path, "kinds")}
    assert kinds == {ten: (1, 1), eleven: (1, None), twelve: (None, 1)}
    assert result(tmp_path, "busy") == [(ten, 1)]
    assert result(tmp_path, "both") == [(ten, 1)]
    assert result(tmp_path, "total") == [(4,)]
    parts = tmp_path / "out" / "parts"
    assert [json.loads(line) for line in parts.read_text().splitlines()] == [
        {"driver": "1", "none": "null", "no_text": None, "tag": '"a"', "kind": "bickup"},
        {"driver": "1", "none": "null", "no_text": None, "tag": None, "kind": "droboff"},
        {"driver": "2", "none": "null", "no_text": None, "tag": None, "kind": "bickup"},
        {"driver": "3", "none": "null", "no_text": None, "tag": None, "kind": "droboff"},
    ]
