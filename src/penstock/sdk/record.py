"""Records: payloads, failures, and the parameters of a read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa

from penstock.core.errors import RecordError

PAYLOAD = pa.schema(
    [
        pa.field("payload", pa.binary()),
        pa.field("origin", pa.string()),
        pa.field("position", pa.int64()),
    ]
)
"""Columns of a source that delivers bytes; requested metadata columns follow.

`origin` and `position` identify the record permanently (a topic partition and an offset, a file and
a line). A null payload is a record without a value.
"""


class Failure(NamedTuple):
    """The error of the record at `index` of a batch."""

    index: int  # type: ignore[assignment]
    error: RecordError


class Carried(NamedTuple):
    """The row at `index` of a batch, with which the next batch begins."""

    index: int  # type: ignore[assignment]


class Records(NamedTuple):
    """Records split from payloads.

    `index` has the payload index of each record; None if each payload is one record.
    """

    texts: pa.BinaryArray
    index: pa.Int64Array | None  # type: ignore[assignment]


class DecodeFailure(NamedTuple):
    """The error of record `text`, the `part`th of the payload at `index` if there are several."""

    index: int  # type: ignore[assignment]
    text: bytes | None
    part: int | None
    error: RecordError


class Rows(NamedTuple):
    """Rows of all records of payloads.

    `index` has the payload index of each row; None if each payload is one row.
    """

    rows: pa.RecordBatch
    index: pa.Int64Array | None  # type: ignore[assignment]
    failures: Sequence[DecodeFailure]


class Decoded(NamedTuple):
    """Decoded rows. `index` has the payload index of each row; None if each payload is one row."""

    rows: pa.RecordBatch
    index: pa.Int64Array | None  # type: ignore[assignment]
    failures: Sequence[Failure]


class Encoded(NamedTuple):
    """Encoded payloads.

    `index` has the row index of each payload; None if each row is one payload.
    """

    payloads: pa.BinaryArray
    index: pa.Int64Array | None  # type: ignore[assignment]
    failures: Sequence[Failure]


@dataclass(frozen=True)
class BadRecord:
    """A record that a source could not decode. `part` numbers the records of one position.

    `header` is required to decode the payload again, such as the header line of a file.
    """

    payload: bytes | None
    origin: str
    position: int
    error: RecordError
    part: int | None = None
    header: bytes | None = None


@dataclass(frozen=True)
class Conjunct:
    """A filter `column op value` above a source.

    `op` is one of = != < <= > >= in null notnull. `value` is None, a literal of the column's type
    or a tuple of literals. A row passes if the condition is true, not if it is false or null.
    """

    column: str
    op: str
    value: Any = None


@dataclass
class Read:
    """The parameters and the side results of reading a range.

    `columns` (None: all) and `conjuncts` are optional for a source: the engine applies the
    conjuncts to its rows, and Spark evaluates all filters.

    * A source may return nulls for columns that are not in `columns` if reading them has a cost, as
      in Parquet. A source that decodes whole records decodes all columns, so that a bad record is a
      dead letter in every query.
    * A source may leave out rows that do not pass all `conjuncts` and count them in `skipped`.

    `metadata` lists the required metadata columns. A source that declares ROWS adds undecodable
    records to `bad`. With `isolated` it decodes in a fork of the process (see `sdk.forked`), and
    adds content that crashes its decoder to `bad`.
    """

    columns: frozenset[str] | None = None
    conjuncts: tuple[Conjunct, ...] = ()
    metadata: tuple[str, ...] = ()
    bad: list[BadRecord] = field(default_factory=list)
    isolated: bool = False
    skipped: int = 0

    def reject(
        self,
        payload: bytes | None,
        origin: str,
        position: int,
        error: RecordError,
        part: int | None = None,
        header: bytes | None = None,
    ) -> None:
        """Adds a record to the dead letters. See `BadRecord`."""
        self.bad.append(BadRecord(payload, origin, position, error, part, header))
