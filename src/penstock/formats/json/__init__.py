"""JSON: one object a record; a file has one object a line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, ClassVar, Literal, Self

import numpy as np
import pyarrow as pa
from pydantic import model_validator

from penstock.core.errors import DecodeError, EncodeError
from penstock.formats.json import write
from penstock.formats.json.infer import infer
from penstock.formats.json.mend import Mender
from penstock.formats.json.read import Reader, Suspect
from penstock.sdk.component import Component, Context
from penstock.sdk.config import Config
from penstock.sdk.format import FileFormat, FileWriter
from penstock.sdk.isolate import isolate
from penstock.sdk.kit.arrays import without_nulls
from penstock.sdk.kit.closely import decode_closely
from penstock.sdk.kit.columns import gather_payloads, reason
from penstock.sdk.kit.lines import Framing, LineWriter, read_lines, records_of, too_long_error
from penstock.sdk.kit.registry import RegistryOptions
from penstock.sdk.kit.values import Times
from penstock.sdk.record import Decoded, Encoded, Failure, Read, Records

_SAMPLE = 1000


class JsonConfig(Config):
    """Options of `json`."""

    unknown: Literal["ignore", "reject"] = "ignore"
    """What happens to a record with a key that is not a column. `reject` is ten times slower."""
    timestamps: Times = "iso"
    """How times are written: ISO 8601 text, or numbers since 1970 in this unit."""
    nulls: Literal["omit", "keep"] = "omit"
    """Whether a null is written as `null` or its key left out."""
    framing: Framing = "none"
    """What a payload holds: one record, or with `lines` one on each line that is not blank."""
    registry: RegistryOptions | None = None
    """A schema registry: each payload begins with the id of its JSON Schema there."""

    @model_validator(mode="after")
    def _one_frame(self) -> Self:
        if self.registry is not None and self.framing != "none":
            raise ValueError("with a registry a payload is one record: no framing")
        return self


class Json(FileFormat[JsonConfig]):
    """JSON objects: one a payload, one a line in files (`.jsonl`).

    ```yaml
    format: {type: json, timestamps: millis, unknown: reject}
    ```

    Keys are columns, by exact name. A missing key and `null` are null; of a repeated key the last
    counts; unknown keys are ignored, and their values only looked at for their structure. Nothing
    is rounded or cut off silently, in nested values either:

    * Integers take numbers without a fractional part (`12`, `12.0`, `1.2e1`) and text of them
      (`"12"`); out of range is an error.
    * FLOAT and DOUBLE take numbers and text of them, also "NaN", "Infinity" and "-Infinity"
      (which is how those are written), and round to the nearest.
    * DECIMAL takes numbers and text, exactly; more digits than the type has are an error.
    * STRING takes text; a number, boolean, object or array becomes its JSON text, as with
      Spark's `from_json`, at a tenth of the speed.
    * BOOLEAN takes `true` and `false`. BINARY is base64. DATE is `"2024-01-02"`.
    * TIMESTAMP is ISO 8601: `"2024-01-02T03:04:05.678+02:00"`, with a space for the T, without
      seconds, fraction, time or offset (then UTC) if need be; digits beyond microseconds are cut.
      TIMESTAMP_NTZ is the same clock in UTC. With `timestamps: seconds|millis|micros` both are
      numbers.
    * STRUCT is an object, ARRAY an array, MAP an object whose keys are text of the key's type.

    With `framing: lines` a payload may hold several objects, one a line; a line that is bad is a
    dead letter of its own.

    White space around and inside an object is fine, pretty-printed or not; a byte order mark is
    dropped. A payload that is empty, not an object, or more than one, is an error, as is a line
    of more than 64 MB. Blank lines of a file are skipped. Rules: RFC 8259, read leniently (control
    characters in text, trailing commas).

    With `registry` columns that are not declared come from the JSON Schema that the first run
    found: `date` and `date-time` are DATE and TIMESTAMP, an object without properties is a MAP,
    what may be of several types is STRING. Payloads are held to the columns, not to the schema. A
    sink registers a schema made from its columns.
    """

    extension: ClassVar[str] = ".jsonl"
    position: ClassVar[str] = "line"
    concatenable: ClassVar[bool] = True
    lines: ClassVar[bool] = True

    @classmethod
    def of(cls, config: JsonConfig, context: Context | None = None) -> Component[JsonConfig]:
        if config.registry is None:
            return cls(config, context)
        from penstock.formats.json.registered import RegisteredJson

        return RegisteredJson(config, context)

    def records(self, payloads: pa.BinaryArray) -> Records:
        return records_of(payloads) if self.config.framing == "lines" else Records(payloads, None)

    def decode(self, payloads: pa.BinaryArray, schema: pa.Schema) -> Decoded:
        return without_nulls(payloads, lambda some: self._decode(some, schema))

    def _decode(self, payloads: pa.BinaryArray, schema: pa.Schema) -> Decoded:
        closed = self.config.unknown == "reject"
        reader = Reader(schema, self.config.timestamps)
        mender = Mender(schema, self.config.timestamps, closed)
        return decode_closely(
            payloads,
            schema,
            _refuse if closed else reader.read,
            mender.mend if closed else lambda payload: _mended(payload, mender, reader),
            lambda texts: reader.parse(b"\n".join(texts), len(texts)),
        )

    def infer(self, payloads: pa.BinaryArray) -> pa.Schema | None:
        return infer(p for p in payloads.slice(0, _SAMPLE).to_pylist() if p is not None)

    def encode(self, rows: pa.RecordBatch) -> Encoded:
        found = [self._encoded(rows, group) for group in write.groups(rows)]
        if len(found) == 1:
            return found[0]
        payloads = pa.concat_arrays([each.payloads for each in found])
        index = np.concatenate([np.asarray(each[1]) for each in found])
        order = np.argsort(index)
        failures = sorted((f for each in found for f in each.failures), key=lambda f: f[0])
        places = pa.array(index[order]) if failures else None
        return Encoded(payloads.take(pa.array(order)), places, failures)

    def _encoded(self, rows: pa.RecordBatch, group: write.Group) -> Encoded:
        places, quoted = group
        some = rows if places is None else rows.take(pa.array(places))
        some = write.quoted(some, quoted)
        times, keep = self.config.timestamps, self.config.nulls == "keep"

        def attempt(start: int, stop: int) -> pa.BinaryArray:
            return write.payloads(some.slice(start, stop - start), times, keep)

        found = gather_payloads(isolate(some.num_rows, attempt, _unencodable))
        if places is None:
            return found
        index = places if found.index is None else places[found.index.to_numpy()]
        failures = [Failure(int(places[f.index]), f.error) for f in found.failures]
        return Encoded(found.payloads, pa.array(index, pa.int64()), failures)

    def read_file(
        self, file: BinaryIO, schema: pa.Schema, origin: str, read: Read
    ) -> Iterator[tuple[pa.RecordBatch, pa.Int64Array]]:
        for texts, numbers, too_long in read_lines(file):
            for number, beginning in too_long:
                read.reject(beginning, origin, number, too_long_error())
            found = self.decode(texts, schema)
            for index, error in found.failures:
                payload = texts[index].as_py()
                if payload.strip():
                    read.reject(payload, origin, int(numbers[index]), error)
            places = numbers if found.index is None else numbers[found.index.to_numpy()]
            if found.rows.num_rows:
                yield found.rows, pa.array(places)

    def file_writer(self, file: BinaryIO, schema: pa.Schema) -> FileWriter:
        return LineWriter(file, self)

    def infer_file(self, file: BinaryIO) -> pa.Schema | None:
        lines = next(read_lines(file), None)
        return None if lines is None else self.infer(lines.texts)


def _mended(payload: bytes, mender: Mender, reader: Reader) -> bytes:
    """What `mender` makes of it; but what only `reader` understands is fine, too."""
    try:
        return mender.mend(payload)
    except DecodeError as error:
        if error.code not in ("not-json", "too-deep"):
            raise
        try:
            reader.read(pa.array([payload], pa.binary()))
        except Exception:
            raise error from None
        return payload.strip()


def _refuse(payloads: pa.BinaryArray) -> pa.RecordBatch:
    raise Suspect


def _unencodable(error: Exception) -> EncodeError:
    return EncodeError(f"the row has no JSON: {reason(error)}")
