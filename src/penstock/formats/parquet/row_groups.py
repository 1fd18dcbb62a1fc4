"""Row groups of Parquet files. The rows of a damaged row group are one error."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TypeAlias

import pyarrow as pa

from penstock.core.errors import DecodeError
from penstock.formats.parquet.content import ROWS, Content
from penstock.sdk.columns.conform import error_text
from penstock.sdk.encoding.arrow_files import UNREADABLE, Unreadable

BUFFER_BYTES = 64 << 20
"""The size of the rows of a row group that are kept until all of its rows are counted."""
Part: TypeAlias = pa.RecordBatch | Unreadable


def read_row_groups(content: Content, columns: Sequence[str]) -> Iterator[Part]:
    """Yields the rows of a file in order.

    Raises DecodeError if the file has fewer rows than its metadata states.
    """
    found = 0
    for group in range(content.metadata.num_row_groups):
        count = content.metadata.row_group(group).num_rows
        yield from _read(content, group, columns, count) if columns else _empty_rows(count)
        found += count
    if found < content.metadata.num_rows:
        raise DecodeError(
            f"expected {content.metadata.num_rows:,} rows, found row groups with {found:,}",
            code="corrupt-file",
        )


def _empty_rows(count: int) -> Iterator[Part]:
    while count > 0:
        yield pa.record_batch([pa.nulls(min(count, ROWS))], names=[""])
        count -= ROWS


def _read(content: Content, group: int, columns: Sequence[str], count: int) -> Iterator[Part]:
    """Yields the rows of a row group.

    The rows of columns with different numbers of rows do not belong together: no row is yielded
    before the rows of all columns are counted.
    """
    kept: list[Part] = []
    size = rows = 0
    counted = False
    failure: Exception | None = None
    try:
        for parts in content.batches(group, columns):
            rows += sum(part.num_rows for part in parts)
            kept += parts
            size += sum(part.nbytes for part in parts if isinstance(part, pa.RecordBatch))
            if not counted and size > BUFFER_BYTES:
                wrong = _wrong_count(_decode_counts(content, group, columns), group, count)
                if wrong is not None:
                    yield Unreadable(count, wrong)
                    return
                counted = True
            if counted:
                yield from kept
                kept = []
    except UNREADABLE as error:
        failure = error
    if not counted:
        complete = failure is None and rows == count
        counts = (
            content.flat_value_counts(group, columns)
            if complete
            else _decode_counts(content, group, columns)
        )
        if (wrong := _wrong_count(counts, group, count)) is not None:
            yield Unreadable(count, wrong)
            return
    yield from kept
    if failure is not None:
        yield Unreadable(count - rows, _undecodable(content, group, columns, failure))


def _wrong_count(counts: Sequence[tuple[str, int]], group: int, count: int) -> DecodeError | None:
    """Returns the error of the first column with another number of rows than its row group."""
    for name, found in counts:
        if found != count:
            return _damaged(group, f'expected {count:,} rows, found {found:,} in column "{name}"')
    return None


def _decode_counts(content: Content, group: int, columns: Sequence[str]) -> list[tuple[str, int]]:
    """Returns the number of rows of each column that can be decoded, and its metadata states."""
    counts = []
    for name in columns:
        with suppress(*UNREADABLE):
            counts.append((name, _count_rows(content, group, name)))
            counts += content.flat_value_counts(group, [name])
    return counts


def _count_rows(content: Content, group: int, name: str) -> int:
    return sum(part.num_rows for parts in content.batches(group, [name]) for part in parts)


def _undecodable(
    content: Content, group: int, columns: Sequence[str], failure: Exception
) -> DecodeError:
    """Returns an error that names the first column that cannot be decoded."""
    for name in columns:
        try:
            _count_rows(content, group, name)
        except UNREADABLE as error:
            return _damaged(group, f'column "{name}": {error_text(error)}')
    return _damaged(group, error_text(failure))


def _damaged(group: int, detail: str) -> DecodeError:
    return DecodeError(f"row group {group + 1} is damaged: {detail}", code="corrupt-file")
