"""The events of a stream, and the requests of reconnects."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from receiving_here import receiving_here
from taking import Take

from penstock.connectors.http.sse import SseSource
from penstock.sdk import Context, Permanent, Transient
from servers.certificates import Authority
from servers.pushing import LOGIN, Pushing

STREAM = {"Content-Type": "text/event-stream; charset=utf-8"}


def source(state: Path, **options: Any) -> SseSource:
    config = SseSource.config_type.model_validate({"reconnect_delay": "10ms", **LOGIN, **options})
    return SseSource(config, Context("test", "in", state))  # type: ignore[arg-type]


@pytest.fixture
def name(pushing: Pushing) -> str:
    return pushing.new_name()


@pytest.fixture
def taking(taking: Take, tmp_path: Path) -> Take:
    return lambda **options: taking(source(tmp_path / "state", **options))


def last_ids(server: Pushing, name: str, count: int) -> list[str | None]:
    """The header Last-Event-ID of the first requests, when there are so many."""
    until = time.monotonic() + 30
    while len(found := server.kept(name)) < count:
        assert time.monotonic() < until, found
        time.sleep(0.01)
    return [each["headers"].get("last-event-id") for each in found[:count]]


def test_events_and_their_metadata(pushing: Pushing, name: str, taking: Take) -> None:
    taken = taking(url=f"{pushing.url}/events/{name}", headers={"X-Made-Up": "yes"})
    pushing.append(name, b"1")
    pushing.append(name, b"2", "change")
    rows = [(row["payload"], row["event"], row["id"]) for row in taken.rows(2, "event", "id")]
    assert rows == [(b"1", "message", "1"), (b"2", "change", "2")]
    (request,) = pushing.kept(name)
    assert request["headers"]["x-made-up"] == "yes"
    assert request["headers"]["accept"] == "text/event-stream"


def test_only_some_events(pushing: Pushing, name: str, taking: Take) -> None:
    taken = taking(url=f"{pushing.url}/events/{name}", events=["a", "message"])
    for number, event in enumerate(["a", "b", "", "b"]):
        pushing.append(name, b"%d" % number, event)
    assert taken.payloads(2) == [b"0", b"2"]


def test_a_restart_resumes_after_the_last_event(pushing: Pushing, name: str, taking: Take) -> None:
    """Also if the event was filtered out, and if the journal has deleted it."""
    options = {"url": f"{pushing.url}/events/{name}", "events": ["a"]}
    taken = taking(**options)
    for event in ("a", "b", "a"):
        pushing.append(name, b"x", event)
    taken.rows(2)
    taken.source.commit(taken.source.latest_offset(taken.source.initial_offset()))
    taken.receiving.close()
    again = taking(**options)
    pushing.append(name, b"y", "a")
    assert again.payloads(3)[-1] == b"y"
    assert last_ids(pushing, name, 2) == [None, "3"]


def test_a_new_url_starts_without_an_id(pushing: Pushing, name: str, taking: Take) -> None:
    pushing.append(name, b"1")
    taken = taking(url=f"{pushing.url}/events/{name}")
    taken.rows(1)
    taken.receiving.close()
    taking(url=f"{pushing.url}/events/{name}?other=1")
    assert last_ids(pushing, name, 2) == [None, None]


def test_a_reconnect_after_the_end_of_the_stream(pushing: Pushing, name: str, taking: Take) -> None:
    ends = {"headers": STREAM, "body": "id: made-up\ndata: 1\n\ndata: half of one"}
    pushing.script(name, {"": [ends, {"headers": STREAM, "body": "data: 2\n\n"}]})
    taken = taking(url=f"{pushing.url}/script/{name}")
    assert taken.payloads(2)[:2] == [b"1", b"2"]
    assert last_ids(pushing, name, 3) == [None, "made-up", "made-up"]


@pytest.mark.parametrize("said", ["", "retry: 3600000\n"])
def test_the_reconnect_delay(pushing: Pushing, name: str, taking: Take, said: str) -> None:
    """With a delay of an hour, of the server or of the option, there is one request only."""
    first = {"headers": STREAM, "body": said + "data: 1\n\n"}
    pushing.script(name, {"": [first, {"headers": STREAM, "body": "data: 2\n\n"}]})
    taken = taking(url=f"{pushing.url}/script/{name}", reconnect_delay="10ms" if said else "1h")
    taken.rows(1)
    time.sleep(0.5)
    assert len(pushing.kept(name)) == 1


def test_the_delay_of_the_server_overrides_the_option(
    pushing: Pushing, name: str, taking: Take
) -> None:
    first = {"headers": STREAM, "body": "retry: 10\ndata: 1\n\n"}
    pushing.script(name, {"": [first, {"headers": STREAM, "body": "data: 2\n\n"}]})
    taken = taking(url=f"{pushing.url}/script/{name}", reconnect_delay="1h")
    assert len(taken.rows(2)) == 2


def test_the_idle_timeout(pushing: Pushing, name: str, taking: Take) -> None:
    pushing.append(name, b"1")
    taken = taking(url=f"{pushing.url}/events/{name}", idle_timeout="100ms")
    assert last_ids(pushing, name, 3) == [None, "1", "1"]
    pushing.append(name, b"2")
    assert taken.payloads(2) == [b"1", b"2"]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"status": 204}, "responded with status 204"),
        ({"status": 404, "body": "no such stream"}, "404: no such stream"),
        (
            {"headers": {"Content-Type": "text/html"}},
            "expected an event stream .* text/html",
        ),
        ({"headers": STREAM, "body": "data: " + "x" * 2_000}, "more than 1,000 bytes"),
    ],
)
def test_responses_that_are_not_an_event_stream(
    pushing: Pushing, name: str, tmp_path: Path, answer: Any, said: str
) -> None:
    pushing.script(name, {"": answer})
    wrong = source(tmp_path, url=f"{pushing.url}/script/{name}", max_message_size="1KB")
    with pytest.raises(Permanent, match=said):
        receiving_here(wrong).result()


def test_a_server_that_is_busy(pushing: Pushing, name: str, tmp_path: Path) -> None:
    pushing.script(name, {"": {"status": 503}})
    with pytest.raises(Transient, match="503"):
        receiving_here(source(tmp_path, url=f"{pushing.url}/script/{name}")).result()


def test_tls(tmp_path: Path, name: str, taking: Take) -> None:
    authority = Authority(tmp_path)
    with Pushing(certificate=authority.issue("server")) as server:
        url = f"{server.url}/events/{name}"
        with pytest.raises(Permanent, match="TLS verification"):
            source(tmp_path, url=url).check()
        taken = taking(url=url, tls={"ca": str(authority.root)})
        server.append(name, b"1")
        assert taken.rows(1)[0]["payload"] == b"1"
        taken.receiving.close()
