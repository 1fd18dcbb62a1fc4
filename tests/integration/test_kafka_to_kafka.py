"""A pipeline from Kafka to Kafka: interruption, inspection, dead letters to a topic."""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import IsolationLevel
from kafka_records import numbered, put, rows
from pyspark.sql import SparkSession

from command_line import CommandLine
from penstock import app
from penstock.app import RunOptions
from penstock.control import PipelineControl
from penstock.runtime.outcome import Outcome
from servers.kafka import Kafka

pytestmark = pytest.mark.spark

PIPELINE = """\
name: NAME
runtime: {trigger: asap}
connections:
  cluster:
    type: kafka
    brokers: ADDRESS
sources:
  clicks:
    type: kafka
    connection: cluster
    topic: NAME-in
    schema: id LONG NOT NULL
    metadata: [partition, offset]
    max_records: 400
transforms:
  doubled:
    type: sql
    sql: SELECT id, 2 * id AS twice, partition, offset, 100 / (id % 1000) AS share FROM clicks
sinks:
  out:
    type: kafka
    connection: cluster
    from: doubled
    topic: NAME-out
    key: "{id}"
    delivery: exactly_once
  copies:
    type: kafka
    connection: cluster
    from: doubled
    topic: NAME-copies
    delivery: at_least_once
dead_letter:
  type: kafka
  connection: cluster
  topic: NAME-dead
"""
TOTAL = 2000


class Place:
    """A broker with the pipeline's topics, and a directory with its file."""

    def __init__(self, root: Path, broker: Kafka, spark: SparkSession) -> None:
        self.root, self.broker, self.spark = root, broker, spark
        self.name = f"p-{uuid.uuid4().hex[:8]}"
        for end in ("in", "out", "copies", "dead"):
            broker.create_topic(self.topic(end), partitions=3)

    def topic(self, end: str) -> str:
        return f"{self.name}-{end}"

    def write(self, **changes: str) -> Path:
        text = PIPELINE.replace("ADDRESS", self.broker.address).replace("NAME", self.name)
        for before, after in changes.items():
            text = text.replace(before, after)
        file = self.root / "pipeline.yaml"
        file.write_text(text)
        return file

    def run(self, file: Path, **options: Any) -> Outcome:
        given = RunOptions(on_note=print, **options)
        return app.run(app.plan(file), spark=self.spark.newSession(), options=given)

    def stop_when(self, holds: Callable[[], bool]) -> threading.Thread:
        """Asks the run to stop as soon as something holds."""

        def stop() -> None:
            until = time.monotonic() + 120
            while not holds() and time.monotonic() < until:
                time.sleep(0.1)
            (self.root / ".penstock" / self.name / "stop").touch()

        thread = threading.Thread(target=stop)
        thread.start()
        return thread

    def written(self) -> int:
        """How many records are in the topic, with those that end transactions."""
        topic, isolation = self.topic("out"), IsolationLevel.READ_COMMITTED
        return sum(self.broker.end(topic, isolation, partition) for partition in range(3))

    def dead_letters(self) -> list[dict[str, Any]]:
        return rows(self.broker, self.topic("dead"))

    def group(self) -> dict[int, int]:
        return self.broker.committed(f"penstock.{self.name}.clicks", self.topic("in"))


@pytest.fixture
def place(tmp_path: Path, kafka: Kafka, penstock_spark: SparkSession) -> Iterator[Place]:
    yield Place(tmp_path, kafka, penstock_spark)


