"""Rows as commands, which are sent in pipelines."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa

from penstock.connectors.redis.config import ConnectionConfig
from penstock.connectors.redis.errors import row_error, translate_errors
from penstock.sdk import Failure, Receipt, Rejected, Writer
from penstock.sdk.columns.template import Template

Arguments = tuple[Any, ...]
"""A command's name and arguments."""


@dataclass(frozen=True)
class Command(ABC):
    """A command for each row. `key` is the template of the key or channel."""

    key: Template

    @abstractmethod
    def arguments(
        self, rows: pa.RecordBatch, payloads: Sequence[bytes | None]
    ) -> Iterator[Arguments | None]:
        """Yields the arguments for each row; None where a template is null.

        The payload of a deleted row is null. Only keys and hash fields can be deleted.
        """

    def follow_up(self, executed: Sequence[Arguments]) -> Iterator[Arguments]:
        """Yields the commands to send after the executed ones."""
        return iter(())


@dataclass(frozen=True)
class AddEntry(Command):
    """Adds an entry to a stream (XADD)."""

    field: Template
    fields: Mapping[str, Template]
    max_length: int | None
    approximate: bool

    def arguments(
        self, rows: pa.RecordBatch, payloads: Sequence[bytes | None]
    ) -> Iterator[Arguments | None]:
        limit: Arguments = ()
        if self.max_length is not None:
            limit = ("MAXLEN", "~" if self.approximate else "=", self.max_length)
        columns = {name: template.render(rows) for name, template in self.fields.items()}
        entries = zip(self.key.render(rows), self.field.render(rows), payloads, strict=True)
        for index, (key, field, payload) in enumerate(entries):
            if key is None or field is None:
                yield None
                continue
            pairs = [part for name, values in columns.items()
                     if (value := values[index]) is not None for part in (name, value)]  # fmt: skip
            yield ("XADD", key, *limit, "*", field, payload, *pairs)


@dataclass(frozen=True)
class PushMessage(Command):
    """Pushes a message to a list (RPUSH, LPUSH)."""

    side: Literal["left", "right"]
    max_length: int | None

    def arguments(
        self, rows: pa.RecordBatch, payloads: Sequence[bytes | None]
    ) -> Iterator[Arguments | None]:
        push = "LPUSH" if self.side == "left" else "RPUSH"
        for key, payload in zip(self.key.render(rows), payloads, strict=True):
            yield None if key is None else (push, key, payload)

    def follow_up(self, executed: Sequence[Arguments]) -> Iterator[Arguments]:
        if self.max_length is None:
            return
        bounds = (0, self.max_length - 1) if self.side == "left" else (-self.max_length, -1)
        for key in dict.fromkeys(arguments[1] for arguments in executed):
            yield ("LTRIM", key, *bounds)


@dataclass(frozen=True)
class SetHashField(Command):
    """Sets a field of a hash (HSET), or deletes it (HDEL)."""

    field: Template

    def arguments(
        self, rows: pa.RecordBatch, payloads: Sequence[bytes | None]
    ) -> Iterator[Arguments | None]:
        fields = zip(self.key.render(rows), self.field.render(rows), payloads, strict=True)
        for key, field, payload in fields:
            if key is None or field is None:
                yield None
            elif payload is None:
                yield "HDEL", key, field
            else:
                yield "HSET", key, field, payload


@dataclass(frozen=True)
class SetKey(Command):
    """Sets a key (SET), or deletes it (DEL)."""

    ttl: float | None

    def arguments(
        self, rows: pa.RecordBatch, payloads: Sequence[bytes | None]
    ) -> Iterator[Arguments | None]:
        expiry: Arguments = () if self.ttl is None else ("PX", round(self.ttl * 1000))
        for key, payload in zip(self.key.render(rows), payloads, strict=True):
            if key is None:
                yield None
            else:
                yield ("DEL", key) if payload is None else ("SET", key, payload, *expiry)


@dataclass(frozen=True)
class Publish(Command):
    """Publishes a message to a channel (PUBLISH)."""

    def arguments(
        self, rows: pa.RecordBatch, payloads: Sequence[bytes | None]
    ) -> Iterator[Arguments | None]:
        for key, payload in zip(self.key.render(rows), payloads, strict=True):
            yield None if key is None else ("PUBLISH", key, payload)


class RedisWriter(Writer):
    """Sends the rows of a call as one pipeline and awaits all responses."""

    def __init__(self, client: Any, config: ConnectionConfig, command: Command) -> None:
        self._client, self._config, self._command = client, config, command
        self._count = 0

    def write(
        self, rows: pa.RecordBatch, payloads: Any = None, operations: pa.StringArray | None = None
    ) -> Sequence[Failure]:
        failures: list[Failure] = []
        commands: dict[int, Arguments] = {}
        for index, arguments in enumerate(self._command.arguments(rows, payloads.to_pylist())):
            if arguments is None:
                error = Rejected(
                    "the name of the key, channel or field is null", code="invalid-key"
                )
                failures.append(Failure(index, error))
            else:
                commands[index] = arguments
        responses = self._execute([*commands.values()])
        executed = []
        for (index, arguments), response in zip(commands.items(), responses, strict=True):
            if isinstance(response, Exception):
                own_key = self._command.key.constant is None
                error = row_error(response, self._config, has_own_key=own_key)
                failures.append(Failure(index, error))
            else:
                executed.append(arguments)
        self._execute([*self._command.follow_up(executed)])
        self._count += len(executed)
        return sorted(failures, key=lambda failure: failure.index)

    def commit(self) -> Receipt:
        return {"commands": self._count}

    def _execute(self, commands: Sequence[Arguments]) -> list[Any]:
        """Returns the response or error of each command. Raises Transient or Permanent."""
        if not commands:
            return []
        with translate_errors(self._config):
            pipeline = self._client.pipeline(transaction=False)
            for arguments in commands:
                pipeline.execute_command(*arguments)
            return list(pipeline.execute(raise_on_error=False))
