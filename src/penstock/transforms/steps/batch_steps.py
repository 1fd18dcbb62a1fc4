"""The steps of a batch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import pyarrow as pa

from penstock.core.errors import DecodeError, OptionError, RecordError
from penstock.sdk.bisect_failures import as_record_error
from penstock.transforms.steps.codecs import make_codec
from penstock.transforms.steps.config import Step
from penstock.transforms.steps.lookup_rows import LookupReader
from penstock.transforms.steps.python_step import PythonFunction
from penstock.transforms.steps.sql_query import BatchQuery
from penstock.transforms.steps.units import Unit, merge, record_error
from penstock.transforms.steps.vrl_step import VrlProgram
from penstock.transforms.steps.wasm_step import WasmFunction


@dataclass(frozen=True)
class Item:
    """A batch between steps, and the units that it is made of. `error` is the failure of a step."""

    units: Sequence[Unit]
    batch: pa.RecordBatch | None
    error: RecordError | None = None


def failures_as_items(
    items: Iterable[Item], function: Callable[[pa.RecordBatch], pa.RecordBatch | None]
) -> Iterator[Item]:
    """Yields items with the result of a function, or with its error. None is no item."""
    for item in items:
        if item.batch is None or item.error is not None:
            yield item
            continue
        try:
            result = function(item.batch)
        except Exception as error:
            yield Item(item.units, None, record_error(error))
            continue
        if result is not None:
            yield Item(item.units, result)


def several_as_items(
    items: Iterable[Item], function: Callable[[pa.RecordBatch], Iterable[pa.RecordBatch]]
) -> Iterator[Item]:
    """Yields the batches of a function for each item, or its error. A batch without rows is none.

    With an error the function has no batches.
    """
    for item in items:
        if item.batch is None:
            yield item
            continue
        try:
            batches = list(function(item.batch))
        except Exception as error:
            yield Item(item.units, None, record_error(error))
            continue
        yield from (Item(item.units, batch) for batch in batches if batch.num_rows)


def by_units(items: Iterable[Item]) -> Iterator[list[Item]]:
    """Yields the batches that steps have made of the same units, together."""
    for _, group in groupby(items, lambda item: [id(unit) for unit in item.units]):
        yield list(group)


class BatchStep(ABC):
    """A step of a batch."""

    option = "type"
    """The option with the text that `check` checks."""

    @abstractmethod
    def apply(self, items: Iterator[Item]) -> Iterator[Item]:
        """Yields the batches of the step. A failure is the error of an item."""

    def check(self) -> None:  # noqa: B027
        """Checks the texts of the step. Raises UserError."""

    def close(self) -> None:  # noqa: B027
        """Releases resources."""


class RowStep(BatchStep):
    """A step from a batch to a batch."""

    @abstractmethod
    def run(self, batch: pa.RecordBatch) -> pa.RecordBatch | None:
        """Returns the batch of the step, or None. Raises RecordError."""

    def apply(self, items: Iterator[Item]) -> Iterator[Item]:
        return failures_as_items(items, self.run)


class CodecStep(RowStep):
    """A step with a codec."""

    option = "codec"

    def __init__(self, config: Step, base: Path) -> None:
        assert config.codec is not None
        self.config, self._codec = config, make_codec(config.codec, base)

    def check(self) -> None:
        try:
            self._codec.check()
        except OptionError as error:
            raise OptionError.inside("codec", error) from None


class Decode(CodecStep):
    """Decodes the payloads of a column, in place of the columns of the batch."""

    def run(self, batch: pa.RecordBatch) -> pa.RecordBatch | None:
        if not batch.num_rows:
            return None
        rows = self._codec.decode(payloads(batch, self.config.column))
        if self.config.fields is None:
            return rows
        return rows.select([name for name in rows.schema.names if name in self.config.fields])


def payloads(batch: pa.RecordBatch, name: str) -> list[bytes | None]:
    """Returns the payloads of a column of bytes or text. Raises DecodeError."""
    if name not in batch.schema.names:
        raise DecodeError(
            f'there is no column "{name}" among {", ".join(batch.schema.names) or "no columns"}',
            code="missing-column",
        )
    column = batch.column(batch.schema.names.index(name))
    if not _is_bytes(column.type):
        raise DecodeError(f'the column "{name}" is {column.type}, not bytes', code="wrong-type")
    return [value.encode() if isinstance(value, str) else value for value in column.to_pylist()]


def _is_bytes(type_: pa.DataType) -> bool:
    return any(
        check(type_)
        for check in (
            pa.types.is_binary, pa.types.is_large_binary, pa.types.is_string,
            pa.types.is_large_string,
        )
    )  # fmt: skip


class Encode(CodecStep):
    """Encodes each row into a column, which is added or replaced."""

    def run(self, batch: pa.RecordBatch) -> pa.RecordBatch | None:
        column = self.config.column
        others = [i for i, name in enumerate(batch.schema.names) if name != column]
        rows = batch.select(others)
        fields = self.config.fields
        encoded = (
            rows if fields is None else rows.select([n for n in rows.schema.names if n in fields])
        )
        values = pa.array(self._codec.encode(encoded), pa.binary())
        return rows.append_column(column, values)


class Sql(RowStep):
    """A query over the batch. A batch without rows has no rows after it."""

    option = "query"

    def __init__(self, config: Step, base: Path) -> None:
        self._query = BatchQuery(str(config.query), config.table)
        self._lookups = [LookupReader(each, base) for each in config.lookups]

    def check(self) -> None:
        self._query.check()

    def run(self, batch: pa.RecordBatch) -> pa.RecordBatch | None:
        if not batch.num_rows:
            return None
        tables = {each.config.table: each.read(batch) for each in self._lookups}
        rows = self._query.run(batch, tables)
        return rows if rows.num_rows else None

    def close(self) -> None:
        for each in self._lookups:
            each.close()


class VrlStep(BatchStep):
    """A program in VRL for each row, whose result is a batch of its own."""

    option = "code"

    def __init__(self, config: Step) -> None:
        self._program = VrlProgram(str(config.code))

    def check(self) -> None:
        self._program.check()

    def apply(self, items: Iterator[Item]) -> Iterator[Item]:
        return several_as_items(items, self._program.run)


class WasmStep(RowStep):
    """A function of a WebAssembly module for each row."""

    option = "module"

    def __init__(self, config: Step, base: Path) -> None:
        self._function = WasmFunction(config, base)

    def check(self) -> None:
        self._function.check()

    def run(self, batch: pa.RecordBatch) -> pa.RecordBatch | None:
        return self._function.run(batch) if batch.num_rows else None


class PythonStep(BatchStep):
    """A Python function from a batch to batches."""

    option = "code"

    def __init__(self, config: Step, base: Path, node: str) -> None:
        self._function = PythonFunction(config, base, node)

    def check(self) -> None:
        self._function.check()

    def apply(self, items: Iterator[Item]) -> Iterator[Item]:
        return several_as_items(items, self._function.call)


class Merge(BatchStep):
    """Makes one batch of several, and of the rest at the end."""

    def __init__(self, config: Step) -> None:
        self._count = config.count or 1

    def apply(self, items: Iterator[Item]) -> Iterator[Item]:
        group: list[Item] = []
        for item in items:
            if item.batch is None:
                yield item
                continue
            group.append(item)
            if len(group) >= self._count:
                yield _merged(group)
                group = []
        if group:
            yield _merged(group)


def _merged(group: Sequence[Item]) -> Item:
    units = list({id(unit): unit for item in group for unit in item.units}.values())
    try:
        return Item(units, merge([item.batch for item in group if item.batch is not None]))
    except pa.ArrowException as error:
        return Item(units, None, as_record_error(error))


def make_step(config: Step, base: Path, node: str) -> BatchStep:
    """Returns the step of these options."""
    if config.type == "decode":
        return Decode(config, base)
    if config.type == "encode":
        return Encode(config, base)
    if config.type == "sql":
        return Sql(config, base)
    if config.type == "vrl":
        return VrlStep(config)
    if config.type == "wasm":
        return WasmStep(config, base)
    if config.type == "python":
        return PythonStep(config, base, node)
    return Merge(config)
