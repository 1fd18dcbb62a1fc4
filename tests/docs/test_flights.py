"""examples/flights, run as the README says, against the same sums done at once by polars."""

from __future__ import annotations

import io
import re
import shutil
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest
from blocks import Reader, blocks
from polars.testing import assert_frame_equal

from command_line import CommandLine
from penstock.runtime.dead_letters.store import DeadLetters

pytestmark = [pytest.mark.docs, pytest.mark.spark]

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
EXAMPLE = ROOT / "examples" / "flights"
DIRTY = Path("data", "flights-2013-02-01-dirty.csv")
BAD = {
    4: "wrong-type",
    5: "too-few-columns",
    6: "too-many-columns",
    8: "wrong-type",
    9: "wrong-type",
    10: "not-utf8",
    11: "wrong-type",
    13: "wrong-type",
    15: "too-few-columns",
}
"""The lines of the dirty file that cannot be read, by number."""


@dataclass(frozen=True)
class Ran:
    """What a run of the example left behind."""

    printed: str
    where: Path


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory, cli: CommandLine) -> Ran:
    checkout = tmp_path_factory.mktemp("checkout")
    where = checkout / "examples" / "flights"
    shutil.copytree(EXAMPLE, where, ignore=shutil.ignore_patterns("out", ".penstock"))
    with closing(Reader(checkout, cli)) as reader:
        return Ran("".join(map(reader.perform, blocks(README))), where)


@pytest.fixture(scope="module")
def flights() -> pl.DataFrame:
    """All good rows of all files."""
    days = [path.read_bytes() for path in sorted((EXAMPLE / "data").glob("flights-*.gz"))]
    assert len(days) == 31
    lines = (EXAMPLE / DIRTY).read_bytes().splitlines(keepends=True)
    good = [line for number, line in enumerate(lines, 1) if number not in BAD]
    frames = [pl.read_csv(file, infer_schema=False) for file in [*days, b"".join(good)]]
    return pl.concat(frames).select(
        pl.col("time_hour").str.to_datetime("%Y-%m-%dT%H:%M:%SZ", time_zone="UTC"),
        "carrier",
        pl.col("flight").cast(int),
        pl.col("tailnum").replace("NA", None),
        "origin",
        "dest",
        pl.col("dep_delay").replace("NA", None).cast(int),
    )


@pytest.fixture(scope="module")
def late(flights: pl.DataFrame) -> pl.DataFrame:
    airlines = pl.read_csv(EXAMPLE / "data" / "airlines.csv").rename({"name": "airline"})
    named = flights.join(airlines, on="carrier", how="left")
    return named.filter(pl.col("dep_delay") > 60)


def assert_same_rows(actual: pl.DataFrame, expected: pl.DataFrame, key: Sequence[str]) -> None:
    options = {"check_dtypes": False, "check_column_order": False, "rel_tol": 1e-12}
    assert_frame_equal(actual.sort(key), expected.sort(key), **options)


def test_late_flights(ran: Ran, late: pl.DataFrame) -> None:
    texts = [path.read_bytes() for path in sorted((ran.where / "out" / "late").glob("part*.jsonl"))]
    assert len(texts) == 5, "seven files to a batch"
    written = pl.read_ndjson(io.BytesIO(b"".join(texts)))
    times = pl.col("time_hour").str.to_datetime("%Y-%m-%dT%H:%M:%SZ", time_zone="UTC")
    key = ["time_hour", "carrier", "flight", "origin"]
    assert_same_rows(written.with_columns(times), late, key)
    assert written.height == 1824


def test_hourly_table_has_all_windows(ran: Ran, late: pl.DataFrame) -> None:
    hourly = late.group_by(
        pl.col("time_hour").dt.truncate("1h").alias("hour"), "carrier", "airline"
    ).agg(
        pl.len().alias("late"),
        pl.col("dep_delay").mean().alias("mean_delay"),
        pl.col("dep_delay").max().alias("worst_delay"),
    )
    written = pl.read_parquet(ran.where / "out" / "hourly" / "*.parquet")
    assert_same_rows(written, hourly, ["hour", "carrier"])


def test_summary_of_each_day_in_order(ran: Ran, flights: pl.DataFrame) -> None:
    local = pl.col("time_hour").dt.convert_time_zone("America/New_York").dt.date()
    delay = pl.col("dep_delay")
    daily = flights.group_by(local.alias("day")).agg(
        pl.len().alias("flights"),
        delay.is_null().sum().alias("cancelled"),
        (delay > 60).sum().alias("late"),
        delay.mean().round(1).alias("mean_delay"),
    )
    printed = [line.split() for line in ran.printed.splitlines() if re.match(r"2013-", line)]
    assert printed == [[str(cell) for cell in row] for row in daily.sort("day").rows()]
    assert len(printed) == 32


def test_dead_letters(ran: Ran) -> None:
    dead_letters = (
        DeadLetters(ran.where / ".penstock" / "late-flights" / "dead_letters").read().to_pylist()
    )
    dirty = ran.where / DIRTY
    lines = dirty.read_bytes().splitlines()
    found = {letter["position"]: (letter["code"], letter["payload"]) for letter in dead_letters}
    assert found == {number: (code, lines[number - 1]) for number, code in BAD.items()}
    assert len(dead_letters) == len(BAD)
    assert {(letter["node"], letter["origin"]) for letter in dead_letters} == {
        ("flights", str(dirty))
    }
