"""Records on their way in and out: payloads, failures, and what a read is asked for."""

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

`origin` and `position` together name the record for ever (a topic partition and an offset, a
file and a line). A null payload is a record without value.
"""


class Failure(NamedTuple):
    """The record at `index` of the batch at hand failed."""

    index: int  # type: ignore[assignment]
    error: RecordError


class Records(NamedTuple):
    """`texts` are the records in the payloads at `index` (None: one in each, in order)."""

    texts: pa.BinaryArray
    index: pa.Int64Array | None  # type: ignore[assignment]


class Bad(NamedTuple):
    """The record `text` of the payload at `index` failed; it is the `part`th, if it has several."""

    index: int  # type: ignore[assignment]
    text: bytes | None
    part: int | None
    error: RecordError


class Rows(NamedTuple):
    """`rows` came from the payloads at `index` (None: one row of each, in order)."""

    rows: pa.RecordBatch
    index: pa.Int64Array | None  # type: ignore[assignment]
    bad: Sequence[Bad]


class Decoded(NamedTuple):
    """`rows` came from the payloads at `index` (None: one row of each, in order)."""

    rows: pa.RecordBatch
    index: pa.Int64Array | None  # type: ignore[assignment]
    failures: Sequence[Failure]


class Encoded(NamedTuple):
    """`payloads` came from the rows at `index` (None: one payload of each, in order)."""

    payloads: pa.BinaryArray
    index: pa.Int64Array | None  # type: ignore[assignment]
    failures: Sequence[Failure]


@dataclass(frozen=True)
class BadRecord:
    """A record that a source could not make a row of; `part` counts those of one position."""

    payload: bytes | None
    origin: str
    position: int
    error: RecordError
    part: int | None = None


@dataclass(frozen=True)
class Conjunct:
    """`column op value`, one of the filters above a source.

    `op` is one of = != < <= > >= in null notnull; `value` is None, a literal of the column's own
    type or a tuple of them. A row for which it is false or null does not meet it.
    """

    column: str
    op: str
    value: Any = None


@dataclass
class Read:
    """What the engine wants of a range.

    `columns` (None: all) and `conjuncts` are hints, which a source need not look at: the engine
    applies the conjuncts to what the source delivers, and Spark evaluates all filters in any case.

    * A source may leave the content of columns that are not in `columns` out (null) where reading
      them is a cost of its own, as in Parquet. One that takes a record as a whole decodes all of
      it, so that a bad record is a dead letter whatever the query uses.
    * A source may leave rows out that do not meet all `conjuncts`, if it counts them in `skipped`.

    `metadata` names the metadata columns that must be there. A source that makes rows itself puts
    the records that it could not read into `bad`.
    """

    columns: frozenset[str] | None = None
    conjuncts: tuple[Conjunct, ...] = ()
    metadata: tuple[str, ...] = ()
    bad: list[BadRecord] = field(default_factory=list)
    skipped: int = 0

    def reject(
        self,
        payload: bytes | None,
        origin: str,
        position: int,
        error: RecordError,
        part: int | None = None,
    ) -> None:
        """Hands a record to the dead letters; reading goes on."""
        self.bad.append(BadRecord(payload, origin, position, error, part))
