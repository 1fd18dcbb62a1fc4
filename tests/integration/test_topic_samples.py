"""Samples of topics over a connection of the server: messages, inferred columns, nothing read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from fastapi.testclient import TestClient

from integration.kafka_records import put
from server_console import Console
from servers.kafka import Kafka
from web_console import listening, log_in, serious_findings

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.slow
GROUP = "a-group-of-samples"
USER_PASSWORD = "correct horse battery"


def create(console: Console, kafka: Kafka, **options: Any) -> None:
    body = {"name": "events", "type": "kafka", "options": {"brokers": kafka.address, **options}}
    console.post("connections", body, status=201)


def sample(console: Console, status: int = 200, limit: int = 20, **options: Any) -> Any:
    body = {"options": options, "limit": limit}
    return console.post("connections/events/sample", body, status=status)


def test_messages_and_columns(console: Console, kafka: Kafka) -> None:
    topic = kafka.create_topic()
    create(console, kafka)
    empty = {"messages": [], "columns": [], "more_columns": False, "errors": []}
    assert sample(console, topic=topic) == empty
    long = b'{"id": 3, "note": "' + "é".encode() * 5000 + b'"}'
    put(kafka, topic, b'{"id": 1, "at": "2026-05-01T10:00:00Z"}', None, long, b"no JSON \xff")
    put(kafka, topic, *(b'{"id": %d, "late": true}' % number for number in range(4, 30)))
    found = sample(console, topic=topic, group=GROUP)
    assert len(found["messages"]) == 20
    first, none, cut, broken, *_ = found["messages"]
    text = '{"id": 1, "at": "2026-05-01T10:00:00Z"}'
    assert first == {"text": text, "bytes": len(text), "cut": False}
    assert none == {"text": None, "bytes": None, "cut": False}
    assert (len(cut["text"]), cut["bytes"], cut["cut"]) == (4000, len(long), True)
    assert broken["text"] == "no JSON \N{REPLACEMENT CHARACTER}"
    assert found["columns"] == [
        {"name": "id", "type": "BIGINT"}, {"name": "at", "type": "TIMESTAMP"},
        {"name": "note", "type": "STRING"}, {"name": "late", "type": "BOOLEAN"},
    ]  # fmt: skip
    assert len(sample(console, topic=topic, limit=1)["messages"]) == 1
    assert set(kafka.committed(GROUP, topic).values()) <= {-1001}
    declared = sample(console, topic=topic, schema="id STRING")
    assert declared["columns"] == [{"name": "id", "type": "STRING"}]
    raw = sample(console, topic=topic, format="text", limit=2)
    assert [each["type"] for each in raw["columns"]] == ["STRING"]
    audited = [each for each in console.get("audit") if each["action"] == "sample messages"]
    assert len(audited) == 5 and all("events" in each.values() for each in audited)


@pytest.mark.usefixtures("built_console")
def test_the_page_of_a_topic(console: Console, kafka: Kafka, page: Page) -> None:
    topic = kafka.create_topic()
    create(console, kafka)
    put(kafka, topic, b'{"id": 1, "page": "home"}', None)
    with listening(console) as address:
        log_in(page, address, console)
        page.get_by_role("link", name="Connections").click()
        page.get_by_role("button", name="Topics").click()
        page.get_by_label("Search").fill(topic)
        page.get_by_role("button", name=f"Sample {topic}").click()
        panel = page.get_by_role("form", name=f"Sample of {topic}")
        panel.get_by_role("button", name="Read a sample").click()
        columns = panel.get_by_label(f"Columns of {topic}")
        columns.get_by_text("schema: id BIGINT, page STRING").wait_for()
        messages = panel.get_by_role("region", name=f"Messages of {topic}")
        messages.get_by_text('{"id": 1, "page": "home"}').wait_for()
        assert messages.get_by_text("null").count() == 2
        assert serious_findings(page) == []
        panel.get_by_label("Format").fill("jsn")
        panel.get_by_role("button", name="Read a sample").click()
        panel.get_by_role("alert").get_by_text("json").first.wait_for()


def test_errors_name_the_place(console: Console, kafka: Kafka) -> None:
    create(console, kafka)
    topic = kafka.create_topic()
    put(kafka, topic, b'{"a": 1, "A": 2}')
    found = sample(console, topic=topic)
    assert len(found["messages"]) == 1 and found["columns"] == []
    assert len(found["errors"]) == 1, found
    absent = sample(console, status=502, topic=f"{topic}x")
    assert absent["errors"][0]["code"] == "unknown-topic"
    assert sample(console, status=422, topic=topic, limit=21)["errors"]
    other = sample(console, status=400, topic=topic, brokers="127.0.0.1:1")
    assert other["errors"][0]["code"] == "fixed-option"
    body = {"name": "files", "type": "sqlite", "options": {"path": "shop.db"}}
    console.post("connections", body, status=201)
    tables = console.post("connections/files/sample", status=400)
    assert tables["errors"][0]["code"] == "no-topics"


def test_rights_and_guarded_addresses(console: Console, kafka: Kafka) -> None:
    create(console, kafka)
    topic = kafka.create_topic()
    put(kafka, topic, b'{"id": 1}')
    path, body = "connections/events/sample", {"options": {"topic": topic}}
    expected = {"viewer": (["view"], 403), "writer": (["view", "edit"], 403)}
    expected["both"] = (["view", "data", "edit"], 502)
    for name, (rights, status) in expected.items():
        user = {"name": name, "rights": rights, "password": USER_PASSWORD}
        console.post("users", user, status=201)
        client = TestClient(console.client.app, base_url="http://localhost/api/v1/")
        client.post("login", json={"name": name, "password": USER_PASSWORD})
        answer = client.post(path, json=body)
        assert answer.status_code == status, (name, answer.text)
        code = answer.json()["errors"][0]["code"]
        assert code == ("forbidden-address" if name == "both" else "forbidden")
