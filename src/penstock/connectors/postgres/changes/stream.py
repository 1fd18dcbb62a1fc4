"""The stream of a replication slot.

Source: https://www.postgresql.org/docs/current/protocol-replication.html
"""

from __future__ import annotations

import asyncio
import struct
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from penstock.connectors.postgres.config import ConnectionConfig
from penstock.connectors.postgres.connection import connect_options
from penstock.connectors.postgres.errors import translate_error
from penstock.connectors.postgres.types import DIALECT
from penstock.core.errors import Permanent, Transient
from penstock.sdk.database.postgres_client import connect_postgres

START = struct.calcsize(">cQQq")
"""The place of a message of the output plugin, after the header of the stream."""
_OF_PLUGIN = ord("w")
_KEEPALIVE = struct.Struct(">cQqB")
_STATUS = struct.Struct(">cQQQqB")
_EPOCH_SECONDS = 946_684_800
_MAX_MESSAGES, _MAX_BYTES = 5000, 4 << 20
_RESPONSES = 4
"""The responses of a quiet server that are requested within `timeout`."""


class ReplicationStream:
    """The messages of a slot for the tables of publications, in the order of their commits."""

    def __init__(self, config: ConnectionConfig, slot: str, publications: Sequence[str]) -> None:
        """Connects and starts the stream. Raises Transient or Permanent."""
        import psycopg

        self._config = config
        self.position = 0
        """The position up to which all transactions were returned."""
        self._reply_requested = False
        self._last_response = time.monotonic()
        options = {**connect_options(config), "replication": "database"}
        try:
            self._client = connect_postgres(config.timeout, **options, autocommit=True)
            self._connection = self._client.pgconn
            names = DIALECT.quote_all(publications).replace("'", "''")
            start = (
                f'START_REPLICATION SLOT "{slot}" LOGICAL 0/0 '
                f"(proto_version '1', publication_names '{names}')"
            )
            self._connection.send_query(start.encode())
            results = self._client.wait(psycopg.generators.execute(self._connection))
            result = results[0] if results else None
        except psycopg.Error as error:
            raise translate_error(error, config) or error from error
        if result is None or result.status != psycopg.pq.ExecStatus.COPY_BOTH:
            self.close()
            raise _start_error(result, config, slot)
        self._connection.nonblocking = 1

    async def messages(self, seconds: float) -> list[bytes]:
        """Returns the messages that have arrived, and waits `seconds` for the first one.

        A message of the output plugin begins at `START`. Raises Transient if the connection ends
        or the server does not respond.
        """
        found: list[bytes] = self._call(self._received)
        if found:
            await asyncio.sleep(0)  # a cancellation also ends a stream without a pause
        else:
            await self._wait(seconds)
            found = self._call(self._received)
        return found

    def confirm(self, position: int, *, reply: bool = False) -> None:
        """Confirms that all changes before a position are durable. `reply` requests a response.

        It is also requested of a server that has sent nothing for a while: it may be quiet.
        """
        reply = reply or self._silence > self._config.timeout / _RESPONSES
        now = int((time.time() - _EPOCH_SECONDS) * 1_000_000)
        status = _STATUS.pack(b"r", position, position, position, now, reply)
        self._call(self._connection.put_copy_data, status)
        self._call(self._connection.flush)

    def close(self) -> None:
        """Closes the connection."""
        with suppress(Exception):
            self._client.close()

    def _received(self) -> list[bytes]:
        connection, found, size = self._connection, list[bytes](), 0
        connection.consume_input()
        while len(found) < _MAX_MESSAGES and size < _MAX_BYTES:
            length, content = connection.get_copy_data(1)
            if length == 0:  # more may have arrived meanwhile
                connection.consume_input()
                length, content = connection.get_copy_data(1)
            if length < 0:
                raise self._ended()
            if length == 0:
                break
            data = bytes(content)
            if data[0] == _OF_PLUGIN:
                found.append(data)
                size += length
            else:
                self._keep_alive(data)
        if found:
            self._last_response = time.monotonic()
        return found

    def _keep_alive(self, data: bytes) -> None:
        """Takes the position of a keepalive, which follows all transactions before it."""
        _, position, _, reply = _KEEPALIVE.unpack_from(data)
        self._last_response = time.monotonic()
        self._reply_requested = self._reply_requested or bool(reply)
        self.position = max(self.position, position)

    def reply_requested(self) -> bool:
        """Returns whether the server has requested a confirmation since the last call."""
        requested, self._reply_requested = self._reply_requested, False
        return requested

    @property
    def _silence(self) -> float:
        return time.monotonic() - self._last_response

    async def _wait(self, seconds: float) -> None:
        if self._silence > self._config.timeout:
            raise Transient(
                f"the database {self._config.address} does not respond", code="unreachable",
                hint="Check that the server is running.",
            )  # fmt: skip
        loop, readable = asyncio.get_running_loop(), asyncio.Event()
        descriptor = self._call(lambda: self._connection.socket)
        loop.add_reader(descriptor, readable.set)
        try:
            # Unlike asyncio.wait_for of Python 3.11, this is cancelled also when data arrive.
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await readable.wait()
        finally:
            loop.remove_reader(descriptor)

    def _call(self, function: Any, *arguments: Any) -> Any:
        import psycopg

        try:
            return function(*arguments)
        except psycopg.Error as error:
            raise translate_error(error, self._config) or error from error

    def _ended(self) -> Transient:
        result = self._connection.get_result()
        reason = _message(result) or "the server has closed the stream"
        return Transient(
            f"the stream of {self._config.address} has ended: {reason}", code="unreachable"
        )


def _message(result: Any) -> str:
    text = b"" if result is None else result.error_message or b""
    return " ".join(text.decode(errors="replace").removeprefix("ERROR:").split())


def _start_error(result: Any, config: ConnectionConfig, slot: str) -> Transient | Permanent:
    reason = _message(result)
    if "is active" in reason:
        return Transient(
            f'another connection to {config.address} reads the slot "{slot}": {reason}',
            code="busy", hint="Stop the other reader, or set slot to another name.",
        )  # fmt: skip
    return Permanent(
        f'cannot read the slot "{slot}" of {config.address}: {reason}', code="rejected",
        hint="Check wal_level and the slot in pg_replication_slots.",
    )  # fmt: skip
