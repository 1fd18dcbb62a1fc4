"""Streams, lists, channels, hashes and keys of a Redis server or cluster."""

from penstock.connectors.redis.sink import RedisSink
from penstock.connectors.redis.source import RedisSource

__all__ = ["RedisSink", "RedisSource"]
