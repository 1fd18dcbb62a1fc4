"""An example of Arroyo's presentations: a table of Kafka, and windows of its event time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from kafka_records import put

from servers.kafka import Kafka

if TYPE_CHECKING:
    from command_line import CommandLine

pytestmark = pytest.mark.spark

SCRIPT = """\
CREATE TABLE impulse_source (
    timestamp TIMESTAMP,
    counter BIGINT UNSIGNED NOT NULL,
    subtask_index BIGINT UNSIGNED NOT NULL
) WITH (
    connector = 'kafka',
    topic = '{topic}',
    format = 'json',
    type = 'source',
    bootstrap_servers = '{address}',
    'source.offset' = 'earliest',
    event_time_field = 'timestamp');

CREATE TABLE windows (kind TEXT, start TIMESTAMP, counters BIGINT) WITH (
    connector = 'kafka', topic = '{topic}-out', bootstrap_servers = '{address}', format = 'json',
    type = 'sink', 'sink.key_field' = 'kind');
INSERT INTO windows SELECT 'tumble', window.start, counters FROM (
    SELECT tumble(interval '1 second') as window, sum(counter) AS counters
    FROM impulse_source GROUP BY window);
INSERT INTO windows SELECT 'hop', window.start, counters FROM (
    SELECT hop(interval '1 minute', interval '1 hour') as window, sum(counter) AS counters
    FROM impulse_source WHERE subtask_index = 0 GROUP BY window HAVING max(counter) > 0);
INSERT INTO windows SELECT 'session', window.start, counters FROM (
    SELECT session(interval '5 minute') as window, sum(counter) AS counters
    FROM impulse_source GROUP BY window);
"""


def test_windows_over_a_topic(cli: CommandLine, kafka: Kafka, tmp_path: Path) -> None:
    topic = kafka.create_topic()
    kafka.create_topic(f"{topic}-out")
    times = ["2023-09-19T03:19:08", "2023-09-19T03:19:08.5", "2023-09-19T03:20:00",
             "2023-09-19T05:00:00"]  # fmt: skip
    put(kafka, topic, *(
        json.dumps({"timestamp": at, "counter": number, "subtask_index": number % 2}).encode()
        for number, at in enumerate(times, 1)
    ))  # fmt: skip
    (tmp_path / "x.sql").write_text(SCRIPT.format(address=kafka.address, topic=topic))
    done = cli(tmp_path, "run", "x.sql", "--quiet", "--until-caught-up")
    assert done.returncode == 0, done.stderr
    written = [(each.key(), json.loads(each.value())) for each in kafka.messages(f"{topic}-out")]
    found: dict[str, list[tuple[str, int]]] = {kind: [] for kind in ("tumble", "hop", "session")}
    for key, row in written:
        assert key == row["kind"].encode()
        found[row["kind"]].append((row["start"], row["counters"]))
    # The rows of 05:00 hold windows open, and close the ones before.
    assert sorted(found["tumble"]) == [("2023-09-19T03:19:08", 3), ("2023-09-19T03:20:00", 3)]
    assert found["session"] == [("2023-09-19T03:19:08", 6)]
    assert len(found["hop"]) == 60
    assert {counters for _, counters in found["hop"]} == {2}
