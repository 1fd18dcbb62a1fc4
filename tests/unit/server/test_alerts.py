"""Alerts: conditions, history, and messages to a webhook and a mail server."""

from __future__ import annotations

import hashlib
import hmac
import json
import socketserver
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from penstock.core.errors import Permanent, Transient
from penstock.runtime.health import Health, Reason
from penstock.server.alerts.conditions import KINDS, Condition, Observation, RuleKind
from penstock.server.alerts.webhook import send_webhook
from penstock.server.store.alerts import ATTEMPTS, Alerts, Channel, Rule
from penstock.server.store.database import Database
from penstock.server.store.encryption import Encryption
from penstock.server.store.tables import MESSAGES
from server_console import Console, OpenConsole, behave, wait_for

pytestmark = pytest.mark.slow
SECRET = "a secret of the webhook"


class Received(BaseHTTPRequestHandler):
    """A webhook that answers with `statuses`, one after the other, and then 200."""

    requests: list[tuple[Any, bytes]] = []
    statuses: list[int] = []

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.requests.append((self.headers, body))
        status = self.statuses.pop(0) if self.statuses else 200
        self.send_response(status)
        if status == 302:
            self.send_header("Location", "http://169.254.169.254/")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture
def webhook() -> Iterator[str]:
    Received.requests, Received.statuses = [], []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Received)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/alerts?key=1"
    server.shutdown()
    server.server_close()


def numbers(**changes: Any) -> dict[str, Any]:
    node = {"kind": "source", "rows": changes.get("rows", 3), "lag": changes.get("lag")}
    sink = {"kind": "sink", "rows": changes.get("written", 0), "lag": None}
    return {
        "nodes": {"orders": node, "out": sink}, "dead_letters": changes.get("letters", 0),
        "restarts": changes.get("restarts", 0),
        "queries": {"q": {key: changes[key] for key in changes.keys() & {"watermark"}}},
    }  # fmt: skip


RUNNING = Health("running")


@pytest.mark.parametrize(
    ("kind", "threshold", "minutes", "observed", "held"),
    [
        ("lag", 10, 2, [(0, {"lag": 11}), (60, {"lag": 12}), (120, {"lag": 13}), (130, {"lag": 9})],
         [False, False, True, False]),
        ("lag", 10, 0, [(0, {"lag": 11}), (1, {})], [True, False]),
        ("no_rows", 0, 2, [(0, {}), (119, {}), (120, {}), (125, {"rows": 4})],
         [False, False, True, False]),
        ("dead_letters", 5, 2, [(0, {"letters": 100}), (60, {"letters": 105}),
         (70, {"letters": 120}), (300, {"letters": 120}), (310, {"letters": 8})],
         [False, False, True, False, False]),
        ("restarts", 3, 2, [(0, {"restarts": 9}), (60, {"restarts": 12}), (120, {"restarts": 13}),
         (180, {"restarts": 13}), (190, {"restarts": 2}), (200, {"restarts": 4})],
         [False, False, True, False, False, True]),
        ("no_output", 0, 2, [(0, {}), (60, {"rows": 4}), (120, {"rows": 5}), (179, {"rows": 6}),
         (180, {"rows": 7}), (300, {"rows": 7}), (301, {"rows": 7})],
         [False, False, False, False, True, True, False]),
        ("no_output", 0, 2, [(0, {}), (60, {"rows": 4}), (181, {"rows": 5}), (182, {"rows": 6}),
         (301, {"rows": 7}), (310, {"rows": 8, "written": 1}), (320, {"rows": 9, "written": 1})],
         [False, False, False, False, True, False, False]),
        ("no_output", 0, 2, [(0, {"written": 5}), (60, {"rows": 4, "written": 5}),
         (120, {"rows": 1, "written": 1}), (180, {"rows": 2, "written": 1}),
         (300, {"rows": 3, "written": 1})],
         [False, False, False, False, True]),
        ("watermark_delay", 60, 1,
         [(100, {"watermark": 10.0}), (160, {"watermark": 20.0})], [False, True]),
        ("watermark_delay", 60, 0,
         [(1e9 - 1, {}), (1e9, {"watermark": None}), (1e9 + 1, {"watermark": 1e9 - 60})],
         [False, False, True]),
    ],
)  # fmt: skip
def test_conditions_over_time(
    kind: RuleKind, threshold: float, minutes: float,
    observed: list[tuple[float, dict[str, Any]]], held: list[bool],
) -> None:  # fmt: skip
    condition = Condition(kind, threshold, minutes)
    found = [
        condition.observe(Observation(RUNNING, numbers(**changes), at)) is not None
        for at, changes in observed
    ]
    assert found == held


