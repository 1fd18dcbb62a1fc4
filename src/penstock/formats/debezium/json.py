"""Change events of Debezium as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, BinaryIO, ClassVar, Literal

import pyarrow as pa
import pyarrow.compute as pc

from penstock.formats.debezium.envelope import Columns
from penstock.formats.debezium.format import ChangeEvents
from penstock.formats.debezium.unavailable import Unavailable
from penstock.formats.json import JsonConfig
from penstock.formats.json.connect import in_whole_millis, wrap
from penstock.formats.json.decimals import Decimals, Forms
from penstock.formats.json.infer import infer
from penstock.formats.json.plain import PlainJson
from penstock.formats.json.wrapped import columns_of_schemas, decode_wrapped
from penstock.sdk import Config, Context, Decoded, Encoded, FileFormat, FileWriter, Read
from penstock.sdk.columns.scalar_parsing import NumberTimes, Times
from penstock.sdk.columns.times import Nanoseconds
from penstock.sdk.encoding.lines import LineWriter, read_lines, sample, too_long_error
from penstock.sdk.null_text import NullText

_SAMPLE = 1000


class DebeziumJsonConfig(Config):
    """Options of `debezium_json`."""

    timestamps: Times = "iso"
    """The form of timestamps in rows: ISO 8601 text, or numbers since 1970 in a unit. Written
    milliseconds are whole numbers."""
    nanoseconds: Nanoseconds = "reject"
    """Read timestamps with digits below a microsecond as errors, or truncate them."""
    timestamp_numbers: NumberTimes = "reject"
    """With `timestamps: iso`, read numbers as errors, or as nanoseconds since 1970."""
    timestamp_zone: Literal["utc", "none"] = "utc"
    """With `timestamps: iso`, write a TIMESTAMP with the zone `Z`, or without a zone."""
    decimals: Decimals = "number"
    """The form of DECIMAL in rows: numbers, texts, or `bytes`: base64 of the unscaled value, as
    Kafka Connect and Debezium write by default."""
    wrapper: Literal["none", "connect"] = "none"
    """The wrapper of written events: `connect` adds `schema` and `payload` of Kafka Connect. Both
    forms are read."""
    before: Literal["partial", "complete"] = "partial"
    """Whether the row before each update and delete has all columns. If rows are `complete`, a
    condition drops those that do not meet it. If they are `partial`, it deletes such rows, which
    may have met the condition before."""
    unavailable: Unavailable = "reject"
    """For a value that PostgreSQL did not send, because an update left it unchanged (TOAST), and
    that is not in the row before: a bad record, or `null`."""
    not_finite: Annotated[Literal["text", "null"], NullText()] = "text"
    """The form in which NaN and infinity are written: "NaN" and "Infinity", or `null`."""
    time_column: str | None = None
    """A TIMESTAMP column with the time of the event, `ts_ms`."""
    source_column: str | None = None
    """A STRING column with the JSON text of `source`, the origin of the event."""


class _Events(PlainJson):
    """Events as JSON objects. A number is a date in days, as Debezium writes it."""

    days: ClassVar[bool] = True


class DebeziumJson(ChangeEvents, FileFormat[DebeziumJsonConfig]):
    """Change events of Debezium as JSON, one per payload; one per line in files (`.jsonl`).

    ```yaml
    format: {type: debezium_json, time_column: changed_at}
    ```

    An event has the row `before` and `after` a change and the code `op`. The columns are those of
    the row; the operation is in the column `_op`, or in `operation_column` of the source:

    * `c` (create) and `r` (read by a snapshot) are inserts: `i`.
    * `u` (update) is the row before, `ub`, and the row after, `u`; without `before` only `u`.
    * `d` (delete) is the row before, `d`. An event without `before` is an error.
    * Other codes, such as `t` (truncate) and `m` (message), are errors.

    A record without a value, which Debezium writes after a delete, is skipped. The wrapper of Kafka
    Connect (`schema` and `payload`) is recognised, and its schema has the units of times and the
    form of decimals; `timestamps` with another unit is an error. Without it values have the form of
    the format `json`: set `decimals: bytes`, or `decimal.handling.mode=string` of the connector,
    and `timestamps`, with `time.precision.mode=connect` for `millis`. A number is a DATE in days.

    A sink writes an event for each change; rows without operations are creations, with
    `mode: upsert` updates. An update that changes the primary key is a delete and a creation.
    """

    extension: ClassVar[str] = ".jsonl"
    position: ClassVar[str] = "line"
    concatenable: ClassVar[bool] = True
    lines: ClassVar[bool] = True

    def __init__(self, config: DebeziumJsonConfig, context: Context | None = None) -> None:
        super().__init__(config, context)
        times = JsonConfig(
            timestamps=config.timestamps,
            nanoseconds=config.nanoseconds,
            timestamp_numbers=config.timestamp_numbers,
            timestamp_zone=config.timestamp_zone,
            decimals=config.decimals,
            not_finite=config.not_finite,
            nulls="keep",
        )
        self.inner: _Events = _Events(times, context)

    def decode_events(self, payloads: pa.BinaryArray, columns: Columns) -> Decoded:
        """Decodes events, also in the wrapper of Kafka Connect."""
        envelope = columns.envelope()
        if not pc.any(pc.match_substring(payloads, '"payload"')).as_py():
            return self.inner.decode(payloads, envelope)
        return decode_wrapped(
            payloads,
            envelope,
            self.inner.config.conversion,
            self.inner.typed().decode,
            lambda events: self.inner.decode(events, envelope),
            lambda events: self.inner.decode(events, envelope),
        )

    def encoded_events(self, events: pa.RecordBatch) -> pa.RecordBatch:
        return in_whole_millis(events) if self.config.timestamps == "millis" else events

    def encode_events(self, events: pa.RecordBatch) -> Encoded:
        encoded = super().encode_events(events)
        if self.config.wrapper == "none":
            return encoded
        forms = Forms(self.config.timestamps, self.config.decimals)
        return encoded._replace(payloads=wrap(encoded.payloads, events.schema, forms))

    def infer_schema(self, payloads: pa.BinaryArray) -> pa.Schema | None:
        texts = payloads.slice(0, _SAMPLE).drop_null().to_pylist()
        inferred = columns_of_schemas(texts, "after") or infer(texts, _images)
        if inferred is None:
            return None
        return self.columns_of(inferred).with_roles()

    def read_file(
        self, file: BinaryIO, schema: pa.Schema, origin: str, read: Read
    ) -> Iterator[tuple[pa.RecordBatch, pa.Int64Array]]:
        for texts, numbers, too_long in read_lines(file):
            for number, start in too_long:
                read.reject(start, origin, number, too_long_error())
            decoded = self.decode(texts, schema)
            for index, error in decoded.failures:
                payload = texts[index].as_py()
                if payload.strip():
                    read.reject(payload, origin, int(numbers[index]), error)
            if decoded.rows.num_rows and decoded.index is not None:
                yield decoded.rows, pa.array(numbers[decoded.index.to_numpy()])

    def file_writer(self, file: BinaryIO, schema: pa.Schema) -> FileWriter:
        return LineWriter(file, self)

    def infer_file(self, file: BinaryIO) -> pa.Schema | None:
        return self.infer_schema(sample((lines.texts for lines in read_lines(file)), _SAMPLE))


def _images(event: Any) -> Iterator[Any]:
    """Yields the rows before and after of an event; none of another value."""
    if isinstance(event, dict) and isinstance(event.get("payload"), dict):
        event = event["payload"]
    for name in ("before", "after") if isinstance(event, dict) else ():
        yield event.get(name)
