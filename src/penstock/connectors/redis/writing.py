"""Rows as commands, which are sent together."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa

from penstock.connectors.redis.connection import ConnectionConfig
from penstock.connectors.redis.faults import faults, refusal
from penstock.sdk import Failure, Receipt, Rejected, Writer
from penstock.sdk.kit.template import Template

Words = tuple[Any, ...]


@dataclass(frozen=True)
class Command(ABC):
    """What is done with a row. `key` is what it is done to."""

    key: Template

    @abstractmethod
    def of(self, rows: pa.RecordBatch, payloads: Sequence[bytes]) -> Iterator[Words | None]:
        """The command of each row; None where one of its names is null."""

    def after(self, done: Sequence[Words]) -> Iterator[Words]:
        """What follows when these have been done."""
        return iter(())


@dataclass(frozen=True)
class Entry(Command):
    """An entry of a stream."""

    field: Template
    more: Mapping[str, Template]
    max_length: int | None
    approximate: bool

    def of(self, rows: pa.RecordBatch, payloads: Sequence[bytes]) -> Iterator[Words | None]:
        limit: Words = ()
        if self.max_length is not None:
            limit = ("MAXLEN", "~" if self.approximate else "=", self.max_length)
        more = {name: text.fill(rows) for name, text in self.more.items()}
        named = zip(self.key.fill(rows), self.field.fill(rows), payloads, strict=True)
        for at, (key, field, payload) in enumerate(named):
            if key is None or field is None:
                yield None
                continue
            pairs = [each for name, texts in more.items() if (text := texts[at]) is not None
                     for each in (name, text)]  # fmt: skip
            yield ("XADD", key, *limit, "*", field, payload, *pairs)


@dataclass(frozen=True)
class ListItem(Command):
    """A message of a list."""

    side: Literal["left", "right"]
    max_length: int | None

    def of(self, rows: pa.RecordBatch, payloads: Sequence[bytes]) -> Iterator[Words | None]:
        push = "LPUSH" if self.side == "left" else "RPUSH"
        for key, payload in zip(self.key.fill(rows), payloads, strict=True):
            yield None if key is None else (push, key, payload)

    def after(self, done: Sequence[Words]) -> Iterator[Words]:
        if self.max_length is None:
            return
        kept = (0, self.max_length - 1) if self.side == "left" else (-self.max_length, -1)
        for key in dict.fromkeys(words[1] for words in done):
            yield ("LTRIM", key, *kept)


@dataclass(frozen=True)
class HashField(Command):
    """A field of a hash."""

    field: Template

    def of(self, rows: pa.RecordBatch, payloads: Sequence[bytes]) -> Iterator[Words | None]:
        named = zip(self.key.fill(rows), self.field.fill(rows), payloads, strict=True)
        for key, field, payload in named:
            yield None if key is None or field is None else ("HSET", key, field, payload)


@dataclass(frozen=True)
class Value(Command):
    """The value of a key."""

    ttl: float | None

    def of(self, rows: pa.RecordBatch, payloads: Sequence[bytes]) -> Iterator[Words | None]:
        life: Words = () if self.ttl is None else ("PX", round(self.ttl * 1000))
        for key, payload in zip(self.key.fill(rows), payloads, strict=True):
            yield None if key is None else ("SET", key, payload, *life)


@dataclass(frozen=True)
class Publication(Command):
    """A message to whoever listens."""

    def of(self, rows: pa.RecordBatch, payloads: Sequence[bytes]) -> Iterator[Words | None]:
        for key, payload in zip(self.key.fill(rows), payloads, strict=True):
            yield None if key is None else ("PUBLISH", key, payload)


class RedisWriter(Writer):
    """Sends the rows that it is given, and awaits the answers, before it takes more."""

    def __init__(self, client: Any, config: ConnectionConfig, command: Command) -> None:
        self._client, self._config, self._command = client, config, command
        self._count = 0

    def write(self, rows: pa.RecordBatch, payloads: Any = None) -> Sequence[Failure]:
        failures: list[Failure] = []
        commands: dict[int, Words] = {}
        for at, words in enumerate(self._command.of(rows, payloads.to_pylist())):
            if words is None:
                failures.append(Failure(at, Rejected("the name of its key is null", code="key")))
            else:
                commands[at] = words
        answers = self._answers([*commands.values()])
        done = []
        for (at, words), answer in zip(commands.items(), answers, strict=True):
            if isinstance(answer, Exception):
                failures.append(Failure(at, refusal(answer, self._config)))
            else:
                done.append(words)
        self._answers([*self._command.after(done)])
        self._count += len(done)
        return sorted(failures, key=lambda failure: failure.index)

    def commit(self) -> Receipt:
        return {"commands": self._count}

    def _answers(self, commands: Sequence[Words]) -> list[Any]:
        """The answer to each command, or the error. Raises Transient or Permanent."""
        if not commands:
            return []
        with faults(self._config):
            pipeline = self._client.pipeline(transaction=False)
            for words in commands:
                pipeline.execute_command(*words)
            return list(pipeline.execute(raise_on_error=False))
