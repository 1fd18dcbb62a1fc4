"""The process's clients, each kept until it fails."""

from __future__ import annotations

import atexit
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from penstock.connectors.pulsar.connection import ConnectionConfig, connected
from penstock.connectors.pulsar.faults import faults
from penstock.core.errors import PenstockError
from penstock.core.secret import revealed

if TYPE_CHECKING:
    from pulsar import Client

_kept: dict[str, Client] = {}
"""Those of this process, by their options."""


@contextmanager
def using(config: ConnectionConfig, doing: str) -> Iterator[Client]:
    """The process's client of a broker, as one user. Raises Transient or Permanent."""
    oauth2 = config.oauth2.client_secret if config.oauth2 else None
    secrets = [revealed(each) for each in (config.token, config.password, oauth2)]
    key = repr(([getattr(config, name) for name in ConnectionConfig.model_fields], secrets))
    if key not in _kept:
        _kept[key] = connected(config)
    try:
        with faults(config, doing):
            yield _kept[key]
    except PenstockError:
        left = _kept.pop(key, None)
        if left is not None:
            closed(left)
        raise


@atexit.register
def _leave() -> None:
    while _kept:
        closed(_kept.popitem()[1])


def closed(client: Client) -> None:
    """Lets go of a client; what was acknowledged is told to the broker before.

    One that is just forgotten, or shut down, keeps its own threads from Python while it waits for
    them: ten seconds.
    """
    from pulsar import PulsarException

    with suppress(PulsarException):
        client.close()
