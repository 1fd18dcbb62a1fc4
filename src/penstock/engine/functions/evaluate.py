"""Evaluation of Python functions on Arrow arrays: values, and the errors of rows."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from penstock.core.error_codec import encode_errors
from penstock.core.errors import RecordError, Rejected
from penstock.core.exits import Interruption, exits_as_exceptions
from penstock.core.text import shorten
from penstock.core.time_limit import IDLE, NoResult, call_within, limit_calls
from penstock.engine.functions.coroutines import call_concurrently
from penstock.engine.functions.load import describe, load_function
from penstock.engine.tasks.crashes import crash_mark
from penstock.plan.functions.model import Function
from penstock.sdk import bisect_failures
from penstock.sdk.columns.conform import leaf_types
from penstock.sdk.columns.conversion import Conversion
from penstock.sdk.columns.rows import array_of
from penstock.sdk.columns.type_names import sql_name
from penstock.sdk.forked_calls import call_forked

_LIMIT = 1000
"""The maximum characters of an error."""


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """A Python function over Arrow arrays of arguments.

    The result is an array of structs: the value, and the error, which is null for a valid value.
    The argument of an aggregate is an array of lists of structs of the arguments.
    """

    function: Function

    @encode_errors
    def __call__(self, *arrays: Any) -> pa.StructArray:
        with crash_mark(self.function.name) as crashed:
            return self._evaluate_forked(arrays) if crashed else self._evaluate(arrays)

    def _evaluate_forked(self, arrays: Sequence[Any]) -> pa.StructArray:
        """Returns the result of calls in forks. Rows that end their fork have an error."""

        def attempt(start: int, stop: int) -> pa.StructArray:
            part = [array.slice(start, stop - start) for array in arrays]
            return call_forked(lambda: self._evaluate(part))

        parts = []
        for _, _, result in bisect_failures(len(arrays[0]), attempt):
            if isinstance(result, RecordError):
                error = pa.array([self._message(result.message)])
                result = self._results(pa.nulls(1, self.type), error)
            parts.append(result)
        return pa.concat_arrays(parts)

    def _evaluate(self, arrays: Sequence[Any]) -> pa.StructArray:
        function, count = self.function, len(arrays[0])
        call = load_function(function)
        columns = self._columns(arrays)
        if function.vectorized:
            values, errors = self._vectorized(call, columns, count)
        else:
            rows = list(zip(*(self._python(column) for column in columns), strict=True))
            rows = rows or [()] * count
            results = self._async(call, rows) if function.is_async else self._each(call, rows)
            values, errors = self._converted(results)
        return self._results(values, pa.array(errors, pa.string()))

    def _results(self, values: pa.Array, errors: pa.Array) -> pa.StructArray:
        return pa.StructArray.from_arrays([values, errors], names=["value", "error"])

    @property
    def type(self) -> pa.DataType:
        """The type of the values."""
        returns = self.function.returns
        assert returns is not None
        return pa.list_(returns) if self.function.kind == "table" else returns

    def _columns(self, arrays: Sequence[Any]) -> list[Any]:
        """Returns the columns of the arguments; of an aggregate columns of lists."""
        if not self.function.parameters:
            return []
        if self.function.kind != "aggregate":
            return list(arrays)
        (groups,) = arrays
        offsets = groups.offsets
        values = groups.values
        fields = (values.field(index) for index in range(values.type.num_fields))
        return [pa.ListArray.from_arrays(offsets, field) for field in fields]

    def _python(self, column: Any) -> list[Any]:
        values = _python_values(column)
        if pa.types.is_map(column.type):
            return [dict(value) if isinstance(value, list) else value for value in values]
        return values

    def _skips(self, row: Sequence[Any]) -> bool:
        """Returns whether a null argument makes the result null without a call."""
        return any(
            value is None and not parameter.nullable
            for value, parameter in zip(row, self.function.parameters, strict=True)
        )

    def _each(self, call: Callable[..., Any], rows: Iterable[Sequence[Any]]) -> list[Any]:
        """Returns the result of each row: a value, or an exception of the row."""
        if self.function.kind == "table":
            call = partial(_list_of, call)
        limit = self.function.time_limit
        results: list[Any] = []
        with limit_calls(limit) as cells:
            for index, row in enumerate(rows):
                result: Any = _failed(row)
                if result is None and not self._skips(row):
                    try:
                        try:
                            cells[0] = index
                            result = call(*row)
                        finally:
                            cells[0] = IDLE
                    except Interruption:
                        cells[0] = IDLE
                        result = RowFailure(NoResult.within(limit).message)
                    except BaseException as error:
                        result = RowFailure(describe(error, self.function))
                results.append(result)
        return results

    def _async(self, call: Callable[..., Any], rows: Sequence[Sequence[Any]]) -> Iterator[Any]:
        """Yields the result of each row, in order, from concurrent calls."""
        function = self.function
        called = [_failed(row) is None and not self._skips(row) for row in rows]
        calls = [partial(call, *row) for row, each in zip(rows, called, strict=True) if each]
        results = iter(call_concurrently(calls, function.concurrency, function.time_limit))
        for row, is_called in zip(rows, called, strict=True):
            result = next(results) if is_called else _failed(row)
            if isinstance(result, BaseException):
                result = RowFailure(describe(result, function))
            yield result

    def _converted(self, results: Iterable[Any]) -> tuple[pa.Array, list[str | None]]:
        """Returns the values in the type of the result, and the errors."""
        values: list[Any] = []
        errors: list[str | None] = []
        for result in results:
            if not isinstance(result, RowFailure):
                try:
                    with exits_as_exceptions():
                        result = self._shaped(result)
                except Exception as error:
                    result = RowFailure(describe(error, self.function))
            failed = isinstance(result, RowFailure)
            values.append(None if failed else result)
            errors.append(self._message(result.text) if failed else None)
        try:
            return self._array(values), errors
        except Exception:
            pass
        for index, value in enumerate(values):
            try:
                self._array([value])
            except Exception:
                found = f"{shorten(_repr(value), 60)} ({type(value).__name__})"
                errors[index] = self._message(f"expected {sql_name(self.type)}, found {found}")
                values[index] = None
        return self._array(values), errors

    def _shaped(self, result: Any) -> Any:
        """Returns a result with structs as dicts."""
        if self.function.kind == "table":
            return None if result is None else [_row(each, self.type.value_type) for each in result]
        return _row(result, self.type) if pa.types.is_struct(self.type) else result

    def _array(self, values: Sequence[Any]) -> pa.Array:
        with exits_as_exceptions():
            array = pa.array(values, self.type)
            return array_of(values, self.type) if _may_lose(self.type) else array

    def _vectorized(
        self, call: Callable[..., Any], columns: Sequence[Any], count: int
    ) -> tuple[pa.Array, list[str | None]]:
        """Returns the values and the errors, from calls with parts of the arrays."""

        def attempt(start: int, stop: int) -> pa.Array:
            part = [column.slice(start, stop - start) for column in columns]
            result = call_within(self.function.time_limit, partial(call, *part))
            return self._arrow(result, stop - start)

        def to_error(error: Exception) -> RecordError:
            return Rejected(describe(error, self.function), code="function-failed")

        parts: list[pa.Array] = []
        errors: list[str | None] = [None] * count
        for start, _, result in bisect_failures(count, attempt, to_error):
            if isinstance(result, RecordError):
                errors[start] = self._message(result.message)
                parts.append(pa.nulls(1, self.type))
            else:
                parts.append(result)
        return pa.concat_arrays(parts) if parts else pa.nulls(0, self.type), errors

    def _arrow(self, result: Any, count: int) -> pa.Array:
        if isinstance(result, pa.ChunkedArray):
            result = result.combine_chunks()
        array = result if isinstance(result, pa.Array) else pa.array(result)
        if len(array) != count:
            raise ValueError(f"expected {count} values, found {len(array)}")
        return array if array.type == self.type else Conversion(nearest=True)(array, self.type)

    def _message(self, text: str) -> str:
        line = shorten(" ".join(text.split()), _LIMIT)
        return f'function "{self.function.name}" failed: {line}'


@dataclasses.dataclass(frozen=True)
class RowFailure:
    """The failure of one row."""

    text: str


def _list_of(call: Callable[..., Any], *arguments: Any) -> list[Any] | None:
    result = call(*arguments)
    return None if result is None else list(result)


def _repr(value: Any) -> str:
    try:
        return repr(value)
    except BaseException:
        return "a value without text"


def _python_values(column: pa.Array) -> list[Any]:
    """Returns the values of a column; a RowFailure for a value that Python has no object for.

    Text that is not UTF-8, and dates and times outside of the years 1 to 9999, are such values.
    """
    try:
        values: list[Any] = column.to_pylist()
    except (ValueError, OverflowError):
        values = [_python_value(value) for value in column]
    return values


def _python_value(value: pa.Scalar) -> Any:
    try:
        return value.as_py()
    except UnicodeDecodeError as error:
        return RowFailure(f"an argument is not UTF-8: byte 0x{error.object[error.start]:02x}")
    except (ValueError, OverflowError):
        return RowFailure("an argument is outside of the years 1 to 9999")


def _failed(row: Sequence[Any]) -> RowFailure | None:
    """Returns the first argument that could not be converted, or None."""
    return next((value for value in row if isinstance(value, RowFailure)), None)


def _row(value: Any, type_: pa.StructType) -> Any:
    """Returns a struct as a dict: from a dict, a dataclass, a sequence, or a single value."""
    if value is None or isinstance(value, dict):
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    names = [field.name for field in type_]
    items = list(value) if isinstance(value, tuple | list) else [value]
    if len(items) != len(names):
        raise ValueError(f"expected {len(names)} columns, found {len(items)}")
    return dict(zip(names, items, strict=True))


def _may_lose(type_: pa.DataType) -> bool:
    """Returns whether Arrow converts some values of Python to a type with loss."""
    return any(
        pa.types.is_integer(leaf) or pa.types.is_temporal(leaf) or pa.types.is_float32(leaf)
        or pa.types.is_decimal(leaf)
        for leaf in leaf_types(type_)
    )  # fmt: skip
