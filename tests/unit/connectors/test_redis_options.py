"""Invalid options of the Redis source and sink."""

from __future__ import annotations

import pytest

from option_errors import Case, assert_option_error
from penstock.connectors.redis.config import RedisSinkConfig, RedisSourceConfig

URL = {"url": "redis://localhost"}


@pytest.mark.parametrize(
    "case",
    [
        (
            {"stream": "s", "list": "l"},
            "list",
            "expected either stream, or list, or channel and pattern, or key, or hash",
        ),
        ({"list": "l", "group": "g"}, "group", "group requires stream"),
        ({"stream": "s", "claim_after": "1s"}, "claim_after", "claim_after requires group"),
        (
            {"stream": "s", "group": "g", "on_data_loss": "continue"},
            "on_data_loss",
            "group excludes on_data_loss",
        ),
        (
            {"list": ["a", "b"], "processing": "p"},
            "processing",
            "processing requires a single list",
        ),
        ({"stream": "s", "start": "now"}, "start", "Input should be 'earliest' or 'latest'"),
        ({"stream": "s", "start": {"offset": "x"}}, "start.offset", "should match pattern"),
        ({"stream": "s", "start": {}}, "start", "expected timestamp or offset"),
    ],
)
def test_invalid_options_of_the_source(case: Case) -> None:
    assert_option_error(RedisSourceConfig, URL, case)


@pytest.mark.parametrize(
    "case",
    [
        ({"auth": {"username": "made-up"}}, "auth", "expected password"),
        ({"tls": True}, "tls", "tls requires a URL with a TLS scheme"),
        ({"url": "rediss://h", "tls": False}, "tls", "contradicts the scheme of the URL"),
        ({"url": "redis://made-up:made-up@h"}, "url", "auth.username and auth.password"),
        ({"url": "http://h"}, "url", "expected redis://HOST"),
        ({"url": "redis://h/x"}, "url", "expected a database number as the path"),
        ({"url": "redis://h/²"}, "url", "expected a database number as the path"),
        ({"url": "redis://h/1", "cluster": True}, "cluster", "only has database 0"),
        ({"url": ["redis://a", "redis://b"]}, "cluster", "several URLs require cluster: true"),
        ({"url": ["redis://a", "rediss://b"], "cluster": True}, "url", "the same scheme"),
        ({"url": [], "cluster": True}, "url", "expected at least one URL"),
    ],
)
def test_invalid_options_of_the_connection(case: Case) -> None:
    for model in (RedisSourceConfig, RedisSinkConfig):
        assert_option_error(model, {**URL, "stream": "s"}, case)


@pytest.mark.parametrize(
    "case",
    [
        ({}, "stream", "expected one of stream, list, hash, key and channel"),
        ({"stream": "s", "key": "k"}, "key", "expected one of stream, list, hash, key"),
        ({"hash": "h"}, "field", "hash requires field"),
        ({"list": "l", "ttl": "1s"}, "ttl", "ttl requires key"),
        ({"key": "k", "max_length": 1}, "max_length", "max_length requires stream or list"),
        ({"key": "{k"}, "key", "expected {column} with both braces"),
    ],
)
def test_invalid_options_of_the_sink(case: Case) -> None:
    assert_option_error(RedisSinkConfig, URL, case)
