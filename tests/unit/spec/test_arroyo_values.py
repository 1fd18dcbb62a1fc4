"""Values of options of Arroyo in all spellings that it accepts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock import app
from penstock.spec.documents.reading import load

KAFKA = "connector = 'kafka', bootstrap_servers = 'h:1', topic = 't', format = 'json'"


def node(tmp_path: Path, options: str, kind: str = "sources") -> dict[str, Any]:
    """Returns the options of the node of a table."""
    table = f"CREATE TABLE a (value JSON) WITH ({options});\nSELECT * FROM a;\n"
    if kind == "sinks":
        table = (
            "CREATE TABLE i (Name TEXT) WITH (connector = 'files', path = 'x', format = 'json');\n"
            f"CREATE TABLE a WITH ({options}, type = 'sink');\nINSERT INTO a SELECT * FROM i;\n"
        )
    path = tmp_path / "s.sql"
    path.write_text(table)
    app.plan(path)
    return dict(load([path], env={}).root.data()[kind]["a"])


@pytest.mark.parametrize("value", ["'yes'", "'true'", "TRUE", "yes"])
def test_true(tmp_path: Path, value: str) -> None:
    found = node(tmp_path, f"{KAFKA}, 'json.unstructured' = {value}")
    assert found["format"] == "raw"


@pytest.mark.parametrize("value", ["'no'", "'false'", "FALSE"])
def test_false(tmp_path: Path, value: str) -> None:
    found = node(tmp_path, f"{KAFKA}, 'json.unstructured' = {value}", "sinks")
    assert found["format"] == {
        "type": "json",
        "nulls": "keep",
        "timestamp_zone": "none",
        "not_finite": "null",
    }


def test_a_bare_column_keeps_its_case(tmp_path: Path) -> None:
    assert node(tmp_path, f"{KAFKA}, 'sink.key_field' = Name", "sinks")["key"] == "{Name}"


def test_messages_have_the_order_of_their_numbers(tmp_path: Path) -> None:
    messages = ", ".join(f"'subscription_messages.{n}' = 'm{n}'" for n in (10, 2, 0, 1))
    found = node(
        tmp_path, f"connector = 'websocket', endpoint = 'ws://h', {messages}, format = 'json'"
    )
    assert found["messages"] == ["m0", "m1", "m2", "m10"]


def test_a_stream_of_rabbitmq_has_defaults(tmp_path: Path) -> None:
    found = node(tmp_path, "connector = 'rabbitmq', stream = 's', format = 'json'")
    assert found["start"] == "latest"


@pytest.mark.parametrize(
    ("value", "expected"),
    [("1000", "1000 us"), ("'1000'", "1000 us"), ("INTERVAL '1' SECOND", "1 second")],
)
def test_a_duration_is_a_number_or_an_interval(tmp_path: Path, value: str, expected: str) -> None:
    path = tmp_path / "s.sql"
    path.write_text(
        "CREATE TABLE a WITH (connector = 'impulse', event_rate = 10, "
        f"event_time_interval = {value});\nSELECT counter FROM a;\n"
    )
    app.plan(path)
    assert load([path], env={}).root.data()["sources"]["a"]["interval"] == expected


def test_sources_of_mqtt_have_a_client_each(tmp_path: Path) -> None:
    """A broker disconnects a client if another one connects with the same identifier."""
    options = (
        "connector = 'mqtt', url = 'mqtt://h', topic = 't', client_prefix = 'p', "
        "type = 'source', format = 'json'"
    )
    path = tmp_path / "s.sql"
    path.write_text(
        f"CREATE TABLE a (x INT) WITH ({options});\nCREATE TABLE b (x INT) WITH ({options});\n"
        "SELECT * FROM a UNION ALL SELECT * FROM b;\n"
    )
    app.plan(path)
    sources = load([path], env={}).root.data()["sources"]
    assert [sources[name]["client_id"] for name in ("a", "b")] == ["p-a", "p-b"]
