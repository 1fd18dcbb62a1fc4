"""The transform `steps`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.core.errors import (
    OptionError,
    PenstockError,
    PlanError,
    UserError,
    ValidationErrors,
    flatten_errors,
    raise_all,
)
from penstock.core.text import did_you_mean
from penstock.sdk import Carried, Failure, Transform
from penstock.sdk.bisect_failures import FailedRow
from penstock.sdk.columns.ddl import arrow_schema
from penstock.sdk.columns.json_mark import is_json
from penstock.transforms.steps.batch_steps import (
    BatchStep,
    Item,
    by_units,
    failures_as_items,
    make_step,
)
from penstock.transforms.steps.config import StepsConfig, TargetTable
from penstock.transforms.steps.input_config import VALUE, StepsInput
from penstock.transforms.steps.json_rows import json_values
from penstock.transforms.steps.outputs import FAILED, PAYLOAD, OutputRows
from penstock.transforms.steps.required_extras import extras_of
from penstock.transforms.steps.storable_types import storable
from penstock.transforms.steps.table_query import open_source
from penstock.transforms.steps.units import INPUT, InputReader, Unit
from penstock.transforms.steps.windows import Windows

_VOLATILE = re.compile(r"\b(now|current_\w+|random|uuid)\b", re.IGNORECASE)


class Steps(Transform[StepsConfig]):
    """Applies steps to each message, as a batch whose columns are known when it is there.

    A message is a row with the column `__value__`. The steps of a batch decode it, query it in the
    dialect of Apache DataFusion, call Python functions with it, and encode it. The rows have the
    column `__payload__`: the column `__value__` of the last step, or without it the row as JSON.
    With `output.rows` the columns of the last step are declared, and written as they are.

    A batch on which a step fails becomes a dead letter, and no row of it is written. With
    `failures` its input is written, as received, with a true value in the column `__failed__`.

    With `window`, and with the step `merge`, all rows of a batch of the pipeline are in one
    partition. The option `batch.interval` of the sink is then the time of a window, with
    `batch.min_records` its longest time, and `batch.gap` the time between two sessions. Their
    messages are acknowledged after the window is written; those that sliding windows keep are in
    the state of the run.

    ```yaml
    type: steps
    from: messages
    steps:
      - {type: decode, codec: {type: json}}
      - {type: sql, query: "SELECT sensor, avg(value) AS mean FROM flow GROUP BY sensor"}
    ```
    """

    extra = "datafusion"
    client_modules = ("datafusion",)
    _steps: Sequence[BatchStep] | None = None
    _target: pa.Schema | None = None

    @property
    def _inputs(self) -> dict[str, StepsInput]:
        return self.config.inputs or {"": StepsInput()}

    @property
    def deterministic(self) -> bool:  # type: ignore[override]
        config = self.config
        queries = [step.query or "" for step in config.steps]
        queries += [config.window.join.query] if config.window and config.window.join else []
        return not (
            any(_VOLATILE.search(query) for query in queries)
            or any(step.type in {"python", "wasm"} or step.lookups for step in config.steps)
            or any(each.metadata or each.files or each.tables for each in self._inputs.values())
        )

    @property
    def whole_batches(self) -> bool:  # type: ignore[override]
        """Whether the rows of a batch of the pipeline are passed together."""
        config = self.config
        return config.window is not None or any(step.type == "merge" for step in config.steps)

    @property
    def carries_rows(self) -> bool:  # type: ignore[override]
        """Whether a sliding window begins with messages of earlier batches of the pipeline."""
        return self.config.window is not None and self.config.window.rest == "keep"

    def validate(self) -> None:
        super().validate()
        raise_all(self._errors())

    def _errors(self) -> Iterator[PenstockError]:
        self._make()
        assert self._steps is not None
        for index, step in enumerate(self._steps):
            with _located("steps", index, step.option) as errors:
                step.check()
            yield from errors
        for name, reader in self._readers.items():
            with _located("inputs", name, "decode") as errors:
                reader.check()
            yield from errors
        if self._windows is not None:
            with _located("window", "join", "query") as errors:
                self._windows.check()
            yield from errors
        for option, rows in (("output", self._output), ("failures", self._failures)):
            for name, expression in rows.expressions.items() if rows is not None else ():
                with _located(option, "columns", name, "expr") as errors:
                    expression.check()
                yield from errors

    def required_extras(self) -> frozenset[str]:
        return super().required_extras() | extras_of(self.config)

    def output(self, schema: pa.Schema) -> pa.Schema:
        config = self.config
        rows = self._declared_rows()
        fields: list[pa.Field] = list(rows or ())
        if rows is None or config.failures is not None:
            fields.append(pa.field(PAYLOAD, pa.binary()))
        fields += [pa.field(name, pa.string()) for name in config.output.columns]
        if config.failures is not None:
            fields += [pa.field(name, pa.string()) for name in config.failures.columns]
            fields.append(pa.field(FAILED, pa.bool_(), nullable=False))
        return pa.schema(fields)

    def _declared_rows(self) -> pa.Schema | None:
        """Returns the columns in place of a payload, which a table in a database may have."""
        output = self.config.output
        if output.rows is not None:
            return arrow_schema(output.rows)
        if output.infer and self._target is None:
            self._target = self._inferred_rows()
        if output.target is not None and self._target is None:
            try:
                self._target = _columns(output.target)
            except OptionError as error:
                raise OptionError.inside("output", OptionError.inside("target", error)) from None
        return self._target

    def _inferred_rows(self) -> pa.Schema:
        """Returns the columns of the first batch of a sample. Raises PlanError."""
        self._make()
        assert self._steps is not None
        inputs = self._inputs.items()
        sample = [(name, text) for name, each in inputs for text in each.sample or [""]]
        names, texts = zip(*sample, strict=True)
        values = pa.array([text.encode() for text in texts], pa.binary())
        counters = pa.array([0] * len(texts))
        rows = pa.record_batch({VALUE: values, "counter": counters, INPUT: pa.array(names)})
        units: Iterable[Unit] = self._units(rows)
        items = self._items(self._windows.merge(list(units))[0] if self._windows else units)
        batch = next((item.batch for item in items if item.batch is not None), None)
        if batch is None:
            raise PlanError(
                "the columns of the output cannot be inferred: no message of the sample has a row",
                code="unknown-output",
            )
        plain = batch.schema
        return pa.schema([pa.field(each.name, storable(each.type)) for each in plain])

    def open(self) -> None:
        self._make()

    def __getstate__(self) -> dict[str, Any]:
        """Returns what a task needs: sessions of DataFusion cannot be copied."""
        return {"config": self.config, "context": self.context, "_target": self._target}

    def close(self) -> None:
        for step in self._steps or ():
            step.close()
        self._steps = None

    def _make(self) -> None:
        base, config = self._base, self.config
        self._steps = [make_step(step, base, self.context.node) for step in config.steps]
        self._readers = {name: InputReader(name, each, base) for name, each in self._inputs.items()}
        self._windows = (
            Windows(config.window, list(self._inputs), base) if config.window is not None else None
        )
        self._output = OutputRows(config.output, base)
        self._failures = OutputRows(config.failures, base) if config.failures is not None else None

    @property
    def _base(self) -> Path:
        return self.context.base

    def apply(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch | Failure | Carried]:
        if self._steps is None:
            self._make()
        schema = self.output(batch.schema)

        def written(rows: pa.RecordBatch) -> pa.RecordBatch:
            return self._completed(self._output.rows(rows), schema, failed=False)

        units: Iterable[Unit] = self._units(batch)
        if self._windows is not None:
            units, rest = self._windows.merge(list(units))
            yield from (Carried(index) for unit in rest for index in unit.indexes)
        failed: set[int] = set()
        for items in by_units(failures_as_items(self._items(units), written)):
            failure = next((item for item in items if item.error is not None), None)
            if failure is None or failure.error is None:
                yield from (item.batch for item in items if item.batch is not None)
            elif self._failures is not None:
                for unit in failure.units:
                    yield self._completed(self._failures.rows(unit.original), schema, failed=True)
            elif self.whole_batches:
                indexes = {index for unit in failure.units for index in unit.indexes}
                yield from (Failure(index, failure.error) for index in sorted(indexes - failed))
                failed |= indexes
            else:
                raise FailedRow(failure.units[0].indexes[0], failure.error)

    def _items(self, units: Iterable[Unit]) -> Iterator[Item]:
        """Yields the batches of units after the steps."""
        items: Iterator[Item] = (Item((unit,), unit.batch, unit.error) for unit in units)
        for step in self._steps or ():
            items = step.apply(items)
        return items

    def _units(self, batch: pa.RecordBatch) -> Iterator[Unit]:
        names = batch.column(INPUT).to_pylist() if INPUT in batch.schema.names else None
        first = next(iter(self._readers))
        for index in range(batch.num_rows):
            name = names[index] if names is not None else first
            yield from self._readers[name].units(batch.slice(index, 1), index)

    def _completed(self, rows: pa.RecordBatch, schema: pa.Schema, failed: bool) -> pa.RecordBatch:
        columns = []
        for field in schema:
            if field.name == FAILED:
                columns.append(pa.array([failed] * rows.num_rows, pa.bool_()))
            elif field.name in rows.schema.names:
                columns.append(_cast(rows.column(field.name), field))
            else:
                columns.append(pa.nulls(rows.num_rows, field.type))
        return pa.RecordBatch.from_arrays(columns, schema=schema)


def _cast(column: pa.Array, field: pa.Field) -> pa.Array:
    """Returns a column of a declared type, or as JSON text. Times have microseconds."""
    if is_json(field):
        return pa.array(json_values(column), pa.string())
    if column.type.equals(field.type):
        return column
    return column.cast(field.type, safe=pa.types.is_timestamp(column.type) is False)


@contextmanager
def _located(*option: str | int) -> Iterator[list[PenstockError]]:
    """Yields a list, which gets the errors of the block at an option."""
    errors: list[PenstockError] = []
    try:
        yield errors
    except (UserError, ValidationErrors) as error:
        for inner in flatten_errors(error):
            located: PenstockError = inner
            if isinstance(inner, OptionError) and inner.option:
                located = OptionError.of(
                    *option[:-1], *inner.option, message=inner.message, code=inner.code,
                    hint=inner.hint, line_and_column=inner.line_and_column, length=inner.length,
                )  # fmt: skip
            elif isinstance(inner, PlanError):
                located = OptionError.of(
                    *option, message=inner.message, code=inner.code, hint=inner.hint
                )
            errors.append(located)


def _columns(target: TargetTable) -> pa.Schema:
    """Returns the columns of a table that are written."""
    columns = open_source(target, target.table).infer_schema() or pa.schema([])
    for index, name in enumerate(target.columns or ()):
        if name not in columns.names:
            raise OptionError.of(
                "columns", index, message=f'the table {target.table} has no column "{name}"',
                code="unknown-column", hint=did_you_mean(name, columns.names),
            )  # fmt: skip
    return pa.schema(
        [each for each in columns if not target.columns or each.name in target.columns]
    )
