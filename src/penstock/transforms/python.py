"""The transform `python`: a Python function over Arrow record batches."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import pyarrow as pa

from penstock.core.errors import (
    RecordError,
    UserError,
    raise_all,
)
from penstock.core.exits import Interruption, exception_text, exits_as_exceptions
from penstock.core.python_permission import require_python
from penstock.core.time_limit import (
    IDLE,
    NoResult,
    call_within,
    limit_calls,
)
from penstock.sdk import Component, Context, PlanError, Transform
from penstock.sdk.bisect_failures import FailedRow
from penstock.sdk.columns.ddl import arrow_schema
from penstock.sdk.columns.json_text import parsed_value
from penstock.sdk.columns.names import fold
from penstock.sdk.columns.rows import batch_of
from penstock.sdk.forked_calls import call_forked
from penstock.transforms.python_code import import_function, load_code, module_path
from penstock.transforms.python_config import PythonConfig
from penstock.transforms.python_options import option_errors
from penstock.transforms.python_results import batches_of, outputs, rows_of
from penstock.transforms.shipped_modules import ShippedModules
from penstock.transforms.stateful.declared import with_declared_state
from penstock.transforms.stateful.transform import StatefulPython


class Python(Transform[PythonConfig]):
    """A Python function over Arrow record batches, or over rows as dicts.

    A function returns a RecordBatch, a Table, a list of dicts or None (no rows), or yields several
    of these. A class is created once in each worker process: `open()`, then `transform(batch)` for
    each batch, and `close()` when the process ends. A class is created anew after a change of its
    file. With `per: row` the function returns a dict, a list of dicts, or None to
    drop the row. A row on which the function raises an exception, or has no result within
    `timeout`, becomes a dead letter.

    A VARIANT is its JSON value in a row (a dict, a list, text, a number, True, False or None), and
    JSON text in a RecordBatch. A column that `schema` declares as VARIANT is returned likewise.

    With `state` the function has a state for each key, which survives restarts: a function takes a
    row and the state, a class has the methods `process(row, state)` and `on_timer(name, state)`.
    `schema` is required. A call that fails leaves the state as it was before. Rows are processed in
    the order of their source, and the result is the same for every division into batches.

    Parallel by partition, with `state` by key. Other state between batches is not durable.

    ```yaml
    type: python
    from: flights
    schema: carrier STRING, hours DOUBLE
    code: |
      import pyarrow.compute as pc

      def transform(batch):
          hours = pc.divide(batch.column("dep_delay"), 60.0)
          return batch.select(["carrier"]).append_column("hours", hours)
    ```
    """

    _call: Callable[..., Any] | None = None
    _instance: Any = None

    def __init__(self, config: PythonConfig, context: Context | None = None) -> None:
        super().__init__(config, context)
        self._modules = ShippedModules(config.function, self.context.base)

    @property
    def deterministic(self) -> bool:  # type: ignore[override]
        return self.config.deterministic

    def validate(self) -> None:
        raise_all(option_errors(self.config))

    @classmethod
    def create(
        cls, config: PythonConfig, context: Context | None = None
    ) -> Component[PythonConfig]:
        """Creates the transform; with `state` one over keys."""
        require_python("Python code of a transform")
        config = with_declared_state(config, (context or Context()).base)
        if config.state is None:
            return cls(config, context)
        return StatefulPython(config, context)

    def output(self, schema: pa.Schema) -> pa.Schema:
        """Returns the columns of the output. The code runs in a fork, which it may end."""
        _flush_streams()
        try:
            return call_forked(lambda: self._output(schema))
        except RecordError as error:
            raise PlanError(
                f'transform "{self.context.node}" cannot be opened: {error.message}',
                code="failed-open",
            ) from error

    def _output(self, schema: pa.Schema) -> pa.Schema:
        try:
            return self._inferred(schema)
        finally:
            _flush_streams()

    def _inferred(self, schema: pa.Schema) -> pa.Schema:
        if self.config.columns is not None:
            call_within(self.config.timeout, self._load)
            return arrow_schema(self.config.columns)
        empty = schema.empty_table().to_batches() or [
            pa.RecordBatch.from_arrays(
                [pa.array([], field.type) for field in schema], schema=schema
            )
        ]
        try:
            with exits_as_exceptions(KeyboardInterrupt):
                self.open()
                tables = list(self.apply(empty[0]))
        except (UserError, RecordError):
            raise
        except Exception as error:
            raise PlanError(
                "the columns of the output cannot be inferred: the function failed on an empty "
                f"batch: {exception_text(error)}",
                code="unknown-output",
                hint="Declare the columns, as in schema: name STRING, ...",
            ) from error
        finally:
            self.close()
        if not tables:
            raise PlanError(
                "the columns of the output cannot be inferred: the function returned no "
                "batch for an empty batch",
                code="unknown-output",
                hint="Declare the columns, as in schema: name STRING, ...",
            )
        result: pa.Schema = tables[0].schema
        return result

    def version(self) -> object:
        path = (
            None
            if self.config.code is not None
            else module_path(self.config.function, self.context.base)
        )
        modified = path.stat().st_mtime_ns if path is not None and path.is_file() else None
        return super().version(), modified

    def open(self) -> None:
        call_within(self.config.timeout, self._open)

    def _open(self) -> None:
        target = self._load()
        if inspect.isclass(target):
            self._instance = target(**_to_plain(self.config.options))
            if hasattr(self._instance, "open"):
                self._instance.open()
            self._call = self._instance.transform
        else:
            options = _to_plain(self.config.options)
            self._call = (lambda rows: target(rows, **options)) if options else target

    def close(self) -> None:
        if self._instance is not None and hasattr(self._instance, "close"):
            self._instance.close()
        self._instance = self._call = None

    def apply(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        if self._call is None:
            self.open()
        assert self._call is not None
        if self.config.per == "row":
            yield self._declared(self._row_results(self._call, batch))
            return
        for output in call_within(self.config.timeout, partial(outputs, self._call, batch)):
            is_declared = isinstance(output, list) and self.config.columns is not None
            yield from [self._declared(output)] if is_declared else batches_of(output)

    def _load(self) -> Any:
        """Returns the function or class. Raises PlanError."""
        if self.config.code is not None:
            return load_code(self.config.code, self.config.function, self.context.node)
        return import_function(self.config.function, self._modules.base)

    def _row_results(
        self, call: Callable[..., Any], batch: pa.RecordBatch
    ) -> list[Mapping[str, Any]]:
        """Returns the rows for all rows of a batch. Raises FailedRow after the time limit."""
        fields = list(batch.schema)
        results: list[Mapping[str, Any]] = []
        with limit_calls(self.config.timeout) as cells:
            for index, row in enumerate(batch.to_pylist()):
                values = {each.name: parsed_value(row[each.name], each) for each in fields}
                try:
                    try:
                        cells[0] = index
                        results += rows_of(call(values))
                    finally:
                        cells[0] = IDLE
                except Interruption:
                    cells[0] = IDLE
                    raise FailedRow(index, NoResult.within(self.config.timeout)) from None
        return results

    def _declared(self, rows: list[Mapping[str, Any]]) -> pa.RecordBatch:
        """Returns rows with the columns of the option `schema`. Raises DecodeError, ValueError."""
        assert self.config.columns is not None
        columns = arrow_schema(self.config.columns)
        known = {fold(name) for name in columns.names}
        for row in rows:
            if row and known.isdisjoint(map(fold, row)):
                raise ValueError(f"a row has none of the columns, but {', '.join(map(str, row))}")
        return batch_of(rows, columns)


def _flush_streams() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()


def _to_plain(value: Any) -> Any:
    """Converts options to plain Python values for user code."""
    if isinstance(value, dict):
        return {str(key): _to_plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_to_plain(item) for item in value]
    return str(value) if isinstance(value, str) else value
