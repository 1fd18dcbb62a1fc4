"""Results of the functions of the transform `python`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow as pa


def outputs(call: Callable[..., Any], batch: pa.RecordBatch) -> list[Any]:
    """Calls a function. Returns its result, or those that it yields."""
    result = call(batch)
    return list(result) if inspect.isgenerator(result) else [result]


def rows_of(result: Any) -> list[Mapping[str, Any]]:
    """Returns the rows in the result of a function of a row."""
    if result is None:
        return []
    return [result] if isinstance(result, Mapping) else list(result)


def batches_of(result: Any) -> Iterator[pa.RecordBatch]:
    """Yields the rows in a result of a function of a batch. Raises TypeError."""
    if result is None:
        return
    if isinstance(result, pa.RecordBatch):
        yield result
    elif isinstance(result, pa.Table):
        yield from (
            result.to_batches()
            if result.num_rows
            else [
                pa.RecordBatch.from_arrays(
                    [pa.array([], field.type) for field in result.schema], schema=result.schema
                )
            ]
        )
    elif isinstance(result, list):
        names = dict.fromkeys(name for row in result for name in row)
        rows = [{name: row.get(name) for name in names} for row in result]
        yield from pa.Table.from_pylist(rows).to_batches()
    else:
        raise TypeError(
            "expected a RecordBatch, a Table, a list of dicts or None, "
            f"found {type(result).__name__}"
        )
