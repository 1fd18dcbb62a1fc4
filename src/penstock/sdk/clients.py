"""Client pool: the clients of a process, one for each configuration, kept between batches."""

from __future__ import annotations

import atexit
import hashlib
import json
import os
import secrets
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from penstock.core.errors import PenstockError

ConfigT = TypeVar("ConfigT", bound=BaseModel)
Client = TypeVar("Client")
_DIGEST_KEY = secrets.token_bytes(32)
_pools: weakref.WeakSet[ClientPool[Any, Any]] = weakref.WeakSet()


class ClientPool(Generic[ConfigT, Client]):
    """Clients created on first use and shared by all tasks of a process.

    Clients are keyed by a digest of their configuration: no secret stays in a key. A forked
    process starts with an empty pool. `close` closes all clients. `close_pools` is called at exit.
    """

    def __init__(
        self, create: Callable[[ConfigT], Client], close: Callable[[Client], object]
    ) -> None:
        self._create, self._close = create, close
        self._clients: dict[str, Client] = {}
        self._pid = os.getpid()
        self._lock = threading.RLock()
        _pools.add(self)

    def get(self, config: ConfigT) -> Client:
        """Returns the client for a configuration. Raises the errors of `create`."""
        with self._lock:
            self._clear_after_fork()
            key = config_digest(config)
            if key not in self._clients:
                self._clients[key] = self._create(config)
            return self._clients[key]

    def discard(self, config: ConfigT) -> None:
        """Closes the client of a configuration, if there is one. The next `get` creates another."""
        with self._lock:
            self._clear_after_fork()
            client = self._clients.pop(config_digest(config), None)
        if client is not None:
            self._close_quietly(client)

    @contextmanager
    def using(self, config: ConfigT) -> Iterator[Client]:
        """Yields the client for a configuration. Discards the client after a PenstockError."""
        try:
            yield self.get(config)
        except PenstockError:
            self.discard(config)
            raise

    def close(self) -> None:
        """Closes all clients of this process. Errors are ignored."""
        with self._lock:
            self._clear_after_fork()
            clients = list(self._clients.values())
            self._clients.clear()
        for client in clients:
            self._close_quietly(client)

    def _clear_after_fork(self) -> None:
        if self._pid != os.getpid():
            self._pid = os.getpid()
            self._clients = {}

    def _close_quietly(self, client: Client) -> None:
        with suppress(Exception):
            self._close(client)


def close_pools() -> None:
    """Closes the clients of all pools of this process."""
    for pool in list(_pools):
        pool.close()


atexit.register(close_pools)


def config_digest(config: BaseModel) -> str:
    """Returns a digest of all options, secrets included, that is valid in this process tree."""
    text = json.dumps(_to_jsonable(config), sort_keys=True, default=str)
    return hashlib.blake2b(text.encode(), key=_DIGEST_KEY, digest_size=16).hexdigest()


def _to_jsonable(value: Any) -> Any:
    if hasattr(value, "reveal"):
        return value.reveal()
    if isinstance(value, BaseModel):
        return [type(value).__name__, {name: _to_jsonable(field) for name, field in value}]
    if isinstance(value, dict):
        return {str(name): _to_jsonable(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_to_jsonable(item) for item in value]
    return value