@pytest.mark.parametrize(
    ("kind", "observed", "held"),
    [
        ("lag", [(0, {"lag": 11}), (5, {"lag": 9}), (10, {"lag": 11})], [True, False, False]),
        ("no_rows", [(0, {}), (5, {}), (10, {"rows": 4})], [True, True, False]),
        ("dead_letters", [(0, {"letters": 9}), (60, {"letters": 9}), (121, {"letters": 9})],
         [True, True, False]),
        ("restarts", [(0, {"restarts": 99}), (60, {"restarts": 99}), (121, {"restarts": 99})],
         [True, True, False]),
        ("no_output", [(0, {}), (120, {"rows": 4}), (125, {"rows": 4, "written": 1})],
         [True, True, False]),
    ],
)  # fmt: skip
def test_an_open_alert_remains_after_a_restart(
    kind: RuleKind, observed: list[tuple[float, dict[str, Any]]], held: list[bool]
) -> None:
    condition = Condition(kind, 10, 2, open=True)
    found = [
        condition.observe(Observation(RUNNING, numbers(**changes), at)) is not None
        for at, changes in observed
    ]
    assert found == held


def test_a_disk_that_fills(console: Console) -> None:
    """Also a pipeline that has failed on a full disk has the alert."""
    condition = Condition("disk", 10, 0)
    failed = Health("failed")
    for free, message in ((None, None), (0.1, None), (0.099, "9.9 % of the disk of the state")):
        found = condition.observe(Observation(failed, None, 0, free))
        assert (found or "").startswith(message or "") and (found is None) == (message is None)
    delete_ready_rules(console)
    rule = {"kind": "disk", "threshold": 100.5, "channels": []}
    assert console.client.put("/api/v1/alerts/rules/space", json=rule).status_code == 200
    (alert,) = wait_for(lambda: console.get("alerts"), lambda: "there is no alert")
    assert alert["message"].endswith("below 100.5 %")


def test_a_stopped_pipeline_has_no_lag() -> None:
    condition = Condition("lag", 1, 0)
    assert condition.observe(Observation(RUNNING, numbers(lag=5), 0)) is not None
    assert condition.observe(Observation(Health("stopped"), numbers(lag=5), 1)) is None
    assert condition.observe(Observation(RUNNING, None, 1)) is None


def test_conditions_of_health() -> None:
    looping = Observation(Health("crash-looping", None, Reason("x", "made up")), None)
    assert Condition("failed", 0, 0).observe(looping) == "crash-looping: made up"
    assert Condition("crash_looping", 0, 0).observe(looping) is not None
    assert Condition("ended", 0, 0).observe(looping) is None
    assert Condition("crash_looping", 0, 0).observe(Observation(Health("failed"), None)) is None


