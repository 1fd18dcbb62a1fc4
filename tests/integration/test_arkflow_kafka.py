"""A file of ArkFlow between topics of Kafka: metadata, keys, topics by row, failing records."""

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

STREAM = """\
streams:
  - input:
      type: kafka
      brokers: ["{address}"]
      topics: ["{topic}"]
      consumer_group: g
      start_from_latest: false
      codec: {{type: json}}
    pipeline:
      processors:
        - type: sql
          query: "SELECT id, __meta_partition AS p, __meta_offset AS o, __meta_source AS s,
            __meta_ext['topic'] AS t, arrow_typeof(__meta_timestamp) AS at, kind FROM flow
            WHERE id < 9"
    output:
      type: kafka
      brokers: ["{address}"]
      topic: {{type: expr, expr: "concat('{topic}-', kind)"}}
      key: {{type: expr, expr: "concat('k', id)"}}
      codec: {{type: json}}
    error_output:
      type: kafka
      brokers: ["{address}"]
      topic: {{type: value, value: "{topic}-errors"}}
"""


def test_topics(cli: CommandLine, kafka: Kafka, tmp_path: Path) -> None:
    topic = kafka.create_topic()
    for name in ("a", "b", "errors"):
        kafka.create_topic(f"{topic}-{name}")
    put(kafka, topic, b'{"id":1,"kind":"a"}', b"\xff {", b'{"id":9}', b'{"id":2,"kind":"b"}')
    (tmp_path / "x.yaml").write_text(STREAM.format(address=kafka.address, topic=topic))
    done = cli(tmp_path, "run", "x.yaml", "--quiet", "--until-caught-up")
    assert done.returncode == 0, done.stderr
    written = {
        each.key(): json.loads(each.value())
        for name in ("a", "b")
        for each in kafka.messages(f"{topic}-{name}")
    }
    facts = {"p": 0, "s": "kafka", "t": topic, "at": "Timestamp(ns)"}
    assert written == {
        b"k1": {"id": 1, "o": 0, "kind": "a", **facts},
        b"k2": {"id": 2, "o": 3, "kind": "b", **facts},
    }
    assert [each.value() for each in kafka.messages(f"{topic}-errors")] == [b"\xff {", b'{"id":9}']
