"""The messages and pings of the WebSocket source and sink."""

from __future__ import annotations

import base64
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from receiving_here import receiving_here
from taking import Take, Taking

from penstock.connectors.http.websocket import WebsocketSink, WebsocketSource
from penstock.journal import JournalReader
from penstock.sdk import BatchId, Context, Failure, Permanent, Transient, registry
from servers.certificates import Authority
from servers.pushing import LOGIN, Pushing


def source(state: Path, **options: Any) -> WebsocketSource:
    config = WebsocketSource.config_type.model_validate({**LOGIN, **options})
    return WebsocketSource(config, Context("test", "in", state))  # type: ignore[arg-type]


@pytest.fixture
def name(pushing: Pushing) -> str:
    return pushing.new_name()


@pytest.fixture
def taking(taking: Take, pushing: Pushing, name: str, tmp_path: Path) -> Take:
    def taking_(server: Pushing = pushing, **options: Any) -> Taking:
        return taking(source(tmp_path / "in", url=f"{server.ws_url}/hub/{name}", **options))

    return taking_


def frames(server: Pushing, name: str, *kinds: str) -> list[bytes]:
    """What clients sent."""
    kept = [each for each in server.kept(name) if each.get("frame") in kinds]
    return [base64.b64decode(each.get("body", "")) for each in kept]


def await_frames(server: Pushing, name: str, count: int, *kinds: str) -> list[bytes]:
    until = time.monotonic() + 30
    while len(found := frames(server, name, *kinds)) < count:
        assert time.monotonic() < until, found
        time.sleep(0.01)
    return found


def test_text_and_binary_messages(pushing: Pushing, name: str, taking: Take) -> None:
    taken = taking()
    pushing.push(name, "ü".encode())
    pushing.push(name, b"\x00\xff", "binary")
    rows = [(row["payload"], row["frame"]) for row in taken.rows(2, "frame")]
    assert rows == [("ü".encode(), "text"), (b"\x00\xff", "binary")]


def test_a_reconnect_sends_the_messages_again(pushing: Pushing, name: str, taking: Take) -> None:
    taken = taking(messages=["log in", "subscribe"])
    assert frames(pushing, name, "text") == [b"log in", b"subscribe"]
    taken.receiving.receiver.ready.clear()
    assert pushing.push(name, b"4001", "close") == 1
    taken.receiving.await_ready()
    assert frames(pushing, name, "text") == [b"log in", b"subscribe"] * 2
    pushing.push(name, b"1")
    assert taken.rows(1)[0]["payload"] == b"1"


def test_the_request_of_a_connect(pushing: Pushing, name: str, taking: Take) -> None:
    taking(headers={"X-Made-Up": "yes"}, protocols=["other", "made-up"])
    (request,) = [each for each in pushing.kept(name) if "method" in each]
    assert request["headers"]["x-made-up"] == "yes"
    assert request["headers"]["sec-websocket-protocol"] == "other,made-up"


def test_pings(pushing: Pushing, name: str, taking: Take) -> None:
    taking(keep_alive="50ms")
    assert await_frames(pushing, name, 3, "ping")


def test_a_server_that_sends_no_pong(pushing: Pushing, name: str, tmp_path: Path) -> None:
    deaf = source(tmp_path, url=f"{pushing.ws_url}/hub/{name}?deaf=1", keep_alive="100ms")
    with pytest.raises(Transient, match="timeout"):
        receiving_here(deaf).result()


def test_a_message_above_the_maximum_size(pushing: Pushing, name: str, tmp_path: Path) -> None:
    url = f"{pushing.ws_url}/hub/{name}"
    taken = receiving_here(source(tmp_path, url=url, max_message_size="1KB"))
    until = time.monotonic() + 30
    while pushing.push(name, b"x" * 1_000) == 0:
        assert time.monotonic() < until
    assert pushing.push(name, b"x" * 1_001) == 1
    with pytest.raises(Permanent, match="more than 1,000 bytes"):
        taken.result()
    assert JournalReader(tmp_path / "journal").end() > 0


def test_a_full_journal_drops_and_counts(pushing: Pushing, name: str, taking: Take) -> None:
    taken = taking(journal={"max_size": "1MiB"}, when_full="drop")
    for _ in range(20):
        pushing.push(name, b"x" * 100_000)
    until = time.monotonic() + 30
    while taken.source.lost() + taken.receiving.journal.end() < 20:
        assert time.monotonic() < until
        time.sleep(0.01)
    assert 5 < taken.source.lost() < 15