def test_a_failure_is_reported_and_resolved(
    open_console: OpenConsole, pipeline_directory: Path, webhook: str
) -> None:
    console = open_console()
    delete_ready_rules(console)
    put = console.client.put
    channel = {"options": {"kind": "webhook", "url": webhook}, "secret": SECRET}
    shown = put("/api/v1/alerts/channels/ops", json=channel).json()
    assert (shown["secret"], SECRET in str(shown)) == ({"set": True}, False)
    rule = {"kind": "failed", "channels": ["ops"]}
    assert put("/api/v1/alerts/rules/failures", json=rule).status_code == 200
    unknown = put("/api/v1/alerts/rules/x", json={**rule, "channels": ["no"]})
    assert unknown.json()["errors"][0]["code"] == "no-channel"
    in_use = console.client.delete("/api/v1/alerts/channels/ops")
    assert in_use.json()["errors"][0]["code"] == "channel-in-use"
    behave(pipeline_directory, "fail 2")
    console.post(f"pipelines/{console.id()}/start")
    console.await_health("failed")
    evaluate, send = console.server.watcher.evaluate, console.server.parts.delivery.send_due
    for _ in range(3):
        evaluate()
    (alert,) = console.get("alerts")
    assert (alert["rule"], alert["name"], alert["resolved"]) == ("failures", "shop", None)
    assert "made up" in alert["message"]
    Received.statuses = [503]
    send()
    assert console.get("alerts")[0]["messages"][0]["error"] == (
        "the webhook 127.0.0.1 answered with status 503"
    )

    console = open_console()  # another server finds the open alert and the message that is due
    evaluate, send = console.server.watcher.evaluate, console.server.parts.delivery.send_due
    evaluate()
    assert len(console.get("alerts")) == 1
    _make_due(console)
    send()
    headers, body = Received.requests[-1]
    content = json.loads(body)
    assert (content["event"], content["pipeline"], content["rule"]) == (
        "opened",
        "shop",
        "failures",
    )
    seconds, signature = (part[2:] for part in headers["Penstock-Signature"].split(",v"))
    expected = hmac.new(SECRET.encode(), seconds.encode() + b"." + body, hashlib.sha256)
    assert signature == "=" + expected.hexdigest() or signature == expected.hexdigest()
    behave(pipeline_directory, "run")
    console.post(f"pipelines/{console.id()}/start")
    console.await_health("running")
    evaluate()
    send()
    (alert,) = console.get("alerts")
    assert alert["resolved"] is not None
    assert [each["event"] for each in alert["messages"]] == ["opened", "resolved"]
    assert json.loads(Received.requests[-1][1])["event"] == "resolved"
    assert len(Received.requests) == 3, "one message for each change, and one attempt that failed"


def delete_ready_rules(console: Console) -> None:
    for rule in console.get("alerts/rules"):
        assert console.client.delete(f"/api/v1/alerts/rules/{rule['name']}").status_code == 204


def test_ready_rules_are_changed_and_deleted(
    open_console: OpenConsole, pipeline_directory: Path
) -> None:
    """They open alerts without a step of a user, and do not return at the next start."""
    console = open_console()
    found = {rule["name"]: rule for rule in console.get("alerts/rules")}
    assert sorted(found) == ["dead-letters", "disk", "failed", "no-output", "restarts"]
    assert {rule["kind"] for rule in found.values()} <= set(KINDS)
    behave(pipeline_directory, "fail 2")
    console.post(f"pipelines/{console.id()}/start")
    console.await_health("failed")
    console.server.watcher.evaluate()
    assert "failed" in {alert["rule"] for alert in console.get("alerts")}
    changed = {"kind": "disk", "threshold": 0.5, "minutes": 0}
    assert console.client.put("/api/v1/alerts/rules/disk", json=changed).status_code == 200
    for name in ("failed", "no-output"):
        assert console.client.delete(f"/api/v1/alerts/rules/{name}").status_code == 204
    console = open_console()
    remaining = {rule["name"]: rule["threshold"] for rule in console.get("alerts/rules")}
    assert remaining == {"dead-letters": 0, "disk": 0.5, "restarts": 3}
    delete_ready_rules(console)
    assert open_console().get("alerts/rules") == []


def _make_due(console: Console) -> None:
    database = console.server.parts.alerts._database
    past = MESSAGES.update().where(MESSAGES.c.due.is_not(None)).values(due="2000-01-01T00:00:00Z")
    database.execute(past)


def channel_of(url: str) -> Channel:
    return Channel("ops", "webhook", {"url": url}, None, "ann", "")


