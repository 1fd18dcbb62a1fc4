"""Rows of Redis by key, as a table of a query."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.core.errors import Transient
from penstock.core.secret import revealed
from penstock.sdk.network.auth import PasswordAuth
from penstock.transforms.steps.codecs import make_codec
from penstock.transforms.steps.config import RedisLookup
from penstock.transforms.steps.expressions import Expression


class LookupReader:
    """Reads the rows of the keys of a batch."""

    def __init__(self, config: RedisLookup, base: Path) -> None:
        self.config = config
        self._key = Expression(config.key)
        self._codec = make_codec(config.decode, base)
        self._client: Any = None

    def read(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Returns the rows of the keys of a batch; a missing key has no row.

        Raises RecordError, or Transient.
        """
        keys = list(dict.fromkeys(self._key.evaluate(batch)))
        values = [value for value in self._values(keys) if value is not None]
        if not values:
            return pa.RecordBatch.from_pydict({})
        return self._codec.decode(values)

    def _values(self, keys: list[str]) -> list[bytes | None]:
        import redis

        try:
            client = self._open()
            if self.config.kind == "list":
                return [value for key in keys for value in client.lrange(key, 0, -1)]
            return [client.get(key) for key in keys]
        except redis.RedisError as error:
            raise Transient(f"could not read {self.config.table} of Redis: {error}") from error

    def _open(self) -> Any:
        import redis

        if self._client is None:
            auth = self.config.auth or PasswordAuth.model_construct()
            urls = [self.config.url] if isinstance(self.config.url, str) else self.config.url
            class_: Any = redis.RedisCluster if self.config.cluster else redis.Redis
            self._client = class_.from_url(
                urls[0], username=auth.username, password=revealed(auth.password)
            )
        return self._client

    def close(self) -> None:
        """Closes the connection."""
        if self._client is not None:
            self._client.close()
            self._client = None
