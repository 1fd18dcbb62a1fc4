"""Rules, channels, alerts and messages of the store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Table, delete, insert, select, update

from penstock.core.errors import UserError
from penstock.runtime.state.directory import now
from penstock.server.store.database import Database
from penstock.server.store.encryption import Encryption
from penstock.server.store.tables import ALERTS, CHANNELS, MESSAGES, RULES

ATTEMPTS = 8
"""The attempts to send a message, after 5 s, 10 s, ... 5 min."""
HISTORY = timedelta(days=90)
"""The time that resolved alerts remain."""


_OF_ALERT = tuple(column.name for column in ALERTS.columns)


@dataclass(frozen=True)
class Rule:
    """A rule. `pipelines` are IDs; None is all of them. `channels` are names."""

    name: str
    kind: str
    pipelines: tuple[str, ...] | None
    threshold: float
    minutes: float
    channels: tuple[str, ...]
    enabled: bool
    silenced_until: str | None
    author: str
    time: str

    @property
    def silent(self) -> bool:
        """Whether no messages are sent now."""
        return self.silenced_until is not None and self.silenced_until > now()


@dataclass(frozen=True)
class Channel:
    """A recipient of messages. `secret` signs those of a webhook, or logs in to a mail server."""

    name: str
    kind: str
    options: Mapping[str, Any]
    secret: str | None
    author: str
    time: str


@dataclass(frozen=True)
class Message:
    """A message that is due, with its alert."""

    number: int
    channel: str
    event: str
    attempts: int
    alert: Mapping[str, Any]


class Alerts:
    """The rules, channels, alerts and messages of a store."""

    def __init__(self, database: Database, encryption: Encryption) -> None:
        self._database, self._encryption = database, encryption

    def rules(self) -> list[Rule]:
        """Returns all rules, by name."""
        rows = self._database.rows(select(RULES).order_by(RULES.c.name))
        return [_rule(row) for row in rows]

    def set_rule(self, rule: Rule) -> None:
        """Adds or replaces a rule. Raises UserError for an unknown channel."""
        known = {channel.name for channel in self.channels()}
        for name in rule.channels:
            if name not in known:
                raise UserError(f'there is no channel "{name}"', code="no-channel")
        row = {**rule.__dict__, "channels": list(rule.channels)}
        row["pipelines"] = None if rule.pipelines is None else list(rule.pipelines)
        self._set(RULES, row)

    def remove_rule(self, name: str) -> None:
        """Removes a rule. Its alerts remain in the history. Raises UserError for an unknown one."""
        self._remove(RULES, name, "rule")

    def channels(self) -> list[Channel]:
        """Returns all channels, by name."""
        rows = self._database.rows(select(CHANNELS).order_by(CHANNELS.c.name))
        return [self._channel(row) for row in rows]

    def channel(self, name: str) -> Channel | None:
        """Returns a channel; None for an unknown name."""
        row = self._database.first(select(CHANNELS).where(CHANNELS.c.name == name))
        return None if row is None else self._channel(row)

    def set_channel(self, channel: Channel) -> None:
        """Adds or replaces a channel."""
        secret = None if channel.secret is None else self._encryption.encrypt(channel.secret)
        self._set(CHANNELS, {**channel.__dict__, "secret": secret})

    def remove_channel(self, name: str) -> None:
        """Removes a channel. Raises UserError for an unknown one, and for one of a rule."""
        for rule in self.rules():
            if name in rule.channels:
                raise UserError(
                    f'the rule "{rule.name}" has the channel', code="channel-in-use",
                    hint="Remove the channel from the rule first.",
                )  # fmt: skip
        self._remove(CHANNELS, name, "channel")

    def open_alerts(self) -> list[dict[str, Any]]:
        """Returns the alerts that are not resolved."""
        return self._database.rows(select(ALERTS).where(ALERTS.c.resolved.is_(None)))

    def history(
        self, *, limit: int = 100, before: int | None = None, pipeline: str | None = None
    ) -> list[dict[str, Any]]:
        """Returns alerts with their messages, last first, before that of a number."""
        query = select(ALERTS).order_by(ALERTS.c.number.desc()).limit(limit)
        if before is not None:
            query = query.where(ALERTS.c.number < before)
        if pipeline is not None:
            query = query.where(ALERTS.c.pipeline == pipeline)
        alerts = self._database.rows(query)
        numbers = [alert["number"] for alert in alerts]
        sent = self._database.rows(select(MESSAGES).where(MESSAGES.c.alert.in_(numbers)))
        return [
            {**alert, "messages": [each for each in sent if each["alert"] == alert["number"]]}
            for alert in alerts
        ]

    def open(self, rule: Rule, pipeline: str, name: str, message: str) -> None:
        """Opens an alert, and adds its messages in the same transaction."""
        values = {
            "rule": rule.name, "pipeline": pipeline, "name": name, "message": message,
            "opened": now(),
        }  # fmt: skip
        with self._database.transaction() as connection:
            added = insert(ALERTS).values(values).returning(ALERTS.c.number)
            number = connection.execute(added).scalar_one()
            _add_messages(connection, number, () if rule.silent else rule.channels, "opened")

    def resolve(self, number: int, channels: Sequence[str]) -> None:
        """Resolves an alert, and adds its messages in the same transaction."""
        with self._database.transaction() as connection:
            mine = ALERTS.c.number == number
            connection.execute(update(ALERTS).where(mine).values(resolved=now()))
            _add_messages(connection, number, channels, "resolved")
            old = ALERTS.c.resolved < _after(-HISTORY.total_seconds())
            connection.execute(delete(ALERTS).where(old))

    def due(self) -> list[Message]:
        """Returns the messages that are to be sent now, oldest first."""
        query = (
            select(MESSAGES, *(ALERTS.c[name].label(f"of_{name}") for name in _OF_ALERT))
            .join(ALERTS, ALERTS.c.number == MESSAGES.c.alert)
            .where(MESSAGES.c.due <= now())
            .order_by(MESSAGES.c.number)
            .limit(100)
        )
        return [
            Message(
                row["number"], row["channel"], row["event"], row["attempts"],
                {name: row[f"of_{name}"] for name in _OF_ALERT},
            )
            for row in self._database.rows(query)
        ]  # fmt: skip

    def sent(self, message: Message) -> None:
        """Records that a message was sent."""
        values = {"due": None, "sent": now(), "error": None, "attempts": message.attempts + 1}
        self._update(message, values)

    def not_sent(self, message: Message, error: str, *, final: bool) -> None:
        """Records a failed attempt, and the time of the next one."""
        attempts = message.attempts + 1
        delay = min(5.0 * 2**message.attempts, 300.0)
        due = None if final or attempts >= ATTEMPTS else _after(delay)
        self._update(message, {"due": due, "error": error[:500], "attempts": attempts})

    def _update(self, message: Message, values: Mapping[str, Any]) -> None:
        mine = MESSAGES.c.number == message.number
        self._database.execute(update(MESSAGES).where(mine).values(**values))

    def _set(self, table: Table, row: Mapping[str, Any]) -> None:
        with self._database.transaction() as connection:
            mine = table.c.name == row["name"]
            if not connection.execute(update(table).where(mine).values(row)).rowcount:
                connection.execute(insert(table).values(row))

    def _remove(self, table: Table, name: str, noun: str) -> None:
        if not self._database.execute(delete(table).where(table.c.name == name)):
            raise UserError(f'there is no {noun} "{name}"', code=f"no-{noun}")

    def _channel(self, row: Mapping[str, Any]) -> Channel:
        secret = None if row["secret"] is None else self._encryption.decrypt(row["secret"])
        return Channel(**{**row, "secret": secret})


def _rule(row: Mapping[str, Any]) -> Rule:
    pipelines = None if row["pipelines"] is None else tuple(row["pipelines"])
    return Rule(**{**row, "pipelines": pipelines, "channels": tuple(row["channels"])})


def _add_messages(connection: Any, alert: int, channels: Sequence[str], event: str) -> None:
    for channel in channels:
        values = {"alert": alert, "channel": channel, "event": event, "attempts": 0, "due": now()}
        connection.execute(insert(MESSAGES).values(values))


def _after(seconds: float) -> str:
    moment = datetime.now(UTC) + timedelta(seconds=seconds)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
