"""Fields of records: the topic, partition, key, headers and timestamp of each row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import pyarrow as pa

from penstock.connectors.kafka.config import KafkaSinkConfig, is_topic
from penstock.core.errors import OptionError, Rejected
from penstock.sdk import Failure
from penstock.sdk.columns.checks import check_column, check_text_column
from penstock.sdk.columns.template import Template, as_text
from penstock.sdk.columns.times import milliseconds

Headers = list[tuple[str, bytes | None]] | None


@dataclass(frozen=True)
class RecordFields:
    """The fields of a batch's records; `topic` is one text if all records have the same topic.

    With `keyed` each record needs a key.
    """

    topic: str | Sequence[str | None]
    keys: Sequence[bytes | str | None] | None
    headers: Sequence[Headers] | None
    partitions: Sequence[int | None] | None
    timestamps: Sequence[int | None] | None
    keyed: bool = False

    @property
    def simple_topic(self) -> str | None:
        """The topic of all records, if they have no fields but topic and key."""
        extra = (self.headers, self.partitions, self.timestamps) != (None, None, None)
        return self.topic if isinstance(self.topic, str) and not extra else None

    def check(self) -> list[Failure]:
        """Returns the records whose topic, partition or timestamp is invalid."""
        failures = []
        if not isinstance(self.topic, str):
            for index, topic in enumerate(self.topic):
                if topic is None or not is_topic(topic):
                    name = "null" if topic is None else f'"{topic}"'
                    error = Rejected(f"{name} is not a valid topic name", code="invalid-topic")
                    failures.append(Failure(index, error))
        for index, number in enumerate(self.partitions or ()):
            if number is not None and not 0 <= number < 2**31:
                error = Rejected(f"{number} is not a valid partition", code="invalid-partition")
                failures.append(Failure(index, error))
        for index, timestamp in enumerate(self.timestamps or ()):
            if timestamp is not None and timestamp <= 0:
                message = "expected a timestamp after 1970-01-01T00:00:00Z"
                error = Rejected(message, code="invalid-timestamp")
                failures.append(Failure(index, error))
        return failures

    def arguments(self, index: int) -> dict[str, Any]:
        """Returns the arguments of `produce` for a record, without the value."""
        topic = self.topic if isinstance(self.topic, str) else self.topic[index]
        arguments: dict[str, Any] = {"topic": topic}
        if self.keys is not None:
            arguments["key"] = self.keys[index]
        columns = {
            "headers": self.headers, "partition": self.partitions, "timestamp": self.timestamps,
        }  # fmt: skip
        for name, values in columns.items():
            if values is not None and values[index] is not None:
                arguments[name] = values[index]
        return arguments

    def iter_keys(self) -> Iterable[bytes | str | None]:
        """Returns the key of each record; an endless iterator of None without keys."""
        return self.keys if self.keys is not None else repeat(None)


class RecordMapping:
    """The mapping of rows to fields of records; `primary_key` is the key without key options.

    Records of rows without all columns of the primary key have no key. With `upserts` each record
    needs a key.
    """

    def __init__(
        self, config: KafkaSinkConfig, primary_key: Sequence[str], *, upserts: bool = False
    ) -> None:
        self._config, self._upserts = config, upserts
        self._primary_key = tuple(primary_key)

    def key_columns(self, columns: pa.Schema) -> tuple[str, ...]:
        """Returns the columns that determine the key."""
        if self._config.key is None:
            return self._listed_columns(columns)
        return tuple(dict.fromkeys(column for _, column in self._config.key.parts if column))

    def _listed_columns(self, columns: pa.Schema) -> tuple[str, ...]:
        if self._config.key_columns:
            return tuple(self._config.key_columns)
        return self._primary_key if set(self._primary_key) <= set(columns.names) else ()

    def check(self, columns: pa.Schema) -> Iterator[OptionError]:
        """Yields the errors of options that do not fit the columns."""
        config = self._config
        yield from config.topic.check(columns, "topic")
        if config.key is not None:
            yield from config.key.check(columns, "key")
        else:
            for index, name in enumerate(self._listed_columns(columns)):
                yield from check_text_column(name, columns, "key_columns", index)
        if config.partition_column is not None:
            yield from check_column(
                config.partition_column, columns, "partition_column",
                accepts=pa.types.is_integer, expected="expected an integer",
            )  # fmt: skip
        if config.timestamp_column is not None:
            yield from check_column(
                config.timestamp_column, columns, "timestamp_column",
                accepts=pa.types.is_timestamp, expected="expected a TIMESTAMP",
            )  # fmt: skip
        if config.headers_column is not None:
            yield from check_column(
                config.headers_column, columns, "headers_column", accepts=_holds_headers,
                expected="expected MAP<STRING, STRING>, such as map('source', 'shop'), or "
                "ARRAY<STRUCT<key: STRING, value: BINARY>>, the type of a Kafka source",
            )  # fmt: skip
        for header, template in config.headers.items():
            yield from template.check(columns, "headers", header)

    def fields(self, rows: pa.RecordBatch) -> RecordFields:
        """Returns the fields of the records of all rows."""
        config = self._config
        partition, timestamp = config.partition_column, config.timestamp_column
        return RecordFields(
            config.topic.constant or config.topic.render(rows),
            self._keys(rows),
            self._headers(rows),
            rows.column(partition).to_pylist() if partition is not None else None,
            milliseconds(rows.column(timestamp)) if timestamp is not None else None,
            self._upserts,
        )

    def _keys(self, rows: pa.RecordBatch) -> Sequence[bytes | str | None] | None:
        template = self._config.key
        if template is not None:
            if template.parts == (("", template.parts[0][1]),) and template.columns:
                return _values(rows, self.key_columns(rows.schema)[0])
            return template.render(rows)
        columns = self._listed_columns(rows.schema)
        if not columns:
            return None
        if len(columns) > 1:
            return Template(":".join(f"{{{name}}}" for name in columns)).render(rows)
        return _values(rows, columns[0])

    def _headers(self, rows: pa.RecordBatch) -> Sequence[Headers] | None:
        if self._config.headers_column is not None:
            values = rows.column(self._config.headers_column).to_pylist()
            return [_header_pairs(value) for value in values]
        if not self._config.headers:
            return None
        columns = {name: template.render(rows) for name, template in self._config.headers.items()}
        return [
            [
                (name, None if text is None else text.encode())
                for name, text in zip(columns, texts, strict=True)
            ]
            for texts in zip(*columns.values(), strict=True)
        ]


def _values(rows: pa.RecordBatch, name: str) -> list[bytes | str | None]:
    """Returns the values of a column as bytes or text."""
    column = rows.column(name)
    binary = pa.types.is_binary(column.type) or pa.types.is_string(column.type)
    return list((column if binary else as_text(column)).to_pylist())


def _holds_headers(type_: pa.DataType) -> bool:
    if not pa.types.is_list(type_) or not pa.types.is_struct(type_.value_type):
        return bool(pa.types.is_map(type_))
    return {"key", "value"} <= {field.name for field in type_.value_type}


def _header_pairs(headers: Any) -> Headers:
    """Returns headers of a column of structs or of a map column."""
    if headers is None:
        return None
    pairs = [
        (header["key"], header["value"]) if isinstance(header, dict) else header
        for header in headers
    ]
    return [(str(key), value.encode() if isinstance(value, str) else value) for key, value in pairs]
