"""The names of streams, subjects and buckets of NATS that exist."""

from __future__ import annotations

from typing import Any

from penstock.discovery import topic_names
from servers.nats import Nats


def test_streams_subjects_and_buckets_of_nats(nats: Nats) -> None:
    streams = sorted(nats.new_stream() for _ in range(3))
    bucket = nats.new_bucket()
    option, names = topic_names("nats", nats.login)
    assert option == "stream"
    assert [name for name in names if name in streams] == streams
    assert not [name for name in names if bucket in name], "a bucket is no stream"
    assert f"{streams[0]}.>" in topic_names("nats", nats.login, "subject")[1]
    assert bucket in topic_names("nats", nats.login, "bucket")[1]


def test_all_pages_of_streams_are_listed(nats: Nats) -> None:
    """JetStream lists 256 streams at a time."""
    names = [f"page{number:03}" for number in range(260)]

    async def add(client: Any) -> None:
        for name in names:
            await client.jetstream().add_stream(name=name, subjects=[name], storage="memory")

    async def remove(client: Any) -> None:
        for name in names:
            await client.jetstream().delete_stream(name)

    nats.ask(add)
    try:
        assert {*names} <= {*topic_names("nats", nats.login)[1]}
    finally:
        nats.ask(remove)
