"""The events of Nexmark as JSON in topics, and the number of rows of a result."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from pathlib import Path

import clicks_data
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from clicks_data import CHUNK, PARTITIONS, TIMEOUT_SECONDS
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition
from measure import Failed

from penstock.connectors.nexmark import NexmarkSource, NexmarkSourceConfig
from penstock.sdk.synthetic.clock import Clock

TOPICS = ("person", "auction", "bid")
START = dt.datetime(2026, 1, 1, 18, 45, tzinfo=dt.UTC)
STEP = 100
"""Microseconds from one event to the next: 10,000 events a second."""
CONFIG = NexmarkSourceConfig(start_time=START, shuffle=3, seed=1)
MARK = "2031-01-01"
"""The day of the last row of each partition, which closes the windows. Results of it do not count.
"""
SIDE_ROWS = 10_000


def fill(brokers: str, events: int) -> dict[str, int]:
    """Creates the topics and fills them with the first `events` events, then closes the windows.

    Returns the number of rows of each topic.
    """
    settings = {
        "bootstrap.servers": brokers, "log_level": 0, "linger.ms": 50, "batch.size": 1_000_000,
        "queue.buffering.max.messages": 2 * CHUNK, "queue.buffering.max.kbytes": 2**20,
    }  # fmt: skip
    producer = Producer(settings)
    last, counts = [], dict.fromkeys(TOPICS, PARTITIONS)
    for topic in TOPICS:
        clicks_data.create(brokers, topic)
    for first in range(0, events, CHUNK):
        for topic, rows in chunk(first, min(CHUNK, events - first)):
            counts[topic] += rows.height
            for place, line in enumerate(rows.write_ndjson().encode().splitlines()):
                producer.produce(topic, line, partition=place % PARTITIONS)
            if not first:
                last.append((topic, closing(rows.row(0, named=True))))
        if producer.flush(TIMEOUT_SECONDS):
            raise Failed(f"the broker did not take the events within {TIMEOUT_SECONDS:.0f} s")
    for topic, line in last:
        for place in range(PARTITIONS):
            producer.produce(topic, line, partition=place)
    if producer.flush(TIMEOUT_SECONDS):
        raise Failed("the last events could not be sent")
    return counts


def chunk(first: int, count: int) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yields the persons, auctions and bids of consecutive events."""
    numbers = np.arange(first, first + count, dtype=np.int64)
    batch = NexmarkSource(CONFIG).generate(numbers, Clock(step=STEP), None)
    arrival = Clock(0, round(START.timestamp() * 1e6), STEP).at(numbers)
    for topic in TOPICS:
        events = batch.column(topic)
        table = pa.Table.from_struct_array(events.filter(events.is_valid()))
        if topic == "bid":
            times = pa.array(arrival, pa.timestamp("us", tz="UTC")).filter(events.is_valid())
            table = table.append_column("arrival", times)
        rows = pl.DataFrame(table)
        yield topic, rows.with_columns(pl.col(pl.Datetime).dt.strftime("%Y-%m-%dT%H:%M:%S%.3fZ"))


def closing(row: dict[str, object]) -> bytes:
    """Returns an event of the last day, which has no partner in a join."""
    times = {
        name: f"{MARK}T00:00:00.000Z" for name in ("datetime", "arrival", "expires") if name in row
    }
    ids = {
        name: -1 for name in ("id", "auction", "bidder", "seller", "category", "price")
        if name in row
    }  # fmt: skip
    texts = {name: MARK for name in ("channel", "url", "state", "extra") if name in row}
    return json.dumps({**row, **times, **ids, **texts}).encode()


def write_side_input(directory: Path) -> None:
    """Writes the side input of q13 as a file of Parquet and one of CSV."""
    rows = {"key": range(SIDE_ROWS), "value": [f"value {key}" for key in range(SIDE_ROWS)]}
    for form in ("parquet", "csv"):
        (directory / form).mkdir(parents=True)
    pq.write_table(pa.table(rows), directory / "parquet" / "part.parquet")
    pl.DataFrame(rows).write_csv(directory / "csv" / "part.csv", include_header=False)


def count_rows(brokers: str, topic: str, *, keyed: bool) -> int:
    """Returns the number of rows of a result; of a keyed one, those that its changes leave."""
    mark, rows, left = MARK.encode(), 0, set()
    for key, value in records(brokers, topic):
        if mark in (value or b"") or mark in (key or b""):
            continue
        rows += 1
        if value is None:
            left.discard(key)
        else:
            left.add(key)
    return len(left) if keyed else rows


def records(brokers: str, topic: str) -> Iterator[tuple[bytes | None, bytes | None]]:
    """Yields the keys and values of a topic, up to its end."""
    consumer = Consumer(
        {
            "bootstrap.servers": brokers, "group.id": "bench", "enable.auto.commit": False,
            "enable.partition.eof": True, "isolation.level": "read_committed", "log_level": 0,
        }
    )  # fmt: skip
    try:
        places = [TopicPartition(topic, each, OFFSET_BEGINNING) for each in range(PARTITIONS)]
        consumer.assign(places)
        ended = 0
        while ended < PARTITIONS:
            for message in consumer.consume(CHUNK, timeout=1):
                if (error := message.error()) is None:
                    yield message.key(), message.value()
                elif error.code() == KafkaError._PARTITION_EOF:
                    ended += 1
                else:
                    raise Failed(f"cannot read {topic}: {error.str()}")
    finally:
        consumer.close()


def count_lines(directory: Path) -> int:
    """Returns the number of rows in files of JSON."""
    mark = MARK.encode()
    paths = [path for path in directory.rglob("part-*") if mark.decode() not in str(path)]
    return sum(mark not in line for path in paths for line in path.open("rb"))
