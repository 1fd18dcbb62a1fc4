"""Where a row goes, and what goes with its value: topic, partition, key, headers and time."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import pyarrow as pa

from penstock.core.errors import OptionError, Rejected
from penstock.sdk import Failure
from penstock.sdk.kit.named import need_column, need_text
from penstock.sdk.kit.template import Template, as_text
from penstock.sdk.kit.times import milliseconds

_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")


def is_topic(name: str) -> bool:
    """Whether a topic may have that name."""
    return bool(_TOPIC.fullmatch(name)) and name not in (".", "..")


Headers = list[tuple[str, bytes | None]] | None


@dataclass(frozen=True)
class Addressing:
    """How rows are addressed. `key` is a column, or several that make one text."""

    topic: Template
    key: tuple[str, ...] = ()
    headers: str | Mapping[str, Template] | None = None
    partition: str | None = None
    timestamp: str | None = None

    def mistakes(self, columns: pa.Schema) -> Iterator[OptionError]:
        """The options that these columns do not fit."""
        yield from self.topic.mistakes(columns, "topic")
        for index, name in enumerate(self.key):
            yield from need_text(name, columns, "key", index)
        if self.partition is not None:
            yield from need_column(
                self.partition, columns, "partition",
                right=pa.types.is_integer, expected="expected a whole number",
            )  # fmt: skip
        if self.timestamp is not None:
            yield from need_column(
                self.timestamp, columns, "timestamp",
                right=pa.types.is_timestamp, expected="expected a TIMESTAMP",
            )  # fmt: skip
        if isinstance(self.headers, str):
            yield from need_column(
                self.headers, columns, "headers", right=_holds_pairs,
                expected="expected MAP<STRING, STRING>, as map('source', 'shop') makes it, or "
                "ARRAY<STRUCT<key: STRING, value: BINARY>>, as a Kafka source has it",
            )  # fmt: skip
        elif self.headers is not None:
            for header, template in self.headers.items():
                yield from template.mistakes(columns, "headers", header)

    def of(self, rows: pa.RecordBatch) -> Addresses:
        """The addresses of all rows."""
        return Addresses(
            self.topic.constant or self.topic.fill(rows),
            self._keys(rows),
            self._headers(rows),
            rows.column(self.partition).to_pylist() if self.partition is not None else None,
            milliseconds(rows.column(self.timestamp)) if self.timestamp is not None else None,
        )

    def _keys(self, rows: pa.RecordBatch) -> Sequence[bytes | str | None] | None:
        if not self.key:
            return None
        if len(self.key) > 1:
            return Template(":".join(f"{{{name}}}" for name in self.key)).fill(rows)
        column = rows.column(self.key[0])
        binary = pa.types.is_binary(column.type) or pa.types.is_string(column.type)
        return list((column if binary else as_text(column)).to_pylist())

    def _headers(self, rows: pa.RecordBatch) -> Sequence[Headers] | None:
        if self.headers is None:
            return None
        if isinstance(self.headers, str):
            return [_pairs(each) for each in rows.column(self.headers).to_pylist()]
        filled = {name: template.fill(rows) for name, template in self.headers.items()}
        return [
            [
                (name, None if t is None else t.encode())
                for name, t in zip(filled, texts, strict=True)
            ]
            for texts in zip(*filled.values(), strict=True)
        ]


@dataclass(frozen=True)
class Addresses:
    """The addresses of a batch's rows; `topic` is one text where it is the same for all."""

    topic: str | Sequence[str | None]
    keys: Sequence[bytes | str | None] | None
    headers: Sequence[Headers] | None
    partitions: Sequence[int | None] | None
    times: Sequence[int | None] | None

    @property
    def plain(self) -> str | None:
        """The topic, if nothing but it and the key is special."""
        special = (self.headers, self.partitions, self.times) != (None, None, None)
        return self.topic if isinstance(self.topic, str) and not special else None

    def refused(self) -> list[Failure]:
        """The rows whose topic, partition or time cannot be."""
        found = []
        if not isinstance(self.topic, str):
            for index, topic in enumerate(self.topic):
                if topic is None or not is_topic(topic):
                    shown = "null" if topic is None else f'"{topic}"'
                    error = Rejected(f"{shown} is not the name of a topic", code="invalid-topic")
                    found.append(Failure(index, error))
        for index, number in enumerate(self.partitions or ()):
            if number is not None and not 0 <= number < 2**31:
                error = Rejected(f"{number} is not a partition", code="invalid-partition")
                found.append(Failure(index, error))
        for index, at in enumerate(self.times or ()):
            if at is not None and at <= 0:
                message = "a record's time must be after 1970-01-01T00:00:00Z"
                error = Rejected(message, code="invalid-timestamp")
                found.append(Failure(index, error))
        return found

    def arguments(self, index: int) -> dict[str, Any]:
        """What `produce` is told of one row, but its value."""
        found: dict[str, Any] = {
            "topic": self.topic if isinstance(self.topic, str) else self.topic[index]
        }
        if self.keys is not None:
            found["key"] = self.keys[index]
        if self.headers is not None and self.headers[index] is not None:
            found["headers"] = self.headers[index]
        if self.partitions is not None and self.partitions[index] is not None:
            found["partition"] = self.partitions[index]
        if self.times is not None and self.times[index] is not None:
            found["timestamp"] = self.times[index]
        return found

    def each_key(self) -> Any:
        """The keys, as many as one asks for."""
        return self.keys if self.keys is not None else repeat(None)


def _holds_pairs(type_: pa.DataType) -> bool:
    if not pa.types.is_list(type_) or not pa.types.is_struct(type_.value_type):
        return bool(pa.types.is_map(type_))
    return {"key", "value"} <= {each.name for each in type_.value_type}


def _pairs(headers: Any) -> Headers:
    """Headers as they come out of a column: pairs, or a map."""
    if headers is None:
        return None
    pairs = [(h["key"], h["value"]) if isinstance(h, dict) else h for h in headers]
    return [(str(k), v.encode() if isinstance(v, str) else v) for k, v in pairs]
