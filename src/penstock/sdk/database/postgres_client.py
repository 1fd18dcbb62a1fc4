"""The client of PostgreSQL, which closes a connection whose server does not respond."""

from __future__ import annotations

import time
from collections.abc import Generator
from functools import cache
from typing import Any


def connect_postgres(silence: float, *arguments: Any, **options: Any) -> Any:
    """Returns a connection of psycopg that is closed after `silence` seconds without a response.

    The option `connect_timeout` limits the connection attempt. Raises psycopg.Error.
    """
    client = connection_class().connect(*arguments, **options)
    client.silence = silence
    return client


@cache
def connection_class() -> Any:
    """Returns the class of connections."""
    import psycopg

    class Connection(psycopg.Connection[Any]):
        """A connection with a limit of the time in which the server neither sends nor receives."""

        silence = 60.0

        def wait(self, gen: Any, *arguments: Any, **options: Any) -> Any:
            try:
                state = next(gen)
            except StopIteration as end:
                return end.value
            return super().wait(self._limited(gen, state), *arguments, **options)

        def _limited(self, generator: Any, state: Any) -> Generator[Any, Any, Any]:
            """Passes on the states of a generator. Closes the connection after `silence`."""
            last = time.monotonic()
            while True:
                ready = yield state
                if ready:
                    last = time.monotonic()
                elif time.monotonic() - last > self.silence:
                    self.pgconn.finish()
                    raise psycopg.OperationalError(f"no response within {self.silence:g} seconds")
                try:
                    state = generator.send(ready)
                except StopIteration as end:
                    return end.value

    return Connection
