"""Receiving from NATS: wildcards, queue groups, work queues."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from nats_reading import make_source, message_count, payloads, rows
from taking import Take, Taking

from penstock.sdk import Permanent
from servers.nats import Nats


@pytest.fixture
def listening(taking: Take, nats: Nats, tmp_path: Path) -> Callable[..., Taking]:
    counter = itertools.count()
    return lambda **options: taking(make_source(nats, tmp_path / f"{next(counter)}", **options))


def test_wildcards_of_subjects(nats: Nats, listening: Any) -> None:
    name = nats.new_name()
    source = listening(subject=[f"{name}.*.new", f"{name}.all.old.>"])
    for subject in ("a.new", "a.old", "a.b.new", "all.old.x.y", "last.new"):
        nats.publish(f"{name}.{subject}", [subject.encode()])
    assert {row["payload"] for row in source.rows(3)} == {b"a.new", b"all.old.x.y", b"last.new"}


def test_metadata_of_a_published_message(nats: Nats, listening: Any) -> None:
    name = nats.new_name()
    source = listening(subject=f"{name}.>")
    nats.publish(f"{name}.a", [b"x"], headers={"Kind": "example"})
    nats.ask(lambda client: client.publish(f"{name}.b", b"y", reply="answers"))
    first, second = source.rows(2, "subject", "reply", "headers", "received")
    assert (first["subject"], first["reply"]) == (f"{name}.a", None)
    assert first["headers"] == [("Kind", "example")]
    assert (second["subject"], second["reply"]) == (f"{name}.b", "answers")
    assert first["received"] <= second["received"]


def test_a_group_shares_the_messages(nats: Nats, listening: Any) -> None:
    name = nats.new_name()
    members = [listening(subject=name, group="workers") for _ in range(2)]
    alone = listening(subject=name)
    nats.publish(name, [b"%d" % number for number in range(200)])
    assert len(alone.rows(200)) == 200
    for member in members:
        member.receiving.close()
    parts = [payloads(member.source) for member in members]
    assert all(parts) and sorted(parts[0] + parts[1]) == sorted(b"%d" % n for n in range(200))


def test_a_subject_without_permission(nats: Nats, tmp_path: Path) -> None:
    import asyncio

    source = make_source(nats, tmp_path, subject="forbidden.a")
    with source.journal() as journal, pytest.raises(Permanent) as caught:
        asyncio.run(source.receive(journal))
    assert caught.value.code == "authorization"


def test_consumer_settings_of_a_group(nats: Nats, listening: Any) -> None:
    stream = nats.new_stream()
    settings = {
        "ack_wait": "2 minutes", "max_deliver": 7, "max_ack_pending": 11,
        "inactive_threshold": "1 hour", "num_replicas": 1, "description": "example",
    }  # fmt: skip
    group = {"stream": stream, "group": "workers"}
    listening(**group, consumer_settings=settings).receiving.close()
    listening(**group, consumer_settings={"max_deliver": 8}).receiving.close()
    info: Any = nats.ask(lambda client: client.jetstream().consumer_info(stream, "workers"))
    expected = {**settings, "ack_wait": 120, "inactive_threshold": 3600}
    assert {name: getattr(info.config, name) for name in settings} == expected


def test_max_deliver(nats: Nats, listening: Any) -> None:
    stream = nats.new_stream()
    group = {"stream": stream, "group": "workers"}
    listening(**group, consumer_settings={"max_deliver": 1}).receiving.close()
    nats.put(f"{stream}.a", [b"1", b"2"])

    async def reject(client: Any) -> None:
        taking = await client.jetstream().pull_subscribe_bind("workers", stream)
        (message,) = await taking.fetch(1)
        await message.nak()
        await client.flush()

    nats.ask(reject)
    assert listening(**group).payloads(1) == [b"2"]


def test_several_consumers_of_a_work_queue(nats: Nats, listening: Any) -> None:
    stream = nats.new_stream(retention="workqueue")
    options = {"stream": stream, "group": "workers", "subject": f"{stream}.a"}
    members = [listening(**options) for _ in range(2)]
    sent = [b"%d" % number for number in range(300)]
    nats.put(f"{stream}.b", [b"other"])
    nats.put(f"{stream}.a", sent)
    until = time.monotonic() + 30
    while message_count(nats, stream) > 1:
        assert time.monotonic() < until
    for member in members:
        member.receiving.close()
    parts = [rows(member.source, "subject", "sequence")[0] for member in members]
    assert all(parts)
    assert sorted(row["payload"] for part in parts for row in part) == sorted(sent)
    assert {row["subject"] for row in parts[0]} == {f"{stream}.a"}