def test_a_full_journal_waits(pushing: Pushing, name: str, taking: Take) -> None:
    taken = taking(journal={"max_size": "1MiB"})
    for _ in range(20):
        pushing.push(name, b"x" * 100_000)
    at, seen = taken.source.initial_offset(), 0
    until = time.monotonic() + 30
    while seen < 20:
        assert time.monotonic() < until
        end = taken.source.latest_offset(at)
        seen, at = end["position"], end
        taken.source.commit(end)
        time.sleep(0.01)
    assert taken.source.lost() == 0


def sink(url: str, **options: Any) -> WebsocketSink:
    made = WebsocketSink(
        WebsocketSink.config_type.model_validate({"url": url, **LOGIN, **options})  # type: ignore[arg-type]
    )
    raw = registry.find("format", "raw")
    made.format = raw(raw.config_type.model_validate({}))  # type: ignore[assignment]
    return made


def sent(to: WebsocketSink, payloads: list[bytes]) -> list[Failure]:
    """Writes rows as the engine does; gives the failures."""
    rows = pa.RecordBatch.from_pydict({"payload": pa.array(payloads, pa.binary())})
    client = to.open()
    try:
        writer = to.writer(client, BatchId("q", 0), 0, rows.schema)
        failures = writer.write(rows, rows.column(0))
        writer.commit()
    finally:
        client.close()
    return list(failures)


def test_rows_as_text(pushing: Pushing, name: str) -> None:
    to = sink(f"{pushing.ws_url}/hub/{name}", messages=["hello"])
    (failure,) = sent(to, [b"one", b"\xff", "zwölf".encode()])
    assert failure.index == 1 and failure.error.code == "not-utf8"
    assert frames(pushing, name, "text") == [b"hello", b"one", "zwölf".encode()]


def test_rows_as_binary(pushing: Pushing, name: str) -> None:
    assert sent(sink(f"{pushing.ws_url}/hub/{name}", frame="binary"), [b"\xff", b"2"]) == []
    assert frames(pushing, name, "binary") == [b"\xff", b"2"]


def test_a_server_that_replies_to_each_row(pushing: Pushing, name: str) -> None:
    to = sink(f"{pushing.ws_url}/hub/{name}?echo=1", timeout="60s")
    assert sent(to, [b"x" * 500_000] * 40) == []
    assert len(frames(pushing, name, "text")) == 40


def test_a_pong_that_does_not_arrive(pushing: Pushing, name: str) -> None:
    with pytest.raises(Transient, match="waiting for a pong"):
        sent(sink(f"{pushing.ws_url}/hub/{name}?deaf=1", timeout="300ms"), [b"1"])


def test_a_lost_connection_is_replaced(pushing: Pushing, name: str) -> None:
    to = sink(f"{pushing.ws_url}/hub/{name}")
    rows = pa.RecordBatch.from_pydict({"payload": pa.array([b"1"], pa.binary())})
    client = to.open()
    try:
        writer = to.writer(client, BatchId("q", 0), 0, rows.schema)
        pushing.push(name, b"1012", "close")
        with pytest.raises(Transient, match="1012 made-up reason"):
            for _ in range(1_000):
                writer.write(rows, rows.column(0))
                writer.commit()
        before = len(frames(pushing, name, "text"))
        again = to.writer(client, BatchId("q", 0), 0, rows.schema)
        again.write(rows, rows.column(0))
        again.commit()
        assert len(frames(pushing, name, "text")) == before + 1
    finally:
        client.close()


def test_an_unknown_path(pushing: Pushing) -> None:
    with pytest.raises(Permanent, match="404"):
        sink(f"{pushing.ws_url}/none/such/hub").check()


def test_tls(tmp_path: Path, name: str, taking: Take) -> None:
    authority = Authority(tmp_path)
    with Pushing(certificate=authority.issue("server")) as server:
        url = f"{server.ws_url}/hub/{name}"
        with pytest.raises(Permanent, match="TLS verification"):
            sink(url).check()
        tls = {"ca": str(authority.root)}
        assert sent(sink(url, tls=tls), [b"1"]) == []
        taken = taking(server, tls=tls)
        server.push(name, b"2")
        assert taken.rows(1)[0]["payload"] == b"2"
