"""Graphite: lines of a metric path, a value and a time."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import BinaryIO, ClassVar

import numpy as np
import pyarrow as pa
from pydantic import Field, field_validator

from penstock.formats.graphite.columns import GraphiteColumns
from penstock.formats.graphite.template import Template, parse_templates
from penstock.formats.graphite.write import encode_rows
from penstock.sdk.encoding.lines import LineWriter, too_long_error
from penstock.sdk.encoding.text_lines import LinesConfig, LinesFormat
from penstock.sdk.encoding.transcoding import payloads_as_utf8
from penstock.sdk.format import FileWriter
from penstock.sdk.record import Decoded, Encoded, Read


class GraphiteConfig(LinesConfig):
    """Options of `graphite`."""

    templates: list[str] = Field(min_length=1)
    """Templates of metric paths, each as `[FILTER] TEMPLATE [TAG=VALUE,...]`. The first one that
    matches a path is used. The parts of a template are `measurement`, `field` and names of tags; a
    final `measurement*` or `field*` has all further parts, and an empty part is skipped. In a
    filter `*` is one or more characters, also dots."""
    separator: str = Field(default=".", min_length=1)
    """The text between the parts of one measurement, tag or field."""
    time: str = "time"
    """The column of the time."""
    measurement: str = "measurement"
    """The column of the measurement."""

    @field_validator("templates")
    @classmethod
    def _check_templates(cls, templates: list[str]) -> list[str]:
        parse_templates(templates)
        return templates


class Graphite(LinesFormat[GraphiteConfig]):
    """Lines of Graphite: `PATH VALUE SECONDS`, as written by Carbon relays and collectd.

    ```yaml
    format:
      type: graphite
      templates: ["*.cpu.*.percent.* host.measurement.cpu.type.field"]
    schema: time TIMESTAMP, measurement STRING, host STRING, cpu STRING, idle DOUBLE, user DOUBLE
    ```

    A line is a row. It has the time, the measurement, a column for each tag, and the value: in the
    column of its field, or with the columns `field` and `value` the name of the field and the
    value. The second form is the inferred one. A path without a field has the field `value`.
    Columns of other fields are null, and so is a tag that the path does not have. Values are INT,
    BIGINT, FLOAT or DOUBLE.

    Spaces are collapsed. The time is null if a line has no time, or -1. A path without a template,
    a value that is not a number, a time that is not an integer, and a field without a column are
    errors of the line. With `framing: lines` a payload has several lines.

    Rows are written in the same columns, a line for each value. The path is that of the first
    template which is read back as the same measurement, field and tags; other rows are errors, as
    are rows without a value and times with a fraction of a second.
    """

    extension: ClassVar[str] = ".graphite"

    @cached_property
    def _templates(self) -> list[Template]:
        return parse_templates(self.config.templates)

    def _columns(self, schema: pa.Schema) -> GraphiteColumns:
        return GraphiteColumns(
            self._templates,
            self.config.separator,
            self.config.time,
            self.config.measurement,
            schema,
        )

    def check_columns(self, columns: pa.Schema) -> None:
        self._columns(columns).check()

    def decode(self, payloads: pa.BinaryArray, schema: pa.Schema) -> Decoded:
        return self._columns(schema).decode(payloads_as_utf8(payloads, self.config.encoding))

    def infer_schema(self, payloads: pa.BinaryArray) -> pa.Schema | None:
        tags = frozenset[str]().union(*(template.tag_names for template in self._templates))
        return pa.schema(
            [
                (self.config.time, pa.timestamp("us", "UTC")),
                (self.config.measurement, pa.string()),
                *((tag, pa.string()) for tag in sorted(tags)),
                ("field", pa.string()),
                ("value", pa.float64()),
            ]
        )

    def infer_file(self, file: BinaryIO) -> pa.Schema | None:
        return self.infer_schema(pa.array([], pa.binary()))

    def read_file(
        self, file: BinaryIO, schema: pa.Schema, origin: str, read: Read
    ) -> Iterator[tuple[pa.RecordBatch, pa.Int64Array]]:
        columns = self._columns(schema)
        for texts, numbers, too_long in self._lines(file):
            for number, start in too_long:
                read.reject(start, origin, number, too_long_error())
            rows, indexes, failures = columns.decode(texts)
            for index, error in failures:
                read.reject(texts[index].as_py(), origin, int(numbers[index]), error)
            kept = np.arange(len(texts)) if indexes is None else indexes.to_numpy()
            if rows.num_rows:
                yield rows, pa.array(numbers[kept], pa.int64())

    def prepare(self, columns: pa.Schema) -> None:
        self._columns(columns).check()

    def encode(self, rows: pa.RecordBatch) -> Encoded:
        return encode_rows(rows, self._columns(rows.schema))

    def file_writer(self, file: BinaryIO, schema: pa.Schema) -> FileWriter:
        return LineWriter(file, self)