def test_stopped_and_resumed(place: Place) -> None:
    put(place.broker, place.topic("in"), *numbered(0, TOTAL), b"not json")
    file = place.write()
    stopper = place.stop_when(lambda: place.written() > TOTAL // 4)
    first = place.run(file)
    stopper.join()
    assert (first.ending, first.exit_code) == ("stopped", 0)
    before = len(rows(place.broker, place.topic("out")))
    assert before < TOTAL
    put(place.broker, place.topic("in"), *numbered(TOTAL, TOTAL + 10))
    assert place.run(file, until="caught_up").ending == "caught_up"

    bad = {0, 1000, 2000}
    for end in ("out", "copies"):
        found = rows(place.broker, place.topic(end))
        assert Counter(row["id"] for row in found) == Counter({*range(TOTAL + 10)} - bad)
        assert all(row["twice"] == 2 * row["id"] for row in found)
    dead_letters = place.dead_letters()
    assert Counter(letter["code"] for letter in dead_letters) == {
        "not-json": 1,
        "divide-by-zero": 3,
    }
    (undecoded,) = [letter for letter in dead_letters if letter["stage"] == "decode"]
    assert undecoded["origin"].startswith(place.topic("in"))
    ends = Counter(each.partition() for each in place.broker.messages(place.topic("in")))
    assert place.group() == {partition: ends[partition] for partition in range(3)}


def test_inspect_commits_no_offsets(place: Place, cli: CommandLine) -> None:
    put(place.broker, place.topic("in"), *numbered(0, 20), b"not json", partition=1)
    file = place.write()
    groups = _groups(place.broker)
    done = cli(place.root, "check", str(file), "--level", "sample", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    checked = json.loads(done.stdout)
    assert checked["ok"]
    assert [each["name"] for each in checked["nodes"]["doubled"]["columns"]][:2] == ["id", "twice"]
    observed = app.preview(app.plan(file), ["clicks"], rows=5, spark=place.spark)
    assert observed.error is None
    seen = observed.tables["clicks"].to_pylist()
    assert [(row["id"], row["partition"], row["offset"]) for row in seen] == [
        (number, 1, number) for number in range(5)
    ]
    assert place.broker.messages(place.topic("out")) == place.dead_letters() == []
    assert _groups(place.broker) == groups
    assert set(place.group().values()) == {-1001}


def test_a_replayed_dead_letter_does_not_hide_what_comes_after(place: Place) -> None:
    put(place.broker, place.topic("in"), *numbered(0, 4))
    file = place.write()
    file.write_text(file.read_text().split("dead_letter:")[0])
    assert place.run(file, until="caught_up").exit_code == 0
    file.write_text(file.read_text().replace("(id % 1000)", "(id % 1000 + 1)"))
    replayed = PipelineControl.of(app.plan(file)).replay(spark=place.spark.newSession())
    assert (replayed.replayed, replayed.failed) == (1, 0)
    put(place.broker, place.topic("in"), *numbered(6, 8))
    assert place.run(file, until="caught_up").exit_code == 0
    found = Counter(row["id"] for row in rows(place.broker, place.topic("out")))
    assert found == Counter([0, 1, 2, 3, 6, 7])


def test_a_broker_that_is_not_there_is_waited_for(
    tmp_path: Path, breakable_kafka: Kafka, penstock_spark: SparkSession
) -> None:
    broker = breakable_kafka
    place = Place(tmp_path, broker, penstock_spark)
    put(broker, place.topic("in"), *numbered(1, 11))
    broker.stop()
    file = place.write(**{"{trigger: asap}": "{restart: {attempts: 2, backoff: 1s}}"})
    gave_up = place.run(file, until="caught_up")
    assert gave_up.exit_code == 3
    (error,) = gave_up.errors.values()
    assert "no response from Kafka" in error.message and error.hint
    starter = threading.Timer(1, broker.start)
    starter.start()
    file = place.write(
        **{"{trigger: asap}": "{restart: {attempts: 20, backoff: 1s, max_backoff: 1s}}"}
    )
    try:
        assert place.run(file, until="caught_up").ending == "caught_up"
    finally:
        starter.join()
    assert Counter(row["id"] for row in rows(broker, place.topic("out"))) == Counter(range(1, 11))


def _groups(broker: Kafka) -> set[str]:
    """The consumer groups, without those of the tests' own readers."""
    groups = broker.admin.list_consumer_groups().result(30).valid
    return {each.group_id for each in groups} - {"looks"}
