"""Points of Graphite as one batch: a row for each time, measurement and set of tags."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from penstock.core.errors import DecodeError
from penstock.formats.graphite.line import NOW, Point, parse_line
from penstock.formats.graphite.template import Template
from penstock.handlers.metadata import Role, with_measurement, with_role, with_time

Tags = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class PointTable:
    """The options of the columns, and a clock with seconds since 1970."""

    templates: Sequence[Template]
    clock: Callable[[], int]
    separator: str = "."
    time_name: str = "time"
    measurement_name: str = "measurement"

    def parse(self, text: str) -> tuple[pa.RecordBatch | None, list[tuple[int, DecodeError]]]:
        """Returns the batch of a text of lines, and the errors with their lines from 1.

        Without lines there is no batch; without points one without rows.
        """
        points, errors, has_lines = list[Point](), list[tuple[int, DecodeError]](), False
        for number, line in enumerate(text.split("\n"), 1):
            if not line.strip():
                continue
            has_lines = True
            try:
                points.append(self._point(line))
            except DecodeError as error:
                errors.append((number, error))
        return (self._batch(points) if has_lines else None), errors

    def _point(self, line: str) -> Point:
        point = parse_line(line, self.templates, self.separator)
        if point.metric.field in self._column_names():
            raise DecodeError(
                f'the field "{point.metric.field}" has the name of another column',
                code="duplicate-column",
            )
        return point

    def _column_names(self) -> frozenset[str]:
        tags = frozenset[str]().union(*(template.tag_names for template in self.templates))
        return tags | {self.time_name, self.measurement_name}

    def _batch(self, points: Sequence[Point]) -> pa.RecordBatch:
        """Returns a row for each identity, in order; the first value of a field remains."""
        rows: dict[tuple[bool, int, str, Tags], dict[str, int | float]] = {}
        types: dict[str, pa.DataType] = {}
        for point in points:
            metric = point.metric
            key = (point.time == NOW, point.time, metric.measurement, metric.tags)
            rows.setdefault(key, {}).setdefault(metric.field, point.value)
            if types.get(metric.field) != pa.float64():
                types[metric.field] = pa.scalar(point.value).type
        keys = sorted(rows, key=_order)
        now = self.clock() if any(is_now for is_now, *_ in keys) else 0
        times = [now if is_now else time for is_now, time, *_ in keys]
        columns = [
            (pa.field(self.time_name, pa.timestamp("s")), times),
            (pa.field(self.measurement_name, pa.string()), [key[2] for key in keys]),
        ]
        all_tags = [dict(tags) for *_, tags in keys]
        for name in sorted({name for tags in all_tags for name in tags}):
            field = with_role(pa.field(name, pa.string()), Role.TAG)
            columns.append((field, [tags.get(name) for tags in all_tags]))
        for name in sorted(types):
            field = with_role(pa.field(name, types[name]), Role.FIELD)
            values = [rows[key].get(name) for key in keys]
            columns.append((field, _numbers(values, types[name])))
        schema = pa.schema([field for field, _ in columns])
        schema = with_measurement(with_time(schema, self.time_name), self.measurement_name)
        arrays = [pa.array(values, field.type) for field, values in columns]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _numbers(values: Sequence[int | float | None], kind: pa.DataType) -> list[int | float | None]:
    if kind == pa.int64():
        return list(values)
    return [None if value is None else float(value) for value in values]


def _order(key: tuple[bool, int, str, Tags]) -> tuple[bool, int, str]:
    is_now, time, measurement, tags = key
    return is_now, time, ".".join([measurement, *(f"{name}={value}" for name, value in tags)])
