"""Programs in VRL over the rows of a batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.core.errors import MissingExtra, OptionError, Rejected
from penstock.transforms.steps.json_rows import plain, rows_to_batch

if TYPE_CHECKING:
    from penstock.transforms.sandbox.child import CodeError


class VrlProgram:
    """A program whose value is the row, or a list of rows, that a row becomes."""

    def __init__(self, code: str) -> None:
        self._code = code
        self._program: Any = None

    def check(self) -> None:
        """Compiles the program. Raises OptionError, or MissingExtra."""
        from importlib.util import find_spec

        if find_spec("pyvrl") is None:
            raise MissingExtra.of("vrl", "pyvrl")
        from penstock.transforms.sandbox.child import CodeError

        try:
            self._compile()
        except CodeError as error:
            raise _option_error(error) from error

    def run(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Returns the rows of the program. Raises Rejected, or DecodeError."""
        self._compile()
        types = {field.name: field.type for field in batch.schema}
        results: list[dict[str, Any]] = []
        for row in batch.to_pylist():
            event = {name: _value(value, types[name]) for name, value in row.items()}
            try:
                result = self._program.remap(event)
            except ValueError as error:
                raise Rejected(str(error), code="function-failed") from error
            for each in result if isinstance(result, list) else [result]:
                if not isinstance(each, dict):
                    raise Rejected("the value of the program is not an object", code="wrong-type")
                results.append(each)
        return rows_to_batch(results)

    def _compile(self) -> None:
        if self._program is None:
            from penstock.transforms.vrl.engine import compile_program

            self._program = compile_program(self._code)


def _value(value: Any, type_: pa.DataType) -> Any:
    """Returns a value of a row as one of an event; bytes are text, as in VRL."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else plain(value, type_)


def _option_error(error: CodeError) -> OptionError:
    place = (error.line, error.column) if error.line else None
    return OptionError.of("code", message=str(error), code="invalid-value", line_and_column=place)
