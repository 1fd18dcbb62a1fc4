"""Names of streams, lists and channels of a Redis server or cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from penstock.connectors.redis.client import connection
from penstock.connectors.redis.config import ConnectionConfig

_PAGE = 1_000
_PAGES = 1_000
"""The largest number of pages of keys that are searched on a node."""


def list_names(config: ConnectionConfig, option: str) -> list[str]:
    """Returns the names of streams or lists among the first keys, or of channels in use.

    Names that are not UTF-8 are left out.
    """
    with connection(config) as client:
        if option == "channel":
            return _texts(client.pubsub_channels())
        nodes = (
            [client.get_redis_connection(node) for node in client.get_primaries()]
            if config.cluster else [client]
        )  # fmt: skip
        return _texts(name for node in nodes for name in _keys(node, option))


def _keys(node: Any, type_: str) -> Iterator[bytes]:
    """Yields the keys of a type on a node, some more than once."""
    cursor = 0
    for _ in range(_PAGES):
        cursor, names = node.scan(cursor, count=_PAGE, _type=type_)
        yield from names
        if cursor == 0:
            return


def _texts(names: Iterable[bytes]) -> list[str]:
    texts = (name.decode(errors="replace") for name in names)
    return sorted({text for text in texts if "\ufffd" not in text})
