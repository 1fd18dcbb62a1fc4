"""The stream of the binary log, which a thread reads.

The client library blocks, so a thread reads events ahead, as many bytes as fit. The library would
also connect again by itself, in the middle of a transaction and without the tables that it knows: a
lost connection is an error here, and the receiver starts again from a position between
transactions.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from collections import deque
from contextlib import suppress
from typing import Any

from penstock.connectors.mysql.changes.events import EventParser, Message
from penstock.connectors.mysql.config import ConnectionConfig
from penstock.connectors.mysql.errors import translate_error
from penstock.connectors.mysql.session import connect_options
from penstock.core.errors import PenstockError, Permanent, Transient
from penstock.sdk.database.changes import LostChanges

_MAX_BYTES = 8 << 20
_OVERHEAD = 500
"""The bytes of a message in memory, about."""
_HEARTBEAT_SECONDS = 0.5
_CONNECTIONS = 2
"""Of the stream, and of the library's queries of settings."""
_SESSION = "SET SESSION net_write_timeout = 604800, wait_timeout = 604800"
"""The server waits for a receiver whose journal is full."""
_READING_LOG = 1236
_GONE = ("could not find first log file", "client requested master to start replication from",
         "impossible position", "purged", "not in the master's binlog", "more gtids than",
         "gtid_mode")  # fmt: skip


class BinlogStream:
    """The messages of the log after an offset of the file of a parser, in the order of the log.

    Without an offset the log is read after the GTIDs of the parser.
    """

    def __init__(
        self, config: ConnectionConfig, server_id: int, parser: EventParser, offset: int | None,
        *, is_mariadb: bool,
    ) -> None:  # fmt: skip
        """Starts to read."""
        self._config, self._server_id, self._is_mariadb = config, server_id, is_mariadb
        self._parser, self._offset = parser, offset
        self._gtids = str(parser.gtids) if offset is None else None
        self._changed = threading.Condition()
        self._parts: deque[list[Message]] = deque()
        self._size = 0
        self._error: BaseException | None = None
        self._is_closed = False
        self._connections: list[Any] = []
        logging.getLogger("pymysqlreplication").setLevel(logging.CRITICAL)
        self._thread = threading.Thread(target=self._read, name="binlog", daemon=True)
        self._thread.start()

    async def messages(self, seconds: float) -> list[Message]:
        """Returns the messages that have arrived, and waits `seconds` for the first one.

        Raises Transient or Permanent if the stream has ended.
        """
        with self._changed:
            found = self._take()
        return found or await asyncio.to_thread(self._wait, seconds)

    def close(self) -> None:
        """Ends the thread, also if it waits for the server."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        for connection in self._connections:
            with suppress(Exception):
                connection._sock.shutdown(socket.SHUT_RDWR)
        self._thread.join(self._config.connect_seconds)

    def _wait(self, seconds: float) -> list[Message]:
        with self._changed:
            self._changed.wait_for(self._has_news, seconds)
            return self._take()

    def _has_news(self) -> bool:
        return bool(self._parts) or self._error is not None or self._is_closed

    def _take(self) -> list[Message]:
        found = [message for part in self._parts for message in part]
        self._parts.clear()
        self._size = 0
        self._changed.notify_all()
        if not found and self._error is not None:
            raise self._error
        return found

    def _read(self) -> None:
        try:
            self._read_events()
        except BaseException as error:
            with self._changed:
                self._error = self._translated(error)
                self._changed.notify_all()

    def _read_events(self) -> None:
        from pymysqlreplication import BinLogStreamReader

        schemas, tables = (sorted(set(names)) for names in zip(*self._parser.tables, strict=True))
        options = connect_options(self._config)
        # Heartbeats come while the log is quiet.
        options["read_timeout"] = self._config.timeout
        reader = BinLogStreamReader(
            options, server_id=self._server_id, blocking=True, resume_stream=True,
            log_file=self._parser.file.name, log_pos=self._offset, only_schemas=schemas,
            only_tables=tables, filter_non_implemented_events=False, enable_logging=False,
            slave_heartbeat=_HEARTBEAT_SECONDS, pymysql_wrapper=self._connect,
            auto_position=self._gtids,
            is_mariadb=self._is_mariadb and self._gtids is not None,
        )  # fmt: skip
        try:
            while not self._is_closed:
                event = reader.fetchone()
                if event is None:
                    raise self._lost("the server has ended the stream")
                messages = list(self._parser.parse(event, reader.log_pos))
                if messages:
                    self._put(event.packet.event_size, messages)
        finally:
            reader.close()

    def _put(self, size: int, messages: list[Message]) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or self._size < _MAX_BYTES)
            self._size += size + _OVERHEAD * len(messages)
            self._parts.append(messages)
            self._changed.notify_all()

    def _connect(self, **options: Any) -> Any:
        import pymysql

        if len(self._connections) == _CONNECTIONS or self._is_closed:
            raise self._lost("the connection has ended")
        options.pop("db", None)
        options["init_command"] = _SESSION
        connection = pymysql.connect(**options)
        self._connections.append(connection)
        return connection

    def _lost(self, reason: str) -> Transient:
        return Transient(
            f"the stream of {self._config.address} has ended: {reason}", code="unreachable",
            hint="Check that the server is running, and that no other replica has the server_id "
            f"{self._server_id}.",
        )  # fmt: skip

    def _translated(self, error: BaseException) -> BaseException:
        import pymysql

        if isinstance(error, PenstockError):
            return error
        if isinstance(error, pymysql.MySQLError):
            number = error.args[0] if error.args else 0
            if number == _READING_LOG:
                return self._log_error(" ".join(str(error.args[1]).split()))
            return translate_error(error, self._config) or error
        if isinstance(error, Exception):
            return Permanent(
                f"cannot read the binary log of {self._config.address} after "
                f"{self._parser.file.name}: {type(error).__name__}: {error}",
                code="binary-log",
                hint="Remove the state of the pipeline to read the table again from a snapshot.",
            )
        return error

    def _log_error(self, reason: str) -> PenstockError:
        if any(text in reason.lower() for text in _GONE):
            place = f"the changes after the GTIDs {self._gtids}"
            if self._offset is not None:
                place = f"{self._parser.file.text(self._offset)} any more"
            return LostChanges(
                f"the binary log of {self._config.address} does not have {place}: changes since "
                f"the last run are lost ({reason})",
                hint="Keep the log for longer: SET GLOBAL binlog_expire_logs_seconds = 604800.",
            )
        return self._lost(reason)
