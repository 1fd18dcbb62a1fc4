"""A change stream of a collection, by the commands of the server.

The cursor of the client library hides the position after an empty batch until the next change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from penstock.connectors.mongodb.changes.setup import no_change_streams
from penstock.connectors.mongodb.client import raw_codec_options
from penstock.connectors.mongodb.config import ConnectionConfig
from penstock.connectors.mongodb.errors import translate_errors
from penstock.core.errors import Permanent
from penstock.sdk.database.changes import LostChanges

_LOST = frozenset({136, 280, 286})
"""CappedPositionLost, ChangeStreamFatalError and ChangeStreamHistoryLost."""
_TOO_LARGE = 10334
_CLOSE_SECONDS = 1.0
_UNSUPPORTED = frozenset({59, 238, 40324, 40573})


@dataclass(frozen=True)
class Batch:
    """Events of a stream, and the resume token after them."""

    events: Sequence[Any]
    token: str


class ChangeStream:
    """The stream of a collection after a token, by default from now on.

    With `has_images` the server stores documents before and after changes.
    """

    def __init__(
        self, client: Any, config: ConnectionConfig, after: str | None, *, has_images: bool
    ) -> None:
        self._config, self._after = config, after
        self._database = client[config.database]
        options: dict[str, Any] = {"fullDocument": "updateLookup"}
        if has_images:
            options = dict.fromkeys(("fullDocument", "fullDocumentBeforeChange"), "whenAvailable")
        if after is not None:
            options["resumeAfter"] = {"_data": after}
        pipeline = [{"$changeStream": options}]
        command = {"aggregate": config.collection, "pipeline": pipeline, "cursor": {}}
        self._first: Batch | None = self._execute(command, "firstBatch")

    @property
    def token(self) -> str:
        """The position of a stream of which no batch was taken."""
        assert self._first is not None
        return self._first.token

    def next(self, seconds: float) -> Batch:
        """Returns the events that have arrived, and waits `seconds` for the first one.

        Raises LostChanges, Transient or Permanent.
        """
        first, self._first = self._first, None
        if first is not None and first.events:
            return first
        if self._cursor == 0:
            raise Permanent(
                f'the change stream of "{self._config.collection}" has ended', code="not-found",
                hint="Check that the collection exists.",
            )  # fmt: skip
        more = {"getMore": self._cursor, "collection": self._config.collection}
        return self._execute({**more, "maxTimeMS": max(1, round(seconds * 1000))}, "nextBatch")

    def close(self) -> None:
        """Ends the stream in the server, if it responds."""
        import pymongo
        from bson import Int64

        cursors = [Int64(self._cursor)]
        with suppress(Exception), pymongo.timeout(_CLOSE_SECONDS):
            self._database.command({"killCursors": self._config.collection, "cursors": cursors})

    def _execute(self, command: Mapping[str, Any], name: str) -> Batch:
        with self._translated():
            answer = self._database.command(command, codec_options=raw_codec_options())
        cursor = answer["cursor"]
        self._cursor = cursor["id"]
        token = cursor.get("postBatchResumeToken")
        if token is None:
            raise no_change_streams(self._config, "it returns no resume tokens")
        return Batch(cursor[name], token["_data"])

    @contextmanager
    def _translated(self) -> Iterator[None]:
        from pymongo.errors import OperationFailure

        config = self._config
        with translate_errors(config):
            try:
                yield
            except OperationFailure as error:
                if error.code in _LOST:
                    raise LostChanges(
                        f"the oplog of {config.address} does not have the changes of "
                        f'"{config.collection}" after {self._after or "the last one"} any more: '
                        f"changes are lost ({_reason(error)})",
                        hint="Keep the oplog for longer: db.adminCommand({replSetResizeOplog: 1, "
                        "minRetentionHours: 168}).",
                    ) from None
                if error.code in _UNSUPPORTED:
                    raise no_change_streams(config, _reason(error)) from None
                if error.code == _TOO_LARGE:
                    raise Permanent(
                        f'a change of "{config.collection}" after {self._after} is larger than 16 '
                        f"MB with its documents: {_reason(error)}",
                        code="too-large",
                        hint="Turn off changeStreamPreAndPostImages of the collection, or remove "
                        "the state of the pipeline to read the collection again.",
                    ) from None
                raise


def _reason(error: Any) -> str:
    return " ".join(str((error.details or {}).get("errmsg", error)).split())
