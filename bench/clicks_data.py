"""Generated clicks as JSON in a topic, and the expected results of a bench.

The clicks are the same at every call: 189 bytes on average, at four hundred a second of their own
time, keyed by user, spread evenly over four partitions, in turn or by user. Of those with an
action of value and a price of at least 20 (16 %) three columns are derived.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import polars as pl
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from measure import Failed

PARTITIONS = 4
CHUNK = 100_000
TIMEOUT_SECONDS = 60.0
BEGAN = int(datetime(2024, 1, 2, tzinfo=UTC).timestamp() * 1000)
SECTIONS = np.array(["garden", "kitchen", "books", "toys", "sports", "music"])
REFERRERS = np.array(["search", "newsletter", "direct", "social"])
ACTIONS = np.array(["view", "click", "cart", "purchase"])
COUNTRIES = np.array(["DE", "FR", "US", "JP", "BR"])
RESULT = {
    "id": pl.Int64, "user": pl.String, "country": pl.String, "action": pl.String, "at": pl.String,
    "total": pl.Float64, "section": pl.String, "hour": pl.String,
}  # fmt: skip


@dataclass(frozen=True)
class Contents:
    """Rows as a set with repetitions: equal whatever their order."""

    rows: int = 0
    checksum: int = 0

    def __add__(self, other: Contents) -> Contents:
        return Contents(self.rows + other.rows, (self.checksum + other.checksum) % 2**64)


def clicks(first: int, count: int) -> pl.DataFrame:
    """Part of the clicks of the stream."""
    rng = np.random.default_rng([7, first])
    ids = pl.Series("id", np.arange(first, first + count))
    texts = {
        "user": ("user-{}", rng.integers(100_000, 1_000_000, count)),
        "session": ("{}", rng.integers(10**7, 10**8, count)),
    }
    return pl.DataFrame(
        [
            1_000_000 + ids,
            *(
                pl.select(pl.format(form, pl.lit(pl.Series(numbers)))).to_series().alias(name)
                for name, (form, numbers) in texts.items()
            ),
            pl.select(
                pl.format(
                    "/{}/{}",
                    pl.lit(pl.Series(rng.choice(SECTIONS, count))),
                    pl.lit(pl.Series(rng.integers(1_000, 10_000, count))),
                )
            )
            .to_series()
            .alias("page"),
            pl.Series("referrer", rng.choice(REFERRERS, count)),
            pl.Series("action", rng.choice(ACTIONS, count, p=[0.52, 0.28, 0.14, 0.06])),
            pl.Series("country", rng.choice(COUNTRIES, count)),
            pl.Series("price", rng.integers(0, 10_000, count) / 100),
            pl.Series("quantity", rng.integers(1, 10, count)),
            (BEGAN + ids * 5 // 2).cast(pl.Datetime("ms", "UTC")).alias("at"),
        ]
    )


def expected(rows: pl.DataFrame) -> Contents:
    """The expected results of a bench."""
    selected = pl.col("action").is_in(["cart", "purchase"]) & (pl.col("price") >= 20)
    return contents(
        rows.filter(selected).select(
            "id", "user", "country", "action", "at",
            (pl.col("price") * pl.col("quantity")).alias("total"),
            pl.col("page").str.split("/").list.get(1).alias("section"),
            pl.col("at").dt.truncate("1h").alias("hour"),
        )
    )  # fmt: skip


def contents(rows: pl.DataFrame) -> Contents:
    return Contents(rows.height, int(rows.hash_rows(seed=7).to_numpy().sum(dtype=np.uint64)))


def create(brokers: str, topic: str) -> None:
    """Creates an empty topic. It keeps records for ever, also with times of years ago."""
    admin = AdminClient({"bootstrap.servers": brokers, "log_level": 0})
    topics = [NewTopic(topic, PARTITIONS, 1, config={"retention.ms": "-1"})]
    admin.create_topics(topics)[topic].result(TIMEOUT_SECONDS)


def delete(brokers: str, topic: str) -> None:
    """Deletes a topic, and the topics of Kafka Streams for the state of its application."""
    admin = AdminClient({"bootstrap.servers": brokers, "log_level": 0})
    topics = admin.list_topics(timeout=TIMEOUT_SECONDS).topics
    names = [name for name in topics if name == topic or name.startswith(f"{topic}-")]
    for deleted in admin.delete_topics(names).values():
        deleted.result(TIMEOUT_SECONDS)


def partitions(rows: pl.DataFrame, by_user: bool) -> Iterator[int]:
    """Yields the partition of each row: in turn, or all rows of a user in one."""
    if by_user:
        yield from rows["user"].str.strip_prefix("user-").cast(pl.Int64) % PARTITIONS
    else:
        yield from (place % PARTITIONS for place in range(rows.height))


def produce(brokers: str, topic: str, count: int, by_user: bool = False) -> Contents:
    """Fills a topic with the first `count` clicks and returns the expected results."""
    producer = Producer(
        {
            "bootstrap.servers": brokers,
            "log_level": 0,
            "linger.ms": 50,
            "batch.size": 1_000_000,
            "queue.buffering.max.messages": 2 * CHUNK,
            "queue.buffering.max.kbytes": 2**20,
        }
    )
    total = Contents()
    for first in range(0, count, CHUNK):
        rows = clicks(first, min(CHUNK, count - first))
        total += expected(rows)
        at = pl.col("at").dt.strftime("%Y-%m-%dT%H:%M:%S%.3fZ")
        lines = rows.with_columns(at).write_ndjson().encode().splitlines()
        places = partitions(rows, by_user)
        for line, user, place in zip(lines, rows["user"], places, strict=True):
            producer.produce(topic, line, user, partition=place)
        if producer.flush(TIMEOUT_SECONDS):
            raise Failed(f"the broker did not take the clicks within {TIMEOUT_SECONDS:.0f} s")
    return total


def written(brokers: str, topic: str) -> Contents:
    """The content of an output topic."""
    found = Contents()
    for lines in values(brokers, topic):
        text = io.BytesIO(b"\n".join(lines))
        rows = pl.read_ndjson(text, schema=RESULT).with_columns(
            pl.col("at", "hour").str.to_datetime(
                "%Y-%m-%dT%H:%M:%S%.fZ", time_unit="ms", time_zone="UTC"
            )
        )
        found += contents(rows)
    return found


def values(brokers: str, topic: str) -> Iterator[list[Any]]:
    """Yields the values of the records of a topic, up to its end."""
    consumer = Consumer(
        {
            "bootstrap.servers": brokers,
            "group.id": "bench",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
        }
    )
    try:
        consumer.assign([TopicPartition(topic, each, 0) for each in range(PARTITIONS)])
        ended = 0
        while ended < PARTITIONS:
            found = []
            messages = consumer.consume(CHUNK, timeout=1)
            for message in messages:
                if (error := message.error()) is None:
                    found.append(message.value())
                elif error.code() == KafkaError._PARTITION_EOF:
                    ended += 1
                else:
                    raise Failed(f"cannot read {topic}: {error.str()}")
            if found:
                yield found
    finally:
        consumer.close()
