"""Watermarks and event times of the tables of scripts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.core.errors import SpecError
from penstock.sdk import registry
from penstock.spec.documents.reading import load
from penstock.spec.script import event_times

FILES = "WITH (connector = 'files', path = 'x', format = 'csv')"
WINDOW = "SELECT count(*) FROM a GROUP BY tumble(INTERVAL '1 second');"


def source(directory: Path, script: str) -> Any:
    path = directory / "s.sql"
    path.write_text(script)
    return load([path], env={}).root.data()["sources"]["a"]


@pytest.mark.parametrize(
    ("columns", "options", "idle"),
    [
        ("at TIMESTAMP, WATERMARK FOR at", "idle = '10 seconds'", "10 seconds"),
        ("at TIMESTAMP, WATERMARK FOR at", "idle_micros = 5000000", "5000000 us"),
        ("id INT", "idle_micros = '5000000'", None),
    ],
)
def test_the_idle_time_belongs_to_the_watermark(
    tmp_path: Path, columns: str, options: str, idle: str | None
) -> None:
    table = f"CREATE TABLE a ({columns}) {FILES[:-1]}, {options});"
    found = source(tmp_path, f"{table} SELECT 1 FROM a;")
    assert "idle" not in found and found.get("watermark", {}).get("idle") == idle


@pytest.mark.parametrize(
    ("expression", "delay"),
    [
        ("at", None),
        ("(at)", None),
        ("at - INTERVAL '5 seconds'", "5 seconds"),
        ("(at - INTERVAL 5 SECONDS)", "5 seconds"),
        ("(at - INTERVAL '1' MINUTE) - INTERVAL '500ms'", "60.5s"),
        ("at - (INTERVAL '1 minute' - INTERVAL '10 seconds')", "50s"),
        ("INTERVAL '1 second' + at - INTERVAL '3 seconds'", "2s"),
        ("at - INTERVAL '1 second' + INTERVAL '1 second'", "0ms"),
    ],
)
def test_sums_of_the_event_time_and_intervals(
    tmp_path: Path, expression: str, delay: str | None
) -> None:
    script = f"CREATE TABLE a (at TIMESTAMP, WATERMARK FOR at AS {expression}) {FILES};\n{WINDOW}"
    expected = {"column": "at"} if delay is None else {"column": "at", "delay": delay}
    assert source(tmp_path, script)["watermark"] == expected


@pytest.mark.parametrize(
    "expression",
    [
        "date_trunc('second', at) - INTERVAL '5 seconds'",
        "at - INTERVAL '5' SECOND * 2",
        "least(at, other)",
        "CASE WHEN lag > 1 THEN at ELSE at - INTERVAL '1 hour' END",
        "at - at",
        "INTERVAL '5 seconds'",
    ],
)
def test_other_expressions_are_bounds(tmp_path: Path, expression: str) -> None:
    script = f"CREATE TABLE a (at TIMESTAMP, WATERMARK FOR at AS {expression}) {FILES};\n{WINDOW}"
    expected = {"column": "at", "bound": expression}
    assert source(tmp_path, script)["watermark"] == expected


@pytest.mark.parametrize(
    ("expression", "found", "reason"),
    [
        ("at + INTERVAL '5 seconds'", "5 seconds", "at or before the event time"),
        ("at - INTERVAL '5 parsecs' - INTERVAL '1 second'", "5 parsecs", "a duration such as"),
    ],
)
def test_expressions_without_a_constant_delay(
    tmp_path: Path, expression: str, found: str, reason: str
) -> None:
    script = (
        f"CREATE TABLE a (lag INT, at TIMESTAMP, WATERMARK FOR at AS {expression}) {FILES};\n"
        f"{WINDOW}"
    )
    with pytest.raises(SpecError, match=reason) as raised:
        source(tmp_path, script)
    error = raised.value
    assert error.code == "invalid-watermark" and error.where is not None
    line = script.splitlines()[error.where.line - 1]
    assert line[error.where.column - 1 :].startswith(found)


@pytest.mark.parametrize(
    ("options", "metadata"),
    [
        ("connector = 'sse', endpoint = 'http://h/'", "received"),
        ("connector = 'polling_http', endpoint = 'http://h/'", "received"),
        ("connector = 'kinesis', stream_name = 's'", "arrival_time"),
        ("connector = 'nats', servers = 'h:1', subject = 's'", "received"),
        ("connector = 'nats', servers = 'h:1', stream = 's'", "timestamp"),
        ("connector = 'redis', url = 'redis://h', stream = 's'", "timestamp"),
        ("connector = 'redis', url = 'redis://h', list = 's'", "received"),
        ("connector = 'pulsar', url = 'pulsar://h:1', topic = 's'", "publish_time"),
        ("connector = 'sqs', queue = 's'", "sent"),
        ("connector = 'tcp', listen = 'h:1'", "received"),
    ],
)
def test_messages_have_an_event_time(tmp_path: Path, options: str, metadata: str) -> None:
    script = f"CREATE TABLE a (id INT) WITH ({options}, format = 'json');\n{WINDOW}"
    found = source(tmp_path, script)
    assert found["metadata"] == {"_timestamp": metadata}
    assert found["watermark"] == {"column": "_timestamp", "delay": "1s"}


def test_files_have_no_event_time(tmp_path: Path) -> None:
    found = source(tmp_path, f"CREATE TABLE a (id INT) {FILES};\n{WINDOW}")
    assert "watermark" not in found


OPTIONS: dict[str, list[dict[str, Any]]] = {
    "generate": [{"fields": {"id": "sequence"}}],
    "http": [{"listen": "h:1"}],
    "http_poll": [{"url": "http://h"}],
    "impulse": [{}],
    "kafka": [{"brokers": "h:1", "topic": "t"}],
    "kinesis": [{"stream": "s"}],
    "modbus": [{"connect": "h:1", "points": [{"name": "a", "kind": "coils", "address": 0}]}],
    "mqtt": [{"url": "mqtt://h", "topic": "t"}],
    "nats": [
        {"url": "nats://h", "subject": "s"},
        {"url": "nats://h", "stream": "s"},
        {"url": "nats://h", "stream": "s", "group": "g"},
        {"url": "nats://h", "bucket": "b"},
    ],
    "nexmark": [{}],
    "pulsar": [{"url": "pulsar://h:1", "topic": "t"}],
    "redis": [
        {"url": "redis://h", "list": "l"},
        {"url": "redis://h", "channel": "c"},
        {"url": "redis://h", "stream": "s"},
        {"url": "redis://h", "stream": "s", "group": "g"},
    ],
    "sqs": [{"queue": "q"}],
    "sse": [{"url": "http://h"}],
    "tcp": [{"listen": "h:1"}],
    "udp": [{"listen": "h:1"}],
    "websocket": [{"url": "ws://h"}],
    "zeromq": [{"connect": "tcp://h:1"}],
}


def test_the_event_times_are_metadata_of_the_connectors() -> None:
    assert set(OPTIONS) == set(event_times._METADATA)
    for type_, configurations in OPTIONS.items():
        for options in configurations:
            selected = any((type_, option) in event_times._OF_STREAMS for option in options)
            name = "timestamp" if selected else event_times._METADATA[type_]
            component = registry.find("source", type_)
            created: Any = component.create(component.config_type.model_validate(options))
            assert pa.types.is_timestamp(created.metadata_schema().field(name).type), options
