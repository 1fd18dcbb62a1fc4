"""Programs in VRL over the rows of a batch."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.core.errors import MissingExtra, OptionError, Rejected
from penstock.transforms.steps.json_rows import plain, rows_to_batch

if TYPE_CHECKING:
    from penstock.transforms.sandbox.child import CodeError

_PLACE = re.compile(r" at \(\d+:\d+\)")
_EPOCH = date(1970, 1, 1)


class VrlProgram:
    """A program whose value is the row, or a list of rows, that a row becomes."""

    def __init__(self, code: str) -> None:
        self._code = code
        self._programs: dict[tuple[str, ...], Any] = {}

    def check(self) -> None:
        """Compiles the program. Raises OptionError, or MissingExtra."""
        from importlib.util import find_spec

        if find_spec("pyvrl") is None:
            raise MissingExtra.of("vrl", "pyvrl")
        from penstock.transforms.sandbox.child import CodeError

        try:
            self._compile(())
        except CodeError as error:
            raise _option_error(error) from error

    def run(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yields the rows of the program for each row. Raises Rejected, or DecodeError."""
        types = {field.name: field.type for field in batch.schema}
        program = self._compile(
            tuple(name for name, type_ in types.items() if pa.types.is_timestamp(type_))
        )
        for row in batch.to_pylist():
            event = {name: _value(value, types[name]) for name, value in row.items()}
            try:
                result = program.remap(event)
            except ValueError as error:
                raise Rejected(_PLACE.sub("", str(error)), code="function-failed") from error
            rows = result if isinstance(result, list) else [result]
            if not all(isinstance(each, dict) for each in rows):
                raise Rejected("the value of the program is not an object", code="wrong-type")
            yield rows_to_batch([_without_zones(each) for each in rows])

    def _compile(self, times: tuple[str, ...]) -> Any:
        """Returns the program for rows with these columns of times."""
        if times not in self._programs:
            from penstock.transforms.vrl.engine import compile_program

            # The binding of VRL to Python has no times as arguments, only as results.
            parsed = "".join(
                f'if .{path} != null {{ .{path} = parse_timestamp!(.{path}, "%+") }}\n'
                for path in map(_path, times)
            )
            self._programs[times] = compile_program(parsed + self._code)
        return self._programs[times]


def _path(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)


def _value(value: Any, type_: pa.DataType) -> Any:
    """Returns a value of a row as one of an event; bytes are text, and dates are days, as in VRL
    of ArkFlow."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).isoformat()
    return (value - _EPOCH).days if isinstance(value, date) else plain(value, type_)


def _without_zones(row: dict[str, Any]) -> dict[str, Any]:
    """Returns a row whose times are in UTC, without a zone."""
    return {
        name: value.astimezone(UTC).replace(tzinfo=None) if isinstance(value, datetime) else value
        for name, value in row.items()
    }


def _option_error(error: CodeError) -> OptionError:
    place = (error.line, error.column) if error.line else None
    return OptionError.of("code", message=str(error), code="invalid-value", line_and_column=place)
