"""The names of streams, lists and channels of Redis that exist, by `penstock discover`."""

from __future__ import annotations

import json
from contextlib import closing

import pytest

from penstock.cli.main import main
from penstock.discovery import topic_names
from servers.redis import Cluster, Redis


def test_streams_lists_and_channels_of_redis(
    redis: Redis, redis_cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    stream, list_, channel = redis.new_key(), redis.new_key(), redis.new_key()
    with redis.client() as client, closing(client.pubsub()) as pubsub:
        client.xadd(stream, {"x": 1})
        client.rpush(list_, 1)
        client.xadd(b"\xff", {"x": 1})
        pubsub.subscribe(channel)
        pubsub.get_message(timeout=10)
        assert stream in topic_names("redis", redis.login)[1]
        words = ["discover", "redis", "--url", redis.url, "--json"]
        login = redis.login["auth"].items()
        words += [word for key, value in login for word in ("--set", f"auth.{key}={value}")]
        assert main(words) == 0
        found = {(each["option"], each["name"]) for each in json.loads(capsys.readouterr().out)}
    assert {("stream", stream), ("list", list_), ("channel", channel)} <= found
    assert {option for option, name in found if name in (stream, list_, channel)} == {
        "stream", "list", "channel",
    }  # fmt: skip
    assert not [name for _, name in found if "\ufffd" in name]
    with redis_cluster.client() as client:
        keys = [redis.new_key() for _ in range(9)]
        for key in keys:
            client.xadd(key, {"x": 1})
        assert {*keys} <= {*topic_names("redis", redis_cluster.login)[1]}
