"""Event times of tables that declare none: the time of a message, or of its arrival."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property

from penstock.spec.script.dialect import Dialect
from penstock.spec.script.options import Option
from penstock.spec.script.statements import CreateTable, Statement
from penstock.spec.script.tokens import Text
from penstock.spec.tree.nodes import ScalarNode

_METADATA = {
    "generate": "time",
    "http": "received",
    "http_poll": "received",
    "impulse": "time",
    "kafka": "timestamp",
    "kinesis": "arrival_time",
    "modbus": "received",
    "mqtt": "received",
    "nats": "received",
    "nexmark": "time",
    "pulsar": "publish_time",
    "redis": "received",
    "sqs": "sent",
    "sse": "received",
    "tcp": "received",
    "udp": "received",
    "websocket": "received",
    "zeromq": "received",
}
"""The metadata by the type of the source. A message of RabbitMQ may lack its time."""
_OF_STREAMS = {("nats", "bucket"), ("nats", "stream"), ("redis", "stream")}
"""Types with an option that selects messages with a time, the metadata `timestamp`."""
_HIDDEN_TIME = re.compile(r"\b(?:tumble|hop|session|row_time)\s*\(", re.IGNORECASE)


class AssumedTimes:
    """The event times of tables that declare none, if the statements of a script need one."""

    def __init__(self, statements: Sequence[Statement], dialect: Dialect) -> None:
        self._statements, self._dialect = statements, dialect

    def metadata(self, table: CreateTable) -> str | None:
        """Returns the metadata that is the event time of a source, or None."""
        options = table.options or []
        declared = table.columns.watermark or self._dialect.watermark(options)
        if declared is not None or is_lookup(table) or not self._are_used:
            return None
        return _event_time_of(options, self._dialect)

    @cached_property
    def _are_used(self) -> bool:
        """Whether a query, or a sink, uses an event time that it does not name."""
        options = (
            statement.options or []
            for statement in self._statements
            if isinstance(statement, CreateTable)
        )
        return any(map(_HIDDEN_TIME.search, self._queries)) or any(
            map(self._dialect.writes_by_time, options)
        )

    @property
    def _queries(self) -> Iterator[str]:
        for statement in self._statements:
            query = getattr(statement, "query", None)
            if isinstance(query, Text):
                yield query.value


def is_lookup(table: CreateTable) -> bool:
    """Returns whether a table is read for joins, as its statement or an option states."""
    options = {option.name: option.value for option in table.options or []}
    kind = options.get("type")
    declared = isinstance(kind, ScalarNode) and kind.value == "lookup"
    return table.lookup or declared or any(name.startswith("lookup.") for name in options)


def _event_time_of(options: Sequence[Option], dialect: Dialect) -> str | None:
    """Returns the metadata with the time of a message, or of its arrival, or None."""
    named = {option.name: option.value for option in options}
    connector = named.get("connector")
    if not isinstance(connector, ScalarNode):
        return None
    name = str(connector.value)
    if (time := dialect.event_time(name)) is not None:
        return time
    type_ = dialect.connector_type(name, named)
    if any((type_, option) in _OF_STREAMS for option in named):
        return "timestamp"
    return _METADATA.get(type_)
