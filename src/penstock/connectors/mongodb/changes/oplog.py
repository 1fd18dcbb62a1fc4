"""The oplog of a replica set, which removes its oldest entries."""

from __future__ import annotations

from typing import Any

from penstock.connectors.mongodb.changes.events import position_of, seconds_between
from penstock.connectors.mongodb.changes.snapshot import operation_time
from penstock.connectors.mongodb.config import ConnectionConfig
from penstock.sdk.retained_log import RetainedLog


def oplog_after(client: Any, config: ConnectionConfig, position: int) -> RetainedLog:
    """Returns the oplog after a position. Raises Transient or Permanent.

    Its share is known if the user may read the database `local`.
    """
    newest = operation_time(client, config)
    return retained(_oldest(client), position, newest)


def retained(oldest: int | None, position: int, newest: int) -> RetainedLog:
    """Returns the log between positions."""
    seconds = max(0, seconds_between(position, newest))
    if oldest is None:
        return RetainedLog(seconds=seconds)
    return RetainedLog(seconds=seconds, share=seconds / max(1, seconds_between(oldest, newest)))


def _oldest(client: Any) -> int | None:
    """Returns the position of the oldest entry; None if it cannot be read."""
    from pymongo.errors import PyMongoError

    try:
        found = client["local"]["oplog.rs"].find_one({}, {"ts": 1}, sort=[("$natural", 1)])
    except PyMongoError:
        return None
    return None if found is None else position_of(found["ts"])
