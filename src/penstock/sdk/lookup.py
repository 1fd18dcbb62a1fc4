"""Lookup sources: systems whose rows are looked up by key."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import pyarrow as pa

from penstock.sdk.component import C
from penstock.sdk.record import PAYLOAD, Read
from penstock.sdk.source import Source


class LookupSource(Source[C]):
    """A source that is only a lookup table, whose rows are looked up by primary key.

    A subclass declares LOOKUP_BY_KEY, and BYTES or ROWS. The planner sets `primary_key`, which is
    not empty. `open`, `lookup` and `close_client` are called in tasks, on copies of the source.
    """

    keys_per_lookup: ClassVar[int] = 1_000
    """The maximum number of keys of a call of `lookup`."""

    def open(self) -> Any:
        """Returns a client, which is kept in the process of the tasks. Raises as `lookup`."""
        return None

    @abstractmethod
    def lookup(self, client: Any, keys: pa.RecordBatch, read: Read) -> pa.RecordBatch:
        """Returns the rows of distinct keys, in any order, and at most one row for each key.

        `keys` has the columns of the primary key, without nulls. A key without a row is left out.

        BYTES: a batch with the columns of `PAYLOAD`, then those of `read.metadata`. `position` is
        the index of the key in `keys`, and `origin` is the name of the key in the system. The
        engine sets the columns of the primary key, whatever the payload has there.
        ROWS: a batch with the columns of `columns`, then those of `read.metadata`. A row that
        cannot be converted is passed to `read.reject`, with `origin` and `position` as above.

        Every wait has a timeout. Raises Transient or Permanent; the client is then discarded.
        After a Transient of a client that was open before, the call is repeated once with a
        new client. Further failures restart the query with backoff.
        """

    def close_client(self, client: Any) -> None:
        """Closes a client. Errors are ignored."""
        close = getattr(client, "close", None)
        if close is not None:
            close()


def found_payloads(
    found: Iterable[tuple[bytes, str, int]], metadata: Sequence[str]
) -> pa.RecordBatch:
    """Returns the result of `LookupSource.lookup` for payloads.

    Each has its origin and the index of its key. The metadata columns have the origin, too.
    """
    columns = list(zip(*found, strict=True)) or [(), (), ()]
    batch = pa.RecordBatch.from_arrays(
        [pa.array(c, f.type) for c, f in zip(columns, PAYLOAD, strict=True)], schema=PAYLOAD
    )
    for name in metadata:
        batch = batch.append_column(name, batch.column("origin"))
    return batch
