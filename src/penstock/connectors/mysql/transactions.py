"""Open transactions of a server.

Source: https://dev.mysql.com/doc/refman/8.4/en/innodb-information-schema-transactions.html
"""

from __future__ import annotations

import time
import uuid
from typing import Any

from penstock.connectors.mysql.connection import MysqlConnection, error_number
from penstock.core.errors import Permanent, Transient

_NO_PRIVILEGE = 1227
_STALE_SECONDS = 0.11
"""The age at which the server reads `INNODB_TRX` again, and a little more."""
_MAX_STALE_SECONDS = 10.0
_TRANSACTIONS = """
SELECT trx_mysql_thread_id, trx_id, trx_started, trx_rows_modified, trx_query,
       trx_mysql_thread_id = CONNECTION_ID()
FROM information_schema.INNODB_TRX WHERE trx_is_read_only = 0 AND \0 <> ''
"""


def open_transactions(connection: MysqlConnection, *, only_writers: bool) -> frozenset[Any]:
    """Returns the open transactions of others, all or those that may have written.

    Returns none without the privilege PROCESS.
    """
    try:
        rows = _transactions(connection)
    except Permanent as error:
        if error_number(error) != _NO_PRIVILEGE:
            raise
        return frozenset()
    return frozenset(
        (thread, str(started)) if thread else ("", str(id_))
        for thread, id_, started, changes, statement, is_own in rows
        if not is_own and (not only_writers or changes or not _is_idle(statement))
    )


def _transactions(connection: MysqlConnection) -> list[tuple[Any, ...]]:
    """Returns the rows of `INNODB_TRX`, which the server reads only at intervals.

    They are current if the row of this connection has this statement.
    """
    connection.rollback()
    connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    connection.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
    end = time.monotonic() + min(connection.config.timeout, _MAX_STALE_SECONDS)
    while time.monotonic() < end:
        mark = uuid.uuid4().hex
        rows = connection.query(_TRANSACTIONS, (mark,))
        if any(is_own and mark in (statement or "") for *_, statement, is_own in rows):
            return rows
        time.sleep(_STALE_SECONDS)
    raise Transient(
        f"the database {connection.config.address} returned no current transactions in INNODB_TRX",
        code="busy",
        hint="End other programs that query information_schema.INNODB_TRX all the time.",
    )


def _is_idle(statement: str | None) -> bool:
    """Returns whether a transaction without changes executes no statement that writes."""
    return statement is None or statement.lstrip().upper().startswith("SELECT")
