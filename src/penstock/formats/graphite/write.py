"""Rows as lines of Graphite."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from penstock.core.errors import DecodeError, EncodeError
from penstock.formats.graphite.columns import GraphiteColumns
from penstock.formats.graphite.line import parse_line
from penstock.formats.graphite.template import FIELD, MEASUREMENT, Metric, Template
from penstock.sdk.record import Encoded, Failure

_MICROSECONDS = 1_000_000


def encode_rows(rows: pa.RecordBatch, columns: GraphiteColumns) -> Encoded:
    """Returns the lines of each row as one payload, a line for each value that is not null.

    A row that no template would read back is a failure.
    """
    payloads, indexes, failures = list[bytes](), list[int](), list[Failure]()
    for index, row in enumerate(_plain(rows, columns.time).to_pylist()):
        try:
            payloads.append("\n".join(_lines(row, columns)).encode())
            indexes.append(index)
        except EncodeError as error:
            failures.append(Failure(index, error))
    return Encoded(pa.array(payloads, pa.binary()), pa.array(indexes, pa.int64()), failures)


def _plain(rows: pa.RecordBatch, time: str) -> pa.RecordBatch:
    """Returns rows whose time is an integer of microseconds."""
    index = rows.schema.get_field_index(time)
    if index < 0:
        return rows
    micros = rows.column(index).cast(pa.timestamp("us", rows.schema.field(index).type.tz))
    return rows.set_column(index, time, micros.cast(pa.int64()))


def _lines(row: Mapping[str, Any], columns: GraphiteColumns) -> Iterator[str]:
    values = columns.values_of(row)
    if not values:
        raise EncodeError("the row has no value", code="no-value")
    time = row.get(columns.time)
    if time is not None and time % _MICROSECONDS:
        raise EncodeError("the time has a fraction of a second", code="invalid-timestamp")
    end = "" if time is None else f" {time // _MICROSECONDS}"
    tags = {name: row[name] for name in columns.tags & row.keys() if row[name] is not None}
    for field, value in values.items():
        metric = Metric(row.get(columns.measurement) or "", tuple(sorted(tags.items())), field)
        yield f"{_path(metric, columns)} {value}{end}"


def _path(metric: Metric, columns: GraphiteColumns) -> str:
    """Returns a path that is read back as the metric. Raises EncodeError."""
    for template in columns.templates:
        path = ".".join(_parts(template, metric))
        if _is_read_as(path, metric, columns.templates, columns.separator):
            return path
    raise EncodeError(
        f'no template has a path for the measurement "{metric.measurement}", the field '
        f'"{metric.field}" and the tags {dict(metric.tags)}',
        code="no-template",
    )


def _parts(template: Template, metric: Metric) -> list[str]:
    known = {MEASUREMENT: metric.measurement, FIELD: metric.field, **dict(metric.tags)}
    return [known.get(part, "") for part in template.parts]


def _is_read_as(path: str, metric: Metric, templates: Sequence[Template], separator: str) -> bool:
    try:
        return parse_line(f"{path} 0 0", templates, separator).metric == metric
    except DecodeError:
        return False