def test_a_webhook_follows_no_redirection(webhook: str) -> None:
    Received.statuses = [302, 404, 429]
    for kind in (Permanent, Permanent, Transient):
        with pytest.raises(kind):
            send_webhook(channel_of(webhook), {"event": "test"})
    assert len(Received.requests) == 3
    for url in ("http://169.254.169.254/latest", "http://[fe80::1]/", "http://[fd00:ec2::254]/"):
        with pytest.raises(Permanent, match="not permitted"):
            send_webhook(channel_of(url), {"event": "test"})
    with pytest.raises(Transient):
        send_webhook(channel_of("http://127.0.0.1:1/"), {"event": "test"})


def test_a_message_is_tried_eight_times(tmp_path: Path) -> None:
    alerts = Alerts(Database.open(tmp_path), Encryption.load(tmp_path, {}))
    alerts.set_channel(channel_of("http://127.0.0.1:1/"))
    rule = Rule("r", "failed", None, 0, 0, ("ops",), True, None, "ann", "")
    alerts.set_rule(rule)
    alerts.open(rule, "1", "shop", "failed")
    silent = replace(rule, name="silent", silenced_until="2999-01-01T00:00:00Z")
    alerts.set_rule(silent)
    alerts.open(silent, "1", "shop", "failed")
    for attempt in range(ATTEMPTS):
        alerts._database.execute(
            MESSAGES.update().where(MESSAGES.c.due.is_not(None)).values(due="2000-01-01T00:00:00Z")
        )
        (message,) = alerts.due()
        assert message.attempts == attempt
        alerts.not_sent(message, "made up", final=False)
        assert alerts.due() == [], "the next attempt is later"
    silenced, tried = alerts.history()
    assert (tried["messages"][0]["due"], tried["messages"][0]["attempts"]) == (None, ATTEMPTS)
    assert silenced["messages"] == []
    assert [each["number"] for each in alerts.history(before=silenced["number"])] == [1]


class MailServer(socketserver.StreamRequestHandler):
    """A mail server that accepts all messages, and answers wrongly to QUIT."""

    messages: list[str] = []

    def handle(self) -> None:
        self.wfile.write(b"220 made up\r\n")
        while line := self.rfile.readline():
            word = line.split()[0].upper()
            if word == b"DATA":
                self.wfile.write(b"354 go\r\n")
                text = b""
                while (part := self.rfile.readline()) != b".\r\n":
                    text += part
                self.messages.append(text.decode())
            self.wfile.write(b"250 ok\r\n")
            if word == b"QUIT":
                return


def test_messages_by_email(console: Console) -> None:
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), MailServer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        options = {
            "kind": "email", "host": "127.0.0.1", "port": server.server_address[1], "tls": "none",
            "sender": "penstock@example.com", "to": ["ops@example.com"],
        }  # fmt: skip
        path = "/api/v1/alerts/channels/mail"
        assert console.client.put(path, json={"options": options}).status_code == 200
        assert console.client.post(f"{path}/test", json={}).status_code == 204
        server.shutdown()
    (text,) = MailServer.messages
    assert "Subject: [Penstock] test:" in text
    assert "To: ops@example.com" in text
    failing = console.client.post(f"{path}/test", json={})
    assert failing.json()["errors"][0]["code"] == "unreachable"
    for wrong in ({"to": ["nobody"]}, {"to": []}, {"sender": "a@b\r\nBcc: x@y"}, {"port": 0}):
        answer = console.client.put(path, json={"options": {**options, **wrong}})
        assert answer.status_code == 422, wrong
    url = {"options": {"kind": "webhook", "url": "ftp://x/"}}
    assert console.client.put(path, json=url).status_code == 400


def test_rules_are_silenced_and_deleted(console: Console) -> None:
    wait_for(lambda: console.get("pipelines"), lambda: "no pipelines")
    path = "/api/v1/alerts/rules/idle"
    body = {"kind": "no_rows", "minutes": 30, "pipelines": [console.id()]}
    assert console.client.put(path, json=body).json()["minutes"] == 30
    until = {"until": "2999-01-01T00:00:00Z"}
    assert console.post("alerts/rules/idle/silence", until)["silenced_until"] == until["until"]
    assert console.client.put(path, json={**body, "kind": "none"}).status_code == 422
    assert console.client.delete(path).status_code == 204
    assert console.client.delete(path).status_code == 404
